/* layer_scale.c - custom layers of keras.applications' models: LayerScale (ConvNeXt), CustomScaleLayer
   (InceptionResNetV2). ConvNeXt's StochasticDepth is in layer_dropout.c. */
#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

/* ---- LayerScale: x * gamma, one factor per channel ---------------------- */

struct layer_scale {
    struct layer_keys keys;
    double initial;
    int64_t channels;
};

static const struct model_option scale_options[] = {
    {"init_values", option_number, .offset = offsetof(struct layer_scale, initial)},
    {"projection_dim", option_extent, .offset = offsetof(struct layer_scale, channels), .least = 1, .required = true},
};

static struct tensor *scale_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct layer_scale *options = layer->options;
    if (!x || !layer_last_axis(layer, graph, x, -1))
        return NULL;
    if (x->shape.dim[x->shape.rank - 1] != options->channels) {
        char shape[96];
        shape_text(shape, sizeof shape, &x->shape, true);
        return graph_fail(graph, PLIM_BAD_MODEL, "%s: %lld factors for an input of shape %s", layer->name,
                          (long long)options->channels, shape);
    }
    struct initializer initial = {.kind = INITIAL_CONSTANT, .value = options->initial};
    struct tensor *gamma =
        model_compute_weight(layer, graph, "gamma", shape_of(1, (int64_t[]){options->channels}), initial);
    return gamma ? binary(graph, &op_multiply, x, gamma) : NULL;
}

const struct layer_type layer_layer_scale = {
    NAMES("LayerScale", "layer_scale"),
    .by_last_axis = true,
    OPTIONS(struct layer_scale, scale_options),
    .example = "LayerScale: {init_values: 1e-6, projection_dim: 96}",
    .build = scale_build,
};

/* ---- CustomScaleLayer: x[0] + scale * x[1] ------------------------------ */

struct custom_scale {
    struct layer_keys keys;
    double scale;
};

static const struct model_option custom_options[] = {
    {"scale", option_number, .offset = offsetof(struct custom_scale, scale)},
};

static struct tensor *custom_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct custom_scale *options = layer->options;
    if (count != 2)
        return graph_fail(graph, PLIM_BAD_MODEL, "%s: takes two inputs, %d are given", layer->name, count);
    struct tensor *factor = op_number(graph, x[1]->type, options->scale);
    struct tensor *scaled = factor ? binary(graph, &op_multiply, x[1], factor) : NULL;
    return scaled ? binary(graph, &op_add, x[0], scaled) : NULL;
}

const struct layer_type layer_custom_scale_layer = {
    NAMES("CustomScaleLayer", "custom_scale_layer"),
    OPTIONS(struct custom_scale, custom_options),
    .merge = custom_merge,
};
