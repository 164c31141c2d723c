/* resample_ops.c - bilinear and bicubic resizing, and their gradient: the same weights the other way. */
#include <math.h>

#include "ops/helpers.h"

#define MOST_SIDE ((int64_t)1 << 24) /* beyond it float32 cannot tell pixels apart */
#define STEPS     1024

/* ---- weights, in TensorFlow's float32 arithmetic ----------------------------- */

static struct taps bilinear_taps(float at, int64_t from)
{
    float below = floorf(at);
    int64_t lower = below < 0 ? 0 : (int64_t)below, upper = (int64_t)ceilf(at);
    upper = upper > from - 1 ? from - 1 : upper;
    if (lower >= upper)
        return (struct taps){upper < 0 ? 0 : upper, 1, {1}};
    return (struct taps){lower, 2, {1 - (at - below), at - below}};
}

/* Keys' cubic with a = -1/2, nearer than one pixel or farther. */
static float cubic_at(int64_t step, bool far)
{
    double x = (double)step / STEPS + (far ? 1 : 0);
    if (!far)
        return (float)((1.5 * x - 2.5) * x * x + 1);
    return (float)(((-0.5 * x + 2.5) * x - 4) * x + 2);
}

/* Pixels beyond the border do not count; the others are made to sum to 1. */
static struct taps bicubic_taps(float at, int64_t from)
{
    float below = floorf(at), sum = 0;
    int64_t first = (int64_t)below - 1, step = lrintf((at - below) * STEPS);
    const float each[MOST_TAPS] = {cubic_at(step, true), cubic_at(step, false), cubic_at(STEPS - step, false),
                                   cubic_at(STEPS - step, true)};
    struct taps taps = {first < 0 ? 0 : first, 0, {0}};
    for (int64_t k = 0; k < MOST_TAPS; k++) {
        if (first + k < 0 || first + k >= from)
            continue;
        taps.weight[taps.count++] = each[k];
        sum += each[k];
    }
    for (int64_t k = 0; k < taps.count; k++)
        taps.weight[k] /= sum;
    return taps;
}

struct taps resample_taps(int64_t method, int64_t from, int64_t to, int64_t i)
{
    float at = ((float)i + 0.5f) * ((float)from / (float)to) - 0.5f;
    return method == RESAMPLE_BICUBIC ? bicubic_taps(at, from) : bilinear_taps(at, from);
}

/* ---- resize ------------------------------------------------------------------ */

static bool side_fits(int64_t side)
{
    return side >= 1 && side <= MOST_SIDE;
}

static plim_status check_sizes(const struct node *node, const struct resize_attributes *attributes,
                               const int64_t *input, plim_error *error)
{
    TRY(need_real(node, 0, error));
    TRY(need_rank(node, 0, 4, error));
    if (attributes->method != RESAMPLE_BILINEAR && attributes->method != RESAMPLE_BICUBIC)
        return misfit(node, error, "there is no method %lld", (long long)attributes->method);
    for (int i = 0; i < 2; i++)
        if (!side_fits(attributes->size[i]) || !side_fits(input[i]))
            return misfit(node, error, "a side of %lld cannot become one of %lld", (long long)input[i],
                          (long long)attributes->size[i]);
    return PLIM_OK;
}

static plim_status resize_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct resize_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    TRY(check_sizes(node, attributes, x->shape.dim + 1, error));
    struct shape shape = shape_4(x->shape.dim[0], attributes->size[0], attributes->size[1], x->shape.dim[3]);
    return output_of(graph, node, 0, x->type, shape, x->batched);
}

/* One channel of one output pixel; `first` is the channel of the sample's first pixel. */
static double pixel_sum(const struct call *call, const struct taps *down, const struct taps *across, int64_t first,
                        int64_t width, int64_t channels)
{
    double sum = 0;
    for (int64_t a = 0; a < down->count; a++)
        for (int64_t b = 0; b < across->count; b++) {
            int64_t pixel = (down->first + a) * width + across->first + b;
            sum += (double)down->weight[a] * (double)across->weight[b] * get(call, 0, first + pixel * channels);
        }
    return sum;
}

static void resize_reference(const struct call *call)
{
    const struct resize_attributes *attributes = call->node->attributes;
    const struct shape *x = &call->node->input[0]->shape, *y = &call->node->output[0]->shape;
    int64_t rows = call_rows(call, call->node->output[0]), channels = x->dim[3], at = 0;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t i = 0; i < y->dim[1]; i++)
            for (int64_t k = 0; k < y->dim[2]; k++) {
                struct taps down = resample_taps(attributes->method, x->dim[1], y->dim[1], i);
                struct taps across = resample_taps(attributes->method, x->dim[2], y->dim[2], k);
                for (int64_t c = 0; c < channels; c++)
                    set(call, 0, at++, pixel_sum(call, &down, &across, n * shape_row(x) + c, x->dim[2], channels));
            }
}

static void resize_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                        struct tensor **d_input)
{
    const struct resize_attributes *attributes = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct resize_gradient_attributes back = {*attributes, {x->dim[1], x->dim[2]}};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_resize_gradient, d_output, 1, &back, sizeof(back));
}

const struct op op_resize = {
    OP_HEAD(resize, 1, 1, resize_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct resize_attributes),
    .gradient = resize_back,
};

/* ---- resize_gradient ---------------------------------------------------------- */

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct resize_gradient_attributes *attributes = node->attributes;
    const struct tensor *dy = node->input[0];
    TRY(check_sizes(node, &attributes->forward, attributes->input, error));
    if (dy->shape.dim[1] != attributes->forward.size[0] || dy->shape.dim[2] != attributes->forward.size[1])
        return misfit(node, error, "the gradient has another shape than the output had");
    struct shape shape = shape_4(dy->shape.dim[0], attributes->input[0], attributes->input[1], dy->shape.dim[3]);
    return output_of(graph, node, 0, dy->type, shape, dy->batched);
}

static void scatter_pixel(const struct scatter *scatter, const struct taps *down, const struct taps *across,
                          int64_t first, int64_t width, int64_t channels, double d)
{
    for (int64_t a = 0; a < down->count; a++)
        for (int64_t b = 0; b < across->count; b++) {
            int64_t to = first + ((down->first + a) * width + across->first + b) * channels;
            scatter_add(scatter, to, (double)down->weight[a] * (double)across->weight[b] * d);
        }
}

static void scatter_pixels(const struct scatter *scatter)
{
    const struct call *call = scatter->call;
    const struct resize_gradient_attributes *attributes = call->node->attributes;
    const struct shape *dy = &call->node->input[0]->shape, *dx = &call->node->output[0]->shape;
    int64_t rows = call_rows(call, call->node->output[0]), channels = dx->dim[3], at = 0,
            method = attributes->forward.method;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t i = 0; i < dy->dim[1]; i++)
            for (int64_t k = 0; k < dy->dim[2]; k++) {
                struct taps down = resample_taps(method, dx->dim[1], dy->dim[1], i);
                struct taps across = resample_taps(method, dx->dim[2], dy->dim[2], k);
                for (int64_t c = 0; c < channels; c++)
                    scatter_pixel(scatter, &down, &across, n * shape_row(dx) + c, dx->dim[2], channels,
                                  get(call, 0, at++));
            }
}

static void resize_gradient_reference(const struct call *call)
{
    scatter_sums(call, NULL, scatter_pixels);
}

const struct op op_resize_gradient = {
    OP_HEAD(resize_gradient, 1, 1, gradient_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct resize_gradient_attributes),
    .no_gradient = NO_SECOND,
};
