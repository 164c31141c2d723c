/* cpu_channels.h - rows of channels: what kernels that treat each channel alone
   share. Compiled once an instruction set, with the files that include it.

   Channels repeat: what belongs to them is laid out several times over, so that a
   run is at least LEAST_RUN long and loops stay vectors however few channels there are.
   size[0]: elements of a sample, size[1]: channels, size[2]: a run, a multiple of the channels. */
#ifndef CPU_CHANNELS_H
#define CPU_CHANNELS_H

#include "backends/cpu/cpu_bf16.h"
#include "backends/cpu/cpu_own.h"

#define LEAST_RUN  128
#define BLOCK_RUNS 16 /* runs that are added in f32 before they go into an f64 sum */

/* Tables of a run each, one behind the other. */
enum table { TABLE_MEAN, TABLE_SCALE, TABLE_SHIFT, TABLE_SLOPE, TABLE_OFFSET, TABLES };

INLINE void set_sizes(struct cpu_kernel *out, const struct tensor *x)
{
    int64_t width = x->shape.dim[x->shape.rank - 1];
    out->size[0] = shape_row(&x->shape);
    out->size[1] = width;
    out->size[2] = width * ((LEAST_RUN + width - 1) / width);
}

/* small: x is bf16. */
INLINE void add_moments(double *restrict sum, double *restrict squares, const void *x, int64_t count, const bool small)
{
    for (int64_t i = 0; i < count; i++) {
        double a = element_at(x, i, small);
        sum[i] += a;
        squares[i] += a * a;
    }
}

/* Four runs at once: the sums are loaded and stored a quarter as often. */
INLINE void add_four_moments(double *restrict sum, double *restrict squares, const void *x, int64_t run,
                             const bool small)
{
    const void *y = element_of(x, run, small), *z = element_of(y, run, small), *w = element_of(z, run, small);
    for (int64_t i = 0; i < run; i++) {
        double a = element_at(x, i, small), b = element_at(y, i, small);
        double c = element_at(z, i, small), d = element_at(w, i, small);
        sum[i] += (a + b) + (c + d);
        squares[i] += (a * a + b * b) + (c * c + d * d);
    }
}

/* The repetitions of a channel, in order. */
INLINE double folded(const double *sum, int64_t channel, int64_t width, int64_t run)
{
    double total = sum[channel];
    for (int64_t i = channel + width; i < run; i += width)
        total += sum[i];
    return total;
}

INLINE void put_table(float *tables, enum table table, const int64_t *size, int64_t channel, double value)
{
    for (int64_t i = channel; i < size[2]; i += size[1])
        tables[table * size[2] + i] = (float)value;
}

/* Of `count` elements: sum[0, run) and squares behind it, by place in the run. */
INLINE void sum_moments(double *sum, const void *x, int64_t run, int64_t count, const bool small)
{
    int64_t i = 0;
    memset(sum, 0, (size_t)run * 2 * sizeof *sum);
    for (; i + 4 * run <= count; i += 4 * run)
        add_four_moments(sum, sum + run, element_of(x, i, small), run, small);
    for (; i < count; i += run)
        add_moments(sum, sum + run, element_of(x, i, small), count - i < run ? count - i : run, small);
}

#endif
