/* cpu_attention_pack.h - right sides of products, packed: of f32 for gemm_packed, or of bf16 for gemm_tiles where the
   file that includes this one defines ATTENTION_BF16. */
#ifndef CPU_ATTENTION_PACK_H
#define CPU_ATTENTION_PACK_H

#include "backends/cpu/attention/cpu_attention.h"

#ifdef ATTENTION_BF16
#include "backends/cpu/gemm/gemm_tiles.h"
#define ELEMENT          uint16_t
#define PRODUCT          struct tile_gemm
#define PACK_RIGHT       tile_pack_b
#define PACKED_ROW(many) tile_padded(many)
#else
#define ELEMENT           float
#define PRODUCT           struct gemm
#define PACK_RIGHT(to, g) VARIANT(gemm_pack_b)(to, g, 0, 1)
#define PACKED_ROW(many)  (((many) + LANES - 1) / LANES * LANES)
#endif

/* x^T[depth, rows], where the rows of x lie `row` elements apart. */
INLINE void pack_turned(ELEMENT *to, const ELEMENT *x, int64_t rows, int64_t row, int64_t depth)
{
    const PRODUCT g = {.n = rows, .k = depth, .b = x, .b_step = 1, .b_column = row};
    PACK_RIGHT(to, &g);
}

/* x[rows, depth] by blocks of `block` rows. */
INLINE void pack_blocks(ELEMENT *to, const ELEMENT *x, int64_t rows, int64_t row, int64_t depth, int64_t block)
{
    for (int64_t i = 0; i < rows; i += block) {
        const PRODUCT g = {.n = depth, .k = min_i64(rows - i, block), .b = x + i * row, .b_step = row, .b_column = 1};
        PACK_RIGHT(to + i * PACKED_ROW(depth), &g);
    }
}

#endif
