/* tile_steps.c - the blocks of tile_steps.h. */
#include "backends/cpu/gemm/tile_steps.h"

#include "backends/cpu/gemm/tile_pairs.h"

#if LANES == 16

#define TILES __attribute__((target("amx-tile,amx-bf16")))

/* Four tiles of sums, two of A, two of B. */
struct shapes {
    uint8_t palette, start, rest[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

TILES static void load_shapes(int64_t width)
{
    struct shapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.bytes[i] = (uint16_t)(i == 4 || i == 5 ? width * 2 : 64);
        shapes.rows[i] = (uint8_t)(i < 6 ? TILE_SIDE : width / 2);
    }
    /* gcc believes that only the first bytes are read */
    __asm__ volatile("" ::"r"(&shapes) : "memory");
    _tile_loadconfig(&shapes);
}

TILES static void release_tiles(void)
{
    _tile_release();
}

TILES static void run_tiles(float *sums, const struct tile_steps *s)
{
    const uint16_t *b = s->b;
    const int64_t half = s->a_row / 2 * TILE_SIDE, tile = s->width * TILE_SIDE;
    __asm__ volatile("" ::: "memory"); /* gcc does not know that loading a tile reads memory */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < s->steps; i++, b += 2 * tile) {
        const uint16_t *a = s->a + (s->at ? s->at[i] : i * s->next);
        _tile_loadd(4, a, (long)s->a_row);
        _tile_loadd(6, b, TILE_SIDE * 4);
        _tile_loadd(5, a + half, (long)s->a_row);
        _tile_loadd(7, b + tile, TILE_SIDE * 4);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, TILE_BLOCK * 4);
    _tile_stored(1, sums + TILE_SIDE, TILE_BLOCK * 4);
    _tile_stored(2, sums + TILE_SIDE * TILE_BLOCK, TILE_BLOCK * 4);
    _tile_stored(3, sums + TILE_SIDE * TILE_BLOCK + TILE_SIDE, TILE_BLOCK * 4);
    __asm__ volatile("" ::: "memory");
}

void tile_steps_begin(int64_t width)
{
    if (tile_kind() == TILES_AMX)
        load_shapes(width);
}

void tile_steps_end(void)
{
    if (tile_kind() == TILES_AMX)
        release_tiles();
}

void tile_steps_run(float *sums, const struct tile_steps *s)
{
    if (tile_kind() == TILES_AMX) {
        run_tiles(sums, s);
        return;
    }
    const struct tile_pairs pairs = {.a = s->a,
                                     .a_row = s->a_row / 2,
                                     .at = s->at,
                                     .next = s->next,
                                     .steps = s->steps,
                                     .pairs = s->width / 2,
                                     .b = s->b,
                                     .half = s->half,
                                     .every = s->every,
                                     .last = (s->last + 1) / 2,
                                     .first = s->first,
                                     .rows = s->rows};
    tile_pairs_run(sums, &pairs);
}

#endif
