/* layer_time_distributed.c - TimeDistributed: a layer, or a model of some, on each step of [N, T, ...], with the same
   weights.

   As in Keras the steps are taken one by one, which matters where a layer looks at its whole input
   (BatchNormalization). Layers that treat the last axis alone, as Dense and activations do, are given all steps at
   once: the same numbers in one op. */
#include "model/layers/inner_layers.h"
#include "ops/ops.h"

struct time_distributed {
    struct layer_keys keys;
    const struct yaml *layer_word;
    struct inner_layers inner;
};

static const struct model_option steps_options[] = {
    {"layer", option_node, .offset = offsetof(struct time_distributed, layer_word), .required = true},
};

/* `TimeDistributed: {layer: {Dense: 10}}`, `TimeDistributed: Flatten`,
   `TimeDistributed: {layer: {Sequential: [...]}}`. */
static plim_status steps_check(struct layer *layer, plim_error *error)
{
    struct time_distributed *options = layer->options;
    return inner_layers_read(&options->inner, layer, options->layer_word, error);
}

/* All steps are read alike: ids that are asked of one are asked of x. */
static struct tensor *build_step(const struct inner_layers *inner, struct graph *graph, struct tensor *x,
                                 const struct shape *row, int64_t t)
{
    int first = graph->node_count;
    struct tensor *step = reshape(graph, slice_axis(graph, x, 1, t, 1, 1), *row);
    struct tensor *y = inner_layers_build(inner, graph, step, t);
    if (!graph->failed) {
        graph_trace_ids(graph, first);
        if (step->below)
            tensor_ask_ids(x, step->below);
    }
    return y;
}

static struct tensor *steps_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct time_distributed *options = layer->options;
    if (!x)
        return NULL;
    if (x->shape.rank < 3)
        return layer_misfit(layer, graph, x, "expected (batch, steps, ...), got");
    if (options->inner.by_last_axis)
        return inner_layers_build(&options->inner, graph, x, 0);
    int64_t steps = x->shape.dim[1];
    struct tensor **y = arena_array(&graph->arena, (size_t)steps, sizeof(struct tensor *));
    if (!y)
        return graph_refused(graph, 0);
    struct shape row = {.rank = x->shape.rank - 2};
    for (int i = 0; i < row.rank; i++)
        row.dim[i] = x->shape.dim[i + 2];
    for (int64_t t = 0; t < steps && !graph->failed; t++)
        y[t] = build_step(&options->inner, graph, x, &row, t);
    return graph->failed ? NULL : stack(graph, y, (int)steps, 1);
}

const struct layer_type layer_time_distributed = {
    NAMES("TimeDistributed", "time_distributed"),
    .keeps_mask = true,
    OPTIONS(struct time_distributed, steps_options),
    .example = "TimeDistributed: {layer: {Dense: 10}}",
    .check = steps_check,
    .build = steps_build,
};
