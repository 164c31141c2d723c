/* gemm_packed.c - GEMM with packed A and B panels, for large matrices (Goto/BLIS blocking).

   B is cut into blocks of K_BLOCK rows (along the K dimension) and BLOCK_COLUMNS columns, and each block into panels as
   wide as a tile. A is cut into tiles of TALL rows. A tile of A stays in the L1 cache while the panels of a block
   stream from the L2 cache; C is traversed along its rows. Between blocks of K the partial sums stay in C in memory, so
   each element of C is one chain of multiply-adds in the order of s, the index along K, bit for bit the result of
   gemm.c.

   A packed matrix stores the blocks of K one after another. Each block of A consists of tiles of k lines of TALL
   floats, each block of B of panels of k lines of one or two vectors (zeros after the last column). */
#include "backends/cpu/gemm/gemm.h"
#include "base/numbers/count.h"
#include "base/numbers/minmax.h"

#define K_BLOCK       GEMM_K_BLOCK
#define BLOCK_COLUMNS GEMM_BLOCK_COLUMNS
#define TALL          GEMM_TALL
#define PANEL         GEMM_PANEL
#define PANEL_VECTORS (PANEL / LANES)
#define LINE          16 /* floats per cache line */

/* One tile: c[rows, width] (+)= a[rows, k] . b[k, PANEL]. */
struct packed_tile {
    const float *a, *b, *bias;
    float *c;
    const float *next;  /* start of the next tile's c: prefetched */
    const float *ahead; /* data that is used later: prefetched into the L2 cache, one cache line per iteration over K */
    int64_t c_row, k;
    int64_t b_steps;       /* lines of a panel: k or more */
    int64_t a_row, a_step; /* strides of a tile that is not packed */
    const float *later;    /* for run_tile: `ahead` of the first panel; NULL: none */
    int64_t later_panel;   /* floats from `ahead` of one panel to that of the next; 0: first panel only */
    int width;             /* columns of c that exist */
    bool first, last, add, relu;
};

/* In this function and the next ones, rows, vectors and whole are compile-time constants after inlining. A condition is
   checked once per tile and not once per sum, because checks per sum would cost a tenth of the time of a GEMM with a
   small K. */
INLINE void load_sums(vector sum[TALL][PANEL_VECTORS], const struct packed_tile *t, const int rows, const int vectors,
                      const bool whole)
{
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = vector_load_columns(t->c + i * t->c_row, j * LANES, whole ? vectors * LANES : t->width);
    }
}

INLINE void store_sums(vector sum[TALL][PANEL_VECTORS], const struct packed_tile *t, const int rows, const int vectors,
                       const bool whole)
{
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            vector_store_columns(t->c + i * t->c_row, sum[i][j], j * LANES, whole ? vectors * LANES : t->width);
    }
}

/* Initializes the sums to the bias, or to 0 without a bias. */
INLINE void first_sums(vector sum[TALL][PANEL_VECTORS], const struct packed_tile *t, const int rows, const int vectors)
{
    UNROLL
    for (int j = 0; j < vectors; j++) {
        vector first = t->bias ? vector_load_columns(t->bias, j * LANES, t->width) : vector_all(0);
        UNROLL
        for (int i = 0; i < rows; i++)
            sum[i][j] = first;
    }
}

INLINE void relu_sums(vector sum[TALL][PANEL_VECTORS], const int rows, const int vectors)
{
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = vector_max(vector_all(0), sum[i][j]);
    }
}

