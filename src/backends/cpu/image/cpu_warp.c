/* cpu_warp.c - random warps and tones of pictures. */
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* Every input but the iteration is f32. */
static bool warp_takes(const struct node *node)
{
    for (int i = 0; i < node->input_count - 1; i++)
        if (node->input[i]->type != TYPE_F32)
            return false;
    return true;
}

/* ---- warps ------------------------------------------------------------------- */

MAKER(make_random_warp)
{
    return warp_takes(node);
}

/* One pixel of y from up to four of x. */
INLINE void gather_pixel(float *y, const float *x, const struct warp_taps *taps, int64_t channels, float fill)
{
    for (int64_t c = 0; c < channels; c++)
        y[c] = 0;
    for (int k = 0; k < 4; k++) {
        const float *from = x + taps->place[k] * channels;
        float weight = taps->weight[k];
        if (weight == 0)
            continue;
        for (int64_t c = 0; c < channels; c++)
            y[c] = madd(weight, taps->place[k] < 0 ? fill : from[c], y[c]);
    }
}

INLINE void scatter_pixel(const float *dy, float *dx, const struct warp_taps *taps, int64_t channels)
{
    for (int k = 0; k < 4; k++) {
        float *to = dx + taps->place[k] * channels, weight = taps->weight[k];
        for (int64_t c = 0; c < channels && taps->place[k] >= 0; c++)
            to[c] = madd(weight, dy[c], to[c]);
    }
}

/* The common case, without branches for what lies outside: a position at least a pixel away from the last one. */
INLINE bool gather_inside(float *y, const float *x, const struct warp_map *map, int64_t height, int64_t width,
                          int64_t column, int64_t row, int64_t channels, bool nearest)
{
    float at_x = map->a[0] * (float)column + map->a[1] * (float)row + map->a[2];
    float at_y = map->b[0] * (float)column + map->b[1] * (float)row + map->b[2];
    if (!(at_x >= 0 && at_y >= 0 && at_x < (float)(width - 1) && at_y < (float)(height - 1)))
        return false;
    int32_t left = (int32_t)at_x, top = (int32_t)at_y;
    float right = at_x - (float)left, low = at_y - (float)top;
    if (nearest) {
        const float *from = x + ((top + (low >= 0.5f)) * width + left + (right >= 0.5f)) * channels;
        for (int64_t c = 0; c < channels; c++)
            y[c] = from[c];
        return true;
    }
    const float *over = x + (top * width + left) * channels, *under = over + width * channels;
    float a = (1 - low) * (1 - right), b = (1 - low) * right, d = low * (1 - right), e = low * right;
    for (int64_t c = 0; c < channels; c++)
        y[c] = madd(e, under[channels + c], madd(d, under[c], madd(b, over[channels + c], a * over[c])));
    return true;
}

struct warp_run {
    const struct random_warp_attributes *attributes;
    const struct shape *x, *y;
    int64_t rows;
    uint64_t step;
};

/* gather: y from x, else dx from dy: x and y stand for the picture that was warped and for what came out. */
INLINE void warp_samples(const struct warp_run *run, const struct call *call, float *x, float *y, int64_t channels,
                         bool gather)
{
    int64_t height = run->x->dim[1], width = run->x->dim[2], rows = run->y->dim[1], columns = run->y->dim[2];
    float fill = (float)run->attributes->fill_value;
    bool nearest = run->attributes->nearest;
    for (int64_t n = 0; n < run->rows; n++, x += height * width * channels) {
        const struct warp_map map = random_warp_draw(run->attributes, run->step, call->begin + n, height, width);
        if (!gather)
            memset(x, 0, (size_t)(height * width * channels) * sizeof(float));
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++, y += channels) {
                if (gather && gather_inside(y, x, &map, height, width, column, row, channels, nearest))
                    continue;
                const struct warp_taps taps = warp_taps(run->attributes, &map, height, width, column, row);
                if (gather)
                    gather_pixel(y, x, &taps, channels, fill);
                else
                    scatter_pixel(y, x, &taps, channels);
            }
    }
}

RUNNER(run_random_warp)
{
    const struct node *node = call->node;
    const struct warp_run run = {node->attributes, &node->input[0]->shape, &node->output[0]->shape,
                                 cpu_rows(kernel, call), (uint64_t) * (const int64_t *)call->input[1]};
    if (run.x->dim[3] == 3)
        warp_samples(&run, call, call->input[0], call->output[0], 3, true);
    else
        warp_samples(&run, call, call->input[0], call->output[0], run.x->dim[3], true);
}

