/* cumulative.c - sums that grow along an axis, and sums over the batch. */
#include "ops/helpers.h"

/* ---- cumulative_sum ------------------------------------------------------- */

static plim_status cumulative_sum_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct cumulative_sum_attributes *attributes = node->attributes;
    TRY(need_batched(node, 0, error));
    if (attributes->axis < 1 || attributes->axis >= node->input[0]->shape.rank)
        return misfit(node, error, "an input of rank %d has no axis %lld besides the batch", node->input[0]->shape.rank,
                      (long long)attributes->axis);
    return infer_alike(graph, node, error);
}

static void cumulative_sum_reference(const struct call *call)
{
    const struct cumulative_sum_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t extent = x->shape.dim[attributes->axis], inner = 1;
    for (int i = (int)attributes->axis + 1; i < x->shape.rank; i++)
        inner *= x->shape.dim[i];
    int64_t lines = extent ? call_rows(call, x) * shape_row(&x->shape) / extent : 0;
    for (int64_t line = 0; line < lines; line++) {
        int64_t first = line / inner * inner * extent + line % inner;
        double sum = 0;
        for (int64_t i = 0; i < extent; i++) {
            int64_t at = first + (attributes->reverse ? extent - 1 - i : i) * inner;
            sum += get(call, 0, at);
            set(call, 0, at, sum);
        }
    }
}

static void cumulative_sum_back(struct graph *graph, struct node *node, struct tensor *const *d_output,
                                const bool *wanted, struct tensor **d_input)
{
    const struct cumulative_sum_attributes *attributes = node->attributes;
    struct cumulative_sum_attributes back = {attributes->axis, !attributes->reverse};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_cumulative_sum, d_output, 1, &back, sizeof(back));
}

const struct op op_cumulative_sum = {
    OP_HEAD(cumulative_sum, 1, 1, cumulative_sum_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct cumulative_sum_attributes),
    .gradient = cumulative_sum_back,
    .in_place = 1 << 0,
};

/* ---- batch_sum and batch_broadcast ------------------------------------------- */

static plim_status batch_sum_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    struct shape shape = x->shape.rank > 1 ? shape_of(x->shape.rank - 1, x->shape.dim + 1) : shape_1(1);
    return output_of(graph, node, 0, x->type, shape, false);
}

static void batch_sum_reference(const struct call *call)
{
    const struct batch_sum_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t rows = call_rows(call, x), width = shape_row(&x->shape);
    for (int64_t i = 0; i < width; i++) {
        double sum = 0;
        for (int64_t row = 0; row < rows; row++)
            sum += get(call, 0, row * width + i);
        share(call, 0, i, attributes->mean ? sum / (double)call->count : sum);
    }
}

static void batch_sum_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                           struct tensor **d_input)
{
    const struct batch_sum_attributes *attributes = node->attributes;
    struct batch_sum_attributes back = {attributes->mean, node->input[0]->shape.rank == 1};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_batch_broadcast, d_output, 1, &back, sizeof(back));
}

const struct op op_batch_sum = {
    OP_HEAD(batch_sum, 1, 1, batch_sum_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct batch_sum_attributes),
    .gradient = batch_sum_back,
};

static plim_status batch_broadcast_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct batch_sum_attributes *attributes = node->attributes;
    const struct tensor *d = node->input[0];
    struct shape shape = shape_1(graph->batch);
    TRY(need_real(node, 0, error));
    if (d->batched || d->shape.rank >= MOST_AXES || (attributes->flat && shape_count(&d->shape) != 1))
        return misfit(node, error, "only what batch_sum made can be broadcast over the batch");
    for (int i = 0; i < d->shape.rank && !attributes->flat; i++)
        shape.dim[shape.rank++] = d->shape.dim[i];
    return output_of(graph, node, 0, d->type, shape, true);
}

static void batch_broadcast_reference(const struct call *call)
{
    const struct batch_sum_attributes *attributes = call->node->attributes;
    const struct tensor *y = call->node->output[0];
    int64_t width = shape_row(&y->shape), count = call_rows(call, y) * width;
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, attributes->mean ? get(call, 0, i % width) / (double)call->count : get(call, 0, i % width));
}

static void batch_broadcast_back(struct graph *graph, struct node *node, struct tensor *const *d_output,
                                 const bool *wanted, struct tensor **d_input)
{
    const struct batch_sum_attributes *attributes = node->attributes;
    struct batch_sum_attributes back = {attributes->mean, 0};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_batch_sum, d_output, 1, &back, sizeof(back));
}

const struct op op_batch_broadcast = {
    OP_HEAD(batch_broadcast, 1, 1, batch_broadcast_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct batch_sum_attributes),
    .gradient = batch_broadcast_back,
};
