/* cpu_convolution_weights_lines.c - gradients of the kernels of convolutions over few channels (images), line by line
   of the kernel:

     dk[line, taps x in, out] += x^T . dy

   What a line of the kernel meets lies together in a line of x: the taps of one cell of y, and those of the next cell a
   stride further. So x itself, with its padding, is the matrix; nothing is gathered. Blocks of lines of y are one
   product, and one chain of multiply-adds. */
#include "backends/cpu/convolution/cpu_conv_axis.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "ops/ops.h"

#define MOST_CHANNELS 4
#define LEAST_OUT     16 /* not LANES: every instruction set takes the same kernel */
/* Of dy, of a block: what the second-level cache holds beside more, or, where dk is small, the first-level one. */
#define BLOCK_FLOATS ((int64_t)64 * 1024)
#define SMALL_FLOATS ((int64_t)4 * 1024)
#define MOST_ROOM    ((int64_t)128 * 1024) /* floats of the lines of x that a block meets */
#define VECTORS      2
#define LINE         16 /* floats of a cache line */
/* Heights of tiles: what is left takes the lowest that holds it. */
#if LANES == 16
#define EACH_HEIGHT(what) what(3) what(5) what(7) what(9) what(12) what(14)
#define MOST_HEIGHT       14 /* 28 sums, 2 of dy, 1 of x: 31 of 32 registers */
#else
#define EACH_HEIGHT(what) what(3) what(6)
#define MOST_HEIGHT       6 /* 12 sums, 2 of dy, 1 of x: 15 of 16 registers */
#endif

struct lines {
    struct conv_sizes s;
    int64_t taps;   /* x in: rows of dk that a line of the kernel has */
    int64_t step;   /* floats of x between cells of y */
    int64_t line;   /* floats of a padded line of x */
    int64_t block;  /* lines of y */
    int64_t height; /* lines of x that such a block meets */
};

static bool lines_of(struct lines *l, const struct node *node)
{
    struct conv_sizes *s = &l->s;
    conv_sizes_of(s, node);
    if (s->groups != 1 || s->x[0] != 1 || s->y[0] != 1 || s->k[0] != 1 || s->gap[2] != 0 || s->in > MOST_CHANNELS)
        return false;
    l->taps = s->k[2] * s->in;
    l->step = s->stride[2] * s->in;
    l->line = (s->y[2] - 1) * l->step + l->taps + 2 * LANES; /* tiles read rows that are none */
    bool small = s->k[1] * l->taps * s->out <= SMALL_FLOATS;
    l->block = (small ? SMALL_FLOATS : BLOCK_FLOATS) / (s->y[2] * s->out);
    l->block = l->block < 1 ? 1 : l->block < s->y[1] ? l->block : s->y[1];
    l->height = (l->block - 1) * s->stride[1] + (s->k[1] - 1) * (s->gap[1] + 1) + 1;
    return s->out >= LEAST_OUT && s->k[2] > 1 && l->line <= MOST_ROOM && l->height <= MOST_ROOM / l->line &&
           s->before[2] < s->k[2];
}

/* ---- a tile ------------------------------------------------------------- */

/* c[rows, width] += sum over lines and cells of x[line, cell * step + row] * dy[cell, width] */
struct tile {
    const float *x, *dy;
    float *c;
    int64_t lines, cells; /* of a line */
    int64_t step, jump;   /* of x: between cells, between lines */
    int64_t out;          /* floats between rows of dy, of c */
    const float *ahead;   /* a line of the cache a cell: fetched for later */
    int64_t ahead_step;
    int rows, width;
};

