/* random_warp.c - pictures flipped, turned, zoomed, shifted and cropped by numbers drawn for each sample. */
#include "ops/image/random_warp.h"

#include "ops/helpers.h"

/* ---- what is drawn --------------------------------------------------------- */

static float between(const struct random_warp_attributes *attributes, int i, uint32_t bits)
{
    float low = (float)attributes->low[i], high = (float)attributes->high[i];
    return low + (high - low) * random_unit(bits);
}

static struct warp_map draw_flip(const struct random_warp_attributes *attributes, const uint32_t bits[4],
                                 int64_t height, int64_t width)
{
    bool down = attributes->high[0] > 0 && bits[0] >> 31, across = attributes->high[1] > 0 && bits[1] >> 31;
    return (struct warp_map){{across ? -1 : 1, 0, across ? (float)(width - 1) : 0},
                             {0, down ? -1 : 1, down ? (float)(height - 1) : 0}};
}

struct warp_map warp_rotation(float factor, int64_t height, int64_t width)
{
    float angle = factor * 360.0f * (float)(3.14159265358979323846 / 180.0);
    float cosine = cosf(angle), sine = sinf(angle);
    float x = 0.5f * (float)(width - 1), y = 0.5f * (float)(height - 1);
    return (struct warp_map){{cosine, -sine, x - x * cosine - y * -sine}, {sine, cosine, y - x * sine - y * cosine}};
}

struct warp_map warp_zoom(float height_factor, float width_factor, int64_t height, int64_t width)
{
    float tall = 1.0f + height_factor, wide = 1.0f + width_factor;
    return (struct warp_map){{wide, 0, ((float)width - 1.0f) / 2.0f * (1.0f - wide)},
                             {0, tall, ((float)height - 1.0f) / 2.0f * (1.0f - tall)}};
}

struct warp_map warp_translation(float height_factor, float width_factor, int64_t height, int64_t width)
{
    return (struct warp_map){{1, 0, -(width_factor * (float)width)}, {0, 1, -(height_factor * (float)height)}};
}

static struct warp_map draw_rotation(const struct random_warp_attributes *attributes, const uint32_t bits[4],
                                     int64_t height, int64_t width)
{
    return warp_rotation(between(attributes, 0, bits[0]), height, width);
}

static struct warp_map draw_zoom(const struct random_warp_attributes *attributes, const uint32_t bits[4],
                                 int64_t height, int64_t width)
{
    float tall = between(attributes, 0, bits[0]);
    return warp_zoom(tall, attributes->same ? tall : between(attributes, 1, bits[1]), height, width);
}

static struct warp_map draw_translation(const struct random_warp_attributes *attributes, const uint32_t bits[4],
                                        int64_t height, int64_t width)
{
    return warp_translation(between(attributes, 0, bits[0]), between(attributes, 1, bits[1]), height, width);
}

/* Every place that fits, equally likely. */
static struct warp_map draw_crop(const struct random_warp_attributes *attributes, const uint32_t bits[4],
                                 int64_t height, int64_t width)
{
    uint64_t rows = (uint64_t)(height - attributes->size[0] + 1), columns = (uint64_t)(width - attributes->size[1] + 1);
    return (struct warp_map){{1, 0, (float)(bits[1] * columns >> 32)}, {0, 1, (float)(bits[0] * rows >> 32)}};
}

typedef struct warp_map draw_kind(const struct random_warp_attributes *attributes, const uint32_t bits[4],
                                  int64_t height, int64_t width);
static draw_kind *const draws[WARP_KINDS] = {
    [WARP_FLIP] = draw_flip, [WARP_ROTATE] = draw_rotation,
    [WARP_ZOOM] = draw_zoom, [WARP_TRANSLATE] = draw_translation,
    [WARP_CROP] = draw_crop,
};

struct warp_map random_warp_draw(const struct random_warp_attributes *attributes, uint64_t step, int64_t sample,
                                 int64_t height, int64_t width)
{
    uint32_t bits[4];
    noise_bits(bits, attributes->seed, step, attributes->together ? 0 : sample, 0);
    return draws[attributes->kind](attributes, bits, height, width);
}

/* ---- random_warp ----------------------------------------------------------- */

#define MOST_SIDE ((int64_t)1 << 24)

static plim_status check_warp(const struct node *node, const struct random_warp_attributes *attributes,
                              const int64_t *input, plim_error *error)
{
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_rank(node, 0, 4, error));
    TRY(need_type(node, 1, TYPE_I64, error));
    if (attributes->kind < 0 || attributes->kind >= WARP_KINDS || attributes->fill < 0 ||
        attributes->fill >= WARP_FILLS || node->input[1]->batched || shape_count(&node->input[1]->shape) != 1)
        return misfit(node, error, "unknown kind, or an iteration of several values");
    for (int i = 0; i < 2; i++) {
        bool fits = attributes->size[i] > 0 && input[i] < MOST_SIDE && attributes->size[i] <= input[i];
        if (!fits || (attributes->kind != WARP_CROP && attributes->size[i] != input[i]))
            return misfit(node, error, "a side of %lld cannot become one of %lld", (long long)input[i],
                          (long long)attributes->size[i]);
    }
    return PLIM_OK;
}

