/* layer_dense.c - Dense: y = activation(x . kernel + bias). */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct dense {
    struct layer_keys keys;
    int64_t units;
    bool use_bias;
    const struct activation_type *activation;
    struct initializer kernel, bias;
};

#define TO(field) .offset = offsetof(struct dense, field)
static const struct model_option dense_options[] = {
    {"units", option_extent, TO(units), .least = 1, .required = true},
    {"activation", option_activation, TO(activation)},
    {"use_bias", option_flag, TO(use_bias)},
    KERNEL_AND_BIAS,
};

static struct tensor *dense_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct dense *dense = layer->options;
    if (!x)
        return NULL;
    if (x->shape.rank < 2) {
        layer_misfit(layer, graph, x, "wants (batch, ..., features), got");
        hint(&graph->error, PLIM_BAD_JOB,
             "numbers of a table become one input so: csv: {files: t.csv, columns: {x: [age, score], y: label}}");
        return NULL;
    }
    int64_t in = x->shape.dim[x->shape.rank - 1], out = dense->units;
    struct tensor *inputs[3] = {x, NULL, NULL};
    inputs[1] = model_kernel(layer, graph, "kernel", shape_of(2, (int64_t[]){in, out}), dense->kernel);
    if (dense->use_bias)
        inputs[2] = model_bias(layer, graph, "bias", out, dense->bias);
    struct matmul_attributes attributes = {.transposed = false, .activation = ACTIVATION_NONE};
    x = graph_add(graph, &op_matmul, inputs, dense->use_bias ? 3 : 2, &attributes, sizeof attributes);
    return activation_apply(layer, graph, dense->activation, x);
}

const struct layer_type layer_dense = {
    NAMES("Dense", "dense"),
    .by_last_axis = true,
    .keeps_mask = true,
    OPTIONS(struct dense, dense_options),
    .defaults = &(const struct dense){.use_bias = true, .kernel = {.kind = INITIAL_GLOROT_UNIFORM}},
    .example = "Dense: {units: 10}",
    .build = dense_build,
};