/* placed: A is read in place and is not packed. */
INLINE void packed_tile(const struct packed_tile *t, const int rows, const int vectors, const bool placed)
{
    vector sum[TALL][PANEL_VECTORS];
    const bool whole = t->width == vectors * LANES;
    if (t->first && !t->add)
        first_sums(sum, t, rows, vectors);
    else if (whole)
        load_sums(sum, t, rows, vectors, true);
    else
        load_sums(sum, t, rows, vectors, false);
    /* There is one pointer per four rows, because an offset for each row would not stay in a register. */
    const int64_t row = placed ? t->a_row : 1, row_3 = 3 * row, step = placed ? t->a_step : TALL;
    const float *a0 = t->a, *a4 = a0 + 4 * row, *a8 = a4 + 4 * row, *a12 = a8 + 4 * row, *b = t->b;
    const float *ahead = t->ahead, *next = t->next;
    /* Prefetches the next tile's c, one row of it every few iterations over K, because prefetching all rows at once
       would occupy all the fill buffers through which b is loaded. */
    int64_t some = (t->k + rows - 1) / rows;
    for (int64_t left = t->k; left > 0; left -= some, next += t->c_row) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            __builtin_prefetch(next + j * LINE, 1, 3);
        for (int64_t s = left < some ? left : some; s > 0; s--) {
            vector line[PANEL_VECTORS];
            __builtin_prefetch(ahead, 0, 2);
            UNROLL
            for (int j = 0; j < vectors; j++)
                line[j] = vector_load(b + j * LANES);
            UNROLL
            for (int i = 0; i < rows; i++) {
                const float *four = i < 4 ? a0 : i < 8 ? a4 : i < 12 ? a8 : a12;
                vector x = vector_all(placed ? four[i % 4 == 3 ? row_3 : i % 4 * row] : a0[i]);
                UNROLL
                for (int j = 0; j < vectors; j++)
                    sum[i][j] = vector_madd(x, line[j], sum[i][j]);
            }
            a0 += step, a4 += step, a8 += step, a12 += step, b += vectors * LANES, ahead += LINE;
        }
    }
    if (t->relu && t->last)
        relu_sums(sum, rows, vectors);
    if (whole)
        store_sums(sum, t, rows, vectors, true);
    else
        store_sums(sum, t, rows, vectors, false);
}

typedef void packed_function(const struct packed_tile *t);

#define TILE(rows, vectors)                                                                                            \
    static void packed_##rows##_##vectors(const struct packed_tile *t)                                                 \
    {                                                                                                                  \
        packed_tile(t, rows, vectors, false);                                                                          \
    }                                                                                                                  \
    static void placed_##rows##_##vectors(const struct packed_tile *t)                                                 \
    {                                                                                                                  \
        packed_tile(t, rows, vectors, true);                                                                           \
    }
#define NAME(rows, vectors)   packed_##rows##_##vectors,
#define PLACED(rows, vectors) placed_##rows##_##vectors,
/* Tile heights that have code of their own. Other heights are composed of these, because code for every height would be
   three times as large. */
#if GEMM_TALL == 14
#define EACH(what, v) what(1, v) what(2, v) what(4, v) what(7, v) what(8, v) what(12, v) what(14, v)
static const int heights[] = {1, 2, 4, 7, 8, 12, 14};
#elif GEMM_TALL == 6
#define EACH(what, v) what(1, v) what(2, v) what(4, v) what(6, v)
static const int heights[] = {1, 2, 4, 6};
#else
#define EACH(what, v) what(1, v) what(2, v) what(4, v)
static const int heights[] = {1, 2, 4};
#endif
EACH(TILE, 1)
EACH(TILE, 2)
static packed_function *const by_height[2][PANEL_VECTORS][COUNT(heights)] = {
    {{EACH(NAME, 1)}, {EACH(NAME, 2)}},
    {{EACH(PLACED, 1)}, {EACH(PLACED, 2)}},
};

/* Multiplies `height` rows of a tile of A by one panel of B, the tallest pieces first. */
static void run_panel(const struct packed_tile *t, packed_function *const *functions, int64_t height, int64_t a_row)
{
    if (height == TALL) { /* *t is not copied, because the copy would wait for the fields that were just stored */
        functions[COUNT(heights) - 1](t);
        return;
    }
    struct packed_tile piece = *t;
    for (int i = COUNT(heights) - 1; height > 0; i--)
        for (; height >= heights[i]; height -= heights[i]) {
            functions[i](&piece);
            piece.a += heights[i] * a_row;
            piece.c += heights[i] * t->c_row;
            piece.next += heights[i] * t->c_row;
        }
}

