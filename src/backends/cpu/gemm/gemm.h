/* gemm.h - matrix products in f32. gemm: over matrices where they lie, A by any
   strides, rows of B and C contiguous. gemm_packed: through copies in the order of
   reading, for products of many rows. */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/vector.h"

/* c[i, j] = act(start + sum over s of a[i, s] * b[s, j]), for i < m, j < n, s < k.
   Each c[i, j] is one chain of multiply-adds in the order of s, whatever the
   blocking, so a cut of rows or columns does not change its bits. */
struct gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_step; /* floats between i and i + 1, between s and s + 1 */
    const float *b;
    int64_t b_step;   /* between s and s + 1 */
    int64_t b_column; /* between j and j + 1; gemm takes it for 1 */
    float *c;
    int64_t c_row;
    const float *bias; /* [n], or NULL: where the sum starts */
    bool add;          /* the sum starts with c (then no bias) */
    bool relu;
    /* gemm_packed only: */
    float *room;           /* GEMM_ROOM floats; GEMM_ROWS_ROOM where b_packed is given */
    int64_t room_tiles;    /* of A that are copied at once, where nothing is packed: GEMM_TILE_ROOM more each; 0: 1 */
    const float *a_packed; /* all of A by gemm_pack_a, or NULL */
    const float *b_packed; /* all of B by gemm_pack_b, or NULL; both: of one block of rows and steps */
    int64_t packed_steps;  /* of b_packed, of which the first k are taken: at most GEMM_MOST_STEPS; 0: k */
    bool a_in_place;       /* A is read where it lies (then with b_packed, and no room): it is in a cache anyway */
    /* With a_in_place: what will be written when the product is there, fetched while it runs; `soon_floats` of it. */
    const float *soon;
    int64_t soon_floats;
    /* Steps of A lie in runs, as the cells of a strided convolution do (then a_row is 1): step_jump floats between the
       beginnings of two runs, a_step inside. 0: all are one run. */
    int64_t step_run, step_jump;
};

void VARIANT(gemm)(const struct gemm *g);

/* The same product, the same bits, B by any strides too. Rows of A are copied in
   tiles and B in panels: here, into `room`, or before, by those who use them again. */
#define GEMM_K_BLOCK       512                                    /* steps */
#define GEMM_MOST_STEPS    (GEMM_K_BLOCK + GEMM_K_BLOCK / 2 + 16) /* of a last block; 16 samples of 7 x 7 are one */
#define GEMM_BLOCK_COLUMNS 256                                    /* of B: a third of the second-level cache */
#define GEMM_BLOCK_ROWS    (8 * GEMM_TALL)                        /* of A, where B is packed already */
#define GEMM_PANEL         (2 * LANES)
#if LANES == 16
#define GEMM_TALL 14 /* 28 sums, 2 of B, 1 of A: 31 of 32 registers */
#elif LANES == 8
#define GEMM_TALL 6 /* 12 sums, 2 of B, 1 of A: 15 of 16 registers */
#else
#define GEMM_TALL 4 /* no more than LANES: tiles are packed by whole vectors */
#endif
#define GEMM_ROWS_ROOM (GEMM_MOST_STEPS * GEMM_BLOCK_ROWS + LANES)
#define GEMM_ROOM      (GEMM_MOST_STEPS * (GEMM_TALL + GEMM_BLOCK_COLUMNS) + LANES)
#define GEMM_TILE_ROOM (GEMM_MOST_STEPS * GEMM_TALL)
void VARIANT(gemm_packed)(const struct gemm *g);

/* Floats of a packed A[m, k], of a packed B[k, n]. */
INLINE int64_t gemm_a_floats(int64_t m, int64_t k)
{
    return (m + GEMM_TALL - 1) / GEMM_TALL * GEMM_TALL * k + LANES;
}
INLINE int64_t gemm_b_floats(int64_t k, int64_t n)
{
    return (n + LANES - 1) / LANES * LANES * k;
}
/* Tiles (panels) that are a share of the whole: unit `unit` of `units`. */
void VARIANT(gemm_pack_a)(float *to, const struct gemm *g, int unit, int units);
void VARIANT(gemm_pack_b)(float *to, const struct gemm *g, int unit, int units);

/* Products of n = GEMM_HALVES columns, A where it lies with a_step 1, an even number of steps, B packed into k * n
   floats, nothing added to c. Rows may be cut, columns not: other chains of multiply-adds than the two above. */
#define GEMM_HALVES (LANES + LANES / 2)
void VARIANT(gemm_pack_halves)(float *to, const struct gemm *g);
void VARIANT(gemm_halves)(const struct gemm *g);

/* y[i] = act(bias + sum over s of x[i, s] * w[s]): n = 1, lanes along s. */
struct gemv {
    int64_t m, k;
    const float *x;
    int64_t x_row;
    const float *w;
    float *y;
    int64_t y_row;
    float bias;
    bool relu;
};

void VARIANT(gemv)(const struct gemv *g);

/* to[j, i] = from[i, j] for i < rows, j < columns. */
void VARIANT(transpose)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns);

/* The same for LANES columns and at most LANES rows, all vectors written whole: zeros where rows are missing. */
void VARIANT(transpose_tile)(float *to, int64_t to_row, const float *from, int64_t from_row, int rows);

/* transpose_tile, expanded in its caller. log2(LANES) rounds of interleaving rows i and i + LANES / 2 transpose a
   square. */
INLINE void transpose_lanes(float *to, int64_t to_row, const float *from, int64_t from_row, int rows)
{
    vector x[LANES], y[LANES];
    UNROLL
    for (int i = 0; i < LANES; i++)
        x[i] = i < rows ? vector_load(from + i * from_row) : vector_all(0);
    UNROLL
    for (int round = 1; round < LANES; round *= 2) {
        UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = __builtin_shufflevector(x[i], x[i + LANES / 2], LANED_LOW);
            y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + LANES / 2], LANED_HIGH);
        }
        UNROLL
        for (int i = 0; i < LANES; i++)
            x[i] = y[i];
    }
    UNROLL
    for (int i = 0; i < LANES; i++)
        vector_store(to + i * to_row, x[i]);
}

#endif
