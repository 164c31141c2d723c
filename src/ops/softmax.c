/* softmax.c - softmax over the last axis, and its gradient. */
#include <math.h>

#include "ops/helpers.h"

static plim_status softmax_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_batched(node, 0, error));
    if (node->input[0]->shape.rank < 2)
        return misfit(node, error, "an input of a batch axis alone has no last axis to sum over");
    return infer_alike(graph, node, error);
}

/* y = exp(x - max) / sum(exp(x - max)), for the group of `width` at `first`. */
static void softmax_group(const struct call *call, int64_t first, int64_t width)
{
    double most = get(call, 0, first), sum = 0;
    for (int64_t i = 1; i < width; i++)
        most = fmax(most, get(call, 0, first + i));
    for (int64_t i = 0; i < width; i++)
        sum += exp(get(call, 0, first + i) - most);
    for (int64_t i = 0; i < width; i++)
        set(call, 0, first + i, exp(get(call, 0, first + i) - most) / sum);
}

static void softmax_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    int64_t count = call_rows(call, y) * shape_row(&y->shape), width = last_dim(y);
    for (int64_t i = 0; i < count; i += width)
        softmax_group(call, i, width);
}

static void softmax_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                         struct tensor **d_input)
{
    if (wanted[0])
        d_input[0] = binary(graph, &op_softmax_gradient, d_output[0], node->output[0]);
}

static struct tensor *example_operand(struct graph *graph, int variant, enum type type, const char *name)
{
    switch (variant) {
    case 0:
        return example_input(graph, name, type, ROW(10));
    case 1:
        return example_input(graph, name, type, ROW(1));
    case 2:
        return example_input(graph, name, type, ROW(3, 37));
    default:
        return NULL;
    }
}

static struct tensor *softmax_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = example_operand(graph, variant, type, "x");
    return x ? unary(graph, &op_softmax, x) : NULL;
}

const struct op op_softmax = {
    .name = "softmax",
    .inputs = 1,
    .outputs = 1,
    .infer = softmax_infer,
    .gradient = softmax_back,
    .keeps_outputs = 1 << 0,
    .in_place = NO_INPUT,
    .cut = cut_elementwise,
    .reference = softmax_reference,
    .example = softmax_example,
};

/* dx = y * (dy - sum(y * dy)). Reads y, never x: the planner may free x. */
static void softmax_gradient_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    int64_t count = call_rows(call, y) * shape_row(&y->shape), width = last_dim(y);
    for (int64_t first = 0; first < count; first += width) {
        double sum = 0;
        for (int64_t i = first; i < first + width; i++)
            sum += get(call, 0, i) * get(call, 1, i);
        for (int64_t i = first; i < first + width; i++)
            set(call, 0, i, get(call, 1, i) * (get(call, 0, i) - sum));
    }
}

static struct tensor *softmax_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *dy = example_operand(graph, variant, type, "dy");
    struct tensor *y = example_operand(graph, variant, type, "positive:y");
    return dy && y ? binary(graph, &op_softmax_gradient, dy, y) : NULL;
}

const struct op op_softmax_gradient = {
    .name = "softmax_gradient",
    .inputs = 2,
    .outputs = 1,
    .infer = softmax_infer,
    .no_gradient = NO_SECOND,
    .in_place = NO_INPUT,
    .cut = cut_elementwise,
    .reference = softmax_gradient_reference,
    .example = softmax_gradient_example,
};
