/* cpu_convolution_1x1.c - 1x1 convolutions (1-D to 3-D) as GEMMs over pixels, where they have many channels, a stride
   or one and a half vectors of channels:

     forward          y[pixels, out]  = x[pixels, in] . k[in, out]
     gradient of x    dx[pixels, in]  = dy[pixels, out] . k^T[out, in]; the bias, or 0, where the stride skips pixels
     gradient of k    dk[in, out]    += x[pixels, in]^T . dy[pixels, out]

   The code calls pixels cells. Kernels are packed once for all slices; the pixels of all samples of a slice are the
   rows of one GEMM. With a stride, the pixels of x that one image row of y reads are a run: they have a constant
   distance. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "backends/cpu/gemm/gemm.h"
#include "ops/ops.h"

#define PACK_UNITS 4
/* Tiles of x that are packed at once. They are 4 because the rows of x are kilobytes apart: so some cache lines of each
   row are read together. */
#define ROOM_TILES 4
/* Numbers of weights from which on this code is faster than oneDNN (HEAVY_BACKWARD, for dx) and than GEMMs without
   packing (HEAVY_WEIGHTS, for dk), because the weights exceed the cache of one core. For the forward pass oneDNN is as
   fast, except for long rows with a stride. */
#define HEAVY_BACKWARD ((int64_t)512 * 1024)
#define HEAVY_WEIGHTS  ((int64_t)256 * 1024)
#define LINE_CELLS     7   /* minimum run for one GEMM per run: half a tile */
#define LINE_CHANNELS  128 /* minimum channels of x and of y for one GEMM per run */
#define FAR_CHANNELS   512 /* minimum channels of x for copying strided pixels into a buffer */
#define HALVES_STEPS   256 /* maximum K of gemm_halves: B stays in the L1 cache */

struct points {
    int64_t in, out, cells;     /* cells: pixels of y per sample */
    int64_t x_cells;            /* pixels of x per sample */
    int64_t run, between, jump; /* pixels of a run (0: no stride); floats between its pixels, between runs */
};

/* False: the node is not computed here. Otherwise the runs of all samples are one sequence with a constant distance,
   because a sample follows the one before as an image row follows the row before. */
static bool points_of(struct points *p, const struct node *node)
{
    struct conv_sizes s;
    conv_sizes_of(&s, node);
    *p = (struct points){.in = s.in, .out = s.out, .cells = 1, .x_cells = 1};
    for (int i = 0; i < MOST_SPACE; i++) {
        if (s.k[i] != 1 || s.before[i] || s.after[i] || s.y[i] * s.stride[i] != s.x[i])
            return false;
        p->cells *= s.y[i];
        p->x_cells *= s.x[i];
    }
    bool apart = s.stride[0] > 1 || s.stride[1] > 1 || s.stride[2] > 1;
    p->run = apart ? s.y[2] : 0;
    p->between = s.stride[2] * s.in;
    p->jump = s.stride[1] * s.x[2] * s.in;
    return s.groups == 1 && s.stride[0] == 1 && (s.in > 1 || !apart);
}

/* ---- GEMMs over pixels -------------------------------------------------- */

static struct gemm forward(const struct points *p, const struct call *call)
{
    const struct conv_attributes *conv = call->node->attributes;
    return (struct gemm){
        .n = p->out,
        .k = p->in,
        .a = call->input[0],
        .a_row = p->in,
        .a_step = 1,
        .b = call->input[1],
        .b_step = p->out,
        .b_column = 1,
        .c = call->output[0],
        .c_row = p->out,
        .bias = call->input[2],
        .relu = conv->activation == ACTIVATION_RELU,
        .b_packed = call->pack,
    };
}

static struct gemm backward(const struct points *p, const struct call *call)
{
    return (struct gemm){
        .n = p->in,
        .k = p->out,
        .a = call->input[0],
        .a_row = p->out,
        .a_step = 1,
        .b = call->input[1],
        .b_step = 1,
        .b_column = p->out,
        .c = call->output[0],
        .c_row = p->in,
        .bias = call->input[2],
        .room = call->scratch,
        .b_packed = call->pack,
    };
}

/* Of a forward pass, or of the gradient of x. */
static struct gemm gemm_of(struct points *p, const struct call *call)
{
    enum conv_role role;
    conv_family_of(&role, call->node->op);
    points_of(p, call->node);
    return role == CONV_FORWARD ? forward(p, call) : backward(p, call);
}

PACKER(pack_panels)
{
    struct points p;
    const struct gemm g = gemm_of(&p, whole);
    VARIANT(gemm_pack_b)(pack, &g, unit, kernel->pack_units);
}

/* The kernel k as the right side of a GEMM with K = steps and N = columns. */
static void set_panels(struct cpu_kernel *out, int64_t steps, int64_t columns)
{
    cpu_set_pack(out, pack_panels, PACK_UNITS, (size_t)gemm_b_floats(steps, columns) * sizeof(float));
}

