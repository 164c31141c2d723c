/* cpu_convolution_tiles.c - convolutions of bf16 over one and two axes, and the gradient of their input, by tiles.

   Both are the sum of cpu_conv_axis.h over planes (tile_planes.h): 32 outputs one behind the other are a block's rows,
   each cell of the kernel is one step of the sum (tile_steps.h) or several. Where nothing has to be padded the planes
   are x itself. Sums are f32, each output is rounded once. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/tile_planes.h"
#include "backends/cpu/gemm/tile_steps.h"
#include "base/numbers/checked.h"
#include "ops/ops.h"

#if LANES == 16

#define LINE        64
#define PLANE_BYTES (512 * 1024) /* of planes that are made and read together: a quarter of L2 */
#define PACK_UNITS  16

/* size[]: where things lie in scratch, in bytes. */
enum { STEPS_AT, PLANES_AT };

struct layout {
    struct conv_sizes s;
    bool backward, flat, in_place; /* flat: kernels of one cell over a whole slice, cell by cell */
    int64_t columns;               /* of the results */
    int64_t width;                 /* of a step */
    int64_t result[2];             /* rows and columns of a sample's results */
    int64_t residues[2];           /* of the stride, down and across; 1 forward */
    struct planes planes;
    int64_t band, group; /* rows of outputs that are done together, samples where they are all */
};

/* Elements a step of cells of so many: a divisor, where there is a good one; `padded` is a multiple of it. */
static int64_t step_width(int64_t channels, int64_t *padded)
{
    for (int64_t width = TILE_BLOCK; width >= TILE_SIDE; width -= 2)
        if (channels % width == 0) {
            *padded = channels;
            return width;
        }
    int64_t steps = (channels + TILE_BLOCK - 1) / TILE_BLOCK, width = (channels + 2 * steps - 1) / (2 * steps) * 2;
    *padded = steps * width;
    return width;
}

static struct conv_axis axis_of(const struct layout *l, int axis, int64_t residue)
{
    struct conv_axis along = l->backward ? backward_axis(&l->s, axis + 1, residue) : forward_axis(&l->s, axis + 1);
    along.count = along.count < 0 ? 0 : along.count;
    return along;
}

static void place_planes(struct layout *l)
{
    struct planes *p = &l->planes;
    for (int axis = 0; axis < 2; axis++) {
        p->stride[axis] = l->backward ? 1 : l->s.stride[axis + 1];
        l->residues[axis] = l->backward ? l->s.stride[axis + 1] : 1;
        for (int64_t residue = 0; residue < l->residues[axis]; residue++) {
            struct conv_axis along = axis_of(l, axis, residue);
            p->before[axis] = along.taps && -along.at > p->before[axis] ? -along.at : p->before[axis];
        }
        for (int64_t residue = 0; residue < l->residues[axis]; residue++) {
            struct conv_axis along = axis_of(l, axis, residue);
            planes_reach(p, axis, &along);
        }
    }
    planes_share_zeros(p);
    for (int64_t residue = 0; residue < l->residues[0] * l->residues[1]; residue++) {
        struct conv_axis down = axis_of(l, 0, residue / l->residues[1]),
                         across = axis_of(l, 1, residue % l->residues[1]);
        planes_meet(p, &down, &across);
    }
}

/* Rows of a band and samples of a group, from the bytes that planes may have. */
static void share_out(struct layout *l)
{
    int64_t row = planes_elements(&l->planes, 1) - planes_elements(&l->planes, 0);
    int64_t rows = PLANE_BYTES / 2 / row - l->planes.reach, least = 2 * TILE_BLOCK / l->planes.across + 1;
    int64_t all = l->flat ? rows / TILE_BLOCK * TILE_BLOCK : (l->result[0] + l->residues[0] - 1) / l->residues[0];
    rows = rows < least ? least : rows;
    l->group = l->flat || all > rows ? 1 : rows / (all + l->planes.reach);
    l->group = l->group < 1 ? 1 : l->group;
    l->band = all < rows && all > 0 ? all : rows;
    /* The first band has a whole block: none begins in front of x. */
    while (l->in_place && (l->band - 1) * l->planes.across + l->result[1] < TILE_BLOCK)
        l->band++;
}

