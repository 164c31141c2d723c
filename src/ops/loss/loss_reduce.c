/* loss_reduce.c - from a value a row to one number of the batch: weights,
   means, and how many values count. */
#include "ops/helpers.h"

static bool is_number(const struct tensor *tensor)
{
    return !tensor->batched && tensor->type == TYPE_F32 && shape_count(&tensor->shape) == 1;
}

/* ---- weigh: v w --------------------------------------------------------- */

static plim_status weigh_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *v = node->input[0], *w = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_batched(node, 1, error));
    if (shape_row(&w->shape) != 1 && shape_row(&w->shape) != shape_row(&v->shape))
        return misfit(node, error, "%lld weights a sample for %lld values", (long long)shape_row(&w->shape),
                      (long long)shape_row(&v->shape));
    return output_like(graph, node, 0, v);
}

static void weigh_reference(const struct call *call)
{
    const struct tensor *v = call->node->input[0];
    int64_t row = shape_row(&v->shape), count = call_rows(call, v) * row;
    int64_t share_of = row / shape_row(&call->node->input[1]->shape);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 0, i) * get(call, 1, i / share_of));
}

const struct op op_weigh = {
    OP_HEAD(weigh, 2, 1, weigh_infer, cut_input_rows),
    .gradient_op = &op_weigh,
    .gradient_reads = {READ_D, READ_X1},
    .keeps_inputs = 1 << 1,
    .in_place = 1 << 0,
};

/* ---- loss_mean ---------------------------------------------------------- */

static plim_status loss_mean_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    if (node->input[1] && !is_number(node->input[1]))
        return misfit(node, error, "the count must be one float32");
    return output_of(graph, node, 0, node->input[0]->type, shape_1(1), false);
}

/* What one value counts in the mean. */
static double part_of(const struct call *call, const struct tensor *v, int count)
{
    const struct loss_mean_attributes *a = call->node->attributes;
    double all = (double)call->count * (double)shape_row(&v->shape);
    if (call->node->input[count])
        all = get(call, count, 0);
    return a->sums ? 1 : all > 0 ? 1 / all : 0;
}

static void loss_mean_reference(const struct call *call)
{
    const struct tensor *v = call->node->input[0];
    int64_t count = call_rows(call, v) * shape_row(&v->shape);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += get(call, 0, i);
    share(call, 0, 0, sum * part_of(call, v, 1));
}

const struct op op_loss_mean = {
    OP_HEAD(loss_mean, 2, 1, loss_mean_infer, cut_input_rows),
    .optional = 1 << 1,
    .attributes_bytes = sizeof(struct loss_mean_attributes),
    .gradient_op = &op_loss_mean_gradient,
    .gradient_reads = {READ_D, READ_X0, READ_X1},
    .keeps_inputs = 1 << 0 | 1 << 1, /* for its shape */
};

static plim_status loss_mean_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 1, error));
    TRY(need_batched(node, 1, error));
    if (node->input[0])
        TRY(need_type_of(node, 0, 1, error));
    if (node->input[2] && !is_number(node->input[2]))
        return misfit(node, error, "the count must be one float32");
    return output_like(graph, node, 0, node->input[1]);
}

static void loss_mean_gradient_reference(const struct call *call)
{
    const struct tensor *v = call->node->input[1];
    int64_t count = call_rows(call, v) * shape_row(&v->shape);
    double d = (call->node->input[0] ? get(call, 0, 0) : 1) * part_of(call, v, 2);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, d);
}

const struct op op_loss_mean_gradient = {
    OP_HEAD(loss_mean_gradient, 3, 1, loss_mean_gradient_infer, cut_elementwise),
    .optional = 1 << 0 | 1 << 2,
    .attributes_bytes = sizeof(struct loss_mean_attributes),
    .no_gradient = NO_SECOND,
};

/* ---- count_valid, count_others ------------------------------------------ */

static plim_status count_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_batched(node, 0, error));
    return output_of(graph, node, 0, TYPE_F32, shape_1(1), false);
}

static void count_valid_reference(const struct call *call)
{
    const struct count_valid_attributes *a = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t count = call_rows(call, x) * shape_row(&x->shape), valid = 0;
    for (int64_t i = 0; i < count; i++)
        valid += get(call, 0, i) != a->ignored;
    share(call, 0, 0, (double)valid);
}

static void count_others_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    int64_t count = call_rows(call, x) * shape_row(&x->shape), others = 0;
    for (int64_t i = 0; i < count; i++)
        others += get(call, 0, i) != 0 && get(call, 0, i) != 1;
    share(call, 0, 0, (double)others);
}

const struct op op_count_valid = {
    OP_HEAD(count_valid, 1, 1, count_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct count_valid_attributes),
    .no_gradient = "it counts",
};

const struct op op_count_others = {
    OP_HEAD(count_others, 1, 1, count_infer, cut_input_rows),
    .no_gradient = "it counts",
};
