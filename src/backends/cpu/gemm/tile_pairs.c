/* tile_pairs.c - the blocks of tile_pairs.h, some rows at a time: 22 sums, two of B and one of A are 25 of 32
   registers. */
#include "backends/cpu/gemm/tile_pairs.h"

#include <string.h>

#include "backends/cpu/vector.h"

#if LANES == 16

#define SIDE  16
#define MOST  11 /* rows: 32 are 11, 11 and 10 */
#define BLOCK 32
#define PAIRS __attribute__((target("avx512bf16")))

INLINE __m512i pair_at(const uint16_t *a)
{
    int32_t both;
    memcpy(&both, a, sizeof both);
    return _mm512_set1_epi32(both);
}

/* Rows of A from `row` on; rows and tiles (of columns) are constants where this is expanded. */
PAIRS INLINE void run_rows(float *sums, const struct tile_pairs *t, int64_t row, const int rows, const int tiles)
{
    __m512 sum[MOST][2];
    UNROLL
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    const uint16_t *b = t->b;
    /* Four rows a pointer: an offset for each row would not stay in a register. */
    const int64_t step = t->a_row, step_3 = 3 * step, pairs = t->pairs;
    for (int64_t s = 0, until = t->every; s < t->steps; s++, b += pairs * 4 * SIDE) {
        const uint16_t *a0 = t->a + (t->at ? t->at[s] : s * t->next) + row * step, *a4 = a0 + 4 * step;
        const uint16_t *a8 = a4 + 4 * step;
        int64_t some = pairs;
        if (--until == 0)
            some = t->last, until = t->every;
        for (int64_t p = 0; p < some; p++, a0 += 2, a4 += 2, a8 += 2) {
            __m512bh left = (__m512bh)_mm512_loadu_si512(b + p * 2 * SIDE);
            __m512bh right = tiles > 1 ? (__m512bh)_mm512_loadu_si512(b + (pairs + p) * 2 * SIDE) : left;
            UNROLL
            for (int i = 0; i < rows; i++) {
                const uint16_t *four = i < 4 ? a0 : i < 8 ? a4 : a8;
                __m512bh x = (__m512bh)pair_at(four + (i % 4 == 3 ? step_3 : i % 4 * step));
                sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, left);
                if (tiles > 1)
                    sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, right);
            }
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        _mm512_storeu_ps(sums + (row + i) * BLOCK, sum[i][0]);
        if (tiles > 1)
            _mm512_storeu_ps(sums + (row + i) * BLOCK + SIDE, sum[i][1]);
    }
}

#define ROWS(n)                                                                                                        \
    PAIRS static void run_##n(float *sums, const struct tile_pairs *t, int64_t row)                                    \
    {                                                                                                                  \
        if (t->half)                                                                                                   \
            run_rows(sums, t, row, n, 1);                                                                              \
        else                                                                                                           \
            run_rows(sums, t, row, n, 2);                                                                              \
    }
ROWS(1)
ROWS(2)
ROWS(3)
ROWS(4)
ROWS(5)
ROWS(6)
ROWS(7)
ROWS(8)
ROWS(9)
ROWS(10)
ROWS(11)

static void (*const run_some[MOST])(float *sums, const struct tile_pairs *t, int64_t row) = {
    run_1, run_2, run_3, run_4, run_5, run_6, run_7, run_8, run_9, run_10, run_11};

/* As few groups as there can be, as equal as they can be: a sum alone would wait for itself. */
PAIRS void tile_pairs_run(float *sums, const struct tile_pairs *t)
{
    int row = t->first, end = t->rows ? t->first + t->rows : BLOCK;
    for (int groups = (end - row + MOST - 1) / MOST; groups > 0; groups--) {
        int some = (end - row + groups - 1) / groups;
        run_some[some - 1](sums, t, row);
        row += some;
    }
}

#endif
