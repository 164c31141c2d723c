/* layer_pooling.c - max and average pooling over windows, over everything (global) and to a given size (adaptive). Data
   is [N, ..., channels]. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

#include <stdio.h>

enum pooling_form { FORM_WINDOW, FORM_GLOBAL, FORM_ADAPTIVE };

struct pooling {
    struct layer_keys keys;
    int64_t window[MOST_SPACE], strides[MOST_SPACE]; /* adaptive: window is the output's size */
    bool same, keepdims;
};

#define TO(field) .offset = offsetof(struct pooling, field)
static const struct model_option window_options[] = {
    {"pool_size", option_axes, TO(window), .least = 1},
    {"strides", option_axes, TO(strides), .least = 1},
    {"padding", option_padding, TO(same)},
    DATA_FORMAT,
};
static const struct model_option global_options[] = {DATA_FORMAT, {"keepdims", option_flag, TO(keepdims)}};
static const struct model_option adaptive_options[] = {
    {"output_size", option_axes, TO(window), .least = 1, .required = true, .nullable = true},
    DATA_FORMAT,
};

/* Windows do not overlap unless strides are given. */
static plim_status window_check(struct layer *layer, plim_error *error)
{
    struct pooling *pool = layer->options;
    if (!pool->window[0])
        return layer_missing(layer, "pool_size", error);
    for (int i = 0; i < layer->type->axes; i++)
        pool->strides[i] = pool->strides[i] ? pool->strides[i] : pool->window[i];
    return PLIM_OK;
}

static bool place_windows(struct pool_attributes *out, const struct layer *layer, struct graph *graph,
                          const struct tensor *x)
{
    const struct pooling *pool = layer->options;
    char window[96];
    int used = 0;
    bool fits = true;
    for (int axis = 0; axis < layer->type->axes; axis++) {
        int64_t extent, in = x->shape.dim[1 + axis];
        out->window[axis] = layer->type->form == FORM_GLOBAL ? in : pool->window[axis];
        out->stride[axis] = layer->type->form == FORM_WINDOW ? pool->strides[axis] : 1;
        if (layer->type->form == FORM_WINDOW)
            fits = window_place(&extent, &out->pad[2 * axis], in, out->window[axis], out->stride[axis], pool->same) &&
                   fits;
        used += snprintf(window + used, sizeof window - (size_t)used, "%s%lld", axis ? "x" : "",
                         (long long)out->window[axis]);
    }
    out->adaptive = layer->type->form == FORM_ADAPTIVE;
    if (fits)
        return true;
    return layer_misfit(layer, graph, x, "a window of %s does not fit into", window) != NULL;
}

static struct tensor *pooling_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct pooling *pool = layer->options;
    struct pool_attributes attributes = {0};
    if (!x || !has_spatial_axes(layer, graph, x) || !place_windows(&attributes, layer, graph, x))
        return NULL;
    x = graph_add(graph, layer->type->op, &x, 1, &attributes, sizeof attributes);
    return layer->type->form == FORM_GLOBAL && !pool->keepdims ? unary(graph, &op_flatten, x) : x;
}

static const struct pooling two = {.window = {2, 2, 2}};

#define POOLING(id, keras, second, of, what, space, usual)                                                             \
    const struct layer_type layer_##id = {                                                                             \
        .name = keras,                                                                                                 \
        .alias = second,                                                                                               \
        .snake = #id,                                                                                                  \
        .defaults = usual,                                                                                             \
        .form = what,                                                                                                  \
        .axes = space,                                                                                                 \
        .op = of,                                                                                                      \
        .build = pooling_build,                                                                                        \
        WHAT_##what,                                                                                                   \
    }
#define WHAT_FORM_WINDOW   OPTIONS(struct pooling, window_options), .check = window_check, .example = "%s: {pool_size: 2}"
#define WHAT_FORM_GLOBAL   OPTIONS(struct pooling, global_options)
#define WHAT_FORM_ADAPTIVE OPTIONS(struct pooling, adaptive_options), .example = "%s: {output_size: 2}"

POOLING(max_pooling1d, "MaxPooling1D", "MaxPool1D", &op_max_pool, FORM_WINDOW, 1, &two);
POOLING(max_pooling2d, "MaxPooling2D", "MaxPool2D", &op_max_pool, FORM_WINDOW, 2, &two);
POOLING(max_pooling3d, "MaxPooling3D", "MaxPool3D", &op_max_pool, FORM_WINDOW, 3, &two);
POOLING(average_pooling1d, "AveragePooling1D", "AvgPool1D", &op_average_pool, FORM_WINDOW, 1, NULL);
POOLING(average_pooling2d, "AveragePooling2D", "AvgPool2D", &op_average_pool, FORM_WINDOW, 2, NULL);
POOLING(average_pooling3d, "AveragePooling3D", "AvgPool3D", &op_average_pool, FORM_WINDOW, 3, NULL);
POOLING(global_max_pooling1d, "GlobalMaxPooling1D", "GlobalMaxPool1D", &op_max_pool, FORM_GLOBAL, 1, NULL);
POOLING(global_max_pooling2d, "GlobalMaxPooling2D", "GlobalMaxPool2D", &op_max_pool, FORM_GLOBAL, 2, NULL);
POOLING(global_max_pooling3d, "GlobalMaxPooling3D", "GlobalMaxPool3D", &op_max_pool, FORM_GLOBAL, 3, NULL);
POOLING(global_average_pooling2d, "GlobalAveragePooling2D", "GlobalAvgPool2D", &op_average_pool, FORM_GLOBAL, 2, NULL);
POOLING(global_average_pooling3d, "GlobalAveragePooling3D", "GlobalAvgPool3D", &op_average_pool, FORM_GLOBAL, 3, NULL);
POOLING(adaptive_max_pooling1d, "AdaptiveMaxPooling1D", NULL, &op_max_pool, FORM_ADAPTIVE, 1, NULL);
POOLING(adaptive_max_pooling2d, "AdaptiveMaxPooling2D", NULL, &op_max_pool, FORM_ADAPTIVE, 2, NULL);
POOLING(adaptive_max_pooling3d, "AdaptiveMaxPooling3D", NULL, &op_max_pool, FORM_ADAPTIVE, 3, NULL);
POOLING(adaptive_average_pooling1d, "AdaptiveAveragePooling1D", NULL, &op_average_pool, FORM_ADAPTIVE, 1, NULL);
POOLING(adaptive_average_pooling2d, "AdaptiveAveragePooling2D", NULL, &op_average_pool, FORM_ADAPTIVE, 2, NULL);
POOLING(adaptive_average_pooling3d, "AdaptiveAveragePooling3D", NULL, &op_average_pool, FORM_ADAPTIVE, 3, NULL);
