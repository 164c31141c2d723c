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
#include "backends/cpu/gemm/tile_steps.h"

#define SIDE  TILE_SIDE /* rows of a tile, and its words of 4 bytes a row */
#define WORDS TILE_WORDS

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
    int64_t next;   /* elements to the next 32 steps */
    int64_t stride; /* bytes between rows */
};

/* 32 rows where they lie, if they and their steps are whole; else a copy. */
static struct tile_rows rows_of(const struct tile_gemm *g, int64_t row, uint32_t *room)
{
    if (g->a_step == 1 && g->m - row >= TILE_BLOCK && g->k % TILE_BLOCK == 0)
        return (struct tile_rows){g->a + row * g->a_row, TILE_BLOCK, g->a_row * 2};
    uint32_t *to = room;
    for (int64_t step = 0; step < g->k; step += TILE_BLOCK, to += 2 * WORDS) {
        pack_a_tile(to, g, row, step);
        pack_a_tile(to + WORDS, g, row + SIDE, step);
    }
    return (struct tile_rows){(const uint16_t *)room, 4 * WORDS, SIDE * 4};
}

/* sums[32, 32] = a[32, k] . b[k, 32]; rows and columns: those of the block that are in C. */
static void block(float *sums, const struct tile_rows *a, const uint16_t *b, int64_t k, int64_t rows, int64_t columns)
{
    const struct tile_steps steps = {.a = a->a,
                                     .a_row = a->stride,
                                     .next = a->next,
                                     .steps = (k + TILE_BLOCK - 1) / TILE_BLOCK,
                                     .width = TILE_BLOCK,
                                     .b = b,
                                     .half = columns <= SIDE,
                                     .rows = rows < TILE_BLOCK ? (int)rows : 0};
    tile_steps_run(sums, &steps);
}

static void store_tile(const struct tile_gemm *g, const float *sums, int64_t row, int64_t column)
{
    int64_t rows = min_i64(g->m - row, TILE_BLOCK), width = min_i64(g->n - column, TILE_BLOCK);
    const float *bias = g->bias ? g->bias + column : NULL;
    for (int64_t i = 0; i < rows; i++, sums += TILE_BLOCK) {
        int64_t at = (row + i) * g->c_row + column;
        if (g->c_wide)
            tile_put_wide_row((float *)g->c + at, sums, bias, g->relu, g->add, width);
        else
            tile_put_row((uint16_t *)g->c + at, sums, bias, g->relu, width);
    }
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
                tile_fetch((const float *)g->c + row * g->c_row + j, g->c_row, min_i64(g->m - row, TILE_BLOCK));
            block(sums, &a, b + (j - column) * packed_steps(g), g->k, g->m - row, g->n - j);
            store_tile(g, sums, row, j);
        }
    }
}

void gemm_tiles(const struct tile_gemm *g)
{
    float *sums = (float *)g->room;
    uint32_t *a_room = (uint32_t *)(sums + TILE_BLOCK * TILE_BLOCK);
    uint16_t *b_room = (uint16_t *)a_room + TILE_BLOCK * tile_padded(g->k);
    int64_t some = tile_columns(g->n, g->k);
    tile_steps_begin(TILE_BLOCK);
    for (int64_t column = 0; column < g->n; column += some) {
        int64_t end = column + min_i64(g->n - column, some);
        for (int64_t j = column; !g->b_packed && j < end; j += TILE_BLOCK)
            pack_b_columns(b_room + (j - column) * tile_padded(g->k), g, j);
        const uint16_t *b = g->b_packed ? g->b_packed + column * packed_steps(g) : b_room;
        run_columns(g, b, column, end, a_room, sums);
    }
    tile_steps_end();
}

#endif
