/* cpu_convolution_tiles_weights.c - the gradient of a convolution's kernel and bias in bf16, by tiles.

   dk[cell, in, out] = sum over outputs of x[output * stride + cell, in] * dy[output, out]. Some outputs are done
   together: some columns of dy are packed in the order of their planes (tile_planes.h), with zeros for cells that are
   nobody's; against them some channels of x at a time are turned, each channel a row of cells, so that a kernel's cell
   only moves where rows begin. Sums over the outputs of a share start at 0 and are added to dk in f32. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/tile_planes.h"
#include "backends/cpu/gemm/tile_steps.h"
#include "base/numbers/checked.h"
#include "base/numbers/minmax.h"
#include "ops/ops.h"

#if LANES == 16

#define LINE         64
#define DY_BYTES     (1024 * 1024) /* of dy that is packed at once: some columns of a share's outputs */
#define LEAST_CELLS  1024          /* outputs of a share: each reads and writes all of dk */
#define MOST_CELLS   2048
#define TURNED_BYTES (512 * 1024) /* of x */

/* size[]: where things lie in scratch, in bytes, behind the sums of a block. */
enum { STEPS_AT, DY_AT, TURNED_AT, JOINED_AT };

struct layout {
    struct conv_sizes s;
    struct conv_axis down, across;
    struct planes planes;
    int64_t elements;    /* of a cell whose rows are turned: channels, or those of a joined row of the kernel */
    int64_t taps;        /* across: 1 where they are joined */
    int64_t band, group; /* rows of outputs of a share; samples, where they are all */
    int64_t panel;       /* elements of cells that are turned together */
    int64_t columns;     /* of dy that are packed together */
};

/* Cells of `rows` rows of a sample, and their steps; cells of a sample's turned planes; of all that are turned, an odd
   number of lines, so that rows do not fall into few sets of the cache. */
static int64_t sample_cells(const struct layout *l, int64_t rows)
{
    return (rows - 1) * l->planes.across + l->s.y[2];
}
static int64_t sample_steps(const struct layout *l, int64_t rows)
{
    return (sample_cells(l, rows) + TILE_BLOCK - 1) / TILE_BLOCK;
}
static int64_t turned_cells(const struct layout *l, int64_t rows)
{
    int64_t cells = (rows + l->planes.reach) * l->planes.across * __builtin_popcountll(l->planes.met);
    return tile_padded(cells);
}
static int64_t turned_row(const struct layout *l, int64_t samples, int64_t rows)
{
    int64_t behind = l->planes.before[1]; /* of the last row: zeros that are the next one's too */
    int64_t lines = samples * turned_cells(l, rows) / TILE_BLOCK + 2 + (behind + TILE_BLOCK - 1) / TILE_BLOCK;
    return (lines | 1) * TILE_BLOCK;
}

static void share_out(struct layout *l)
{
    int64_t across = l->planes.across, rows = l->s.y[1];
    int64_t cells = DY_BYTES / 2 / tile_padded(l->s.out);
    cells = max_i64(LEAST_CELLS, min_i64(cells, MOST_CELLS));
    l->band = min_i64(rows, max_i64(1, cells / across));
    l->group = l->band < rows ? 1 : max_i64(1, cells / (rows * across));
    int64_t packed = l->group * sample_steps(l, l->band) * TILE_BLOCK * 2, row = turned_row(l, l->group, l->band) * 2;
    l->columns = min_i64(tile_padded(l->s.out), max_i64(1, DY_BYTES / packed / TILE_BLOCK) * TILE_BLOCK);
    l->panel = min_i64(tile_padded(l->elements), max_i64(1, TURNED_BYTES / row / TILE_BLOCK) * TILE_BLOCK);
}

