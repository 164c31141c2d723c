/* gemm_tiles.c - matrix products of bf16 by the processor's matrix tiles (AMX), or by pairs in the same order
   (tile_pairs.h).

   A tile is 16 rows of 64 bytes. Of A it holds 16 rows of 32 steps; of B 16 pairs of steps by 16 columns, the two of a
   pair side by side; sums are 16 x 16 floats. Four of sums, two of A and two of B make a block of 32 x 32. B is
   packed for some columns and all steps; A is read where it lies when its steps do, else packed block by block. */
#include "backends/cpu/gemm/gemm_tiles.h"

#include "backends/cpu/gemm/gemm.h"

#if LANES == 16

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cpu/cpu_own.h"
#include "backends/cpu/gemm/tile_pairs.h"
#include "backends/cpu/gemm/tile_steps.h"

#define SIDE  TILE_SIDE /* rows of a tile, and its words of 4 bytes a row */
#define WORDS TILE_WORDS
#define TILES __attribute__((target("amx-tile,amx-bf16")))

/* The state of tiles is more than a thread has by itself: Linux wants to be asked, once a process. */
#define REQUEST_STATE 0x1023 /* ARCH_REQ_XCOMP_PERM */
#define TILE_STATE    18     /* XFEATURE_XTILEDATA */

static enum tile_kind ask(void)
{
    unsigned a, b, c, d;
    bool there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1); /* AMX-BF16, AMX-TILE */
    if (there && syscall(SYS_arch_prctl, REQUEST_STATE, TILE_STATE) == 0)
        return TILES_AMX;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) ? TILES_PAIRS : TILES_NONE; /* AVX512_BF16 */
}

enum tile_kind tile_kind(void)
{
    static _Atomic int known; /* 0: not yet */
    if (!known)
        known = 1 + (int)ask();
    return (enum tile_kind)(known - 1);
}

/* ---- packing -------------------------------------------------------------- */

/* to[p, i] = (from[2p, i], from[2p + 1, i]) for the first k rows and `width` columns; zeros behind them. */
static void take_pairs(uint32_t *to, const uint16_t *from, int64_t step, int64_t k, int64_t width)
{
    for (int64_t p = 0; p < SIDE; p++) {
        const uint16_t *low = 2 * p < k ? from + 2 * p * step : NULL;
        const uint16_t *high = 2 * p + 1 < k ? from + (2 * p + 1) * step : NULL;
        _mm512_storeu_si512(to + p * SIDE, tile_pair(low, high, width));
    }
}

/* to[i] = k elements of row i, which lie together. */
static void take_rows(uint32_t *to, const uint16_t *from, int64_t row, int64_t rows, int64_t k)
{
    __mmask32 mask = k >= TILE_BLOCK ? 0xffffffff : (1u << k) - 1;
    for (int64_t i = 0; i < SIDE; i++)
        _mm512_storeu_si512(to + i * SIDE,
                            i < rows ? _mm512_maskz_loadu_epi16(mask, from + i * row) : _mm512_setzero_si512());
}

static void turn(uint32_t *to, const uint32_t *from)
{
    VARIANT(transpose_tile)((float *)to, SIDE, (const float *)from, SIDE, SIDE);
}

/* One tile; k, rows and width: what is left of the matrix from here on. */
static void pack_a_tile(uint32_t *to, const struct tile_gemm *g, int64_t row, int64_t step)
{
    const uint16_t *from = g->a + row * g->a_row + step * g->a_step;
    uint32_t turned[WORDS];
    if (row >= g->m) {
        memset(to, 0, WORDS * sizeof *to);
    } else if (g->a_step == 1) {
        take_rows(to, from, g->a_row, g->m - row, g->k - step);
    } else {
        take_pairs(turned, from, g->a_step, g->k - step, g->m - row);
        turn(to, turned);
    }
}

static void pack_b_tile(uint32_t *to, const struct tile_gemm *g, int64_t step, int64_t column)
{
    const uint16_t *from = g->b + step * g->b_step + column * g->b_column;
    uint32_t turned[WORDS];
    if (column >= g->n) {
        memset(to, 0, WORDS * sizeof *to);
    } else if (g->b_column == 1) {
        take_pairs(to, from, g->b_step, g->k - step, g->n - column);
    } else {
        take_rows(turned, from, g->b_column, g->n - column, g->k - step);
        turn(to, turned);
    }
}

/* 32 columns, all steps: pairs of tiles. */
static void pack_b_columns(uint16_t *out, const struct tile_gemm *g, int64_t column)
{
    uint32_t *to = (uint32_t *)out;
    for (int64_t step = 0; step < g->k; step += TILE_BLOCK, to += 2 * WORDS) {
        pack_b_tile(to, g, step, column);
        pack_b_tile(to + WORDS, g, step, column + SIDE);
    }
}

void tile_pack_b(uint16_t *to, const struct tile_gemm *g)
{
    for (int64_t column = 0; column < g->n; column += TILE_BLOCK)
        pack_b_columns(to + column * tile_padded(g->k), g, column);
}

/* ---- the product ---------------------------------------------------------- */

/* A's tiles: where they lie, and how far apart. */
struct tile_rows {
    const uint16_t *a;
    int64_t next, second; /* elements to the next 32 steps, to the second 16 rows */
    int64_t stride;       /* bytes between rows */
};

