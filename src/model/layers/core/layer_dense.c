/* layer_dense.c - Dense: y = activation(x . kernel + bias). */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct dense {
    struct layer_words words;
    int64_t units;
    bool use_bias;
    const struct activation_type *activation;
    struct initializer kernel, bias;
    /* Nodes of the job file: */
    const struct yaml *activation_word, *kernel_word, *bias_word;
};

#define AT(field) offsetof(struct dense, field)
static const struct setting settings[] = {
    {"units", SETTING_WHOLE, AT(units), 1},
    {"activation", SETTING_NODE, AT(activation_word), 0},
    {"use_bias", SETTING_BOOL, AT(use_bias), 0},
    KERNEL_AND_BIAS_WORDS,
    LAYER_WORDS,
};

static plim_status dense_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct dense *dense = layer->options;
    dense->use_bias = true;
    dense->kernel.kind = INITIAL_GLOROT_UNIFORM;
    TRY(layer_read(layer, settings, LENGTH(settings), yaml, error));
    if (!dense->units)
        return layer_missing(layer, "units", "Dense: {units: 10}", error);
    TRY(option_extent(layer, "units", dense->units, error));
    TRY(option_activation(&dense->activation, layer, dense->activation_word, error));
    TRY(option_initializer(&dense->kernel, layer, "kernel_initializer", dense->kernel_word, error));
    return option_initializer(&dense->bias, layer, "bias_initializer", dense->bias_word, error);
}

static bool input_fits(const struct layer *layer, struct graph *graph, const struct tensor *x)
{
    char shape[96];
    if (x->shape.rank >= 2)
        return true;
    shape_text(shape, sizeof shape, &x->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: wants (batch, ..., features), got %s", layer->name, shape);
    hint(&graph->error, PLIM_BAD_JOB,
         "numbers of a table become one input so: csv: {files: t.csv, columns: {x: [age, score], y: label}}");
    return false;
}

static struct tensor *dense_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct dense *dense = layer->options;
    if (!x || !input_fits(layer, graph, x))
        return NULL;
    int64_t in = x->shape.dim[x->shape.rank - 1], out = dense->units;
    struct initializer kernel = dense->kernel, bias = dense->bias;
    kernel.fan_in = in;
    kernel.fan_out = out;
    bias.fan_in = bias.fan_out = out;
    struct tensor *inputs[3] = {x, NULL, NULL};
    inputs[1] = model_compute_weight(layer, graph, "kernel", shape_of(2, (int64_t[]){in, out}), kernel);
    if (dense->use_bias)
        inputs[2] = model_weight(layer, graph, "bias", shape_of(1, (int64_t[]){out}), bias);
    struct matmul_attributes attributes = {.transposed = false, .activation = ACTIVATION_NONE};
    x = graph_add(graph, &op_matmul, inputs, dense->use_bias ? 3 : 2, &attributes, sizeof attributes);
    return activation_apply(layer, graph, dense->activation, x);
}

const struct layer_type layer_dense = {
    .name = "Dense",
    .snake = "dense",
    .by_last_axis = true,
    .keeps_mask = true,
    .options_bytes = sizeof(struct dense),
    .read = dense_read,
    .build = dense_build,
};
