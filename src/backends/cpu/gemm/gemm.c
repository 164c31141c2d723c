/* gemm.c - matrix products by register tiles.

   A tile is ROWS x VECTORS accumulators that stay in registers over a block of
   K_BLOCK steps. Blocks keep what the tiles of a column panel read again in the
   first-level cache; between blocks C waits in memory. */
#include "backends/cpu/gemm/gemm.h"

#define K_BLOCK   96
#define TILE_ROWS 6
#define LINE      16 /* floats of a cache line */

/* One block of a product, for one tile: c += a . b */
struct block {
    const float *a, *b;
    float *c;
    int64_t a_row, a_step, b_step, c_row, k;
    const float *bias;
    const float *ahead; /* of b: what the next block will read; prefetched a line a step */
    int part;           /* lanes of the last vector, when it is not whole */
    bool first, last;
    bool add, relu;
};

INLINE vector load(const float *p, int part, bool partial)
{
    return partial ? vector_load_part(p, part) : vector_load(p);
}

INLINE void store(float *p, vector x, int part, bool partial)
{
    if (partial)
        vector_store_part(p, x, part);
    else
        vector_store(p, x);
}

INLINE vector start(const struct block *t, int row, int column, bool partial)
{
    if (t->add || !t->first)
        return load(t->c + row * t->c_row + column, t->part, partial);
    return t->bias ? load(t->bias + column, t->part, partial) : vector_all(0);
}

/* rows, vectors and partial are constants where this is expanded. */
INLINE void tile(const struct block *t, const int rows, const int vectors, const bool partial)
{
    vector sum[TILE_ROWS * 2][TILE_VECTORS];
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = start(t, i, j * LANES, partial);
    }
    const float *a = t->a, *b = t->b, *ahead = t->ahead;
    for (int64_t s = 0; s < t->k; s++, a += t->a_step, b += t->b_step, ahead += t->b_step) {
        vector line[TILE_VECTORS];
        __builtin_prefetch(ahead, 0, 2);
        UNROLL
        for (int j = 0; j < vectors; j++)
            line[j] = load(b + j * LANES, t->part, partial);
        UNROLL
        for (int i = 0; i < rows; i++) {
            vector x = vector_all(a[i * t->a_row]);
            UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] = vector_madd(x, line[j], sum[i][j]);
        }
    }
    bool relu = t->relu && t->last;
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++) {
            vector y = relu ? vector_max(vector_all(0), sum[i][j]) : sum[i][j];
            store(t->c + i * t->c_row + j * LANES, y, t->part, partial);
        }
    }
}

typedef void tile_function(const struct block *t);

#define TILE(rows, vectors)                                                                                            \
    static void tile_##rows##_##vectors(const struct block *t)                                                         \
    {                                                                                                                  \
        tile(t, rows, vectors, false);                                                                                 \
    }
#define PART(rows)                                                                                                     \
    static void part_##rows(const struct block *t)                                                                     \
    {                                                                                                                  \
        tile(t, rows, 1, true);                                                                                        \
    }
#define TILES(vectors)                                                                                                 \
    TILE(1, vectors) TILE(2, vectors) TILE(3, vectors) TILE(4, vectors) TILE(5, vectors) TILE(6, vectors)
#define TILE_NAMES(vectors)                                                                                            \
    {                                                                                                                  \
        tile_1_##vectors, tile_2_##vectors, tile_3_##vectors, tile_4_##vectors, tile_5_##vectors, tile_6_##vectors     \
    }

TILES(1)
TILES(2)
TILE(12, 1)
PART(1)
PART(2)
PART(3)
PART(4)
PART(5)
PART(6)
PART(12)
static tile_function *const tiles_1[TILE_ROWS] = TILE_NAMES(1);
static tile_function *const tiles_2[TILE_ROWS] = TILE_NAMES(2);
static tile_function *const tiles_part[TILE_ROWS] = {part_1, part_2, part_3, part_4, part_5, part_6};

#if TILE_VECTORS == 4
TILES(4)
TILE(12, 2)
static tile_function *const tiles_4[TILE_ROWS] = TILE_NAMES(4);
#endif

/* How wide a panel may be, widest first. tall: 12 rows, or NULL. */
static const struct panel {
    int vectors;
    tile_function *const *by_rows;
    tile_function *tall;
} panels[] = {
#if TILE_VECTORS == 4
    {4, tiles_4, NULL},
    {2, tiles_2, tile_12_2},
#else
    {2, tiles_2, NULL},
#endif
    {1, tiles_1, tile_12_1},
};
static const struct panel last_panel = {1, tiles_part, part_12};

