/* constant.c - numbers that the graph itself holds. */
#include <string.h>

#include "ops/helpers.h"

static plim_status constant_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct constant_attributes *attributes = node->attributes;
    const struct shape *shape = &attributes->shape;
    uint64_t bytes;
    if (attributes->type < 0 || attributes->type >= TYPE_COUNT)
        return misfit(node, error, "there is no type number %lld", (long long)attributes->type);
    if (!attributes->data || shape->rank < 1 || shape->rank > MOST_AXES ||
        !shape_bytes(&bytes, shape, (enum type)attributes->type) || bytes == 0)
        return misfit(node, error, "it has no elements");
    return output_of(graph, node, 0, (enum type)attributes->type, *shape, false);
}

static void constant_reference(const struct call *call)
{
    const struct constant_attributes *attributes = call->node->attributes;
    size_t row = (size_t)shape_row(&attributes->shape) * type_bytes((enum type)attributes->type);
    memcpy(call->output[0], (const char *)attributes->data + (size_t)call->begin * row,
           (size_t)(call->end - call->begin) * row);
}

const struct op op_constant = {
    OP_HEAD(constant, 0, 1, constant_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct constant_attributes),
    .no_gradient = "nothing lies behind it",
};