/* height, vectors and whole are constants where this is expanded. Rows from t->rows on are computed and dropped. */
INLINE void tile(const struct tile *t, const int height, const int vectors, const bool whole)
{
    vector sum[MOST_HEIGHT][VECTORS];
    const int width = whole ? vectors * LANES : t->width;
    UNROLL
    for (int i = 0; i < height; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = i < t->rows ? vector_load_columns(t->c + i * t->out, j * LANES, width) : vector_all(0);
    }
    const float *dy = t->dy, *ahead = t->ahead;
    for (int64_t line = 0; line < t->lines; line++) {
        const float *x = t->x + line * t->jump;
        for (int64_t cell = 0; cell < t->cells; cell++, x += t->step, dy += t->out, ahead += t->ahead_step) {
            vector y[VECTORS];
            __builtin_prefetch(ahead, 0, 2);
            UNROLL
            for (int j = 0; j < vectors; j++)
                y[j] = vector_load_columns(dy, j * LANES, width);
            UNROLL
            for (int i = 0; i < height; i++) {
                vector tap = vector_all(x[i]);
                UNROLL
                for (int j = 0; j < vectors; j++)
                    sum[i][j] = vector_madd(tap, y[j], sum[i][j]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < height; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            if (i < t->rows)
                vector_store_columns(t->c + i * t->out, sum[i][j], j * LANES, width);
    }
}

typedef void tile_function(const struct tile *t);

#define TILE(height)                                                                                                   \
    static void tile_##height(const struct tile *t)                                                                    \
    {                                                                                                                  \
        tile(t, height, 2, true);                                                                                      \
    }                                                                                                                  \
    static void part_##height(const struct tile *t)                                                                    \
    {                                                                                                                  \
        tile(t, height, 2, false);                                                                                     \
    }
#define NAMES(height) {height, {tile_##height, part_##height}},
EACH_HEIGHT(TILE)
static const struct {
    int height;
    tile_function *run[2]; /* of a whole panel of columns, of a part */
} tiles[] = {EACH_HEIGHT(NAMES)};

/* ---- a block ------------------------------------------------------------ */

/* Lines of x from `first` on, with what the padding adds on either side. */
static void copy_lines(float *to, const struct lines *l, const float *x, int64_t first)
{
    const struct conv_sizes *s = &l->s;
    int64_t before = s->before[2] * s->in, count = s->x[2] * s->in;
    count = count < l->line - before ? count : l->line - before;
    for (int64_t i = first; i < first + l->height; i++, to += l->line) {
        if (i < 0 || i >= s->x[1]) {
            memset(to, 0, (size_t)l->line * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)before * sizeof *to);
        memcpy(to + before, x + i * s->x[2] * s->in, (size_t)count * sizeof *to);
        memset(to + before + count, 0, (size_t)(l->line - before - count) * sizeof *to);
    }
}

/* What pass `pass` over a block fetches of the next one: a line of the cache of each cell of dy, then x. */
static void look_ahead(struct tile *t, const struct tile *next, int64_t pass)
{
    int64_t lines = (t->out + LINE - 1) / LINE;
    t->ahead = pass < lines ? next->dy + pass * LINE : pass == lines ? next->x : t->dy;
    t->ahead_step = pass < lines ? t->out : pass == lines ? LINE : 0;
}

/* One line of the kernel: dk[taps, out]. t: of the block; returns passes over it, the ones before included. */
static int64_t add_line(float *dk, const struct lines *l, struct tile t, const struct tile *next, int64_t pass)
{
    const float *x = t.x, *dy = t.dy;
    for (int64_t column = 0; column < t.out; column += VECTORS * LANES) {
        int64_t left = t.out - column;
        t.dy = dy + column;
        t.width = (int)(left < VECTORS * LANES ? left : VECTORS * LANES);
        for (int64_t row = 0; row < l->taps; row += t.rows) {
            int which = 0;
            t.rows = (int)(l->taps - row < MOST_HEIGHT ? l->taps - row : MOST_HEIGHT);
            while (tiles[which].height < t.rows)
                which++;
            t.x = x + row;
            t.c = dk + row * t.out + column;
            look_ahead(&t, next, pass++);
            tiles[which].run[t.width < VECTORS * LANES](&t);
        }
    }
    return pass;
}

/* Lines h.. of y of one sample, with x and dy from there on; next: those of the block that follows. */
static void add_block(float *dk, const struct lines *l, float *room, const struct tile *at, const struct tile *next)
{
    int64_t pass = 0;
    for (int64_t k = 0; k < l->s.k[1]; k++) {
        struct tile t = *at;
        t.x = room + k * (l->s.gap[1] + 1) * l->line;
        pass = add_line(dk + k * l->taps * t.out, l, t, next, pass);
    }
}

static void run_lines(const struct kernel *kernel, const struct call *call)
{
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    struct lines l;
    lines_of(&l, call->node);
    const struct conv_sizes *s = &l.s;
    const float *x = call->input[0];
    float *dk = call->output[0], *dbias = call->output[1];
    int64_t samples = cpu_rows(kernel, call), x_line = s->x[2] * s->in;
    struct tile t = {
        .dy = call->input[1], .cells = s->y[2], .step = l.step, .jump = s->stride[1] * l.line, .out = s->out};
    begin_weight_sums(call, s->k[1] * l.taps * s->out, s->out);
    for (int64_t n = 0; n < samples; n++, x += s->x[1] * x_line)
        for (int64_t h = 0; h < s->y[1]; h += t.lines) {
            t.lines = s->y[1] - h < l.block ? s->y[1] - h : l.block;
            int64_t floats = t.lines * t.cells * t.out;
            const struct tile next = {.x = x + ((h + t.lines) * s->stride[1] - s->before[1]) * x_line,
                                      .dy = t.dy + floats};
            copy_lines(call->scratch, &l, x, h * s->stride[1] - s->before[1]);
            add_block(dk, &l, call->scratch, &t, &next);
            if (attributes->bias)
                add_rows(dbias, t.dy, t.lines * t.cells, t.out);
            t.dy = next.dy;
        }
}

MAKER(make_lines_weight_gradient)
{
    struct lines l;
    if (!cpu_all_f32(node) || !lines_of(&l, node))
        return false;
    out->kernel.run = run_lines;
    out->kernel.scratch_bytes = (size_t)(l.height * l.line) * sizeof(float);
    return true;
}
