/* cpu_im2col.c - convolutions as matrix products over columns: for each output cell a row of the input cells that its
   kernel meets. Takes what oneDNN does not offer, or has only its reference for, and any convolution where there is no
   oneDNN.

   With K = cells of the kernel x channels of a group, for each group:
     forward          y[cells, out]  = columns[cells, K] . k[K, out]
     gradient of x    columns        = dy[cells, out] . k^T[out, K], then added to the cells they came from
     gradient of k    dk[K, out]    += columns^T . dy
   Kernels of one cell without stride and padding need no columns: x is them. */
#include "backends/cpu/convolution/cpu_conv_axis.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "backends/cpu/gemm/gemm.h"
#include "ops/ops.h"

#define SCRATCH_FLOATS ((int64_t)64 * 1024) /* of the columns of a block of cells */
#define MOST_CELLS     96
#define LEAST_CELLS    12
#define POINT_LANES    16 /* not LANES: every instruction set takes the same kernel */
#define POINT_LEAST    64

struct columns {
    struct conv_sizes s;
    int64_t each, outs;                       /* channels of a group: in, out */
    int64_t k_cells, y_cells, x_cells, width; /* width: K */
    int64_t block;                            /* cells at once */
    bool point;                               /* x is the columns */
};

static struct columns columns_of(const struct node *node)
{
    struct columns c = {.k_cells = 1, .y_cells = 1, .x_cells = 1};
    struct conv_sizes *s = &c.s;
    conv_sizes_of(s, node);
    c.point = s->groups == 1;
    for (int i = 0; i < MOST_SPACE; i++) {
        c.k_cells *= s->k[i];
        c.y_cells *= s->y[i];
        c.x_cells *= s->x[i];
        c.point = c.point && s->k[i] == 1 && s->stride[i] == 1 && !s->before[i] && !s->after[i];
    }
    c.each = s->in / s->groups;
    c.outs = s->out / s->groups;
    c.width = c.k_cells * c.each;
    c.block = SCRATCH_FLOATS / c.width;
    c.block = c.block < LEAST_CELLS ? LEAST_CELLS : c.block > MOST_CELLS ? MOST_CELLS : c.block;
    return c;
}

/* Row of the kernel (depth, height) that output cell o meets: the cell of x at column 0, or -1 in the padding. */
static int64_t line_of(const struct conv_sizes *s, const int64_t o[MOST_SPACE], int64_t depth, int64_t height)
{
    int64_t d = o[0] * s->stride[0] - s->before[0] + depth * (s->gap[0] + 1);
    int64_t h = o[1] * s->stride[1] - s->before[1] + height * (s->gap[1] + 1);
    return d < 0 || d >= s->x[0] || h < 0 || h >= s->x[1] ? -1 : (d * s->x[1] + h) * s->x[2];
}

/* One row of the kernel: in one piece where nothing lies between its taps. */
static void copy_row(float *to, const float *x, const struct columns *c, int64_t line, int64_t first)
{
    const struct conv_sizes *s = &c->s;
    int64_t step = s->gap[2] + 1;
    if (step == 1 && s->groups == 1) {
        int64_t begin = first < 0 ? -first : 0, end = s->x[2] - first < s->k[2] ? s->x[2] - first : s->k[2];
        begin = begin < s->k[2] ? begin : s->k[2];
        end = end > begin ? end : begin;
        for (int64_t i = 0; i < begin * c->each; i++)
            to[i] = 0;
        if (end > begin)
            memcpy(to + begin * c->each, x + (line + first + begin) * s->in,
                   (size_t)((end - begin) * c->each) * sizeof *to);
        for (int64_t i = end * c->each; i < s->k[2] * c->each; i++)
            to[i] = 0;
        return;
    }
    for (int64_t k = 0; k < s->k[2]; k++, to += c->each) {
        int64_t at = first + k * step;
        if (at < 0 || at >= s->x[2])
            memset(to, 0, (size_t)c->each * sizeof *to);
        else
            memcpy(to, x + (line + at) * s->in, (size_t)c->each * sizeof *to);
    }
}

