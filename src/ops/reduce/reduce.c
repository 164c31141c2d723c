/* reduce.c - sums over rows, and the mean over the batch. */
#include "ops/helpers.h"

/* ---- sum_rows: [N, ..., c] -> [c] -------------------------------------- */

static plim_status sum_rows_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct sum_rows_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    int axes = attributes->axes ? (int)attributes->axes : 1;
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    if (x->shape.rank < 1 + axes)
        return misfit(node, error, "an input of a batch axis alone has no rows");
    return output_of(graph, node, 0, x->type, shape_of(axes, &x->shape.dim[x->shape.rank - axes]), false);
}

static void sum_rows_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    int64_t count = call_rows(call, x) * shape_row(&x->shape), width = shape_count(&call->node->output[0]->shape);
    for (int64_t column = 0; column < width; column++) {
        double sum = 0;
        for (int64_t i = column; i < count; i += width)
            sum += get(call, 0, i);
        share(call, 0, column, sum);
    }
}

const struct op op_sum_rows = {
    OP_HEAD(sum_rows, 1, 1, sum_rows_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct sum_rows_attributes),
    .no_gradient = "it is the gradient of a bias, and " NO_SECOND,
};

/* ---- batch_mean: x[N] -> [1] ------------------------------------------- */

static plim_status batch_mean_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_rank(node, 0, 1, error));
    return output_of(graph, node, 0, node->input[0]->type, shape_1(1), false);
}

/* Divides by the samples of the batch, not of the slice: slices add up. */
static void batch_mean_reference(const struct call *call)
{
    int64_t rows = call_rows(call, call->node->input[0]);
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        sum += get(call, 0, i);
    share(call, 0, 0, sum / (double)call->count);
}

/* An absent d is 1: this is where backward begins. x is kept for its shape. */
const struct op op_batch_mean = {
    OP_HEAD(batch_mean, 1, 1, batch_mean_infer, cut_input_rows),
    .gradient_op = &op_batch_mean_gradient,
    .gradient_reads = {READ_D, READ_X0},
    .keeps_inputs = 1 << 0,
};

/* ---- batch_mean_gradient: d[1], x[N] -> [N] ---------------------------- */

static plim_status batch_mean_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *d = node->input[0];
    TRY(need_real(node, 1, error));
    TRY(need_batched(node, 1, error));
    TRY(need_rank(node, 1, 1, error));
    if (d) {
        TRY(need_type_of(node, 0, 1, error));
        if (d->batched || shape_count(&d->shape) != 1)
            return misfit(node, error, "input 0 must be one value");
    }
    return output_like(graph, node, 0, node->input[1]);
}

static void batch_mean_gradient_reference(const struct call *call)
{
    int64_t rows = call_rows(call, call->node->output[0]);
    double d = call->input[0] ? get(call, 0, 0) : 1;
    for (int64_t i = 0; i < rows; i++)
        set(call, 0, i, d / (double)call->count);
}

const struct op op_batch_mean_gradient = {
    OP_HEAD(batch_mean_gradient, 2, 1, batch_mean_gradient_infer, cut_elementwise),
    .optional = 1 << 0,
    .no_gradient = NO_SECOND,
};