/* The smallest height with code of its own that is at least `rows`; rows is at most TALL. */
static int height_of(int64_t rows)
{
    int i = 0;
    while (heights[i] < rows)
        i++;
    return heights[i];
}

/* ---- packing ------------------------------------------------------------- */

/* K of the block that begins where `left` of the K dimension remain. The last block may have up to GEMM_MOST_STEPS, so
   that no short block remains. */
static int64_t block_steps(int64_t left)
{
    return left <= GEMM_MOST_STEPS ? left : K_BLOCK;
}

/* Vectors per line of the panel that begins where `left` columns remain. */
INLINE int panel_vectors(int64_t left)
{
    return left > LANES ? 2 : 1;
}

static int64_t padded(int64_t extent, int64_t to)
{
    return (extent + to - 1) / to * to;
}

/* Packs b[from.., column..], with any strides, into one panel of k lines. */
static void pack_panel(float *to, const struct gemm *g, int64_t from, int64_t k, int64_t column)
{
    int64_t width = min_i64(g->n - column, PANEL);
    int line = panel_vectors(width) * LANES;
    const float *b = g->b + from * g->b_step + column * g->b_column;
    if (g->b_column == 1) {
        for (int64_t s = 0; s < k; s++)
            for (int j = 0; j < line; j += LANES)
                vector_store(to + s * line + j, vector_load_columns(b + s * g->b_step, j, (int)width));
        return;
    }
    if (width < line)
        memset(to, 0, (size_t)(k * line) * sizeof *to);
    if (g->b_step == 1) {
        VARIANT(transpose)(to, line, b, g->b_column, width, k);
        return;
    }
    for (int64_t s = 0; s < k; s++)
        for (int64_t j = 0; j < width; j++)
            to[s * line + j] = b[s * g->b_step + j * g->b_column];
}

/* Packs `rows` rows of an A whose columns are contiguous (a_row is 1) into consecutive tiles: each column is read once,
   in one piece. */
static void pack_steps(float *to, const struct gemm *g, int64_t row, int64_t rows, int64_t from, int64_t k)
{
    int64_t run = g->step_run ? g->step_run : g->k + 1, left = run - from % run;
    const float *a = g->a + row + from / run * g->step_jump + from % run * g->a_step;
    for (int64_t s = 0; s < k; s++, a += g->a_step) {
        if (left-- == 0) {
            a += g->step_jump - run * g->a_step;
            left = run - 1;
        }
        for (int64_t i = 0; i < rows; i += TALL) {
            vector x = vector_load_columns(a + i, 0, (int)min_i64(rows - i, TALL));
            if (s + 1 < k)
                vector_store(to + i * k + s * TALL, x);
            else
                vector_store_columns(to + i * k + s * TALL, x, 0, TALL);
        }
    }
}

/* Packs a[row.., from..] into one tile of k lines. Lines are written in order and with whole vectors; the next line
   overwrites what a line writes beyond its end. The last line does not write beyond its end, because the tile after it
   may be another thread's. */
static void pack_tile(float *to, const struct gemm *g, int64_t row, int64_t from, int64_t k)
{
    int height = (int)min_i64(g->m - row, TALL);
    const float *a = g->a + row * g->a_row + from * g->a_step;
    float last[LANES * TALL + LANES];
    int64_t s = 0;
    if (g->a_row == 1) {
        pack_steps(to, g, row, height, from, k);
        return;
    }
    for (; g->a_step == 1 && s + LANES < k; s += LANES)
        VARIANT(transpose_tile)(to + s * TALL, TALL, a + s, g->a_row, height);
    if (g->a_step == 1 && s + LANES == k) {
        VARIANT(transpose_tile)(last, TALL, a + s, g->a_row, height);
        memcpy(to + s * TALL, last, LANES * TALL * sizeof *to);
        return;
    }
    for (; s < k; s++)
        for (int i = 0; i < height; i++)
            to[s * TALL + i] = a[i * g->a_row + s * g->a_step];
}