/* ---- one and a half vectors of columns ---------------------------------- */

/* Whether gemm_halves computes a GEMM with N = columns and K = steps. It does not where the convolution has a
   stride. */
static bool is_halves(const struct points *p, int64_t columns, int64_t steps)
{
    return columns == GEMM_HALVES && steps % 2 == 0 && steps <= HALVES_STEPS && !p->run;
}

PACKER(pack_halves)
{
    struct points p;
    const struct gemm g = gemm_of(&p, whole);
    VARIANT(gemm_pack_halves)(pack, &g);
}

static void run_halves(const struct kernel *kernel, const struct call *call)
{
    struct points p;
    struct gemm g = gemm_of(&p, call);
    g.m = cpu_rows(kernel, call) * p.cells;
    VARIANT(gemm_halves)(&g);
}

static void take_halves(struct cpu_kernel *out, int64_t steps)
{
    out->kernel.run = run_halves;
    cpu_set_pack(out, pack_halves, 1, (size_t)(steps * GEMM_HALVES) * sizeof(float));
}

/* ---- forward ------------------------------------------------------------ */

/* Floats between the rows of the buffer of copied pixels. The distance must not be a multiple of a page, because all
   rows of a tile would then share a few sets of the L1 cache. That conflict is why pixels are slow to read in place. */
static int64_t gathered_row(const struct points *p)
{
    return p->in + GEMM_PANEL;
}

/* Copies the pixels that the stride does not skip into the rows of A. */
static void gather(float *to, const struct points *p, const float *x, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++, to += gathered_row(p))
        memcpy(to, x + i / p->run * p->jump + i % p->run * p->between, (size_t)p->in * sizeof *to);
}

static void run_forward(const struct kernel *kernel, const struct call *call)
{
    struct points p;
    struct gemm g = gemm_of(&p, call);
    int64_t cells = cpu_rows(kernel, call) * p.cells;
    g.a = call->scratch;
    g.a_row = gathered_row(&p);
    g.a_in_place = true;
    for (int64_t first = 0; first < cells; first += g.m, g.c += g.m * p.out) {
        g.m = cells - first < GEMM_BLOCK_ROWS ? cells - first : GEMM_BLOCK_ROWS;
        gather(call->scratch, &p, call->input[0], first, g.m);
        VARIANT(gemm_packed)(&g);
    }
}

MAKER(make_points)
{
    struct points p;
    if (!cpu_all_f32(node) || !points_of(&p, node))
        return false;
    if (is_halves(&p, p.out, p.in)) {
        take_halves(out, p.in);
    } else if (p.run && p.in >= FAR_CHANNELS) {
        out->kernel.run = run_forward;
        out->kernel.scratch_bytes = (size_t)(GEMM_BLOCK_ROWS * gathered_row(&p)) * sizeof(float);
        set_panels(out, p.in, p.out);
    }
    return out->kernel.run != NULL;
}

/* ---- the gradient of x -------------------------------------------------- */

/* Sets pixels of dx to the value that they have where no pixel of dy reaches them: the bias, or 0 without a bias. */
static void fill(float *dx, const float *bias, int64_t cells, int64_t channels)
{
    if (!bias)
        memset(dx, 0, (size_t)(cells * channels) * sizeof *dx);
    for (int64_t i = 0; bias && i < cells; i++)
        memcpy(dx + i * channels, bias, (size_t)channels * sizeof *dx);
}

/* Copies the rows of C to the pixels of dx that the stride does not skip. */
static void copy_to_pixels(float *dx, const struct points *p, const float *from, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++, from += p->in)
        memcpy(dx + i / p->run * p->jump + i % p->run * p->between, from, (size_t)p->in * sizeof *dx);
}

/* Fills the pixels that the stride skips: those after each pixel of a run, and the image rows after the run. */
static void fill_around(float *dx, const float *bias, const struct points *p)
{
    int64_t gap = p->between - p->in, line = p->run * p->between;
    for (int64_t i = 0; i < p->run; i++)
        fill(dx + i * p->between + p->in, bias, gap / p->in, p->in);
    fill(dx + line, bias, (p->jump - line) / p->in, p->in);
}

/* One GEMM per run, which writes to dx directly. Each GEMM prefetches the part of dx that belongs to the next run, with
   the skipped pixels, because dx is larger than k here. */
static void run_backward_lines(const struct kernel *kernel, const struct call *call)
{
    struct points p;
    struct gemm g = gemm_of(&p, call);
    int64_t runs = cpu_rows(kernel, call) * (p.cells / p.run);
    g.m = p.run;
    g.c_row = p.between;
    g.a_in_place = true;
    for (int64_t i = 0; i < runs; i++, g.a += p.run * p.out, g.c += p.jump) {
        g.soon = i + 1 < runs ? g.c + p.jump : NULL;
        g.soon_floats = p.jump;
        VARIANT(gemm_packed)(&g);
        fill_around(g.c, call->input[2], &p);
    }
}

