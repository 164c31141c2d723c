/* sum_to.c - sums over what an operand was broadcast along: the gradients of
   broadcasting ops. */
#include "ops/broadcast.h"

/* Steps of the output over the axes of x; 0: summed. */
static bool target_steps(struct broadcast *out, const struct tensor *x, const struct sum_to_attributes *to)
{
    struct tensor target = {.shape = to->shape, .batched = to->batched != 0};
    if (target.shape.rank > x->shape.rank || (target.batched && !x->batched))
        return false;
    return broadcast_of(out, (const struct tensor *[]){x, &target}, 2) && shape_equal(&out->shape, &x->shape);
}

static plim_status sum_to_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct sum_to_attributes *to = node->attributes;
    const struct tensor *x = node->input[0];
    struct broadcast broadcast;
    char texts[2][160];
    TRY(need_real(node, 0, error));
    if (node->input[1])
        TRY(need_alike(node, 0, 1, error));
    shape_text(texts[0], sizeof(texts[0]), &x->shape, x->batched);
    shape_text(texts[1], sizeof(texts[1]), &to->shape, to->batched != 0);
    if (!target_steps(&broadcast, x, to))
        return misfit(node, error, "nothing of shape %s broadcasts to %s", texts[1], texts[0]);
    return output_of(graph, node, 0, x->type, to->shape, to->batched != 0);
}

/* Whether axis 0 of x is kept: then each row has its own part of the output. */
static bool keeps_rows(const struct node *node)
{
    const struct tensor *x = node->input[0], *y = node->output[0];
    if (x->batched)
        return y->batched;
    return x->shape.rank && x->shape.rank == y->shape.rank && x->shape.dim[0] == y->shape.dim[0];
}

static void sum_to_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *x = node->input[0];
    bool rows = x->batched || keeps_rows(node);
    *cut = (struct cut){.grain = 1, .by_sample = x->batched, .work = (double)shape_count(&x->shape)};
    cut->extent = rows ? x->shape.dim[0] : 1;
    cut->input[0] = cut->input[1] = rows ? PART_CUT : PART_WHOLE;
    cut->output[0] = keeps_rows(node) ? PART_CUT : x->batched ? PART_SUM : PART_WHOLE;
}

/* The sum over the axes that are not kept, from axis k on. */
static double sum_from(const struct call *call, const struct broadcast *broadcast, const int64_t *dim, int k,
                       int64_t at)
{
    if (k == broadcast->shape.rank)
        return get(call, 0, at) * (call->node->input[1] ? get(call, 1, at) : 1);
    if (broadcast->step[1][k])
        return sum_from(call, broadcast, dim, k + 1, at);
    double sum = 0;
    for (int64_t i = 0; i < dim[k]; i++)
        sum += sum_from(call, broadcast, dim, k + 1, at + i * broadcast->step[0][k]);
    return sum;
}

/* For each element of the output: axis k of those that are kept. */
static void sum_each(const struct call *call, const struct broadcast *broadcast, const int64_t *dim, int k, int64_t at,
                     int64_t to)
{
    if (k == broadcast->shape.rank) {
        double sum = sum_from(call, broadcast, dim, 0, at);
        if (keeps_rows(call->node) || !call->node->input[0]->batched)
            set(call, 0, to, sum);
        else
            share(call, 0, to, sum);
        return;
    }
    int64_t extent = broadcast->step[1][k] ? dim[k] : 1;
    for (int64_t i = 0; i < extent; i++)
        sum_each(call, broadcast, dim, k + 1, at + i * broadcast->step[0][k], to + i * broadcast->step[1][k]);
}

static void sum_to_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    struct broadcast broadcast;
    struct shape shape = x->shape;
    target_steps(&broadcast, x, call->node->attributes);
    if (x->batched || keeps_rows(call->node))
        shape.dim[0] = call_rows(call, x);
    sum_each(call, &broadcast, shape.dim, 0, 0, 0);
}

struct tensor *sum_to_like(struct graph *graph, struct tensor *d, struct tensor *factor, const struct tensor *like)
{
    if (!d || !like)
        return NULL;
    struct sum_to_attributes attributes = {like->shape, like->batched};
    if (!factor && shape_equal(&d->shape, &like->shape) && d->batched == like->batched)
        return d;
    return graph_add(graph, &op_sum_to, (struct tensor *[]){d, factor}, 2, &attributes, sizeof(attributes));
}

const struct op op_sum_to = {
    OP_HEAD(sum_to, 2, 1, sum_to_infer, sum_to_cut),
    .optional = 1 << 1,
    .attributes_bytes = sizeof(struct sum_to_attributes),
    .no_gradient = "it is the gradient of what broadcasts, and " NO_SECOND,
};
