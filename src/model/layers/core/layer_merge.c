/* layer_merge.c - Add, Subtract, Multiply, Average, Maximum, Minimum: element by element over several inputs.

   Shapes broadcast as the ops have it (ops/elementwise/elementwise.h), which is Keras's way. Inputs are taken
   from the first to the last, so the bits of a sum are settled by the order in `inputs:`. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

/* Keras's rule: a step is there where any input has it; an input without a mask has them all, and none is passed on. */
static void merge_masks(struct graph *graph, int count)
{
    struct tensor *any = layer_mask(graph, 0);
    for (int i = 1; i < count && any; i++) {
        struct tensor *mask = layer_mask(graph, i);
        any = mask && mask != any ? binary(graph, &op_logical_or, any, mask) : mask;
    }
    layer_set_mask(graph, any);
}

static struct tensor *merge_all(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    struct tensor *y = x[0];
    bool pair = layer->type->op == &op_subtract;
    if (count < 2 || (pair && count > 2))
        return graph_fail(graph, PLIM_BAD_JOB, "%s: takes %s2 inputs, got %d", layer->name, pair ? "" : "at least ",
                          count);
    for (int i = 1; i < count; i++)
        y = binary(graph, layer->type->op, y, x[i]);
    merge_masks(graph, count);
    return y;
}

static struct tensor *average(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    struct scale_attributes share = {1.0 / count};
    struct tensor *sum = merge_all(layer, graph, x, count);
    return graph_add(graph, &op_scale, &sum, 1, &share, sizeof share);
}

#define MERGE_LAYER(variable, keras, of, merger)                                                                       \
    const struct layer_type layer_##variable = {                                                                       \
        NAMES(keras, #variable), .keeps_mask = true, .options_bytes = sizeof(struct layer_keys), .op = of,             \
        .merge = merger,                                                                                               \
    }

MERGE_LAYER(add, "Add", &op_add, merge_all);
MERGE_LAYER(subtract, "Subtract", &op_subtract, merge_all);
MERGE_LAYER(multiply, "Multiply", &op_multiply, merge_all);
MERGE_LAYER(maximum, "Maximum", &op_maximum, merge_all);
MERGE_LAYER(minimum, "Minimum", &op_minimum, merge_all);
MERGE_LAYER(average, "Average", &op_add, average);
