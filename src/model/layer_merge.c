/* layer_merge.c - Add, Subtract, Multiply, Average: element by element over several inputs.

   Inputs are taken
   from the first to the last, so the bits of a sum are settled by the order in `inputs:`. */
#include "model/layer_options.h"
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

static struct tensor *merge_all(struct graph *graph, struct tensor *const *x, int count, const struct op *op)
{
    struct tensor *y = x[0];
    for (int i = 1; i < count; i++)
        y = binary(graph, op, y, x[i]);
    return y;
}

static struct tensor *scaled(struct graph *graph, struct tensor *x, double factor)
{
    struct scale_attributes attributes = {factor};
    return graph_add(graph, &op_scale, &x, 1, &attributes, sizeof attributes);
}

/* ---- Add ---- */

static struct tensor *add_merge(struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    return enough(layer, graph, count, 2, INT32_MAX) ? merge_all(graph, x, count, &op_add) : NULL;
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

static struct tensor *subtract_merge(struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    return enough(layer, graph, count, 2, 2) ? binary(graph, &op_add, x[0], scaled(graph, x[1], -1.0)) : NULL;
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

static struct tensor *multiply_merge(struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    return enough(layer, graph, count, 2, INT32_MAX) ? merge_all(graph, x, count, &op_multiply) : NULL;
}

const struct layer_type layer_multiply = {
    .name = "Multiply",
    .snake = "multiply",
    .keeps_mask = true,
    .options_bytes = sizeof(struct merge),
    .read = merge_read,
    .merge = multiply_merge,
};

/* ---- Average ---- */

static struct tensor *average_merge(struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    if (!enough(layer, graph, count, 2, INT32_MAX))
        return NULL;
    return scaled(graph, merge_all(graph, x, count, &op_add), 1.0 / count);
}

const struct layer_type layer_average = {
    .name = "Average",
    .snake = "average",
    .keeps_mask = true,
    .options_bytes = sizeof(struct merge),
    .read = merge_read,
    .merge = average_merge,
};