/* samples: of a call. */
static void layout_of(struct layout *l, const struct node *node, bool backward, int64_t samples)
{
    *l = (struct layout){.backward = backward};
    struct conv_sizes *s = &l->s;
    conv_sizes_of(s, node);
    l->flat = planes_are_flat(s);
    for (int i = 1; i < 3 && l->flat; i++)
        s->x[i] = s->y[i] = i == 1 ? samples * s->x[1] * s->x[2] : 1;
    l->columns = backward ? s->in : s->out;
    l->planes.channels = backward ? s->out : s->in;
    l->width = step_width(l->planes.channels, &l->planes.padded);
    for (int axis = 0; axis < 2; axis++) {
        l->planes.source[axis] = backward ? s->y[axis + 1] : s->x[axis + 1];
        l->result[axis] = backward ? s->x[axis + 1] : s->y[axis + 1];
    }
    if (!backward && s->k[2] * l->planes.padded <= TILE_BLOCK && s->k[2] > 1 && s->gap[2] == 0) {
        l->planes.joined = true;
        l->width = s->k[2] * l->planes.padded;
    }
    place_planes(l);
    const struct planes *p = &l->planes;
    l->in_place = p->before[0] == 0 && p->before[1] == 0 && p->padded == p->channels && p->stride[0] == 1 &&
                  p->stride[1] == 1 && p->across == p->source[1] && l->residues[0] == 1 && l->residues[1] == 1 &&
                  l->result[0] + p->reach == p->source[0] &&
                  (l->result[0] - 1) * p->across + l->result[1] >= TILE_BLOCK;
    share_out(l);
}

static int64_t steps_of(const struct layout *l, const struct conv_axis *down, const struct conv_axis *across)
{
    if (!across->taps)
        return 0;
    return down->taps * (l->planes.joined ? 1 : across->taps * (l->planes.padded / l->width));
}

/* Elements of a block of columns of B. */
static int64_t panel_of(const struct layout *l, int64_t steps)
{
    return steps * l->width * TILE_BLOCK;
}

/* ---- packing -------------------------------------------------------------- */

/* One step: kernel cell (y, x), elements from `first` of a cell on. */
struct step {
    const struct layout *l;
    const uint16_t *k;
    int64_t y, x, x_step, first;
};

/* Forward, element e of a step is this row of the kernel, or none. */
static const uint16_t *kernel_row(const struct step *step, int64_t e)
{
    const struct layout *l = step->l;
    int64_t x = step->x, c = step->first + e;
    if (l->planes.joined) {
        x += e / l->planes.padded * step->x_step;
        c = e % l->planes.padded;
    }
    return c < l->planes.channels ? step->k + ((step->y * l->s.k[2] + x) * l->s.in + c) * l->s.out : NULL;
}

static void pack_forward_tile(uint32_t *to, const struct step *step, int64_t column)
{
    for (int64_t e = 0; e < step->l->width; e += 2) {
        const uint16_t *low = kernel_row(step, e), *high = kernel_row(step, e + 1);
        _mm512_storeu_si512(to + e / 2 * TILE_SIDE, tile_pair(low ? low + column : NULL, high ? high + column : NULL,
                                                              step->l->columns - column));
    }
}

/* Of the gradient, elements of a step are columns of the kernel. */
static void pack_backward_tile(uint32_t *to, const struct step *step, int64_t column)
{
    const struct layout *l = step->l;
    uint32_t rows[TILE_WORDS], turned[TILE_WORDS];
    int64_t left = l->s.out - step->first;
    __mmask32 mask = left >= TILE_BLOCK ? 0xffffffff : (1u << left) - 1;
    const uint16_t *k = step->k + ((step->y * l->s.k[2] + step->x) * l->s.in + column) * l->s.out + step->first;
    for (int64_t i = 0; i < TILE_SIDE; i++)
        _mm512_storeu_si512(rows + i * TILE_SIDE, column + i < l->s.in
                                                      ? _mm512_maskz_loadu_epi16(mask, k + i * l->s.out)
                                                      : _mm512_setzero_si512());
    VARIANT(transpose_tile)((float *)turned, TILE_SIDE, (const float *)rows, TILE_SIDE, TILE_SIDE);
    memcpy(to, turned, (size_t)(l->width / 2 * TILE_SIDE) * sizeof *to);
}