static void layout_of(struct layout *l, const struct node *node, int64_t samples)
{
    *l = (struct layout){0};
    struct conv_sizes *s = &l->s;
    struct planes *p = &l->planes;
    conv_sizes_of(s, node);
    bool flat = planes_are_flat(s);
    for (int i = 1; i < 3 && flat; i++)
        s->x[i] = s->y[i] = i == 1 ? samples * s->x[1] * s->x[2] : 1;
    l->down = forward_axis(s, 1);
    l->across = forward_axis(s, 2);
    p->channels = p->padded = s->in;
    p->joined = s->k[2] > 1 && s->k[2] * (s->in + s->in % 2) <= TILE_BLOCK && s->gap[2] == 0;
    p->padded += p->joined ? s->in % 2 : 0;
    for (int axis = 0; axis < 2; axis++) {
        p->source[axis] = s->x[axis + 1];
        p->before[axis] = s->before[axis + 1];
        p->stride[axis] = s->stride[axis + 1];
        planes_reach(p, axis, axis ? &l->across : &l->down);
    }
    planes_share_zeros(p);
    planes_meet(p, &l->down, &l->across);
    l->elements = p->joined ? s->k[2] * p->padded : s->in;
    l->taps = p->joined ? 1 : s->k[2];
    share_out(l);
}

/* One share of one call. */
struct share {
    const struct layout *l;
    const uint16_t *x, *dy;       /* of its first sample */
    int64_t samples, first, rows; /* rows of outputs of each */
    uint16_t *packed, *turned, *joined;
    int64_t turned_row;
    int64_t *at;
    float *sums, *dk;
    bool add;
};

/* ---- packing dy ----------------------------------------------------------- */

/* Goes from cell to cell of a sample's rows, or planes. */
struct cursor {
    int64_t number, row, column;
};

/* The cell of dy where the cursor is, NULL where that is nobody's; then on to the next. */
static const uint16_t *next_dy(const struct share *h, const uint16_t *dy, struct cursor *at)
{
    const struct conv_sizes *s = &h->l->s;
    bool there = at->row < h->rows && at->column < s->y[2];
    const uint16_t *cell = there ? dy + ((h->first + at->row) * s->y[2] + at->column) * s->out : NULL;
    if (++at->column == h->l->planes.across) {
        at->column = 0;
        at->row++;
    }
    return cell;
}

/* Columns `from`.., as tiles [32 columns][step][16 columns][pair]. */
static void pack_dy(const struct share *h, int64_t from, int64_t columns)
{
    const struct conv_sizes *s = &h->l->s;
    int64_t each = sample_steps(h->l, h->rows), steps = h->samples * each, out = s->out - from;
    struct cursor at = {0};
    for (int64_t step = 0; step < steps; step++) {
        const uint16_t *dy = h->dy + step / each * s->y[1] * s->y[2] * s->out + from;
        if (step % each == 0)
            at = (struct cursor){0};
        for (int64_t pair = 0; pair < TILE_SIDE; pair++) {
            const uint16_t *low = next_dy(h, dy, &at), *high = next_dy(h, dy, &at);
            uint32_t *to = (uint32_t *)h->packed + step * 2 * TILE_WORDS + pair * TILE_SIDE;
            for (int64_t o = 0; o < columns; o += TILE_SIDE)
                _mm512_storeu_si512(to + (o / TILE_BLOCK * 2 * steps + o / TILE_SIDE % 2) * TILE_WORDS,
                                    tile_pair(low ? low + o : NULL, high ? high + o : NULL, out - o));
        }
    }
}

/* ---- turning x ------------------------------------------------------------ */

