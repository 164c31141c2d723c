/* cpu_channels.h - rows of channels: what kernels that treat each channel alone
   share. Compiled once an instruction set, with the files that include it.

   Channels repeat: what belongs to them is laid out several times over, so that a
   run is at least LEAST_RUN long and loops stay vectors however few channels there are.
   size[0]: elements of a sample, size[1]: channels, size[2]: a run, a multiple of the channels. */
#ifndef CPU_CHANNELS_H
#define CPU_CHANNELS_H

#include "backends/cpu/cpu_bf16.h"
#include "backends/cpu/cpu_own.h"
#include "ops/elementwise/activation.h"

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

/* ---- runs by their tables -------------------------------------------------- */

INLINE float activated(float z, enum activation activation)
{
    if (activation != ACTIVATION_NONE)
        z = z < 0 ? 0 : z;
    if (activation == ACTIVATION_RELU6)
        z = z > 6 ? 6 : z;
    return z;
}

/* y = act((x - mean) * scale + shift) */
INLINE void normalize(float *y, const float *x, const float *tables, int64_t run, int64_t count, enum activation act)
{
    const float *mean = tables, *scale = tables + TABLE_SCALE * run, *shift = tables + TABLE_SHIFT * run;
    for (int64_t i = 0; i < count; i += run, x += run, y += run) {
        int64_t length = count - i < run ? count - i : run;
        INDEPENDENT
        for (int64_t k = 0; k < length; k++)
            y[k] = activated(madd(x[k] - mean[k], scale[k], shift[k]), act);
    }
}

/* dy where the activation let z through; z as forward computed it. */
INLINE float behind(float dy, float x, float mean, float scale, float shift, enum activation activation)
{
    float z = madd(x - mean, scale, shift);
    if (activation != ACTIVATION_NONE)
        dy = z > 0 ? dy : 0;
    if (activation == ACTIVATION_RELU6)
        dy = z < 6 ? dy : 0;
    return dy;
}

/* direct += dz, centred += dz (x - mean) */
INLINE void add_run(float *restrict direct, float *restrict centred, const float *dy, const float *x,
                    const float *tables, int64_t run, int64_t length, enum activation act)
{
    const float *mean = tables, *scale = tables + TABLE_SCALE * run, *shift = tables + TABLE_SHIFT * run;
    for (int64_t k = 0; k < length; k++) {
        float dz = behind(dy[k], x[k], mean[k], scale[k], shift[k], act);
        direct[k] += dz;
        centred[k] = madd(dz, x[k] - mean[k], centred[k]);
    }
}

/* dx = scale * dz + slope * (x - mean) + offset */
INLINE void gradient_run(float *dx, const float *dy, const float *x, const float *tables, int64_t run, int64_t length,
                         enum activation act)
{
    const float *mean = tables, *scale = tables + TABLE_SCALE * run, *shift = tables + TABLE_SHIFT * run;
    const float *slope = tables + TABLE_SLOPE * run, *offset = tables + TABLE_OFFSET * run;
    INDEPENDENT
    for (int64_t k = 0; k < length; k++) {
        float dz = behind(dy[k], x[k], mean[k], scale[k], shift[k], act);
        dx[k] = madd(scale[k], dz, madd(slope[k], x[k] - mean[k], offset[k]));
    }
}

#endif
