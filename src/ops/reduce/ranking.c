/* ranking.c - where the largest are: arg_max along an axis, top_k of the last one. */
#include <math.h>

#include "ops/helpers.h"

/* Whether a comes before b, a from a lower place: then equals do. */
static bool before(double a, double b, bool least)
{
    if (isnan(a) || isnan(b))
        return isnan(a);
    return least ? a <= b : a >= b;
}

/* ---- arg_max ------------------------------------------------------------- */

static plim_status arg_max_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct arg_max_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    struct shape shape = {0};
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    if (attributes->axis < 1 || attributes->axis >= x->shape.rank)
        return misfit(node, error, "an input of rank %d has no axis %lld besides the batch", x->shape.rank,
                      (long long)attributes->axis);
    if (x->shape.dim[attributes->axis] < 1 || x->shape.dim[attributes->axis] > INT32_MAX)
        return misfit(node, error, "an axis of %lld has no place to find", (long long)x->shape.dim[attributes->axis]);
    for (int i = 0; i < x->shape.rank; i++)
        if (i != attributes->axis || attributes->keep)
            shape.dim[shape.rank++] = i == attributes->axis ? 1 : x->shape.dim[i];
    return output_of(graph, node, 0, TYPE_I32, shape, true);
}

static void arg_max_reference(const struct call *call)
{
    const struct arg_max_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t extent = x->shape.dim[attributes->axis], inner = 1;
    for (int i = (int)attributes->axis + 1; i < x->shape.rank; i++)
        inner *= x->shape.dim[i];
    int64_t count = call_rows(call, x) * shape_row(&x->shape) / extent;
    for (int64_t y = 0; y < count; y++) {
        int64_t first = y / inner * inner * extent + y % inner, best = 0;
        for (int64_t i = 1; i < extent; i++)
            if (!before(get(call, 0, first + best * inner), get(call, 0, first + i * inner), attributes->least))
                best = i;
        set(call, 0, y, (double)best);
    }
}

const struct op op_arg_max = {
    OP_HEAD(arg_max, 1, 1, arg_max_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct arg_max_attributes),
    .no_gradient = "a place is no smooth function",
};

/* ---- top_k --------------------------------------------------------------- */

static plim_status top_k_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct top_k_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    struct shape shape = x->shape;
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    if (shape.rank < 2 || attributes->k < 1 || attributes->k > last_dim(x) || last_dim(x) > INT32_MAX)
        return misfit(node, error, "the largest %lld of %lld cannot be found", (long long)attributes->k,
                      (long long)(shape.rank < 2 ? 0 : last_dim(x)));
    shape.dim[shape.rank - 1] = attributes->k;
    output_of(graph, node, 0, x->type, shape, true);
    return output_of(graph, node, 1, TYPE_I32, shape, true);
}

/* Sorted in as they come; those that fall off the end are lost. */
static void top_k_row(const struct call *call, int64_t from, int64_t width, int64_t to, int64_t k)
{
    const struct node *node = call->node;
    int64_t held = 0;
    for (int64_t i = 0; i < width; i++) {
        double x = get(call, 0, from + i);
        int64_t at = held < k ? held++ : k;
        while (at > 0 && !before(element_get(call->output[0], node->output[0]->type, to + at - 1), x, false)) {
            at--;
            if (at + 1 < held) {
                set(call, 0, to + at + 1, element_get(call->output[0], node->output[0]->type, to + at));
                set(call, 1, to + at + 1, element_get(call->output[1], TYPE_I32, to + at));
            }
        }
        if (at == k)
            continue;
        set(call, 0, to + at, x);
        set(call, 1, to + at, (double)i);
    }
}

static void top_k_reference(const struct call *call)
{
    const struct top_k_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t width = last_dim(x), rows = call_rows(call, x) * (shape_row(&x->shape) / width);
    for (int64_t row = 0; row < rows; row++)
        top_k_row(call, row * width, width, row * attributes->k, attributes->k);
}

static void top_k_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                       struct tensor **d_input)
{
    struct top_k_gradient_attributes back = {last_dim(node->input[0])};
    if (wanted[0] && d_output[0])
        d_input[0] = graph_add(graph, &op_top_k_gradient, (struct tensor *[]){d_output[0], node->output[1]}, 2, &back,
                               sizeof(back));
}

const struct op op_top_k = {
    OP_HEAD(top_k, 1, 2, top_k_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct top_k_attributes),
    .gradient = top_k_back,
    .keeps_outputs = 1 << 1,
};

/* ---- top_k_gradient: dy, places -> dx ------------------------------------- */

static plim_status top_k_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct top_k_gradient_attributes *attributes = node->attributes;
    const struct tensor *dy = node->input[0];
    struct shape shape = dy->shape;
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_type(node, 1, TYPE_I32, error));
    if (shape.rank < 2 || !shape_equal(&shape, &node->input[1]->shape) || attributes->extent < last_dim(dy))
        return misfit(node, error, "the inputs are not what top_k makes");
    shape.dim[shape.rank - 1] = attributes->extent;
    return output_of(graph, node, 0, dy->type, shape, true);
}

/* A place outside of the row takes nothing. */
static void top_k_gradient_reference(const struct call *call)
{
    const struct tensor *dx = call->node->output[0];
    int64_t width = last_dim(dx), k = last_dim(call->node->input[0]);
    int64_t rows = call_rows(call, dx) * (shape_row(&dx->shape) / width);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < width; i++)
            set(call, 0, row * width + i, 0);
        for (int64_t i = row * k; i < (row + 1) * k; i++) {
            double place = get(call, 1, i);
            if (place >= 0 && place < (double)width)
                set(call, 0, row * width + (int64_t)place, get(call, 0, i));
        }
    }
}

const struct op op_top_k_gradient = {
    OP_HEAD(top_k_gradient, 2, 1, top_k_gradient_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct top_k_gradient_attributes),
    .no_gradient = NO_SECOND,
};