/* The cell of x where the cursor is, NULL for zeros and behind the last plane. */
static const uint16_t *x_cell(const struct share *h, const uint16_t *x, const struct cursor *at)
{
    const struct planes *p = &h->l->planes;
    if (!(p->met >> at->number))
        return NULL;
    if (p->joined)
        return h->joined + ((plane_place(p, at->number) * (h->rows + p->reach) + at->row) * plane_line(p) +
                            at->column * p->stride[1]) *
                               p->padded;
    int64_t down = p->stride[1] == 1 ? at->number : at->number / p->stride[1];
    int64_t row = (h->first + at->row) * p->stride[0] + down - p->before[0];
    int64_t column = (at->column - down) * p->stride[1] + at->number - p->before[1];
    bool there = row >= 0 && row < p->source[0] && column >= 0 && column < p->source[1];
    return there ? x + (row * p->source[1] + column) * p->channels : NULL;
}

static const uint16_t *next_x(const struct share *h, const uint16_t *x, struct cursor *at)
{
    const struct planes *p = &h->l->planes;
    const uint16_t *cell = x_cell(h, x, at);
    if (++at->column < p->across)
        return cell;
    at->column = 0;
    if (++at->row < h->rows + p->reach)
        return cell;
    at->row = 0;
    do
        at->number++;
    while (p->met >> at->number && !(p->met >> at->number & 1));
    return cell;
}

/* Elements `from`..`from + count` of 32 cells: each a row of `to`. */
static void turn_cells(uint16_t *to, int64_t to_row, const uint16_t *const cell[TILE_BLOCK], int64_t from,
                       int64_t count, int64_t all)
{
    uint32_t pairs[TILE_WORDS], turned[TILE_WORDS];
    for (int64_t c = 0; c < count; c += TILE_SIDE) {
        for (int64_t pair = 0; pair < TILE_SIDE; pair++) {
            const uint16_t *low = cell[2 * pair], *high = cell[2 * pair + 1];
            _mm512_storeu_si512(pairs + pair * TILE_SIDE,
                                tile_pair(low ? low + from + c : NULL, high ? high + from + c : NULL, all - from - c));
        }
        VARIANT(transpose_tile)((float *)turned, TILE_SIDE, (const float *)pairs, TILE_SIDE, TILE_SIDE);
        for (int64_t i = 0; i < TILE_SIDE; i++)
            memcpy(to + (c + i) * to_row, turned + i * TILE_SIDE, LINE);
    }
}

/* Planes lie one behind the other, samples begin at whole lines; what is left behind the last is zeros. */
static void turn_sample(const struct share *h, int64_t n, int64_t from, int64_t count)
{
    const struct planes *p = &h->l->planes;
    const uint16_t *x = h->x + n * p->source[0] * p->source[1] * p->channels, *cell[TILE_BLOCK];
    struct cursor at = {__builtin_ctzll(p->met), 0, 0};
    int64_t all = turned_cells(h->l, h->rows);
    if (p->joined) {
        planes_fill(h->joined, p, x, h->first, h->rows);
        memset(h->joined + planes_elements(p, h->rows), 0, (size_t)h->l->elements * sizeof *x); /* may be read */
    }
    for (int64_t first = 0; first < all; first += TILE_BLOCK) {
        for (int i = 0; i < TILE_BLOCK; i++)
            cell[i] = next_x(h, x, &at);
        turn_cells(h->turned + n * all + first, h->turned_row, cell, from, count, h->l->elements);
    }
}

static void turn_panel(const struct share *h, int64_t from, int64_t count)
{
    int64_t used = h->samples * turned_cells(h->l, h->rows);
    for (int64_t n = 0; n < h->samples; n++)
        turn_sample(h, n, from, count);
    for (int64_t c = 0; c < count; c++)
        memset(h->turned + c * h->turned_row + used, 0, (size_t)(h->turned_row - used) * sizeof *h->turned);
}

/* ---- sums ----------------------------------------------------------------- */

