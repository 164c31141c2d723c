/* cpu_convolution_weights_taps.c - gradients of the kernels of convolutions over small images of many channels, tap by
   tap:

     dk[tap, in, out] += x^T . dy

   x is moved by the tap: cells of it that lie in the padding are zeros, lines of cells that do are left out. dk is more
   than a cache holds and passes by once; dy is packed once for all taps, line after line of all samples (line, sample,
   column), so that the lines that a tap meets are one piece of it. */
#include "backends/cpu/convolution/cpu_conv_axis.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "backends/cpu/gemm/gemm.h"
#include "ops/ops.h"

#define HEAVY_TAP  ((int64_t)256 * 1024) /* weights of a tap from which on this is quicker than oneDNN */
#define OUT_WHOLE  32                    /* of which the channels of y are a multiple: panels of every set are whole */
#define MOST_CELLS GEMM_K_BLOCK          /* of the samples that are taken at once */

struct many_taps {
    struct conv_sizes s;
    int64_t cells;   /* of y */
    int64_t samples; /* at once, at most */
};

static bool taps_of(struct many_taps *t, const struct node *node)
{
    struct conv_sizes *s = &t->s;
    conv_sizes_of(s, node);
    t->cells = s->y[1] * s->y[2];
    t->samples = MOST_CELLS / t->cells;
    return s->groups == 1 && s->x[0] == 1 && s->y[0] == 1 && s->k[0] == 1 && s->k[1] * s->k[2] > 1 && t->samples > 0 &&
           s->out % OUT_WHOLE == 0 && s->in * s->out >= HEAVY_TAP;
}

/* Samples `count` of dy into panels of lines * count * columns steps. */
static void pack_dy(float *to, const struct many_taps *t, const float *dy, int64_t count)
{
    const struct conv_sizes *s = &t->s;
    for (int64_t column = 0; column < s->out; column += GEMM_PANEL)
        for (int64_t run = 0; run < s->y[1] * count; run++) {
            const float *from = dy + (run % count * t->cells + run / count * s->y[2]) * s->out + column;
            for (int64_t w = 0; w < s->y[2]; w++, from += s->out, to += GEMM_PANEL) {
                vector_store(to, vector_load(from));
                vector_store(to + LANES, vector_load(from + LANES));
            }
        }
}

/* One step of all tiles of a block of channels; from: NULL for zeros. Tiles are `steps` lines; a line that is not the
   last spills into the next, which is written later. */
static void pack_step(float *to, const float *from, int64_t channels, int64_t steps, bool last)
{
    for (int64_t i = 0; i < channels; i += GEMM_TALL, to += steps * GEMM_TALL) {
        int64_t width = channels - i < GEMM_TALL ? channels - i : GEMM_TALL;
        vector x = vector_all(0);
        if (from)
            x = width < LANES ? vector_load_part(from + i, (int)width) : vector_load(from + i);
        if (last && GEMM_TALL < LANES)
            vector_store_part(to, x, GEMM_TALL);
        else
            vector_store(to, x);
    }
}

/* A tap, and the lines of y that meet x there. */
struct tap {
    int64_t down, right; /* of cells of x: where it lies for the first cell of y */
    int64_t first, end;
};

static struct tap tap_of(const struct conv_sizes *s, int64_t h, int64_t w)
{
    struct tap tap = {h * (s->gap[1] + 1) - s->before[1], w * (s->gap[2] + 1) - s->before[2], 0, s->y[1]};
    while (tap.first < tap.end && tap.first * s->stride[1] + tap.down < 0)
        tap.first++;
    while (tap.first < tap.end && (tap.end - 1) * s->stride[1] + tap.down >= s->x[1])
        tap.end--;
    return tap;
}

static void pack_x(float *to, const struct many_taps *t, const struct tap *tap, const float *x, int64_t count,
                   int64_t channels)
{
    const struct conv_sizes *s = &t->s;
    int64_t steps = (tap->end - tap->first) * count * s->y[2], step = 0;
    for (int64_t run = tap->first * count; run < tap->end * count; run++) {
        int64_t line = run % count * s->x[1] + run / count * s->stride[1] + tap->down;
        for (int64_t w = 0; w < s->y[2]; w++, step++) {
            int64_t at = w * s->stride[2] + tap->right;
            const float *from = at >= 0 && at < s->x[2] ? x + (line * s->x[2] + at) * s->in : NULL;
            pack_step(to + step * GEMM_TALL, from, channels, steps, step + 1 == steps);
        }
    }
}

/* Channels `channel`.. of all taps: dk[tap, channels, out]. room: of tiles of x. */
static void add_channels(float *dk, const struct many_taps *t, const float *x, const float *panels, float *room,
                         int64_t channel, int64_t count)
{
    const struct conv_sizes *s = &t->s;
    struct gemm g = {.n = s->out, .c_row = s->out, .add = true, .packed_steps = count * t->cells, .a_packed = room};
    g.m = s->in - channel < GEMM_BLOCK_ROWS ? s->in - channel : GEMM_BLOCK_ROWS;
    for (int64_t k = 0; k < s->k[1] * s->k[2]; k++) {
        const struct tap tap = tap_of(s, k / s->k[2], k % s->k[2]);
        if (tap.first == tap.end)
            continue;
        pack_x(room, t, &tap, x + channel, count, g.m);
        g.k = (tap.end - tap.first) * count * s->y[2];
        g.b_packed = panels + tap.first * count * s->y[2] * GEMM_PANEL;
        g.c = dk + (k * s->in + channel) * s->out;
        VARIANT(gemm_packed)(&g);
    }
}

static void run_taps(const struct kernel *kernel, const struct call *call)
{
    const struct conv_gradient_attributes *attributes = call->node->attributes;
    struct many_taps t;
    taps_of(&t, call->node);
    const struct conv_sizes *s = &t.s;
    const float *x = call->input[0], *dy = call->input[1];
    float *dk = call->output[0], *dbias = call->output[1], *room = call->scratch, *panels = room + GEMM_ROWS_ROOM;
    int64_t left = cpu_rows(kernel, call), count;
    begin_weight_sums(call, s->k[1] * s->k[2] * s->in * s->out, s->out);
    for (; left > 0; left -= count, x += count * s->x[1] * s->x[2] * s->in, dy += count * t.cells * s->out) {
        count = left < t.samples ? left : t.samples;
        pack_dy(panels, &t, dy, count);
        for (int64_t channel = 0; channel < s->in; channel += GEMM_BLOCK_ROWS)
            add_channels(dk, &t, x, panels, room, channel, count);
        if (attributes->bias)
            add_rows(dbias, dy, count * t.cells, s->out);
    }
}

MAKER(make_taps_weight_gradient)
{
    struct many_taps t;
    if (!cpu_all_f32(node) || !taps_of(&t, node))
        return false;
    int64_t samples = request->asked->slice < t.samples ? request->asked->slice : t.samples;
    out->kernel.run = run_taps;
    out->kernel.scratch_bytes = (size_t)(GEMM_ROWS_ROOM + samples * t.cells * t.s.out) * sizeof(float);
    return true;
}