RUNNER(run_random_warp_gradient)
{
    const struct node *node = call->node;
    const struct random_warp_gradient_attributes *attributes = node->attributes;
    const struct warp_run run = {&attributes->forward, &node->output[0]->shape, &node->input[0]->shape,
                                 cpu_rows(kernel, call), (uint64_t) * (const int64_t *)call->input[1]};
    warp_samples(&run, call, call->output[0], call->input[0], run.x->dim[3], false);
}

/* ---- tones -------------------------------------------------------------------- */

/* size[0]: pixels a sample, size[1]: channels. Scratch: two sums a channel. */
MAKER(make_random_tone)
{
    const struct shape *shape = &node->output[0]->shape;
    if (!warp_takes(node))
        return false;
    out->size[1] = shape->dim[shape->rank - 1];
    out->size[0] = shape_row(shape) / out->size[1];
    out->kernel.scratch_bytes = 2 * (size_t)out->size[1] * sizeof(double);
    return true;
}

/* offset[c]: what is added to x * factor; returns factor. */
INLINE float find_tone(double *offset, const struct call *call, const float *x, int64_t n, uint64_t step,
                       int64_t pixels, int64_t channels)
{
    const struct random_tone_attributes *attributes = call->node->attributes;
    float drawn = random_tone_draw(attributes, step, call->begin + n);
    for (int64_t c = 0; c < channels; c++)
        offset[c] = attributes->kind == TONE_BRIGHTNESS ? (double)drawn : 0;
    if (attributes->kind == TONE_BRIGHTNESS)
        return 1;
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c++)
            offset[c] += (double)x[i * channels + c];
    for (int64_t c = 0; c < channels; c++)
        offset[c] *= (1 - (double)drawn) / (double)pixels;
    return drawn;
}

INLINE void tone_samples(const struct kernel *kernel, const struct call *call, int64_t pixels, int64_t channels)
{
    const struct random_tone_attributes *attributes = call->node->attributes;
    float low = (float)attributes->value_low, high = (float)attributes->value_high;
    int64_t rows = cpu_rows(kernel, call);
    uint64_t step = (uint64_t) * (const int64_t *)call->input[1];
    const float *x = call->input[0];
    float *y = call->output[0];
    double *offset = call->scratch;
    for (int64_t n = 0; n < rows; n++, x += pixels * channels, y += pixels * channels) {
        float factor = find_tone(offset, call, x, n, step, pixels, channels);
        for (int64_t i = 0; i < pixels; i++)
            for (int64_t c = 0; c < channels; c++) {
                float value = madd(x[i * channels + c], factor, (float)offset[c]);
                value = value < low ? low : value;
                y[i * channels + c] = value > high ? high : value;
            }
    }
}

RUNNER(run_random_tone)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    if (own->size[1] == 3)
        tone_samples(kernel, call, own->size[0], 3);
    else
        tone_samples(kernel, call, own->size[0], own->size[1]);
}

RUNNER(run_random_tone_gradient)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    const struct random_tone_attributes *attributes = call->node->attributes;
    float low = (float)attributes->value_low, high = (float)attributes->value_high;
    int64_t rows = cpu_rows(kernel, call), pixels = own->size[0], channels = own->size[1], row = pixels * channels;
    uint64_t step = (uint64_t) * (const int64_t *)call->input[2];
    const float *dy = call->input[0], *x = call->input[1];
    float *dx = call->output[0];
    double *offset = call->scratch, *sum = offset + channels;
    for (int64_t n = 0; n < rows; n++, x += row, dy += row, dx += row) {
        float factor = find_tone(offset, call, x, n, step, pixels, channels);
        memset(sum, 0, (size_t)channels * sizeof *sum);
        for (int64_t i = 0; i < row; i++) {
            float value = madd(x[i], factor, (float)offset[i % channels]);
            dx[i] = value >= low && value <= high ? dy[i] : 0;
            sum[i % channels] += (double)dx[i];
        }
        for (int64_t i = 0; i < row; i++)
            dx[i] = madd(dx[i], factor, (float)(sum[i % channels] / (double)pixels) * (1 - factor));
    }
}
