/* broadcast.c - operands that broadcast to a common shape. */
#include "ops/broadcast.h"

static bool widen(struct shape *out, const struct tensor *operand, bool batched)
{
    const struct shape *shape = &operand->shape;
    for (int k = 0; k < shape->rank; k++) {
        int at = broadcast_axis(operand, k, out->rank);
        int64_t extent = shape->dim[k], *dim = &out->dim[at];
        /* Nothing but a batched operand reaches along the batch: a short batch has no say over the others. */
        if (batched && !operand->batched && at == 0 && extent != 1)
            return false;
        if (extent != 1 && *dim != 1 && *dim != extent)
            return false;
        if (*dim == 1)
            *dim = extent;
    }
    return true;
}

static void find_steps(struct broadcast *out, int operand, const struct tensor *tensor)
{
    int64_t step = 1;
    for (int k = tensor->shape.rank - 1; k >= 0; k--) {
        int at = broadcast_axis(tensor, k, out->shape.rank);
        /* A batch of one is walked like any other. */
        bool reaches = tensor->shape.dim[k] != 1 || (k == 0 && tensor->batched);
        out->step[operand][at] = reaches ? step : 0;
        step *= tensor->shape.dim[k];
    }
}

bool broadcast_of(struct broadcast *out, const struct tensor *const *operand, int count)
{
    *out = (struct broadcast){.count = count};
    for (int i = 0; i < count; i++) {
        out->batched |= operand[i]->batched;
        if (operand[i]->shape.rank > out->shape.rank)
            out->shape.rank = operand[i]->shape.rank;
    }
    for (int k = 0; k < out->shape.rank; k++)
        out->shape.dim[k] = 1;
    for (int i = 0; i < count; i++) {
        /* No axis comes before the batch. */
        if (out->batched && operand[i]->batched && operand[i]->shape.rank < 1)
            return false;
        if (!widen(&out->shape, operand[i], out->batched))
            return false;
    }
    for (int i = 0; i < count; i++)
        find_steps(out, i, operand[i]);
    return true;
}

int64_t broadcast_at(const struct broadcast *broadcast, int operand, int64_t i)
{
    int64_t at = 0;
    for (int k = broadcast->shape.rank - 1; k > 0; k--) {
        at += i % broadcast->shape.dim[k] * broadcast->step[operand][k];
        i /= broadcast->shape.dim[k];
    }
    return at + (broadcast->shape.rank ? i * broadcast->step[operand][0] : 0);
}

static plim_status infer_as(struct graph *graph, struct node *node, const enum type *type, plim_error *error)
{
    struct broadcast broadcast;
    const struct tensor *const *operand = (const struct tensor *const *)node->input;
    char texts[2][160];
    for (int i = 0; i + 1 < node->input_count; i++) {
        enum type a = operand[i]->type, b = operand[i + 1]->type;
        if (a != b)
            return misfit(node, error, "types %s and %s differ", type_name(a), type_name(b));
    }
    if (!broadcast_of(&broadcast, operand, node->input_count)) {
        shape_text(texts[0], sizeof(texts[0]), &operand[0]->shape, operand[0]->batched);
        shape_text(texts[1], sizeof(texts[1]), &operand[node->input_count - 1]->shape,
                   operand[node->input_count - 1]->batched);
        return misfit(node, error, "shapes %s and %s do not broadcast to one", texts[0], texts[1]);
    }
    return output_of(graph, node, 0, type ? *type : operand[0]->type, broadcast.shape, broadcast.batched);
}

plim_status infer_broadcast(struct graph *graph, struct node *node, plim_error *error)
{
    if (node->input[0]->type == TYPE_BOOL)
        return misfit(node, error, "input 0 is bool; it must be a number");
    return infer_as(graph, node, NULL, error);
}

plim_status infer_truth(struct graph *graph, struct node *node, plim_error *error)
{
    const enum type truth = TYPE_BOOL;
    return infer_as(graph, node, &truth, error);
}

void cut_broadcast(struct cut *cut, const struct node *node)
{
    const struct tensor *y = node->output[0];
    *cut = (struct cut){.grain = 1, .by_sample = y->batched, .work = (double)shape_count(&y->shape)};
    cut->extent = y->shape.rank ? y->shape.dim[0] : 1;
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *x = node->input[i];
        bool reaches = x->shape.rank && x->shape.rank == y->shape.rank && x->shape.dim[0] == cut->extent;
        cut->input[i] = x->batched || (!y->batched && reaches) ? PART_CUT : PART_WHOLE;
    }
    cut->output[0] = PART_CUT;
}

void call_broadcast(struct broadcast *out, const struct call *call)
{
    broadcast_of(out, (const struct tensor *const *)call->node->input, call->node->input_count);
}
