/* regularize.c - penalties and constraints. */
#include <math.h>

#include "ops/update/update_own.h"

#define EPSILON 1e-7 /* Keras's */

/* ---- penalty ------------------------------------------------------------ */

static plim_status penalty_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    return output_of(graph, node, 0, wide_type(node->input[0]->type), shape_1(1), false);
}

static int64_t count_of(const struct call *call, const struct tensor *x)
{
    return call_rows(call, x) * shape_row(&x->shape);
}

static void penalty_reference(const struct call *call)
{
    const struct penalty_attributes *a = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t count = count_of(call, x);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a->l1 * fabs(get(call, 0, i)) + a->l2 * get(call, 0, i) * get(call, 0, i);
    share(call, 0, 0, x->batched ? sum / (double)call->count : sum);
}

const struct op op_penalty = {
    OP_HEAD(penalty, 1, 1, penalty_infer, cut_to_sum),
    .attributes_bytes = sizeof(struct penalty_attributes),
    .gradient_op = &op_penalty_gradient,
    .gradient_reads = {READ_D, READ_X0},
    .keeps_inputs = 1 << 0,
};

static plim_status penalty_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *d = node->input[0];
    TRY(need_real(node, 1, error));
    if (d && (d->batched || (d->type != node->input[1]->type && d->type != wide_type(node->input[1]->type)) ||
              shape_count(&d->shape) != 1))
        return misfit(node, error, "input 0 must be one value");
    return output_like(graph, node, 0, node->input[1]);
}

static void cut_penalty_gradient(struct cut *cut, const struct node *node)
{
    cut_rows(cut, node, node->input[1], (double)shape_count(&node->input[1]->shape));
    cut->input[0] = PART_WHOLE;
}

static void penalty_gradient_reference(const struct call *call)
{
    const struct penalty_attributes *a = call->node->attributes;
    const struct tensor *x = call->node->input[1];
    double d = (call->node->input[0] ? get(call, 0, 0) : 1) / (x->batched ? (double)call->count : 1);
    int64_t count = count_of(call, x);
    for (int64_t i = 0; i < count; i++) {
        double value = get(call, 1, i);
        set(call, 0, i, d * (a->l1 * (double)((value > 0) - (value < 0)) + 2 * a->l2 * value));
    }
}

const struct op op_penalty_gradient = {
    OP_HEAD(penalty_gradient, 2, 1, penalty_gradient_infer, cut_penalty_gradient),
    .optional = 1 << 0,
    .attributes_bytes = sizeof(struct penalty_attributes),
    .no_gradient = NO_SECOND,
};

/* ---- constrain ---------------------------------------------------------- */

double constraint_factor(const struct constrain_attributes *a, double norm)
{
    double wanted = 1;
    if (a->kind == CONSTRAINT_MAX_NORM)
        wanted = fmin(norm, a->most);
    else if (a->kind == CONSTRAINT_MIN_MAX_NORM)
        wanted = a->rate * fmin(fmax(norm, a->least), a->most) + (1 - a->rate) * norm;
    return wanted / (EPSILON + norm);
}

static plim_status constrain_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct constrain_attributes *a = node->attributes;
    (void)graph;
    TRY(need_weight(node, error));
    if (a->outer < 0 || a->outer * a->reduced * a->inner != shape_count(&node->input[0]->shape))
        return misfit(node, error, "axes do not fit the weight");
    return PLIM_OK;
}

static void cut_whole(struct cut *cut, const struct node *node)
{
    *cut = (struct cut){.extent = 1, .grain = 1, .work = 2 * (double)shape_count(&node->input[0]->shape) + 1};
    cut->input[0] = PART_WHOLE;
}

static void constrain_reference(const struct call *call)
{
    const struct constrain_attributes *a = call->node->attributes;
    enum type type = call->node->input[0]->type;
    int64_t groups = call->begin < call->end ? a->outer * a->inner : 0;
    for (int64_t group = 0; group < groups; group++) {
        int64_t first = group / a->inner * a->reduced * a->inner + group % a->inner;
        double squares = 0;
        for (int64_t i = 0; i < a->reduced; i++)
            squares += get(call, 0, first + i * a->inner) * get(call, 0, first + i * a->inner);
        double factor = constraint_factor(a, sqrt(squares));
        for (int64_t i = 0; i < a->reduced; i++) {
            double w = get(call, 0, first + i * a->inner);
            w = a->kind == CONSTRAINT_NON_NEG ? (w >= 0 ? w : 0) : w * factor;
            element_set(call->input[0], type, first + i * a->inner, w);
        }
    }
}

const struct op op_constrain = {
    OP_HEAD(constrain, 1, 0, constrain_infer, cut_whole),
    .attributes_bytes = sizeof(struct constrain_attributes),
    .no_gradient = "it ends the step",
    .updates = 1 << 0,
};