/* Rows of sums are elements of a cell from `from` on, of kernel cell (y, x). */
static void put_sums(const struct share *h, int64_t y, int64_t x, int64_t from, int64_t column)
{
    const struct layout *l = h->l;
    const struct conv_sizes *s = &l->s;
    int64_t width = min_i64(TILE_BLOCK, s->out - column), rows = min_i64(TILE_BLOCK, l->elements - from);
    for (int64_t i = 0; i < rows; i++) {
        int64_t c = from + i, across = x;
        if (l->planes.joined) {
            across = c / l->planes.padded;
            c %= l->planes.padded;
        }
        if (c < s->in)
            tile_put_wide_row(h->dk + ((y * s->k[2] + across) * s->in + c) * s->out + column, h->sums + i * TILE_BLOCK,
                              NULL, false, h->add, width);
    }
}

/* Lines of dk come while the tiles work. */
static void fetch_rows(const struct share *h, int64_t y, int64_t x, int64_t from, int64_t column)
{
    const struct conv_sizes *s = &h->l->s;
    const float *to = h->dk + ((y * s->k[2] + x) * s->in + from) * s->out + column;
    if (!h->l->planes.joined)
        tile_fetch(to, s->out, min_i64(TILE_BLOCK, h->l->elements - from));
}

/* Cells from the first turned one to the first that kernel cell (y, x) meets. */
static int64_t tap_cell(const struct share *h, int64_t y, int64_t x)
{
    const struct planes *p = &h->l->planes;
    int64_t down = tap_at(&h->l->down, p->before[0], y), across = tap_at(&h->l->across, p->before[1], x);
    int64_t plane = plane_place(p, plane_number(p, down, across)) * (h->rows + p->reach) * p->across;
    return plane + down / p->stride[0] * p->across + across / p->stride[1];
}

/* Elements from..from + count against the columns of dy that are packed. */
static void run_panel(const struct share *h, int64_t from, int64_t count, int64_t first, int64_t columns)
{
    const struct layout *l = h->l;
    struct tile_steps t = {.a_row = h->turned_row * 2, .at = h->at, .width = TILE_BLOCK};
    t.every = sample_steps(l, h->rows);
    t.last = sample_cells(l, h->rows) - (t.every - 1) * TILE_BLOCK;
    t.steps = h->samples * t.every;
    for (int64_t column = first; column < first + columns; column += TILE_BLOCK) {
        t.b = h->packed + (column - first) / TILE_BLOCK * t.steps * 4 * TILE_WORDS;
        for (int64_t y = 0; y < l->s.k[1]; y++)
            for (int64_t x = 0; x < l->taps; x++)
                for (int64_t c = 0; c < count; c += TILE_BLOCK) {
                    t.a = h->turned + c * h->turned_row + tap_cell(h, y, x);
                    t.rows = (int)min_i64(TILE_BLOCK, l->elements - from - c);
                    fetch_rows(h, y, x, from + c, column);
                    tile_steps_run(h->sums, &t);
                    put_sums(h, y, x, from + c, column);
                }
    }
}

static void run_share(struct share *h)
{
    const struct layout *l = h->l;
    int64_t each = sample_steps(l, h->rows);
    for (int64_t i = 0; i < h->samples * each; i++)
        h->at[i] = i / each * turned_cells(l, h->rows) + i % each * TILE_BLOCK;
    h->turned_row = turned_row(l, h->samples, h->rows);
    for (int64_t column = 0; column < l->s.out; column += l->columns) {
        int64_t columns = min_i64(l->columns, tile_padded(l->s.out - column));
        pack_dy(h, column, columns);
        for (int64_t from = 0; from < l->elements; from += l->panel) {
            int64_t count = min_i64(l->panel, tile_padded(l->elements - from));
            turn_panel(h, from, count);
            run_panel(h, from, count, column, columns);
        }
    }
}

/* ---- kernels -------------------------------------------------------------- */

static void add_bias(float *restrict sums, const uint16_t *restrict dy, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) {
            uint32_t bits = (uint32_t)dy[i * width + j] << 16;
            float x;
            memcpy(&x, &bits, sizeof x);
            sums[j] += x;
        }
}