static plim_status warp_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct random_warp_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    TRY(check_warp(node, attributes, x->shape.dim + 1, error));
    struct shape shape = shape_4(x->shape.dim[0], attributes->size[0], attributes->size[1], x->shape.dim[3]);
    return output_of(graph, node, 0, x->type, shape, true);
}

static uint64_t step_of(const struct call *call)
{
    return (uint64_t) * (const int64_t *)call->input[1];
}

static void random_warp_reference(const struct call *call)
{
    const struct random_warp_attributes *attributes = call->node->attributes;
    const struct shape *x = &call->node->input[0]->shape, *y = &call->node->output[0]->shape;
    int64_t rows = call_rows(call, call->node->output[0]), height = x->dim[1], width = x->dim[2], at = 0;
    for (int64_t n = 0; n < rows; n++) {
        struct warp_map map = random_warp_draw(attributes, step_of(call), call->begin + n, height, width);
        for (int64_t i = 0; i < y->dim[1] * y->dim[2]; i++) {
            struct warp_taps taps = warp_taps(attributes, &map, height, width, i % y->dim[2], i / y->dim[2]);
            for (int64_t c = 0; c < x->dim[3]; c++) {
                double sum = 0;
                for (int k = 0; k < 4; k++) {
                    int64_t from = (n * height * width + taps.place[k]) * x->dim[3] + c;
                    if (taps.weight[k] != 0)
                        sum +=
                            (double)taps.weight[k] * (taps.place[k] < 0 ? attributes->fill_value : get(call, 0, from));
                }
                set(call, 0, at++, sum);
            }
        }
    }
}

static void warp_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                      struct tensor **d_input)
{
    const struct random_warp_attributes *attributes = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct random_warp_gradient_attributes back = {*attributes, {x->dim[1], x->dim[2]}};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_random_warp_gradient, (struct tensor *[]){d_output[0], node->input[1]}, 2,
                               &back, sizeof(back));
}

const struct op op_random_warp = {
    OP_HEAD(random_warp, 2, 1, warp_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct random_warp_attributes),
    .gradient = warp_back,
    .keeps_inputs = 1 << 1,
};

/* ---- random_warp_gradient -------------------------------------------------- */

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct random_warp_gradient_attributes *attributes = node->attributes;
    const struct tensor *dy = node->input[0];
    TRY(check_warp(node, &attributes->forward, attributes->input, error));
    if (dy->shape.dim[1] != attributes->forward.size[0] || dy->shape.dim[2] != attributes->forward.size[1])
        return misfit(node, error, "the gradient has another shape than the output had");
    struct shape shape = shape_4(dy->shape.dim[0], attributes->input[0], attributes->input[1], dy->shape.dim[3]);
    return output_of(graph, node, 0, dy->type, shape, true);
}

static void scatter_taps(const struct scatter *scatter)
{
    const struct call *call = scatter->call;
    const struct random_warp_gradient_attributes *attributes = call->node->attributes;
    const struct tensor *dx = call->node->output[0];
    const struct shape *x = &dx->shape, *y = &call->node->input[0]->shape;
    int64_t rows = call_rows(call, dx), height = x->dim[1], width = x->dim[2], at = 0;
    for (int64_t n = 0; n < rows; n++) {
        struct warp_map map = random_warp_draw(&attributes->forward, step_of(call), call->begin + n, height, width);
        for (int64_t i = 0; i < y->dim[1] * y->dim[2]; i++) {
            struct warp_taps taps = warp_taps(&attributes->forward, &map, height, width, i % y->dim[2], i / y->dim[2]);
            for (int64_t c = 0; c < x->dim[3]; c++, at++)
                for (int k = 0; k < 4; k++) {
                    int64_t to = (n * height * width + taps.place[k]) * x->dim[3] + c;
                    if (taps.place[k] >= 0 && taps.weight[k] != 0)
                        scatter_add(scatter, to, (double)taps.weight[k] * get(call, 0, at));
                }
        }
    }
}

static void random_warp_gradient_reference(const struct call *call)
{
    scatter_sums(call, NULL, scatter_taps);
}

const struct op op_random_warp_gradient = {
    OP_HEAD(random_warp_gradient, 2, 1, gradient_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct random_warp_gradient_attributes),
    .no_gradient = NO_SECOND,
};