/* Packs `rows` rows of A, at most GEMM_BLOCK_ROWS, into consecutive tiles. */
static void pack_tiles(float *to, const struct gemm *g, int64_t row, int64_t rows, int64_t from, int64_t k)
{
    if (g->a_row == 1)
        pack_steps(to, g, row, rows, from, k);
    else
        for (int64_t i = 0; i < rows; i += TALL)
            pack_tile(to + i * k, g, row + i, from, k);
}

void VARIANT(gemm_pack_a)(float *to, const struct gemm *g, int unit, int units)
{
    int64_t tiles = padded(g->m, TALL) / TALL, first = tiles * unit / units, end = tiles * (unit + 1) / units;
    for (int64_t from = 0, k; from < g->k; from += k, to += tiles * TALL * k) {
        k = block_steps(g->k - from);
        for (int64_t i = first; i < end; i++)
            pack_tile(to + i * TALL * k, g, i * TALL, from, k);
    }
}

void VARIANT(gemm_pack_b)(float *to, const struct gemm *g, int unit, int units)
{
    int64_t panels = padded(g->n, PANEL) / PANEL, first = panels * unit / units, end = panels * (unit + 1) / units;
    for (int64_t from = 0, k; from < g->k; from += k, to += padded(g->n, LANES) * k) {
        k = block_steps(g->k - from);
        for (int64_t j = first; j < end; j++)
            pack_panel(to + j * PANEL * k, g, from, k, j * PANEL);
    }
}

/* ---- the GEMM ------------------------------------------------------------ */

/* The part of g->soon, which will be written soon, that panel `panel` of tile `tile` prefetches, one cache line per
   iteration over K; NULL: nothing is left. The first panel of each tile prefetches none of it, because it prefetches
   other data. */
static const float *soon_of(const struct gemm *g, int64_t tile, int64_t panel, int64_t k)
{
    int64_t others = padded(g->n, PANEL) / PANEL - 1, at = (tile * others + panel - 1) * k * LINE;
    return g->soon && panel > 0 && at < g->soon_floats ? g->soon + at : NULL;
}

/* Multiplies a tile of at most `tall` rows of A by the panels of a block of B. b: the block's first panel. */
static void run_tile(const struct gemm *g, struct packed_tile *t, const float *b, int64_t tall, int64_t row,
                     int64_t column, int64_t columns)
{
    int64_t height = min_i64(g->m - row, tall);
    float *c = g->c + row * g->c_row + column;
    const float *below = row + height < g->m ? c + height * g->c_row : c;
    for (int64_t j = 0; j < columns; j += PANEL) {
        int64_t left = columns - j;
        t->b = b + j * t->b_steps;
        t->c = c + j;
        t->next = left > PANEL ? c + j + PANEL : below;
        const float *soon = soon_of(g, row / tall, (column + j) / PANEL, t->k);
        t->ahead = t->later && (j == 0 || t->later_panel) ? t->later + j / PANEL * t->later_panel : soon ? soon : t->b;
        t->width = (int)min_i64(left, PANEL);
        t->bias = g->bias ? g->bias + column + j : NULL;
        run_panel(t, by_height[g->a_in_place][panel_vectors(left) - 1], height, g->a_in_place ? g->a_row : 1);
    }
}

static struct packed_tile tile_of(const struct gemm *g, int64_t from, int64_t k)
{
    return (struct packed_tile){
        .c_row = g->c_row,
        .k = k,
        .b_steps = g->packed_steps ? g->packed_steps : k,
        .a_row = g->a_row,
        .a_step = g->a_step,
        .first = from == 0,
        .last = from + k == g->k,
        .add = g->add,
        .relu = g->relu,
    };
}

/* Columns per block of B where run_columns packs it. Blocks with a small k have more columns; all blocks are as equal
   as the panel width allows. */
