/* tile_steps.h - sums of products of bf16 by the processor's matrix tiles (AMX) or by pairs, where each step of the sum
   reads its rows at a place of its own: convolutions over cells where they lie.

   A block is 32 rows by 32 columns of f32 sums. A step is `width` elements, even, at most 32, of each row; of B two
   tiles of width / 2 pairs of elements by 16 columns, one behind the other. */
#ifndef CPU_TILE_STEPS_H
#define CPU_TILE_STEPS_H

#include "backends/cpu/gemm/gemm_tiles.h"
#include "backends/cpu/vector.h"

#if LANES == 16

#define TILE_SIDE  16
#define TILE_WORDS (TILE_SIDE * TILE_SIDE)

struct tile_steps {
    const uint16_t *a;
    int64_t a_row;     /* bytes between rows */
    const int64_t *at; /* elements from `a` to the first row of each step; NULL: `next` between them */
    int64_t next;
    int64_t steps, width;
    const uint16_t *b;
    bool half;           /* only the first 16 columns are wanted: without tiles the others are left as they are */
    int64_t every, last; /* the last of each `every` steps has `last` elements, then B is 0; every 0: all are whole */
    int first, rows;     /* of the block that are wanted: without tiles others are left as they are. rows 0: all */
};

/* Around calls of tile_steps_run with one width. */
void tile_steps_begin(int64_t width);
void tile_steps_end(void);
/* sums[32, 32] = the sum of all steps. */
void tile_steps_run(float *sums, const struct tile_steps *s);

/* 16 elements as words; those from `width` on are 0 and not read. */
INLINE __m512i tile_load_16(const uint16_t *from, int64_t width)
{
    __mmask16 mask = width >= TILE_SIDE ? 0xffff : width <= 0 ? 0 : (__mmask16)((1u << width) - 1);
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
}

/* The first `width` of 16 columns of two rows, side by side; NULL is a row of zeros. */
INLINE __m512i tile_pair(const uint16_t *low, const uint16_t *high, int64_t width)
{
    __m512i a = low ? tile_load_16(low, width) : _mm512_setzero_si512();
    __m512i b = high ? tile_load_16(high, width) : _mm512_setzero_si512();
    return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
}

/* Sixteen sums as bf16, rounded to the nearest, ties to even. */
INLINE __m256i tile_rounded(__m512 x)
{
    __m512i bits = _mm512_castps_si512(x), last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i near = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
    __mmask16 none = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    near = _mm512_mask_or_epi32(near, none, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(near, 16));
}

INLINE __m512 tile_finished(__m512 x, const float *bias, __mmask16 mask, bool relu)
{
    if (bias)
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, bias));
    return relu ? _mm512_max_ps(_mm512_setzero_ps(), x) : x; /* what is not a number stays so */
}

/* to[j] = act(sums[j] + bias[j]) for j < width <= 32; bias may be NULL. */
INLINE void tile_put_row(uint16_t *to, const float *sums, const float *bias, bool relu, int64_t width)
{
    if (width == TILE_BLOCK) { /* a whole line */
        __m512 low = tile_finished(_mm512_loadu_ps(sums), bias, 0xffff, relu);
        __m512 high = tile_finished(_mm512_loadu_ps(sums + TILE_SIDE), bias ? bias + TILE_SIDE : NULL, 0xffff, relu);
        __m512i line = _mm512_castsi256_si512(tile_rounded(low));
        _mm512_storeu_si512(to, _mm512_inserti64x4(line, tile_rounded(high), 1));
        return;
    }
    for (int64_t j = 0; j < width; j += TILE_SIDE) {
        __mmask16 mask = width - j >= TILE_SIDE ? 0xffff : (__mmask16)((1u << (width - j)) - 1);
        __m512 x = tile_finished(_mm512_loadu_ps(sums + j), bias ? bias + j : NULL, mask, relu);
        _mm256_mask_storeu_epi16(to + j, mask, tile_rounded(x));
    }
}

/* Rows of a block that sums will be added to, `row` floats apart: they come while products are done. */
INLINE void tile_fetch(const float *to, int64_t row, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        __builtin_prefetch(to + i * row, 1);
        __builtin_prefetch(to + i * row + TILE_SIDE, 1);
    }
}

/* As tile_put_row, in f32; add: to what is there. */
INLINE void tile_put_wide_row(float *to, const float *sums, const float *bias, bool relu, bool add, int64_t width)
{
    for (int64_t j = 0; j < width; j += TILE_SIDE) {
        __mmask16 mask = width - j >= TILE_SIDE ? 0xffff : (__mmask16)((1u << (width - j)) - 1);
        __m512 x = tile_finished(_mm512_loadu_ps(sums + j), bias ? bias + j : NULL, mask, relu);
        if (add)
            x = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to + j), x);
        if (width - j >= TILE_SIDE)
            _mm512_storeu_ps(to + j, x);
        else
            _mm512_mask_storeu_ps(to + j, mask, x);
    }
}

#endif

#endif