static uint16_t *pack_step(uint16_t *to, const struct step *step, int64_t column)
{
    for (int half = 0; half < 2; half++, column += TILE_SIDE, to += step->l->width * TILE_SIDE) {
        if (column >= step->l->columns)
            memset(to, 0, (size_t)(step->l->width * TILE_SIDE) * sizeof *to);
        else if (step->l->backward)
            pack_backward_tile((uint32_t *)to, step, column);
        else
            pack_forward_tile((uint32_t *)to, step, column);
    }
    return to;
}

/* A block of columns: all steps of one residue's sum, in the order of place_steps. */
static void pack_panel(uint16_t *to, const struct layout *l, const uint16_t *k, const struct conv_axis *down,
                       const struct conv_axis *across, int64_t column)
{
    struct step step = {.l = l, .k = k, .x_step = across->weight_step};
    int64_t end = l->planes.joined ? 1 : across->taps;
    for (int64_t j = 0; j < down->taps; j++)
        for (int64_t i = 0; i < end && i < across->taps; i++)
            for (step.first = 0; step.first < (l->planes.joined ? 1 : l->planes.padded); step.first += l->width) {
                step.y = down->weight + j * down->weight_step;
                step.x = across->weight + i * across->weight_step;
                to = pack_step(to, &step, column);
            }
}

static void pack_kernel(const struct kernel *kernel, const struct call *whole, int unit, void *pack, bool backward)
{
    struct layout l;
    layout_of(&l, whole->node, backward, 1);
    uint16_t *to = pack;
    for (int64_t residue = 0; residue < l.residues[0] * l.residues[1]; residue++) {
        struct conv_axis down = axis_of(&l, 0, residue / l.residues[1]),
                         across = axis_of(&l, 1, residue % l.residues[1]);
        int64_t panel = panel_of(&l, steps_of(&l, &down, &across));
        for (int64_t column = unit * TILE_BLOCK; column < l.columns; column += kernel->pack_units * TILE_BLOCK)
            pack_panel(to + column / TILE_BLOCK * panel, &l, whole->input[1], &down, &across, column);
        to += tile_padded(l.columns) / TILE_BLOCK * panel;
    }
}

/* ---- running -------------------------------------------------------------- */

/* The sum of one residue over the planes of some samples. */
struct pass {
    const struct layout *l;
    struct conv_axis down, across;
    struct tile_steps steps;
    const uint16_t *planes;
    int64_t sample_planes; /* elements between two samples' planes */
    uint16_t *y;           /* the first of these samples' results */
    int64_t samples, first, rows;
    const float *bias;
    bool relu;
    float *sums;
};

/* In elements from the first plane on. */
static void place_steps(int64_t *at, const struct pass *pass, int64_t rows)
{
    const struct planes *p = &pass->l->planes;
    for (int64_t j = 0; j < pass->down.taps; j++)
        for (int64_t i = 0; i < pass->across.taps && i < (p->joined ? 1 : pass->across.taps); i++) {
            int64_t down = tap_at(&pass->down, p->before[0], j), across = tap_at(&pass->across, p->before[1], i);
            int64_t plane = plane_place(p, plane_number(p, down, across)) * plane_cells(p, rows);
            for (int64_t c = 0; c < (p->joined ? 1 : p->padded); c += pass->l->width)
                *at++ = (plane + plane_cell(p, down, across)) * p->padded + c;
        }
}

/* Rows of sums go to the outputs that they are: those of `from`..`to`, counted with the cells that are nobody's. */
static void put_block(const struct pass *pass, uint16_t *y, int64_t at, int64_t from, int64_t to, int64_t column)
{
    const struct layout *l = pass->l;
    int64_t width = l->columns - column < TILE_BLOCK ? l->columns - column : TILE_BLOCK;
    int64_t t = at / l->planes.across, u = at % l->planes.across;
    const float *bias = pass->bias ? pass->bias + column : NULL;
    for (int64_t i = 0; i < TILE_BLOCK && at + i < to; i++) {
        if (u < pass->across.count && at + i >= from) {
            int64_t row = pass->down.out + t * pass->down.out_step, cell = pass->across.out + u * pass->across.out_step;
            tile_put_row(y + (row * l->result[1] + cell) * l->columns + column, pass->sums + i * TILE_BLOCK, bias,
                         pass->relu, width);
        }
        if (++u == l->planes.across) {
            u = 0;
            t++;
        }
    }
}