/* 32 rows where they lie, if they and their steps are whole; else a copy. */
static struct tile_rows rows_of(const struct tile_gemm *g, int64_t row, uint32_t *room)
{
    if (g->a_step == 1 && g->m - row >= TILE_BLOCK && g->k % TILE_BLOCK == 0)
        return (struct tile_rows){g->a + row * g->a_row, TILE_BLOCK, SIDE * g->a_row, g->a_row * 2};
    uint32_t *to = room;
    for (int64_t step = 0; step < g->k; step += TILE_BLOCK, to += 2 * WORDS) {
        pack_a_tile(to, g, row, step);
        pack_a_tile(to + WORDS, g, row + SIDE, step);
    }
    return (struct tile_rows){(const uint16_t *)room, 4 * WORDS, 2 * WORDS, SIDE * 4};
}

/* sums[32, 32] = a[32, k] . b[k, 32] */
TILES static void tile_block(float *sums, const struct tile_rows *a, const uint16_t *b, int64_t k)
{
    const uint16_t *first = a->a, *second = a->a + a->second;
    __asm__ volatile("" ::: "memory"); /* gcc does not know that loading a tile reads what was packed */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t step = 0; step < k; step += TILE_BLOCK, first += a->next, second += a->next, b += 4 * WORDS) {
        _tile_loadd(4, first, (long)a->stride);
        _tile_loadd(6, b, SIDE * 4);
        _tile_loadd(5, second, (long)a->stride);
        _tile_loadd(7, b + 2 * WORDS, SIDE * 4);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, TILE_BLOCK * 4);
    _tile_stored(1, sums + SIDE, TILE_BLOCK * 4);
    _tile_stored(2, sums + SIDE * TILE_BLOCK, TILE_BLOCK * 4);
    _tile_stored(3, sums + SIDE * TILE_BLOCK + SIDE, TILE_BLOCK * 4);
}

/* The rows and columns of the block that are in C. */
static void block(float *sums, const struct tile_rows *a, const uint16_t *b, int64_t k, int64_t rows, int64_t columns)
{
    if (tile_kind() == TILES_AMX) {
        tile_block(sums, a, b, k);
        return;
    }
    const struct tile_pairs pairs = {.a = a->a,
                                     .a_row = a->stride / 2,
                                     .next = a->next,
                                     .steps = (k + TILE_BLOCK - 1) / TILE_BLOCK,
                                     .pairs = SIDE,
                                     .b = b,
                                     .half = columns <= SIDE,
                                     .rows = rows < TILE_BLOCK ? (int)rows : 0};
    tile_pairs_run(sums, &pairs);
}

static void put(const struct tile_gemm *g, const float *sums, int64_t row, int64_t column)
{
    int64_t rows = tile_smaller(g->m - row, TILE_BLOCK), width = tile_smaller(g->n - column, TILE_BLOCK);
    const float *bias = g->bias ? g->bias + column : NULL;
    for (int64_t i = 0; i < rows; i++, sums += TILE_BLOCK) {
        int64_t at = (row + i) * g->c_row + column;
        if (g->c_wide)
            tile_put_wide_row((float *)g->c + at, sums, bias, g->relu, g->add, width);
        else
            tile_put_row((uint16_t *)g->c + at, sums, bias, g->relu, width);
    }
}

/* Eight tiles, all whole. Constant: gcc believes that only its first bytes are read. */
static const struct {
    uint8_t palette, start, rest[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} shapes = {
    .palette = 1,
    .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE},
};

TILES static void load_shapes(void)
{
    _tile_loadconfig(&shapes);
}

TILES static void release_tiles(void)
{
    _tile_release();
}

static int64_t packed_steps(const struct tile_gemm *g)
{
    return tile_padded(g->packed_steps ? g->packed_steps : g->k);
}

/* Columns column..end, which are packed at b. */
static void run_columns(const struct tile_gemm *g, const uint16_t *b, int64_t column, int64_t end, uint32_t *a_room,
                        float *sums)
{
    for (int64_t row = 0; row < g->m; row += TILE_BLOCK) {
        struct tile_rows a = rows_of(g, row, a_room);
        for (int64_t j = column; j < end; j += TILE_BLOCK) {
            if (g->add)
                tile_fetch((const float *)g->c + row * g->c_row + j, g->c_row, tile_smaller(g->m - row, TILE_BLOCK));
            block(sums, &a, b + (j - column) * packed_steps(g), g->k, g->m - row, g->n - j);
            put(g, sums, row, j);
        }
    }
}

void gemm_tiles(const struct tile_gemm *g)
{
    float *sums = (float *)g->room;
    uint32_t *a_room = (uint32_t *)(sums + TILE_BLOCK * TILE_BLOCK);
    uint16_t *b_room = (uint16_t *)a_room + TILE_BLOCK * tile_padded(g->k);
    int64_t some = tile_columns(g->n, g->k);
    if (tile_kind() == TILES_AMX)
        load_shapes();
    for (int64_t column = 0; column < g->n; column += some) {
        int64_t end = column + tile_smaller(g->n - column, some);
        for (int64_t j = column; !g->b_packed && j < end; j += TILE_BLOCK)
            pack_b_columns(b_room + (j - column) * tile_padded(g->k), g, j);
        const uint16_t *b = g->b_packed ? g->b_packed + column * packed_steps(g) : b_room;
        run_columns(g, b, column, end, a_room, sums);
    }
    if (tile_kind() == TILES_AMX)
        release_tiles();
}

#endif
