/* cpu_row_sums.h - sums over a row of floats and its largest, compiled once an instruction set: row_total and row_dot
   in f32 for short rows; the other sums by vectors of f32 within a block and f64 from block to block, so that long
   rows lose no digits. */
#ifndef CPU_ROW_SUMS_H
#define CPU_ROW_SUMS_H

#include <stdbool.h>

#include "backends/cpu/vector.h"

#define SUM_BLOCK 2048 /* elements that are added in f32 */
#define WAYS      4    /* independent sums */

/* LANES partial sums, then their sum: one fixed order. */
INLINE float row_total(const float *x, int64_t count)
{
    vector sum = vector_all(0);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        sum += vector_load(x + i);
    if (i < count)
        sum += vector_load_part(x + i, (int)(count - i));
    return vector_sum(sum);
}

/* sum(x * y), in the same order. */
INLINE float row_dot(const float *x, const float *y, int64_t count)
{
    vector sum = vector_all(0);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        sum = vector_madd(vector_load(x + i), vector_load(y + i), sum);
    if (i < count)
        sum = vector_madd(vector_load_part(x + i, (int)(count - i)), vector_load_part(y + i, (int)(count - i)), sum);
    return vector_sum(sum);
}

/* Of at least one; what is not a number counts only in the first place. */
INLINE float row_largest(const float *x, int64_t count)
{
    vector most = vector_all(x[0]), other = most;
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        most = vector_max(vector_load(x + i), most);
        other = vector_max(vector_load(x + i + LANES), other);
    }
    for (; i + LANES <= count; i += LANES)
        most = vector_max(vector_load(x + i), most);
    float largest = vector_largest(vector_max(other, most));
    for (; i < count; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* to[j] += x[i, j] for all rows i, in order: gradients of biases. */
INLINE void add_rows(float *restrict to, const float *restrict x, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++)
            to[j] += x[i * width + j];
}

/* One vector, or float, more in a sum of x, or of (x - mean)^2. */
INLINE vector joined_lanes(vector sum, vector x, vector mean, const bool squares)
{
    if (squares)
        return vector_madd(x - mean, x - mean, sum);
    return sum + x;
}
INLINE float joined(float sum, float x, float mean, const bool squares)
{
    return squares ? madd(x - mean, x - mean, sum) : sum + x;
}

INLINE double sum_in_blocks(const float *x, int64_t count, float mean, const bool squares)
{
    const vector middle = vector_all(mean);
    double total = 0;
    for (int64_t i = 0; i < count;) {
        int64_t end = count - i < SUM_BLOCK ? count : i + SUM_BLOCK;
        vector sum[WAYS] = {vector_all(0), vector_all(0), vector_all(0), vector_all(0)};
        float rest = 0;
        for (; i + WAYS * LANES <= end; i += WAYS * LANES) {
            UNROLL
            for (int way = 0; way < WAYS; way++)
                sum[way] = joined_lanes(sum[way], vector_load(x + i + way * LANES), middle, squares);
        }
        for (; i + LANES <= end; i += LANES)
            sum[0] = joined_lanes(sum[0], vector_load(x + i), middle, squares);
        for (; i < end; i++)
            rest = joined(rest, x[i], mean, squares);
        total += (double)vector_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + (double)rest;
    }
    return total;
}

static inline double sum_of_row(const float *x, int64_t count)
{
    return sum_in_blocks(x, count, 0, false);
}

/* Of (x - mean)^2. */
static inline double squares_of_row(const float *x, int64_t count, float mean)
{
    return sum_in_blocks(x, count, mean, true);
}

#endif
