/* cast.c - the same values in another type. */
#include "ops/helpers.h"

static plim_status cast_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct cast_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    if (attributes->type < 0 || attributes->type >= TYPE_COUNT)
        return misfit(node, error, "there is no type number %lld", (long long)attributes->type);
    return output_of(graph, node, 0, (enum type)attributes->type, x->shape, x->batched);
}

/* NEEDSWORK: whole numbers of more than 53 bits pass through a double. */
static void cast_reference(const struct call *call)
{
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 0, i));
}

static void cast_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                      struct tensor **d_input)
{
    struct cast_attributes attributes = {node->input[0]->type};
    if (!wanted[0] || !d_output[0])
        return;
    d_input[0] = d_output[0];
    if (d_output[0]->type != node->input[0]->type)
        d_input[0] = graph_add(graph, &op_cast, d_output, 1, &attributes, sizeof(attributes));
}

/* Whether every value is the same id afterwards: fractions are cut off by whole types, bool makes ones of all, and what
   does not fit a narrower type, or one without a sign, wraps. */
static bool cast_hands_on(const struct node *node)
{
    enum type from = node->input[0]->type, to = node->output[0]->type;
    if (is_real(to) || to == from)
        return true;
    if (is_real(from) || to == TYPE_BOOL)
        return false;
    return from == TYPE_BOOL || (to != TYPE_U8 && type_bytes(to) >= type_bytes(from) + (from == TYPE_U8));
}

const struct op op_cast = {
    OP_HEAD(cast, 1, 1, cast_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct cast_attributes),
    .gradient = cast_back,
    .hands_on = cast_hands_on,
};