static void run_panel(const struct panel *panel, struct block *t, int64_t m)
{
    const float *end = t->ahead + panel->vectors * LANES;
    int64_t i = 0;
    while (i < m) {
        int64_t rows = m - i < TILE_ROWS ? m - i : TILE_ROWS;
        if (panel->tall && m - i >= 2 * TILE_ROWS) {
            rows = 2 * TILE_ROWS;
            panel->tall(t);
        } else {
            panel->by_rows[rows - 1](t);
        }
        t->a += rows * t->a_row;
        t->c += rows * t->c_row;
        i += rows;
        /* Each tile another column of lines, until the panel has no more. */
        t->ahead = t->ahead + LINE < end ? t->ahead + LINE : t->b;
    }
}

/* Steps from..from + count of all rows and columns. */
static void run_block(const struct gemm *g, int64_t from, int64_t count)
{
    const struct panel *panel = panels;
    int64_t width, next = from + count < g->k ? from + count : from;
    for (int64_t j = 0; j < g->n; j += width) {
        while (panel != &last_panel && g->n - j < panel->vectors * LANES)
            panel = panel->vectors > 1 ? panel + 1 : &last_panel;
        width = panel == &last_panel ? g->n - j : panel->vectors * LANES;
        struct block t = {
            .a = g->a + from * g->a_step,
            .b = g->b + from * g->b_step + j,
            .c = g->c + j,
            .a_row = g->a_row,
            .a_step = g->a_step,
            .b_step = g->b_step,
            .c_row = g->c_row,
            .k = count,
            .bias = g->bias ? g->bias + j : NULL,
            .ahead = g->b + next * g->b_step + j,
            .part = (int)width,
            .first = from == 0,
            .last = from + count == g->k,
            .add = g->add,
            .relu = g->relu,
        };
        run_panel(panel, &t, g->m);
    }
}

void VARIANT(gemm)(const struct gemm *g)
{
    int64_t from = 0;
    do {
        int64_t left = g->k - from;
        int64_t count = left < K_BLOCK + K_BLOCK / 2 ? left : K_BLOCK; /* no stub of a last block */
        run_block(g, from, count);
        from += count;
    } while (from < g->k);
}

INLINE void gemv_rows(const struct gemv *g, int64_t row, const int rows)
{
    vector sum[4];
    const float *x = g->x + row * g->x_row;
    UNROLL
    for (int i = 0; i < rows; i++)
        sum[i] = vector_all(0);
    int64_t s = 0;
    for (; s + LANES <= g->k; s += LANES) {
        vector w = vector_load(g->w + s);
        for (int i = 0; i < rows; i++)
            sum[i] = vector_madd(vector_load(x + i * g->x_row + s), w, sum[i]);
    }
    if (s < g->k) {
        int part = (int)(g->k - s);
        vector w = vector_load_part(g->w + s, part);
        for (int i = 0; i < rows; i++)
            sum[i] = vector_madd(vector_load_part(x + i * g->x_row + s, part), w, sum[i]);
    }
    for (int i = 0; i < rows; i++) {
        float y = vector_sum(sum[i]) + g->bias;
        g->y[(row + i) * g->y_row] = g->relu && y < 0 ? 0 : y;
    }
}

void VARIANT(gemv)(const struct gemv *g)
{
    int64_t row = 0;
    for (; row + 4 <= g->m; row += 4)
        gemv_rows(g, row, 4);
    for (; row < g->m; row++)
        gemv_rows(g, row, 1);
}

void VARIANT(transpose_tile)(float *to, int64_t to_row, const float *from, int64_t from_row, int rows)
{
    transpose_lanes(to, to_row, from, from_row, rows);
}

void VARIANT(transpose)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t j = 0; j < columns; j += LANES) {
            if (rows - i >= LANES && columns - j >= LANES) {
                transpose_lanes(to + j * to_row + i, to_row, from + i * from_row + j, from_row, LANES);
                continue;
            }
            for (int64_t u = i; u < rows && u < i + LANES; u++)
                for (int64_t v = j; v < columns && v < j + LANES; v++)
                    to[v * to_row + u] = from[u * from_row + v];
        }
}
