/* layer_masking.c - Masking, which makes a mask, and GlobalAveragePooling1D, which uses one. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

/* ---- Masking: steps of which every number is mask_value are as if they were not there ---- */

struct masking {
    struct layer_keys keys;
    double mask_value;
};

static const struct model_option masking_options[] = {
    {"mask_value", option_number, .offset = offsetof(struct masking, mask_value)},
};

static struct tensor *masking_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct masking *masking = layer->options;
    struct mask_of_attributes attributes = {.value = (float)masking->mask_value, .over_last = 1};
    struct tensor *mask = graph_add(graph, &op_mask_of, &x, 1, &attributes, sizeof attributes);
    layer_set_mask(graph, mask);
    return binary(graph, &op_mask_rows, x, mask);
}

const struct layer_type layer_masking = {
    NAMES("Masking", "masking"),
    OPTIONS(struct masking, masking_options),
    .build = masking_build,
};

/* ---- GlobalAveragePooling1D: [N, T, c] -> [N, c] ---- */

struct average_steps {
    struct layer_keys keys;
    bool keepdims;
};

static const struct model_option average_options[] = {
    DATA_FORMAT,
    {"keepdims", option_flag, .offset = offsetof(struct average_steps, keepdims)},
};

static struct tensor *average_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct average_steps *options = layer->options;
    struct sum_time_attributes attributes = {.mean = 1};
    struct tensor *inputs[2] = {x, layer_mask(graph, 0)};
    if (x && x->shape.rank != 3)
        return layer_misfit(layer, graph, x, "expected (batch, steps, features), got");
    struct tensor *y = graph_add(graph, &op_sum_time, inputs, 2, &attributes, sizeof attributes);
    if (!y || !options->keepdims)
        return y;
    struct unflatten_attributes row = {.row = {.rank = 2, .dim = {1, y->shape.dim[1]}}};
    return graph_add(graph, &op_unflatten, &y, 1, &row, sizeof row);
}

const struct layer_type layer_global_average_pooling1d = {
    NAMES("GlobalAveragePooling1D", "global_average_pooling1d"),
    .alias = "GlobalAvgPool1D",
    OPTIONS(struct average_steps, average_options),
    .build = average_build,
};