/* All blocks of rows of one sample against one block of columns. */
static void run_rows(struct pass *pass, const uint16_t *planes, uint16_t *y, int64_t column)
{
    const struct layout *l = pass->l;
    int64_t across = l->planes.across, base = pass->first * across, row = pass->steps.a_row / 2;
    int64_t end = base + (pass->rows - 1) * across + pass->across.count;
    for (int64_t at = base; at < end; at += TILE_BLOCK) {
        int64_t from = l->in_place && at + TILE_BLOCK > end ? end - TILE_BLOCK : at;
        pass->steps.a = planes + (from - (l->in_place ? 0 : base)) * row;
        pass->steps.first = (int)(at - from);
        pass->steps.rows = end - at < TILE_BLOCK ? (int)(end - at) : 0;
        tile_steps_run(pass->sums, &pass->steps);
        put_block(pass, y, from, at, end, column);
    }
}

/* Outputs that no kernel cell meets: the bias, or 0. */
static void put_nothing(const struct pass *pass, uint16_t *y)
{
    static const float zeros[TILE_BLOCK];
    const struct layout *l = pass->l;
    for (int64_t t = pass->first; t < pass->first + pass->rows; t++)
        for (int64_t u = 0; u < pass->across.count; u++) {
            int64_t row = pass->down.out + t * pass->down.out_step, cell = pass->across.out + u * pass->across.out_step;
            uint16_t *to = y + (row * l->result[1] + cell) * l->columns;
            for (int64_t j = 0; pass->bias && j < l->columns; j += TILE_BLOCK)
                tile_put_row(to + j, zeros, pass->bias + j, pass->relu,
                             l->columns - j < TILE_BLOCK ? l->columns - j : TILE_BLOCK);
            if (!pass->bias)
                memset(to, 0, (size_t)l->columns * sizeof *to);
        }
}

static void run_pass(struct pass *pass, const uint16_t *packed)
{
    const struct layout *l = pass->l;
    int64_t panel = panel_of(l, pass->steps.steps), each = l->result[0] * l->result[1] * l->columns;
    for (int64_t n = 0; n < pass->samples && !pass->steps.steps; n++)
        put_nothing(pass, pass->y + n * each);
    for (int64_t column = 0; pass->steps.steps && column < l->columns; column += TILE_BLOCK) {
        pass->steps.b = packed + column / TILE_BLOCK * panel;
        for (int64_t n = 0; n < pass->samples; n++)
            run_rows(pass, pass->planes + n * pass->sample_planes, pass->y + n * each, column);
    }
}

/* The sums of all residues over the planes that are there. */
static void run_residues(struct pass *pass, const uint16_t *packed, int64_t *at, int64_t rows)
{
    const struct layout *l = pass->l;
    for (int64_t residue = 0; residue < l->residues[0] * l->residues[1]; residue++) {
        pass->down = axis_of(l, 0, residue / l->residues[1]);
        pass->across = axis_of(l, 1, residue % l->residues[1]);
        pass->steps.steps = steps_of(l, &pass->down, &pass->across);
        pass->rows = pass->down.count - pass->first < rows ? pass->down.count - pass->first : rows;
        place_steps(at, pass, rows);
        if (pass->rows > 0 && pass->across.count > 0)
            run_pass(pass, packed);
        packed += tile_padded(l->columns) / TILE_BLOCK * panel_of(l, pass->steps.steps);
    }
}

