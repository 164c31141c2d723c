/* standardize.c - taking away a mean and dividing by a deviation that are given. */
#include "ops/helpers.h"

static plim_status standardize_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct standardize_attributes *attributes = node->attributes;
    TRY(need_batched(node, 0, error));
    if (!attributes->deviation || attributes->count < 1 ||
        (attributes->count > 1 && (node->input[0]->shape.rank < 2 || attributes->count != last_dim(node->input[0]))))
        return misfit(node, error, "%lld means do not fit to the last axis", (long long)attributes->count);
    return infer_alike(graph, node, error);
}

static void standardize_reference(const struct call *call)
{
    const struct standardize_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t count = call_rows(call, x) * shape_row(&x->shape);
    for (int64_t i = 0; i < count; i++) {
        double mean = attributes->mean ? (double)attributes->mean[i % attributes->count] : 0;
        double deviation = (double)attributes->deviation[i % attributes->count];
        set(call, 0, i, attributes->invert ? get(call, 0, i) * deviation + mean : (get(call, 0, i) - mean) / deviation);
    }
}

static void standardize_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                             struct tensor **d_input)
{
    const struct standardize_attributes *attributes = node->attributes;
    struct standardize_attributes back = {NULL, attributes->deviation, attributes->count, attributes->invert};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_standardize, d_output, 1, &back, sizeof(back));
}

const struct op op_standardize = {
    OP_HEAD(standardize, 1, 1, standardize_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct standardize_attributes),
    .gradient = standardize_back,
    .in_place = 1 << 0,
};
