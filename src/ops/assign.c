/* assign.c - a state takes a value, or adds it: what a step keeps for the next one. */
#include "ops/update/update_own.h"

bool assign_broadcasts(const struct node *node)
{
    const struct tensor *state = node->input[0], *value = node->input[1];
    return !value->batched && shape_count(&value->shape) == 1 && !shape_equal(&state->shape, &value->shape);
}

static plim_status assign_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_real(node, 0, error));
    TRY(need_weight(node, error));
    if (assign_broadcasts(node))
        return need_one(node, 1, node->input[0]->type, error);
    return need_alike(node, 0, 1, error);
}

static void assign_cut(struct cut *cut, const struct node *node)
{
    cut_update(cut, node, assign_broadcasts(node) ? 1 << 1 : 0);
}

static void assign_reference(const struct call *call)
{
    const struct assign_attributes *attributes = call->node->attributes;
    int64_t count = update_elements(call), step = assign_broadcasts(call->node) ? 0 : 1;
    for (int64_t i = 0; i < count; i++)
        put(call, 0, i, get(call, 1, i * step) + (attributes->adds ? get(call, 0, i) : 0));
}

UPDATE_OP(assign, 2, struct assign_attributes, assign_infer, 1 << 0, assign_cut);
