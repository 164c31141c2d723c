/* regularize.c - penalties and constraints. */
#include <math.h>

#include "ops/helpers.h"

#define EPSILON 1e-7 /* Keras's */

/* ---- penalty ------------------------------------------------------------ */

static void cut_penalty(struct cut *cut, const struct node *node)
{
    cut_rows(cut, node, node->input[0], (double)shape_count(&node->input[0]->shape));
    cut->output[0] = PART_SUM;
}

static plim_status penalty_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    output_of(graph, node, 0, wide_type(node->input[0]->type), shape_1(1), false);
    return PLIM_OK;
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

static void penalty_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                         struct tensor **d_input)
{
    struct tensor *inputs[2] = {d_output[0], node->input[0]};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_penalty_gradient, inputs, 2, node->attributes, node->attributes_bytes);
}

static struct tensor *example_penalized(struct graph *graph, int variant, enum type type)
{
    if (variant == 0)
        return graph_weight(graph, "w", type, shape_2(7, 5), true);
    if (variant == 1)
        return graph_weight(graph, "w", type, shape_1(1), true);
    return variant == 2 ? example_input(graph, "x", type, ROW(3, 9)) : NULL;
}

/* A gradient is taken of a mean over the batch: only the batched one is checked so. */
static struct tensor *penalty_example(struct graph *graph, int variant, enum type type)
{
    struct penalty_attributes a = {variant % 2 ? 0.1 : 0.3, 0.2};
    struct tensor *x = example_penalized(graph, variant, type);
    return x ? graph_add(graph, &op_penalty, &x, 1, &a, sizeof(a)) : NULL;
}

const struct op op_penalty = {
    .name = "penalty",
    .inputs = 1,
    .outputs = 1,
    .attributes_bytes = sizeof(struct penalty_attributes),
    .infer = penalty_infer,
    .gradient = penalty_back,
    .keeps_inputs = 1 << 0,
    .in_place = NO_INPUT,
    .cut = cut_penalty,
    .reference = penalty_reference,
    .example = penalty_example,
};

static plim_status penalty_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *d = node->input[0];
    TRY(need_real(node, 1, error));
    if (d && (d->batched || (d->type != node->input[1]->type && d->type != wide_type(node->input[1]->type)) ||
              shape_count(&d->shape) != 1))
        return misfit(node, error, "input 0 must be one value");
    output_like(graph, node, 0, node->input[1]);
    return PLIM_OK;
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

static struct tensor *penalty_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct penalty_attributes a = {variant % 2 ? 0 : 0.3, 0.2};
    struct tensor *x = example_penalized(graph, variant, type);
    if (!x)
        return NULL;
    struct tensor *inputs[2] = {variant % 2 ? graph_state(graph, "d", type, shape_1(1)) : NULL, x};
    return graph_add(graph, &op_penalty_gradient, inputs, 2, &a, sizeof(a));
}

const struct op op_penalty_gradient = {
    .name = "penalty_gradient",
    .inputs = 2,
    .outputs = 1,
    .optional = 1 << 0,
    .attributes_bytes = sizeof(struct penalty_attributes),
    .infer = penalty_gradient_infer,
    .no_gradient = NO_SECOND,
    .in_place = NO_INPUT,
    .cut = cut_penalty_gradient,
    .reference = penalty_gradient_reference,
    .example = penalty_gradient_example,
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
    TRY(need_real(node, 0, error));
    if (node->input[0]->kind != KIND_WEIGHT && node->input[0]->kind != KIND_STATE)
        return misfit(node, error, "only a weight can be constrained");
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

static struct tensor *constrain_example(struct graph *graph, int variant, enum type type)
{
    static const struct constrain_attributes cases[] = {
        {CONSTRAINT_MAX_NORM, 0, 1, 0, 1, 7, 5},    {CONSTRAINT_NON_NEG, 0, 0, 0, 1, 7, 5},
        {CONSTRAINT_UNIT_NORM, 0, 0, 0, 7, 5, 1},   {CONSTRAINT_MIN_MAX_NORM, 0.5, 1, 0.75, 1, 7, 5},
        {CONSTRAINT_MAX_NORM, 0, 0.5, 0, 1, 35, 1},
    };
    if (variant >= (int)(sizeof(cases) / sizeof(cases[0])))
        return NULL;
    struct tensor *w = graph_weight(graph, "w", type, shape_2(7, 5), true);
    return graph_add(graph, &op_constrain, &w, 1, &cases[variant], sizeof(cases[variant]));
}

const struct op op_constrain = {
    .name = "constrain",
    .inputs = 1,
    .attributes_bytes = sizeof(struct constrain_attributes),
    .infer = constrain_infer,
    .no_gradient = "it ends the step",
    .updates = 1 << 0,
    .in_place = NO_INPUT,
    .cut = cut_whole,
    .reference = constrain_reference,
    .example = constrain_example,
};
