/* tile_pairs.h - a block of gemm_tiles.h and tile_steps.h without matrix tiles: by the instruction that multiplies two
   pairs of bf16 in each lane (AVX512_BF16). */
#ifndef CPU_TILE_PAIRS_H
#define CPU_TILE_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

struct tile_pairs {
    const uint16_t *a;
    int64_t a_row;     /* elements between rows */
    const int64_t *at; /* elements from `a` to the first row of each step; NULL: `next` between them */
    int64_t next;
    int64_t steps, pairs; /* of elements in a step: at most 16 */
    const uint16_t *b;    /* of each step two tiles of `pairs` by 16 columns */
    bool half;            /* the first of the two alone */
    int64_t every, last;  /* the last of each `every` steps has `last` pairs alone; every 0: all are whole */
    int first, rows;      /* rows of the block that are wanted; 0: from `first` on all */
};

/* sums[32, 32] = the sum of all steps. Rows and columns that nobody wants are left as they are, and such rows of A are
   not read. */
void tile_pairs_run(float *sums, const struct tile_pairs *t);

#endif