static void add_channels(float *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

static void add_row(float *dx, const float *from, const struct columns *c, int64_t line, int64_t first)
{
    const struct conv_sizes *s = &c->s;
    for (int64_t k = 0; k < s->k[2]; k++, from += c->each) {
        int64_t at = first + k * (s->gap[2] + 1);
        if (at >= 0 && at < s->x[2])
            add_channels(dx + (line + at) * s->in, from, c->each);
    }
}

/* Output cell number `cell` of a sample by axes. */
static void place_cell(int64_t o[MOST_SPACE], const struct conv_sizes *s, int64_t cell)
{
    for (int i = MOST_SPACE - 1; i >= 0; i--) {
        o[i] = cell % s->y[i];
        cell /= s->y[i];
    }
}

/* The columns of cells first..first + count for the group whose channels begin at x: gathered from its cells, or added
   to them. */
INLINE void move_columns(float *columns, float *x, const struct columns *c, int64_t first, int64_t count, bool gather)
{
    const struct conv_sizes *s = &c->s;
    int64_t row = s->k[2] * c->each, o[MOST_SPACE];
    for (int64_t cell = first; cell < first + count; cell++) {
        place_cell(o, s, cell);
        for (int64_t k = 0; k < s->k[0] * s->k[1]; k++, columns += row) {
            int64_t line = line_of(s, o, k / s->k[1], k % s->k[1]), at = o[2] * s->stride[2] - s->before[2];
            if (gather && line < 0)
                memset(columns, 0, (size_t)row * sizeof *columns);
            else if (gather)
                copy_row(columns, x, c, line, at);
            else if (line >= 0)
                add_row(x, columns, c, line, at);
        }
    }
}

MAKER(make_columns)
{
    struct columns c = columns_of(node);
    if (!cpu_all_f32(node))
        return false;
    if (!c.point)
        out->kernel.scratch_bytes = (size_t)(c.block * c.width) * sizeof(float);
    return true;
}

/* The gradient of the weights of a kernel of one cell: dk[in, out] = x^T . dy, no partial layout to bring back. As
   quick as oneDNN's or quicker where the output's channels fill the tiles. */
MAKER(make_point_weight_gradient)
{
    struct columns c = columns_of(node);
    if (!c.point || c.s.out % POINT_LANES || c.s.out < POINT_LEAST)
        return false;
    return VARIANT(make_columns)(out, node, request);
}

/* ---- forward ------------------------------------------------------------ */

RUNNER(run_columns)
{
    const struct columns c = columns_of(call->node);
    const struct conv_attributes *conv = call->node->attributes;
    const struct conv_sizes *s = &c.s;
    const float *bias = call->input[2];
    float *x = call->input[0];
    int64_t rows = cpu_rows(kernel, call), cells = rows * c.y_cells, count;
    struct gemm g = {
        .n = c.outs,
        .k = c.width,
        .a = c.point ? x : call->scratch,
        .a_row = c.width,
        .a_step = 1,
        .b_step = s->out,
        .c_row = s->out,
        .relu = conv->activation == ACTIVATION_RELU,
    };
    for (int64_t cell = 0; cell < cells; cell += count) {
        int64_t n = cell / c.y_cells, first = cell % c.y_cells;
        count = c.point ? cells : c.y_cells - first < c.block ? c.y_cells - first : c.block;
        for (int64_t group = 0; group < s->groups; group++) {
            if (!c.point)
                move_columns(call->scratch, x + n * c.x_cells * s->in + group * c.each, &c, first, count, true);
            g.m = count;
            g.b = (const float *)call->input[1] + group * c.outs;
            g.c = (float *)call->output[0] + cell * s->out + group * c.outs;
            g.bias = bias ? bias + group * c.outs : NULL;
            VARIANT(gemm)(&g);
        }
    }
}

/* ---- the gradient of x -------------------------------------------------- */

/* k^T[out, K] of every group. */
PACKER(pack_turned)
{
    const struct columns c = columns_of(whole->node);
    for (int64_t group = 0; group < c.s.groups; group++)
        VARIANT(transpose)
    ((float *)pack + group * c.outs * c.width, c.width, (const float *)whole->input[1] + group * c.outs, c.s.out,
     c.width, c.outs);
}

MAKER(make_columns_input_gradient)
{
    if (!VARIANT(make_columns)(out, node, request))
        return false;
    struct columns c = columns_of(node);
    cpu_set_pack(out, pack_turned, 1, (size_t)(c.width * c.s.out) * sizeof(float));
    return true;
}

static void start_with(float *dx, const float *bias, int64_t cells, int64_t channels)
{
    memset(dx, 0, (size_t)(cells * channels) * sizeof *dx);
    for (int64_t i = 0; bias && i < cells; i++)
        add_channels(dx + i * channels, bias, channels);
}

RUNNER(run_columns_input_gradient)
{
    const struct columns c = columns_of(call->node);
    const struct conv_sizes *s = &c.s;
    float *dx = call->output[0];
    int64_t rows = cpu_rows(kernel, call), cells = rows * c.y_cells, count;
    struct gemm g = {
        .n = c.width,
        .k = c.outs,
        .a_row = s->out,
        .a_step = 1,
        .b_step = c.width,
        .c = c.point ? dx : call->scratch,
        .c_row = c.width,
        .bias = c.point ? call->input[2] : NULL,
    };
    if (!c.point)
        start_with(dx, call->input[2], rows * c.x_cells, s->in);
    for (int64_t cell = 0; cell < cells; cell += count) {
        int64_t n = cell / c.y_cells, first = cell % c.y_cells;
        count = c.point ? cells : c.y_cells - first < c.block ? c.y_cells - first : c.block;
        for (int64_t group = 0; group < s->groups; group++) {
            g.m = count;
            g.a = (const float *)call->input[0] + cell * s->out + group * c.outs;
            g.b = (const float *)call->pack + group * c.outs * c.width;
            VARIANT(gemm)(&g);
            if (!c.point)
                move_columns(call->scratch, dx + n * c.x_cells * s->in + group * c.each, &c, first, count, false);
        }
    }
}

/* ---- the gradient of k -------------------------------------------------- */

RUNNER(run_columns_weight_gradient)
{
    const struct columns c = columns_of(call->node);
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    const struct conv_sizes *s = &c.s;
    const float *dy = call->input[1];
    float *x = call->input[0], *dbias = call->output[1];
    int64_t rows = cpu_rows(kernel, call), cells = rows * c.y_cells, count;
    struct gemm g = {
        .m = c.width,
        .n = c.outs,
        .a = c.point ? x : call->scratch,
        .a_row = 1,
        .a_step = c.width,
        .b_step = s->out,
        .c_row = s->out,
        .add = true,
    };
    begin_weight_sums(call, c.width * s->out, s->out);
    for (int64_t cell = 0; cell < cells; cell += count) {
        int64_t n = cell / c.y_cells, first = cell % c.y_cells;
        count = c.point ? cells : c.y_cells - first < c.block ? c.y_cells - first : c.block;
        for (int64_t group = 0; group < s->groups; group++) {
            if (!c.point)
                move_columns(call->scratch, x + n * c.x_cells * s->in + group * c.each, &c, first, count, true);
            g.k = count;
            g.b = dy + cell * s->out + group * c.outs;
            g.c = (float *)call->output[0] + group * c.outs;
            VARIANT(gemm)(&g);
        }
    }
    if (attributes->bias)
        add_rows(dbias, dy, cells, s->out);
}