/* In blocks of outputs, so that no sum is a chain of all. */
#define BIAS_ROWS 256
static void put_bias(float *bias, const struct call *call, float *sums, int64_t rows, int64_t width)
{
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    if (!call->add)
        memset(bias, 0, (size_t)width * sizeof *bias);
    for (int64_t i = 0; i < rows && attributes->bias; i += BIAS_ROWS) {
        memset(sums, 0, (size_t)width * sizeof *sums);
        add_bias(sums, (const uint16_t *)call->input[1] + i * width, min_i64(BIAS_ROWS, rows - i), width);
        for (int64_t j = 0; j < width; j++)
            bias[j] += sums[j];
    }
}

static void run_weight_gradient(const struct kernel *kernel, const struct call *call)
{
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t samples = cpu_rows(kernel, call);
    struct layout l;
    if (!samples) {
        call->node->op->reference(call); /* no rows: zeros, or nothing added */
        return;
    }
    layout_of(&l, call->node, samples);
    char *room = call->scratch;
    struct share h = {.l = &l,
                      .packed = (uint16_t *)(room + size[DY_AT]),
                      .turned = (uint16_t *)(room + size[TURNED_AT]),
                      .joined = (uint16_t *)(room + size[JOINED_AT]),
                      .at = (int64_t *)(room + size[STEPS_AT]),
                      .sums = call->scratch,
                      .dk = call->output[0],
                      .add = call->add};
    const struct conv_sizes *s = &l.s;
    int64_t cells = shape_row(&call->node->input[1]->shape) / s->out * samples;
    int64_t count = cells / (s->y[1] * s->y[2]); /* samples, or 1 where all are one plane */
    tile_steps_begin(TILE_BLOCK);
    for (int64_t n = 0; n < count; n += l.group)
        for (h.first = 0; h.first < s->y[1]; h.first += l.band, h.add = true) {
            h.x = (const uint16_t *)call->input[0] + n * s->x[1] * s->x[2] * s->in;
            h.dy = (const uint16_t *)call->input[1] + n * s->y[1] * s->y[2] * s->out;
            h.samples = min_i64(l.group, count - n);
            h.rows = min_i64(l.band, s->y[1] - h.first);
            run_share(&h);
        }
    tile_steps_end();
    put_bias(call->output[1], call, (float *)(room + size[STEPS_AT]), cells, s->out);
}

MAKER(make_convolution_weight_gradient_tiles)
{
    struct layout l;
    if (shape_count(&node->input[1]->shape) < 1 || !planes_take(node))
        return false;
    layout_of(&l, node, request->asked->slice);
    int64_t group = min_i64(l.group, request->asked->slice), steps = group * sample_steps(&l, l.band);
    int64_t joined = l.planes.joined ? planes_elements(&l.planes, l.band) + l.elements : 0;
    int64_t first = max_i64(steps * (int64_t)sizeof(int64_t), l.s.out * (int64_t)sizeof(float));
    out->size[STEPS_AT] = TILE_BLOCK * TILE_BLOCK * (int64_t)sizeof(float);
    out->size[DY_AT] = (int64_t)round_up((uint64_t)(out->size[STEPS_AT] + first), LINE);
    int64_t packed = min_i64(max_i64(DY_BYTES, steps * TILE_BLOCK * TILE_BLOCK * 2), /* of short slices too */
                             steps * TILE_BLOCK * tile_padded(l.s.out) * 2);
    out->size[TURNED_AT] = out->size[DY_AT] + packed;
    int64_t row = turned_row(&l, group, l.band) * 2, most = max_i64(TURNED_BYTES, TILE_BLOCK * row);
    out->size[JOINED_AT] = out->size[TURNED_AT] + min_i64(most, tile_padded(l.elements) * row);
    out->kernel.scratch_bytes = (size_t)(out->size[JOINED_AT] + joined * 2);
    out->kernel.implementation = tiles_name();
    out->kernel.run = run_weight_gradient;
    return true;
}

#endif
