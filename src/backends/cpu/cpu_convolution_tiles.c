/* cpu_convolution_tiles.c - convolutions of bf16 over one and two axes, and their gradients, as products by tiles.

   Cells that an output cell reads are copied into a row ("columns", [cells, kernel cells * channels]), some output
   cells at a time. y = columns . k; dk = columns^T . dy; dx is the convolution of dy with the kernel turned round,
   where the stride is 1. Sums are f32, each output is rounded once. */
#include "backends/cpu/cpu_matmul_tiles.h"
#include "backends/cpu/gemm_tiles.h"
#include "base/checked.h"
#include "ops/ops.h"

#if LANES == 16

#define SOME_CELLS 256
#define LINE       64

/* size[]: where things lie in scratch (bytes), and elements. */
enum { COLUMNS_AT, SUMS_AT };

static int64_t inner(const struct conv_sizes *s)
{
    return s->k[1] * s->k[2] * s->in;
}

static int64_t cells(const int64_t *extents)
{
    return extents[1] * extents[2];
}

static int64_t some_cells(const struct conv_sizes *s)
{
    return cells(s->y) < SOME_CELLS ? cells(s->y) : SOME_CELLS;
}

static bool takes(struct conv_sizes *s, const struct node *node)
{
    bool bias = node->input_count < 3 || !node->input[2] || node->input[2]->type == TYPE_F32;
    if (node->input[0]->type != TYPE_BF16 || node->input[1]->type != TYPE_BF16 || !bias)
        return false;
    conv_sizes_of(s, node);
    return s->groups == 1 && s->x[0] == 1 && s->k[0] == 1 && s->y[0] == 1 && tiles_allowed();
}

/* The cells of one row of the kernel, from ix on: those outside are 0. Returns what lies behind. */
static uint16_t *take_row(uint16_t *to, const struct conv_sizes *s, const uint16_t *row, int64_t ix)
{
    int64_t step = s->gap[2] + 1;
    size_t cell = (size_t)s->in * sizeof *to;
    if (step == 1 && ix >= 0 && ix + s->k[2] <= s->x[2]) {
        memcpy(to, row + ix * s->in, (size_t)s->k[2] * cell);
        return to + s->k[2] * s->in;
    }
    for (int64_t k = 0; k < s->k[2]; k++, ix += step, to += s->in) {
        if (ix >= 0 && ix < s->x[2])
            memcpy(to, row + ix * s->in, cell);
        else
            memset(to, 0, cell);
    }
    return to;
}

/* Rows for output cells first..first + count of one sample. */
static void take_columns(uint16_t *to, const struct conv_sizes *s, const uint16_t *x, int64_t first, int64_t count)
{
    for (int64_t cell = first; cell < first + count; cell++) {
        int64_t iy = cell / s->y[2] * s->stride[1] - s->before[1], ix = cell % s->y[2] * s->stride[2] - s->before[2];
        for (int64_t k = 0; k < s->k[1]; k++, iy += s->gap[1] + 1) {
            if (iy >= 0 && iy < s->x[1]) {
                to = take_row(to, s, x + iy * s->x[2] * s->in, ix);
                continue;
            }
            memset(to, 0, (size_t)(s->k[2] * s->in) * sizeof *to);
            to += s->k[2] * s->in;
        }
    }
}

/* y = act(columns . packed + bias), sample by sample. */
static void convolve(const struct kernel *kernel, const struct call *call, const struct conv_sizes *s,
                     const uint16_t *packed, const float *bias, bool relu)
{
    uint16_t *columns = (uint16_t *)((char *)call->scratch + cpu_kernel_of(kernel)->size[COLUMNS_AT]);
    int64_t rows = cpu_rows(kernel, call), all = cells(s->y), some = some_cells(s);
    struct tile_gemm g = {.n = s->out,
                          .k = inner(s),
                          .a = columns,
                          .a_row = inner(s),
                          .a_step = 1,
                          .b_packed = packed,
                          .c_row = s->out,
                          .bias = bias,
                          .relu = relu,
                          .room = call->scratch};
    for (int64_t n = 0; n < rows; n++)
        for (int64_t first = 0; first < all; first += some) {
            g.m = all - first < some ? all - first : some;
            take_columns(columns, s, (const uint16_t *)call->input[0] + n * cells(s->x) * s->in, first, g.m);
            g.c = (uint16_t *)call->output[0] + (n * all + first) * s->out;
            gemm_tiles(&g);
        }
}

/* Scratch: what a product wants, columns, and `more` bytes. */
static void place_scratch(struct cpu_kernel *out, const struct conv_sizes *s, int64_t room, int64_t more)
{
    out->size[COLUMNS_AT] = (int64_t)round_up((uint64_t)room, LINE);
    out->size[SUMS_AT] =
        out->size[COLUMNS_AT] + (int64_t)round_up((uint64_t)(some_cells(s) * inner(s)) * sizeof(uint16_t), LINE);
    out->kernel.scratch_bytes = (size_t)(out->size[SUMS_AT] + more);
    out->kernel.implementation = "own amx";
}

static size_t packed_bytes(const struct conv_sizes *s)
{
    return (size_t)(tile_padded(inner(s)) * tile_padded(s->out)) * sizeof(uint16_t);
}

/* ---- forward -------------------------------------------------------------- */

static void pack_forward(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    (void)kernel, (void)unit;
    struct conv_sizes s;
    conv_sizes_of(&s, whole->node);
    const struct tile_gemm g = {.n = s.out, .k = inner(&s), .b = whole->input[1], .b_step = s.out, .b_column = 1};
    tile_pack_b(pack, &g);
}

