/* resize_spans.c - the weights of bicubic, area, and all methods with antialias, in TensorFlow's arithmetic.

   Antialias: a kernel (triangle or Keys' cubic, a = -1/2) as wide as the reduction, its weights made to sum to 1.
   Bicubic without it: the same cubic at 1/1024 steps, over four pixels. Area: each old pixel by the part of it that
   the new one covers. */
#include "image/resize_spans.h"

#include <float.h>
#include <math.h>

/* Steps of the fraction of a position in bicubic without antialias. */
#define STEPS 1024

static float triangle(float x)
{
    return x < 1 ? 1 - x : 0;
}

static float keys(float x)
{
    if (x >= 2)
        return 0;
    if (x >= 1)
        return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
    return (1.5f * x - 2.5f) * x * x + 1;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static float reduction(int64_t from, int64_t to)
{
    return (float)from / (float)to;
}

static int64_t most_weights(const struct resize *resize, int64_t from, int64_t to)
{
    float by = reduction(from, to) > 1 ? reduction(from, to) : 1;
    int64_t most = resize->method == RESIZE_AREA ? (int64_t)ceilf(by) + 2
                   : !resize->antialias          ? 4
                                        : 2 * (int64_t)ceilf((resize->method == RESIZE_BICUBIC ? 2 : 1) * by) + 2;
    return most < from ? most : from;
}

uint64_t spans_bytes(const struct resize *resize, int64_t from, int64_t to)
{
    uint64_t weights = (uint64_t)to * (uint64_t)most_weights(resize, from, to) * sizeof(float);
    return weights + (uint64_t)to * sizeof(struct span) + (uint64_t)2 * VALUE_ALIGNMENT;
}

static void scale_to_one(float *weights, int64_t count, float sum)
{
    if (fabsf(sum) < 1000 * FLT_MIN)
        return;
    float factor = 1 / sum;
    for (int64_t i = 0; i < count; i++)
        weights[i] *= factor;
}

/* The kernel's place is in old pixels; TensorFlow is given the scale new / old and inverts it. */
static struct span span_antialias(float *weights, const struct resize *resize, int64_t from, int64_t to, int64_t i)
{
    bool cubic = resize->method == RESIZE_BICUBIC;
    float inverse = (float)(1.0 / (double)((float)to / (float)from)), radius = cubic ? 2 : 1;
    float wide = inverse > 1 ? inverse : 1, narrow = 1 / wide, sum = 0;
    float centre = ((float)i + 0.5f) * inverse;
    if (centre > (float)from)
        return (struct span){0};
    int64_t start = clamp((int64_t)ceilf(centre - radius * wide - 0.5f), 0, from - 1);
    int64_t end = clamp((int64_t)floorf(centre + radius * wide - 0.5f), 0, from - 1) + 1;
    for (int64_t p = start; p < end; p++) {
        float distance = fabsf(((float)p + 0.5f - centre) * narrow);
        weights[p - start] = cubic ? keys(distance) : triangle(distance);
        sum += weights[p - start];
    }
    scale_to_one(weights, end - start, sum);
    return (struct span){(int32_t)start, (int32_t)(end - start)};
}

/* Cubic of a step, nearer than one pixel or farther. */
static float keys_at(int64_t step, bool far)
{
    float x = (float)((double)step / STEPS);
    if (!far)
        return (float)(((-0.5 + 2) * (double)x - (-0.5 + 3)) * (double)x * (double)x + 1);
    double y = (double)(float)((double)x + 1.0);
    return (float)(((-0.5 * y - 5 * -0.5) * y + 8 * -0.5) * y - 4 * -0.5);
}

static struct span span_cubic(float *weights, int64_t from, int64_t to, int64_t i)
{
    float at = ((float)i + 0.5f) * reduction(from, to) - 0.5f, below = floorf(at);
    int64_t first = (int64_t)below - 1, step = lrintf((at - below) * STEPS), count = 0;
    const float each[4] = {keys_at(step, true), keys_at(step, false), keys_at(STEPS - step, false),
                           keys_at(STEPS - step, true)};
    float sum = 0;
    for (int64_t k = 0; k < 4; k++) {
        if (first + k < 0 || first + k >= from)
            continue;
        weights[count++] = each[k];
        sum += each[k];
    }
    scale_to_one(weights, count, sum);
    return (struct span){(int32_t)clamp(first, 0, from - 1), (int32_t)count};
}

/* The part of old pixel p between two positions. */
static float covered(int64_t p, float from, float to, float by)
{
    if ((float)p < from)
        return (float)(p + 1) > to ? by : (float)(p + 1) - from;
    return (float)(p + 1) > to ? to - (float)p : 1;
}

/* What rounding puts beyond the last pixel counts for the last one. */
static struct span span_area(float *weights, int64_t from, int64_t to, int64_t i)
{
    float by = reduction(from, to), begin = (float)i * by, end = (float)(i + 1) * by;
    int64_t first = (int64_t)floorf(begin), last = (int64_t)ceilf(end), start = clamp(first, 0, from - 1), count = 0;
    for (int64_t p = first; p < last; p++) {
        int64_t k = clamp(p, 0, from - 1) - start;
        weights[k] = (k < count ? weights[k] : 0) + covered(p, begin, end, by);
        count = k + 1;
    }
    return (struct span){(int32_t)start, (int32_t)count};
}

bool spans_make(struct spans *out, const struct resize *resize, int64_t from, int64_t to, struct value_buffer *scratch)
{
    out->most = most_weights(resize, from, to);
    out->scale = resize->method == RESIZE_AREA ? 1 / reduction(from, to) : 1;
    out->span = value_buffer_take(scratch, (uint64_t)to * sizeof *out->span);
    out->weights =
        out->span ? value_buffer_take(scratch, (uint64_t)to * (uint64_t)out->most * sizeof *out->weights) : NULL;
    for (int64_t i = 0; out->weights && i < to; i++) {
        float *weights = out->weights + i * out->most;
        out->span[i] = resize->method == RESIZE_AREA ? span_area(weights, from, to, i)
                       : resize->antialias           ? span_antialias(weights, resize, from, to, i)
                                                     : span_cubic(weights, from, to, i);
    }
    return out->weights != NULL;
}