static int64_t block_columns(int64_t n, int64_t k)
{
    int64_t most = k > 0 && k < K_BLOCK ? K_BLOCK * BLOCK_COLUMNS / k : BLOCK_COLUMNS;
    int64_t blocks = n > most ? (n + most - 1) / most : 1;
    return padded((n + blocks - 1) / blocks, PANEL);
}

/* Multiplies the slice [from, from + k) of the K dimension for one block of columns of B, which is packed here. */
static void run_columns(const struct gemm *g, int64_t from, int64_t k, int64_t column, int64_t columns)
{
    float *panels = g->room, *tiles = g->room + k * padded(columns, LANES);
    int64_t some = g->room_tiles > 1 ? g->room_tiles * TALL : TALL;
    const float *a = g->a_packed ? g->a_packed + from * padded(g->m, TALL) : NULL;
    struct packed_tile t = tile_of(g, from, k);
    for (int64_t j = 0; j < columns; j += PANEL)
        pack_panel(panels + j * k, g, from, k, column + j);
    for (int64_t row = 0; row < g->m; row += TALL) {
        if (!a && row % some == 0)
            pack_tiles(tiles, g, row, min_i64(g->m - row, some), from, k);
        t.a = a ? a + row * k : tiles + row % some * k;
        t.later = a && row + TALL < g->m ? t.a + TALL * k : NULL;
        run_tile(g, &t, panels, TALL, row, column, columns);
    }
}

/* Multiplies the slice [from, from + k) of the K dimension for one block of rows of A. B is packed already; A is packed
   here, unless it is packed already or read in place. */
static void run_rows(const struct gemm *g, int64_t from, int64_t k, int64_t row, int64_t rows)
{
    const float *b = g->b_packed + from * padded(g->n, LANES);
    struct packed_tile t = tile_of(g, from, k);
    const float *a = g->a_in_place ? g->a + row * g->a_row + from * g->a_step : g->a_packed ? g->a_packed : g->room;
    int64_t a_row = g->a_in_place ? g->a_row : k, tiles = padded(rows, TALL) / TALL;
    int64_t tall = g->a_in_place ? height_of((rows + tiles - 1) / tiles) : TALL; /* a low last tile is slow */
    bool follows = g->a_in_place && g->a_step == 1 && g->a_row == k && g->n <= BLOCK_COLUMNS;
    if (!g->a_in_place && !g->a_packed)
        pack_tiles(g->room, g, row, rows, from, k);
    for (int64_t column = 0; column < g->n; column += BLOCK_COLUMNS)
        for (int64_t i = 0; i < rows; i += tall) {
            int64_t others = (rows - i - 1) / tall; /* tiles after this one: the last two prefetch half each */
            bool more = others < 2 && column + BLOCK_COLUMNS < g->n && !g->soon;
            t.later = more ? b + (column + BLOCK_COLUMNS) * t.b_steps + others * k * LINE : NULL;
            if (follows && !more && row + i + tall < g->m)
                t.later = a + (i + tall) * a_row; /* rows of A are not in a near cache: prefetches the next ones */
            t.later_panel = more ? PANEL * t.b_steps : 0;
            t.a = a + i * a_row;
            run_tile(g, &t, b + column * t.b_steps, tall, row + i, column, min_i64(g->n - column, BLOCK_COLUMNS));
        }
}

void VARIANT(gemm_packed)(const struct gemm *g)
{
    int64_t from = 0, block = g->a_in_place && g->n <= BLOCK_COLUMNS ? g->m : GEMM_BLOCK_ROWS;
    do {
        int64_t k = block_steps(g->k - from);
        int64_t some = block_columns(g->n, k);
        for (int64_t column = 0; !g->b_packed && column < g->n; column += some)
            run_columns(g, from, k, column, min_i64(g->n - column, some));
        for (int64_t row = 0; g->b_packed && row < g->m; row += block)
            run_rows(g, from, k, row, min_i64(g->m - row, block));
        from += k;
    } while (from < g->k);
}
