/* cpu_resample.c - bilinear and bicubic resizing: rows are mixed first, then pixels of the mixed row; the gradient
   goes the same way back. Weights are tables, made once a kernel. */
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

struct resample {
    int64_t from[2], to[2]; /* height and width of the op's input, and of its output */
    int64_t channels;
    struct taps *down, *across; /* by place of the output */
    int most;                   /* taps across, at most */
    int32_t *place[MOST_TAPS];  /* few channels: by element of an output row, its element of the mixed row, */
    float *weight[MOST_TAPS];   /* and its weight there */
};

#define FEW_CHANNELS 12 /* below it pixels are too short for vectors, and elements are looked up */

static struct taps *make_taps(struct arena *arena, int64_t method, int64_t from, int64_t to)
{
    struct taps *taps = arena_array(arena, (size_t)to, sizeof *taps);
    for (int64_t i = 0; taps && i < to; i++)
        taps[i] = resample_taps(method, from, to, i);
    return taps;
}

/* Taps that are missing weigh nothing, at a place that counts anyway: what is no number there shows in any case. */
static bool make_places(struct resample *resample, struct arena *arena)
{
    int64_t width = resample->to[1], channels = resample->channels;
    for (int64_t k = 0; k < width; k++)
        resample->most = resample->across[k].count > resample->most ? (int)resample->across[k].count : resample->most;
    for (int b = 0; b < resample->most; b++) {
        int32_t *place = resample->place[b] = arena_array(arena, (size_t)(width * channels), sizeof *place);
        float *weight = resample->weight[b] = arena_array(arena, (size_t)(width * channels), sizeof *weight);
        if (!place || !weight)
            return false;
        for (int64_t i = 0; i < width * channels; i++) {
            const struct taps *taps = &resample->across[i / channels];
            bool there = b < taps->count;
            place[i] = (int32_t)((taps->first + (there ? b : 0)) * channels + i % channels);
            weight[i] = there ? taps->weight[b] : 0;
        }
    }
    return true;
}

static bool make_resample(struct cpu_kernel *out, struct cpu_request *request, const struct tensor *x,
                          const struct tensor *y, int64_t method)
{
    struct arena *arena = &request->backend->arena;
    if (request->asked->node->input[0]->type != TYPE_F32)
        return false;
    struct resample *resample = arena_take(arena, sizeof *resample);
    if (!resample)
        return cpu_refused(request);
    for (int i = 0; i < 2; i++) {
        resample->from[i] = x->shape.dim[1 + i];
        resample->to[i] = y->shape.dim[1 + i];
    }
    resample->channels = x->shape.dim[3];
    resample->down = make_taps(arena, method, resample->from[0], resample->to[0]);
    resample->across = make_taps(arena, method, resample->from[1], resample->to[1]);
    if (!resample->down || !resample->across || (resample->channels < FEW_CHANNELS && !make_places(resample, arena)))
        return cpu_refused(request);
    out->own = resample;
    out->kernel.scratch_bytes = (size_t)(resample->from[1] * resample->channels) * sizeof(float);
    return true;
}

/* to = or += x * weight */
INLINE void mix(float *restrict to, const float *restrict x, int64_t count, float weight, bool add)
{
    if (add)
        for (int64_t i = 0; i < count; i++)
            to[i] = madd(x[i], weight, to[i]);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = x[i] * weight;
}

/* A whole output row, element by element: gathers. */
static void look_up(float *restrict y, const float *restrict mixed, const struct resample *r)
{
    int64_t count = r->to[1] * r->channels;
    const int32_t *restrict place = r->place[0];
    const float *restrict weight = r->weight[0];
    for (int64_t i = 0; i < count; i++)
        y[i] = mixed[place[i]] * weight[i];
    for (int b = 1; b < r->most; b++) {
        place = r->place[b];
        weight = r->weight[b];
        for (int64_t i = 0; i < count; i++)
            y[i] = madd(mixed[place[i]], weight[i], y[i]);
    }
}

RUNNER(run_resize)
{
    const struct resample *r = cpu_kernel_of(kernel)->own;
    int64_t rows = cpu_rows(kernel, call), channels = r->channels, line = r->from[1] * channels;
    const float *x = call->input[0];
    float *y = call->output[0], *mixed = call->scratch;
    for (int64_t n = 0; n < rows; n++, x += r->from[0] * line) {
        for (int64_t i = 0; i < r->to[0]; i++) {
            const struct taps *down = &r->down[i];
            for (int64_t a = 0; a < down->count; a++)
                mix(mixed, x + (down->first + a) * line, line, down->weight[a], a > 0);
            if (r->most) {
                look_up(y, mixed, r);
                y += r->to[1] * channels;
                continue;
            }
            for (int64_t k = 0; k < r->to[1]; k++, y += channels) {
                const struct taps *across = &r->across[k];
                for (int64_t b = 0; b < across->count; b++)
                    mix(y, mixed + (across->first + b) * channels, channels, across->weight[b], b > 0);
            }
        }
    }
}

/* A row of dy back into the row that its pixels were taken of. */
INLINE void scatter_row(float *mixed, const float *dy, const struct resample *r, int64_t channels)
{
    memset(mixed, 0, (size_t)(r->from[1] * channels) * sizeof(float));
    for (int64_t k = 0; k < r->to[1]; k++, dy += channels) {
        const struct taps *across = &r->across[k];
        for (int64_t b = 0; b < across->count; b++)
            mix(mixed + (across->first + b) * channels, dy, channels, across->weight[b], true);
    }
}

RUNNER(run_resize_gradient)
{
    const struct resample *r = cpu_kernel_of(kernel)->own;
    int64_t rows = cpu_rows(kernel, call), channels = r->channels, line = r->from[1] * channels;
    const float *dy = call->input[0];
    float *dx = call->output[0], *mixed = call->scratch;
    for (int64_t n = 0; n < rows; n++, dx += r->from[0] * line) {
        memset(dx, 0, (size_t)(r->from[0] * line) * sizeof(float));
        for (int64_t i = 0; i < r->to[0]; i++) {
            const struct taps *down = &r->down[i];
            if (channels == 3)
                scatter_row(mixed, dy, r, 3);
            else if (channels == 1)
                scatter_row(mixed, dy, r, 1);
            else
                scatter_row(mixed, dy, r, channels);
            dy += r->to[1] * channels;
            for (int64_t a = 0; a < down->count; a++)
                mix(dx + (down->first + a) * line, mixed, line, down->weight[a], true);
        }
    }
}

MAKER(make_resize)
{
    const struct resize_attributes *attributes = node->attributes;
    return make_resample(out, request, node->input[0], node->output[0], attributes->method);
}

MAKER(make_resize_gradient)
{
    const struct resize_gradient_attributes *attributes = node->attributes;
    return make_resample(out, request, node->output[0], node->input[0], attributes->forward.method);
}
