/* layer_brought.c - custom layers of keras.applications' models: LayerScale (ConvNeXt), CustomScaleLayer
   (InceptionResNetV2). ConvNeXt's StochasticDepth is in layer_dropout.c. */
#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

/* ---- LayerScale: x * gamma, one factor per channel ---------------------- */

struct layer_scale {
    struct layer_words words;
    double initial;
    int64_t channels;
};

static const struct setting scale_settings[] = {
    {"init_values", SETTING_NUMBER, offsetof(struct layer_scale, initial), 0},
    {"projection_dim", SETTING_WHOLE, offsetof(struct layer_scale, channels), 1},
    LAYER_WORDS,
};

static plim_status scale_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    const struct layer_scale *options = layer->options;
    TRY(layer_read(layer, scale_settings, LENGTH(scale_settings), yaml, error));
    if (!options->channels)
        return layer_missing(layer, "projection_dim", "LayerScale: {init_values: 1e-6, projection_dim: 96}", error);
    return option_extent(layer, "projection_dim", options->channels, error);
}

static struct tensor *scale_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct layer_scale *options = layer->options;
    if (!x || !layer_last_axis(layer, graph, x, -1))
        return NULL;
    if (x->shape.dim[x->shape.rank - 1] != options->channels) {
        char shape[96];
        shape_text(shape, sizeof shape, &x->shape, true);
        graph_fail(graph, PLIM_BAD_MODEL, "%s: %lld factors for an input of shape %s", layer->name,
                   (long long)options->channels, shape);
        return NULL;
    }
    struct initializer initial = {.kind = INITIAL_CONSTANT, .value = options->initial};
    struct tensor *gamma =
        model_compute_weight(layer, graph, "gamma", shape_of(1, (int64_t[]){options->channels}), initial);
    return gamma ? binary(graph, &op_multiply, x, gamma) : NULL;
}

const struct layer_type layer_layer_scale = {
    .name = "LayerScale",
    .snake = "layer_scale",
    .by_last_axis = true,
    .options_bytes = sizeof(struct layer_scale),
    .read = scale_read,
    .build = scale_build,
};

/* ---- CustomScaleLayer: x[0] + scale * x[1] ------------------------------ */

struct custom_scale {
    struct layer_words words;
    double scale;
};

static const struct setting custom_settings[] = {
    {"scale", SETTING_NUMBER, offsetof(struct custom_scale, scale), 0},
    LAYER_WORDS,
};

static plim_status custom_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return layer_read(layer, custom_settings, LENGTH(custom_settings), yaml, error);
}

static struct tensor *custom_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct custom_scale *options = layer->options;
    if (count != 2) {
        graph_fail(graph, PLIM_BAD_MODEL, "%s: takes two inputs, %d are given", layer->name, count);
        return NULL;
    }
    struct tensor *factor = op_number(graph, x[1]->type, options->scale);
    struct tensor *scaled = factor ? binary(graph, &op_multiply, x[1], factor) : NULL;
    return scaled ? binary(graph, &op_add, x[0], scaled) : NULL;
}

const struct layer_type layer_custom_scale_layer = {
    .name = "CustomScaleLayer",
    .snake = "custom_scale_layer",
    .options_bytes = sizeof(struct custom_scale),
    .read = custom_read,
    .merge = custom_merge,
};
