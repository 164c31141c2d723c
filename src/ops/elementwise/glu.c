/* glu.c - the gated linear unit: half of an axis times the sigmoid of the other half. */
#include <math.h>

#include "ops/helpers.h"

/* x is [outer, 2 half, inner] of which the output has [outer, half, inner]. */
static int64_t half_of(const struct tensor *x, const struct axis_attributes *attributes)
{
    int axis = x->shape.rank - 1 - (int)attributes->from_end;
    int64_t half = x->shape.dim[axis] / 2;
    for (int k = axis + 1; k < x->shape.rank; k++)
        half *= x->shape.dim[k];
    return half;
}

static plim_status need_halves(const struct node *node, const struct tensor *x, plim_error *error)
{
    const struct axis_attributes *attributes = node->attributes;
    int rank = x->shape.rank, least = x->batched ? 1 : 0;
    char text[160];
    if (attributes->from_end < 0 || attributes->from_end > rank - 1 - least)
        return misfit(node, error, "axis %lld from the end is none of the %d of a sample",
                      (long long)attributes->from_end, rank - least);
    shape_text(text, sizeof(text), &x->shape, x->batched);
    if (x->shape.dim[rank - 1 - attributes->from_end] % 2)
        return misfit(node, error, "shape %s: the axis that is halved has an odd extent", text);
    return PLIM_OK;
}

static plim_status glu_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct axis_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    struct shape shape = x->shape;
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_halves(node, x, error));
    shape.dim[shape.rank - 1 - attributes->from_end] /= 2;
    return output_of(graph, node, 0, x->type, shape, x->batched);
}

static double gate(double x)
{
    return 1 / (1 + exp(-x));
}

static void glu_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    int64_t half = half_of(call->node->input[0], call->node->attributes);
    int64_t count = call_rows(call, y) * shape_row(&y->shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i / half * 2 * half + i % half;
        set(call, 0, i, get(call, 0, at) * gate(get(call, 0, at + half)));
    }
}

const struct op op_glu = {
    OP_HEAD(glu, 1, 1, glu_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct axis_attributes),
    .gradient_op = &op_glu_gradient,
    .gradient_reads = {READ_D, READ_X0},
    .keeps_inputs = 1 << 0,
};

/* da = dy s, db = dy a s (1 - s); inputs dy, x = [a, b]. */
static plim_status glu_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *dy = node->input[0], *x = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 1, error));
    TRY(need_halves(node, x, error));
    if (dy->type != x->type || shape_count(&dy->shape) * 2 != shape_count(&x->shape))
        return misfit(node, error, "dy is not half of x");
    return output_like(graph, node, 0, x);
}

static void glu_gradient_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[1];
    int64_t half = half_of(x, call->node->attributes);
    int64_t count = call_rows(call, x) * shape_row(&x->shape) / 2;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i / half * 2 * half + i % half;
        double d = get(call, 0, i), s = gate(get(call, 1, at + half));
        double a = get(call, 1, at);
        set(call, 0, at, d * s);
        set(call, 0, at + half, d * a * s * (1 - s));
    }
}

const struct op op_glu_gradient = {
    OP_HEAD(glu_gradient, 2, 1, glu_gradient_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct axis_attributes),
    .no_gradient = NO_SECOND,
};
