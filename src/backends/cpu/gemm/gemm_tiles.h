/* gemm_tiles.h - matrix products of bf16 with sums in f32, by what the processor has for them: matrix tiles (AMX), or
   products of pairs in vectors (AVX512_BF16). */
#ifndef CPU_GEMM_TILES_H
#define CPU_GEMM_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/numbers/minmax.h"

/* c[i, j] = act(bias[j] + sum over s of a[i, s] * b[s, j]). The bits of an element do not depend on which others are
   asked for. */
struct tile_gemm {
    int64_t m, n, k;
    const uint16_t *a;
    int64_t a_row, a_step; /* elements between i and i + 1, between s and s + 1: one of them is 1 */
    const uint16_t *b;
    int64_t b_step, b_column;
    const uint16_t *b_packed; /* all of B by tile_pack_b, or NULL */
    int64_t packed_steps;     /* of b_packed, of which the first k are taken; 0: k */
    void *c;
    int64_t c_row;
    bool c_wide;       /* c is f32, else bf16 */
    bool add;          /* to a wide c */
    const float *bias; /* or NULL */
    bool relu;
    char *room; /* tile_room_bytes, aligned to 64 */
};

#define TILE_BLOCK  32                 /* rows, columns and steps that are done together */
#define TILE_PACKED ((int64_t)1 << 18) /* elements of B that are packed at once, at most, or one block of columns */

static inline int64_t tile_padded(int64_t extent)
{
    return (extent + TILE_BLOCK - 1) / TILE_BLOCK * TILE_BLOCK;
}

/* Columns of B that are packed at once. */
static inline int64_t tile_columns(int64_t n, int64_t k)
{
    int64_t some = TILE_PACKED / tile_padded(k) / TILE_BLOCK * TILE_BLOCK, all = tile_padded(n);
    return some < TILE_BLOCK ? TILE_BLOCK : some < all ? some : all;
}

/* A part of a worker's room, at a cache line. Without a scratch: *at alone moves on, to what all take. */
static inline void *tile_room_at(char *scratch, size_t *at, size_t bytes)
{
    void *here = scratch ? scratch + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return here;
}

/* Enough for every product of at most n columns and k steps: of fewer steps more columns are packed at once, never more
   than TILE_PACKED elements where that is more than one block. */
static inline int64_t tile_room_bytes(int64_t n, int64_t k, bool b_packed)
{
    int64_t one = TILE_BLOCK * tile_padded(k), all = tile_padded(n) * tile_padded(k);
    int64_t some = all < TILE_PACKED ? all : TILE_PACKED;
    int64_t packed = b_packed ? 0 : some > one ? some : one;
    return (packed + one) * 2 + TILE_BLOCK * TILE_BLOCK * 4;
}

/* What the processor has, and the system allows. The blocks and the order of what is packed are AMX's for both. */
enum tile_kind {
    TILES_NONE,
    TILES_PAIRS,
    TILES_AMX,
};
enum tile_kind tile_kind(void);
static inline bool tiles_allowed(void)
{
    return tile_kind() != TILES_NONE;
}
/* What kernels that use them are called. */
static inline const char *tiles_name(void)
{
    return tile_kind() == TILES_AMX ? "own amx" : "own avx512_bf16";
}
void gemm_tiles(const struct tile_gemm *g);
/* All of B: tile_padded(k) * tile_padded(n) elements. */
void tile_pack_b(uint16_t *to, const struct tile_gemm *g);

#endif
