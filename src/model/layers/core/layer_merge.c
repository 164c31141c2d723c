/* layer_merge.c - Add, Subtract, Multiply, Average, Maximum, Minimum: element by element over several inputs.

   Shapes spread as the ops have it (ops/elementwise/elementwise.h), which is Keras's way. Inputs are taken
   from the first to the last, so the bits of a sum are settled by the order in `inputs:`. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct merge {
    struct layer_words words;
};

static const struct setting merge_settings[] = {LAYER_WORDS};

static plim_status merge_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return layer_read(layer, merge_settings, LENGTH(merge_settings), yaml, error);
}

static bool enough(const struct layer *layer, struct graph *graph, int count, int least, int most)
{
    if (count >= least && count <= most)
        return true;
    graph_fail(graph, PLIM_BAD_JOB, "%s: takes %s%d inputs, got %d", layer->name, least == most ? "" : "at least ",
               least, count);
    return false;
}

/* Keras's rule: a step is there where any input has it; an input without a mask has them all, and none is told. */
static void merge_masks(struct graph *graph, int count)
{
    struct tensor *any = layer_mask(graph, 0);
    for (int i = 1; i < count && any; i++) {
        struct tensor *mask = layer_mask(graph, i);
        any = mask && mask != any ? binary(graph, &op_logical_or, any, mask) : mask;
    }
    layer_set_mask(graph, any);
}

static struct tensor *merge_all(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count,
                                const struct op *op)
{
    struct tensor *y = x[0];
    if (!enough(layer, graph, count, 2, op == &op_subtract ? 2 : INT32_MAX))
        return NULL;
    for (int i = 1; i < count; i++)
        y = binary(graph, op, y, x[i]);
    merge_masks(graph, count);
    return y;
}

/* ---- Add ---- */

static struct tensor *add_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    return merge_all(layer, graph, x, count, &op_add);
}

const struct layer_type layer_add = {
    .name = "Add",
    .snake = "add",
    .keeps_mask = true,
    .options_bytes = sizeof(struct merge),
    .read = merge_read,
    .merge = add_merge,
};

/* ---- Subtract ---- */

static struct tensor *subtract_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    return merge_all(layer, graph, x, count, &op_subtract);
}

const struct layer_type layer_subtract = {
    .name = "Subtract",
    .snake = "subtract",
    .keeps_mask = true,
    .options_bytes = sizeof(struct merge),
    .read = merge_read,
    .merge = subtract_merge,
};

/* ---- Multiply ---- */

static struct tensor *multiply_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    return merge_all(layer, graph, x, count, &op_multiply);
}

const struct layer_type layer_multiply = {
    .name = "Multiply",
    .snake = "multiply",
    .keeps_mask = true,
    .options_bytes = sizeof(struct merge),
    .read = merge_read,
    .merge = multiply_merge,
};

/* ---- Maximum ---- */

static struct tensor *maximum_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    return merge_all(layer, graph, x, count, &op_maximum);
}

const struct layer_type layer_maximum = {
    .name = "Maximum",
    .snake = "maximum",
    .keeps_mask = true,
    .options_bytes = sizeof(struct merge),
    .read = merge_read,
    .merge = maximum_merge,
};

/* ---- Minimum ---- */

static struct tensor *minimum_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    return merge_all(layer, graph, x, count, &op_minimum);
}

const struct layer_type layer_minimum = {
    .name = "Minimum",
    .snake = "minimum",
    .keeps_mask = true,
    .options_bytes = sizeof(struct merge),
    .read = merge_read,
    .merge = minimum_merge,
};

/* ---- Average ---- */

static struct tensor *average_merge(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    struct scale_attributes share = {1.0 / count};
    struct tensor *sum = merge_all(layer, graph, x, count, &op_add);
    return graph_add(graph, &op_scale, &sum, 1, &share, sizeof share);
}

const struct layer_type layer_average = {
    .name = "Average",
    .snake = "average",
    .keeps_mask = true,
    .options_bytes = sizeof(struct merge),
    .read = merge_read,
    .merge = average_merge,
};