static void convolve(const struct kernel *kernel, const struct call *call, bool backward, bool relu)
{
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t samples = cpu_rows(kernel, call);
    struct layout l;
    layout_of(&l, call->node, backward, samples);
    const struct planes *p = &l.planes;
    samples = l.flat && samples ? 1 : samples;
    uint16_t *room = (uint16_t *)((char *)call->scratch + size[PLANES_AT]);
    int64_t source = p->source[0] * p->source[1] * p->channels, each = l.result[0] * l.result[1] * l.columns;
    int64_t all = (l.result[0] + l.residues[0] - 1) / l.residues[0];
    struct pass pass = {.l = &l, .bias = call->input[2], .relu = relu, .sums = call->scratch};
    pass.steps = (struct tile_steps){.a_row = p->padded * 2 * (p->joined ? p->stride[1] : 1),
                                     .at = (int64_t *)((char *)call->scratch + size[STEPS_AT]),
                                     .width = l.width};
    tile_steps_begin(l.width);
    for (int64_t n = 0; n < samples; n += l.group)
        for (pass.first = 0; pass.first < all; pass.first += l.band) {
            const uint16_t *x = (const uint16_t *)call->input[0] + n * source;
            int64_t rows = all - pass.first < l.band ? all - pass.first : l.band;
            pass.samples = samples - n < l.group ? samples - n : l.group;
            pass.sample_planes = l.in_place ? source : planes_elements(p, rows);
            for (int64_t i = 0; i < pass.samples && !l.in_place; i++)
                planes_fill(room + i * pass.sample_planes, p, x + i * source, pass.first, rows);
            pass.planes = l.in_place ? x : room;
            pass.y = (uint16_t *)call->output[0] + n * each;
            run_residues(&pass, call->pack, (int64_t *)pass.steps.at, rows);
        }
    tile_steps_end();
}

/* ---- kernels -------------------------------------------------------------- */

static bool tiles_take(const struct node *node)
{
    bool bias = node->input_count < 3 || !node->input[2] || node->input[2]->type == TYPE_F32;
    return bias && node->output[0]->type == TYPE_BF16 && shape_count(&node->output[0]->shape) > 0 && planes_take(node);
}

/* Scratch: sums of a block, places of steps, planes and as much behind them as a block may read. */
static void make(struct cpu_kernel *out, const struct cpu_request *request, bool backward)
{
    struct layout l;
    layout_of(&l, request->asked->node, backward, request->asked->slice);
    int64_t most = 0, all = 0;
    for (int64_t residue = 0; residue < l.residues[0] * l.residues[1]; residue++) {
        struct conv_axis down = axis_of(&l, 0, residue / l.residues[1]),
                         across = axis_of(&l, 1, residue % l.residues[1]);
        int64_t steps = steps_of(&l, &down, &across);
        most = steps > most ? steps : most;
        all += steps;
    }
    int64_t group = l.group < request->asked->slice ? l.group : request->asked->slice;
    int64_t elements = l.in_place ? 0 : group * planes_elements(&l.planes, l.band);
    if (l.flat && l.planes.padded == l.planes.channels)
        elements = TILE_BLOCK * l.planes.padded; /* a short slice may have fewer cells than a block */
    int64_t behind = (TILE_BLOCK + 1) * plane_line(&l.planes) / l.planes.across + l.planes.before[1];
    elements += elements ? behind * l.planes.padded : 0;
    out->size[STEPS_AT] = TILE_BLOCK * TILE_BLOCK * 4;
    out->size[PLANES_AT] = (int64_t)round_up((uint64_t)(out->size[STEPS_AT] + most * 8), LINE);
    out->kernel.scratch_bytes = (size_t)(out->size[PLANES_AT] + elements * 2);
    int64_t blocks = tile_padded(l.columns) / TILE_BLOCK;
    out->kernel.pack_bytes = (size_t)(blocks * panel_of(&l, all)) * sizeof(uint16_t);
    out->kernel.pack_units = blocks < PACK_UNITS ? (int)blocks : PACK_UNITS;
    out->kernel.implementation = tiles_name();
}

PACKER(pack_forward)
{
    pack_kernel(kernel, whole, unit, pack, false);
}

static void run_forward(const struct kernel *kernel, const struct call *call)
{
    const struct conv_attributes *conv = call->node->attributes;
    convolve(kernel, call, false, conv->activation == ACTIVATION_RELU);
}

MAKER(make_convolution_tiles)
{
    if (!tiles_take(node))
        return false;
    make(out, request, false);
    out->kernel.pack = pack_forward;
    out->kernel.run = run_forward;
    return true;
}

PACKER(pack_backward)
{
    pack_kernel(kernel, whole, unit, pack, true);
}

static void run_backward(const struct kernel *kernel, const struct call *call)
{
    convolve(kernel, call, true, false);
}

MAKER(make_convolution_input_gradient_tiles)
{
    if (!tiles_take(node))
        return false;
    make(out, request, true);
    out->kernel.pack = pack_backward;
    out->kernel.run = run_backward;
    return true;
}

#endif