static bool is_lines(const struct points *p)
{
    return p->run >= LINE_CELLS && p->in >= LINE_CHANNELS && p->out >= LINE_CHANNELS && p->out <= GEMM_MOST_STEPS;
}

static void run_backward(const struct kernel *kernel, const struct call *call)
{
    struct points p;
    struct gemm g = gemm_of(&p, call);
    int64_t rows = cpu_rows(kernel, call), cells = rows * p.cells;
    g.m = cells;
    if (!p.run) {
        VARIANT(gemm_packed)(&g);
        return;
    }
    fill(call->output[0], call->input[2], rows * p.x_cells, p.in);
    g.c = (float *)call->scratch + GEMM_ROWS_ROOM;
    for (int64_t first = 0; first < cells; first += g.m, g.a += g.m * p.out) {
        g.m = cells - first < GEMM_BLOCK_ROWS ? cells - first : GEMM_BLOCK_ROWS;
        VARIANT(gemm_packed)(&g);
        copy_to_pixels(call->output[0], &p, g.c, first, g.m);
    }
}

MAKER(make_points_input_gradient)
{
    struct points p;
    if (!cpu_all_f32(node) || !points_of(&p, node))
        return false;
    bool heavy = p.in * p.out >= HEAVY_BACKWARD;
    if (is_halves(&p, p.in, p.out)) {
        take_halves(out, p.out);
    } else if (heavy || is_lines(&p)) {
        out->kernel.run = heavy ? run_backward : run_backward_lines;
        set_panels(out, p.out, p.in);
        if (heavy)
            out->kernel.scratch_bytes = (size_t)(GEMM_ROWS_ROOM + (p.run ? GEMM_BLOCK_ROWS * p.in : 0)) * sizeof(float);
    }
    return out->kernel.run != NULL;
}

/* ---- the gradient of k -------------------------------------------------- */

/* Computes the second output, the gradient of the bias; it is 0 where the attributes do not ask for it. */
static void sum_bias(const struct call *call, int64_t cells, int64_t channels)
{
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    float *dbias = call->output[1];
    if (!call->add)
        memset(dbias, 0, (size_t)channels * sizeof *dbias);
    if (attributes->bias)
        add_rows(dbias, call->input[1], cells, channels);
}

static void run_weights(const struct kernel *kernel, const struct call *call)
{
    struct points p;
    points_of(&p, call->node);
    int64_t cells = cpu_rows(kernel, call) * p.cells;
    const struct gemm g = {
        .m = p.in,
        .n = p.out,
        .k = cells,
        .a = call->input[0],
        .a_row = 1,
        .a_step = p.between,
        .b = call->input[1],
        .b_step = p.out,
        .b_column = 1,
        .c = call->output[0],
        .c_row = p.out,
        .add = call->add,
        .room = call->scratch,
        .room_tiles = ROOM_TILES,
        .step_run = p.run,
        .step_jump = p.jump,
    };
    VARIANT(gemm_packed)(&g);
    sum_bias(call, cells, p.out);
}

/* Computes dk transposed: dk^T[out, in] += dy[pixels, out]^T . x[pixels, in]. The sums are the same, but the vectors
   run along the channels of x because the channels of dy do not fill whole vectors. */
static void run_weights_turned(const struct kernel *kernel, const struct call *call)
{
    struct points p;
    points_of(&p, call->node);
    int64_t cells = cpu_rows(kernel, call) * p.cells;
    float *turned = call->scratch, *dk = call->output[0];
    const struct gemm g = {
        .m = p.out,
        .n = p.in,
        .k = cells,
        .a = call->input[1],
        .a_row = 1,
        .a_step = p.out,
        .b = call->input[0],
        .b_step = p.in,
        .c = turned,
        .c_row = p.in,
    };
    VARIANT(gemm)(&g);
    for (int64_t i = 0; i < p.in; i++)
        for (int64_t o = 0; o < p.out; o++)
            dk[i * p.out + o] = (call->add ? dk[i * p.out + o] : 0) + turned[o * p.in + i];
    sum_bias(call, cells, p.out);
}

/* Whether the channels of dy leave a vector half empty while the channels of x fill whole vectors. */
static bool is_turned(const struct points *p)
{
    return p->out == GEMM_HALVES && p->in % LANES == 0 && !p->run;
}

MAKER(make_points_weight_gradient)
{
    struct points p;
    if (!cpu_all_f32(node) || !points_of(&p, node))
        return false;
    if (is_turned(&p)) {
        out->kernel.run = run_weights_turned;
        out->kernel.scratch_bytes = (size_t)(p.in * p.out) * sizeof(float);
    } else if (p.in * p.out >= HEAVY_WEIGHTS) {
        out->kernel.run = run_weights;
        out->kernel.scratch_bytes = (GEMM_ROOM + (ROOM_TILES - 1) * GEMM_TILE_ROOM) * sizeof(float);
    }
    return out->kernel.run != NULL;
}
