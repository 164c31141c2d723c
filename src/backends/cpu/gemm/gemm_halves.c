/* gemm_halves.c - matrix products of one vector and a half of columns.

   Tiles of two vectors would leave a quarter of each multiply-add unused. Here the half of two steps is one vector, its
   lanes in turns (b[s, j], b[s + 1, j], b[s, j + 1] ...), met by two steps of A in turns: three multiply-adds for two
   steps, all of their lanes at work. In the end even and odd lanes are added: sums of the columns behind the first
   vector are two chains, of even and of odd steps. */
#include "backends/cpu/gemm/gemm.h"

#include <math.h>

#define HALF (LANES / 2)
#define LINE 16 /* floats of a cache line */
#define TALL GEMM_TALL

/* Two steps: both lines of the first vector, then the halves. */
void VARIANT(gemm_pack_halves)(float *to, const struct gemm *g)
{
    for (int64_t s = 0; s < g->k; s++)
        for (int64_t j = 0; j < GEMM_HALVES; j++) {
            float *two = to + s / 2 * 2 * GEMM_HALVES, x = g->b[s * g->b_step + j * g->b_column];
            two[j < LANES ? s % 2 * LANES + j : 2 * LANES + (j - LANES) * 2 + s % 2] = x;
        }
}

/* c[0, HALF] of both chains. */
INLINE vector join(vector halves)
{
    return __builtin_shufflevector(halves, halves, LANED_EVEN) + __builtin_shufflevector(halves, halves, LANED_ODD);
}

/* rows is a constant where this is expanded. */
INLINE void halves_tile(const struct gemm *g, int64_t row, const int rows)
{
    vector sum[TALL], halves[TALL];
    vector first = g->bias ? vector_load(g->bias) : vector_all(0);
    vector behind = g->bias ? vector_load_part(g->bias + LANES, HALF) : vector_all(0);
    UNROLL
    for (int i = 0; i < rows; i++) {
        sum[i] = first;
        halves[i] = vector_all(0);
    }
    /* Four rows a pointer: an offset for each row would not stay in a register. */
    const int64_t step = g->a_row, step_3 = 3 * step;
    const float *a0 = g->a + row * step, *a4 = a0 + 4 * step, *a8 = a4 + 4 * step, *a12 = a8 + 4 * step;
    const float *b = g->b_packed, *ahead = a0 + rows * step;
    for (int64_t s = 0; s < g->k; s += 2, a0 += 2, a4 += 2, a8 += 2, a12 += 2, b += 3 * LANES, ahead += 2 * LINE) {
        vector even = vector_load(b), odd = vector_load(b + LANES), both = vector_load(b + 2 * LANES);
        __builtin_prefetch(ahead, 0, 3);
        __builtin_prefetch(ahead + LINE, 0, 3);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const float *four = i < 4 ? a0 : i < 8 ? a4 : i < 12 ? a8 : a12;
            const float *a = four + (i % 4 == 3 ? step_3 : i % 4 * step);
            sum[i] = vector_madd(vector_all(a[0]), even, sum[i]);
            halves[i] = vector_madd(vector_two(a), both, halves[i]);
            sum[i] = vector_madd(vector_all(a[1]), odd, sum[i]);
        }
    }
    const vector least = vector_all(g->relu ? 0 : -INFINITY);
    UNROLL
    for (int i = 0; i < rows; i++) {
        float *c = g->c + (row + i) * g->c_row;
        vector_store(c, vector_max(least, sum[i]));
        vector_store_part(c + LANES, vector_max(least, join(halves[i]) + behind), HALF);
    }
}

void VARIANT(gemm_halves)(const struct gemm *g)
{
    int64_t row = 0;
    for (; row + TALL <= g->m; row += TALL)
        halves_tile(g, row, TALL);
    for (; row + 4 <= g->m; row += 4)
        halves_tile(g, row, 4);
    for (; row < g->m; row++)
        halves_tile(g, row, 1);
}
