/* cpu_batch_normalize_pairs.h - runs of bf16 through batch normalisation, two vectors at a time: the even and the odd
   elements of a vector of words. Tables and sums of a run have the same order: of each 2 * LANES elements the even ones
   first (pair_place). */
#ifndef CPU_BATCH_NORMALIZE_PAIRS_H
#define CPU_BATCH_NORMALIZE_PAIRS_H

#include "backends/cpu/rows/cpu_channels.h"
#include "ops/elementwise/activation.h"

#define LONGEST_PAIRED 8192 /* elements of a run */

/* Calls a function whose last argument is an activation with a constant one, which its loops are expanded for. */
#define BY_ACTIVATION(act, function, ...)                                                                              \
    ((act) == ACTIVATION_RELU    ? function(__VA_ARGS__, ACTIVATION_RELU)                                              \
     : (act) == ACTIVATION_RELU6 ? function(__VA_ARGS__, ACTIVATION_RELU6)                                             \
                                 : function(__VA_ARGS__, ACTIVATION_NONE))

/* Where element i of a run stands in a table. */
INLINE int64_t pair_place(int64_t i)
{
    int64_t inside = i % (2 * LANES);
    return i - inside + inside % 2 * LANES + inside / 2;
}

/* The first multiple of the channels that is a run, and whole pairs of vectors. */
INLINE int64_t paired_run(int64_t width)
{
    int64_t run = width;
    while (run < LEAST_RUN || run % (2 * LANES))
        run += width;
    return run;
}

/* y = act((x - mean) * scale + shift) */
void VARIANT(normalize_pairs)(uint16_t *y, const uint16_t *x, const float *tables, int64_t run, int64_t length,
                              enum activation act);
/* sums[0, run) += dz, sums[run, 2 run) += dz (x - mean) */
void VARIANT(add_pairs_of_sums)(float *sums, const uint16_t *dy, const uint16_t *x, const float *tables, int64_t run,
                                int64_t length, enum activation act);
/* dx = scale * dz + slope * (x - mean) + offset */
void VARIANT(gradient_pairs)(uint16_t *dx, const uint16_t *dy, const uint16_t *x, const float *tables, int64_t run,
                             int64_t length, enum activation act);

#endif