static void run_forward(const struct kernel *kernel, const struct call *call)
{
    const struct conv_attributes *conv = call->node->attributes;
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    convolve(kernel, call, &s, call->pack, call->input[2], conv->activation == ACTIVATION_RELU);
}

MAKER(make_convolution_tiles)
{
    (void)entry, (void)error;
    struct conv_sizes s;
    if (!takes(&s, request->node))
        return PLIM_OK;
    place_scratch(out, &s, tile_room_bytes(s.out, inner(&s), true), 0);
    out->kernel.run = run_forward;
    out->kernel.pack = pack_forward;
    out->kernel.pack_units = 1;
    out->kernel.pack_bytes = packed_bytes(&s);
    return PLIM_OK;
}

/* ---- with respect to x ---------------------------------------------------- */

/* The convolution of dy that makes dx. */
static struct conv_sizes turned_round(const struct conv_sizes *s)
{
    struct conv_sizes t = *s;
    t.in = s->out;
    t.out = s->in;
    for (int i = 0; i < MOST_SPACE; i++) {
        t.x[i] = s->y[i];
        t.y[i] = s->x[i];
        t.before[i] = (s->k[i] - 1) * (s->gap[i] + 1) - s->before[i];
    }
    return t;
}

/* k[cell, in, out] becomes [last cell first, out, in], behind the pack. */
static void pack_turned(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    (void)unit;
    struct conv_sizes s;
    conv_sizes_of(&s, whole->node);
    const struct conv_sizes t = turned_round(&s);
    const uint16_t *k = whole->input[1];
    uint16_t *turned = (uint16_t *)((char *)pack + kernel->pack_bytes) - inner(&t) * t.out;
    for (int64_t cell = 0, last = cells(s.k) - 1; cell <= last; cell++)
        for (int64_t in = 0; in < s.in; in++)
            for (int64_t o = 0; o < s.out; o++)
                turned[((last - cell) * s.out + o) * s.in + in] = k[(cell * s.in + in) * s.out + o];
    const struct tile_gemm g = {.n = t.out, .k = inner(&t), .b = turned, .b_step = t.out, .b_column = 1};
    tile_pack_b(pack, &g);
}

static void run_input_gradient(const struct kernel *kernel, const struct call *call)
{
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    const struct conv_sizes t = turned_round(&s);
    convolve(kernel, call, &t, call->pack, NULL, false);
}

MAKER(make_convolution_input_gradient_tiles)
{
    (void)entry, (void)error;
    struct conv_sizes s;
    if (!takes(&s, request->node) || request->node->input[2] || s.stride[1] != 1 || s.stride[2] != 1)
        return PLIM_OK;
    const struct conv_sizes t = turned_round(&s);
    place_scratch(out, &t, tile_room_bytes(t.out, inner(&t), true), 0);
    out->kernel.run = run_input_gradient;
    out->kernel.pack = pack_turned;
    out->kernel.pack_units = 1;
    out->kernel.pack_bytes = packed_bytes(&t) + (size_t)(inner(&t) * t.out) * sizeof(uint16_t);
    return PLIM_OK;
}

/* ---- with respect to k and bias ------------------------------------------- */

static void add_rows(float *restrict sums, const uint16_t *restrict dy, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) {
            uint32_t bits = (uint32_t)dy[i * width + j] << 16;
            float x;
            memcpy(&x, &bits, sizeof x);
            sums[j] += x;
        }
}

static void run_weight_gradient(const struct kernel *kernel, const struct call *call)
{
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    int64_t rows = cpu_rows(kernel, call), all = cells(s.y), some = some_cells(&s);
    uint16_t *columns = (uint16_t *)((char *)call->scratch + cpu_kernel_of(kernel)->size[COLUMNS_AT]);
    float *sums = (float *)((char *)call->scratch + cpu_kernel_of(kernel)->size[SUMS_AT]), *bias = call->output[1];
    struct tile_gemm g = {.m = inner(&s),
                          .n = s.out,
                          .a = columns,
                          .a_row = 1,
                          .a_step = inner(&s),
                          .b_step = s.out,
                          .b_column = 1,
                          .c = call->output[0],
                          .c_row = s.out,
                          .c_wide = true,
                          .add = call->add,
                          .room = call->scratch};
    if (!rows) {
        call->node->op->reference(call); /* no rows: zeros, or nothing added */
        return;
    }
    memset(sums, 0, (size_t)s.out * sizeof *sums);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t first = 0; first < all; first += some, g.add = true) {
            g.k = all - first < some ? all - first : some;
            g.b = (const uint16_t *)call->input[1] + (n * all + first) * s.out;
            take_columns(columns, &s, (const uint16_t *)call->input[0] + n * cells(s.x) * s.in, first, g.k);
            gemm_tiles(&g);
            if (attributes->bias)
                add_rows(sums, g.b, g.k, s.out);
        }
    for (int64_t j = 0; j < s.out; j++)
        bias[j] = (call->add ? bias[j] : 0) + sums[j];
}

MAKER(make_convolution_weight_gradient_tiles)
{
    (void)entry, (void)error;
    struct conv_sizes s;
    if (!takes(&s, request->node))
        return PLIM_OK;
    place_scratch(out, &s, tile_room_bytes(s.out, some_cells(&s), false), s.out * (int64_t)sizeof(float));
    out->kernel.run = run_weight_gradient;
    return PLIM_OK;
}

#else

MAKER(make_convolution_tiles)
{
    (void)out, (void)entry, (void)request, (void)error;
    return PLIM_OK;
}

MAKER(make_convolution_input_gradient_tiles)
{
    (void)out, (void)entry, (void)request, (void)error;
    return PLIM_OK;
}

MAKER(make_convolution_weight_gradient_tiles)
{
    (void)out, (void)entry, (void)request, (void)error;
    return PLIM_OK;
}

#endif
