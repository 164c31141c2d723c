/* loss_elementwise.c - losses that are a mean over the last axis of a formula
   of a score and its target. */
#include <math.h>

#include "ops/helpers.h"

#define EPSILON 1e-7 /* Keras's */

typedef double formula(double x, double t, const struct elementwise_loss_attributes *a);

#define FORMULA(name, expression)                                                                                      \
    static double name(double x, double t, const struct elementwise_loss_attributes *a)                                \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        return expression;                                                                                             \
    }

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static double sign(double x)
{
    return (double)((x > 0) - (x < 0));
}

static double squared_of(double x)
{
    return x * x;
}

static double log_above(double x)
{
    return log(fmax(x, EPSILON) + 1);
}

static double divergence_from(double x, double t)
{
    return t * log(t / clip(x, EPSILON, 1));
}

static double crossentropy(double p, double t)
{
    return -t * log(p) - (1 - t) * log(1 - p);
}

FORMULA(squared, (t - x) * (t - x))
FORMULA(squared_slope, 2 * (x - t))
FORMULA(absolute, fabs(t - x))
FORMULA(absolute_slope, sign(x - t))
FORMULA(percentage, 100 * fabs((t - x) / fmax(fabs(t), EPSILON)))
FORMULA(percentage_slope, 100 * sign(x - t) / fmax(fabs(t), EPSILON))
FORMULA(logarithmic, squared_of(log_above(x) - log_above(t)))
FORMULA(logarithmic_slope, x < EPSILON ? 0 : 2 * (log(x + 1) - log_above(t)) / (x + 1))
FORMULA(huber,
        fabs(x - t) <= a->delta ? 0.5 * fabs(x - t) * fabs(x - t) : a->delta * fabs(x - t) - 0.5 * a->delta * a->delta)
FORMULA(huber_slope, fabs(x - t) <= a->delta ? x - t : a->delta * sign(x - t))
/* log(cosh(e)) = |e| + log(1 + exp(-2 |e|)) - log(2) */
FORMULA(log_cosh, fabs(x - t) + log1p(exp(-2 * fabs(x - t))) - 0.69314718055994530942)
FORMULA(log_cosh_slope, tanh(x - t))
FORMULA(hinge, fmax(1 - t * x, 0))
FORMULA(hinge_slope, 1 - t * x > 0 ? -t : 0)
FORMULA(squared_hinge, hinge(x, t, a) * hinge(x, t, a))
FORMULA(squared_hinge_slope, -2 * t * hinge(x, t, a))
FORMULA(poisson, x - t * log(x + EPSILON))
FORMULA(poisson_slope, 1 - t / (x + EPSILON))
FORMULA(divergence, divergence_from(x, clip(t, EPSILON, 1)))
FORMULA(divergence_slope, x<EPSILON || x> 1 ? 0 : -clip(t, EPSILON, 1) / x)
FORMULA(binary_of, crossentropy(clip(x, EPSILON, 1 - EPSILON), t))
/* Nothing flows where a probability was clipped. */
FORMULA(binary_slope, x<EPSILON || x> 1 - EPSILON ? 0 : (x - t) / (x * (1 - x)))
/* -t * log(s(x)) - (1 - t) * log(1 - s(x)), without overflow. */
FORMULA(logits_of, fmax(x, 0) - x * t + log1p(exp(-fabs(x))))
FORMULA(logits_slope, 1 / (1 + exp(-x)) - t)

/* weight(t) (1 - p_t)^gamma bce, p_t = t x + (1 - t)(1 - x) */
static double focal(double x, double t, const struct elementwise_loss_attributes *a)
{
    double rest = 1 - (t * x + (1 - t) * (1 - x)), weight = a->balances ? t * a->alpha + (1 - t) * (1 - a->alpha) : 1;
    return weight * pow(rest, a->gamma) * binary_of(x, t, a);
}
static double focal_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    double rest = 1 - (t * x + (1 - t) * (1 - x)), weight = a->balances ? t * a->alpha + (1 - t) * (1 - a->alpha) : 1;
    double change = a->gamma == 0 ? 0 : a->gamma * pow(rest, a->gamma - 1) * (1 - 2 * t);
    return weight * (change * binary_of(x, t, a) + pow(rest, a->gamma) * binary_slope(x, t, a));
}

static const struct {
    formula *value, *slope;
} formulas[FORMULA_COUNT] = {
    [FORMULA_SQUARED] = {squared, squared_slope},
    [FORMULA_ABSOLUTE] = {absolute, absolute_slope},
    [FORMULA_PERCENTAGE] = {percentage, percentage_slope},
    [FORMULA_LOGARITHMIC] = {logarithmic, logarithmic_slope},
    [FORMULA_HUBER] = {huber, huber_slope},
    [FORMULA_LOG_COSH] = {log_cosh, log_cosh_slope},
    [FORMULA_HINGE] = {hinge, hinge_slope},
    [FORMULA_SQUARED_HINGE] = {squared_hinge, squared_hinge_slope},
    [FORMULA_POISSON] = {poisson, poisson_slope},
    [FORMULA_DIVERGENCE] = {divergence, divergence_slope},
    [FORMULA_BINARY] = {binary_of, binary_slope},
    [FORMULA_BINARY_LOGITS] = {logits_of, logits_slope},
    [FORMULA_BINARY_FOCAL] = {focal, focal_slope},
};

/* ---- the ops ------------------------------------------------------------ */

static plim_status need_elements(const struct node *node, int others, plim_error *error)
{
    const struct elementwise_loss_attributes *a = node->attributes;
    TRY(need_alike_targets(node, error));
    if ((int)a->formula < 0 || a->formula >= FORMULA_COUNT)
        return misfit(node, error, "there is no formula %d", (int)a->formula);
    if (node->input[others] && (node->input[others]->batched || node->input[others]->type != TYPE_F32))
        return misfit(node, error, "input %d must be one number", others);
    return PLIM_OK;
}

static plim_status elementwise_loss_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_elements(node, 2, error));
    return output_of(graph, node, 0, node->input[0]->type, without_last(node->input[0]), true);
}

static plim_status elementwise_loss_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_elements(node, 3, error));
    TRY(need_row_gradients(node, error));
    return output_like(graph, node, 0, node->input[0]);
}

/* Smoothed, or moved to -1 and 1. */
static double target(const struct call *call, int64_t i, int others)
{
    const struct elementwise_loss_attributes *a = call->node->attributes;
    double t = get(call, 1, i);
    if (call->node->input[others] && get(call, others, 0) == 0)
        t = 2 * t - 1;
    return t * (1 - a->smoothing) + 0.5 * a->smoothing;
}

static void elementwise_loss_reference(const struct call *call)
{
    const struct elementwise_loss_attributes *a = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t width = last_dim(x), rows = call_rows(call, x) * (shape_row(&x->shape) / width);
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = row * width; i < (row + 1) * width; i++)
            sum += formulas[a->formula].value(get(call, 0, i), target(call, i, 2), a);
        set(call, 0, row, a->sums ? sum : sum / (double)width);
    }
}

static void elementwise_loss_gradient_reference(const struct call *call)
{
    const struct elementwise_loss_attributes *a = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t width = last_dim(x), count = call_rows(call, x) * shape_row(&x->shape);
    double share_of = a->sums ? 1 : 1 / (double)width;
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i,
            get(call, 2, i / width) * share_of * formulas[a->formula].slope(get(call, 0, i), target(call, i, 3), a));
}

const struct op op_elementwise_loss = {
    OP_HEAD(elementwise_loss, 3, 1, elementwise_loss_infer, cut_input_rows),
    .optional = 1 << 2,
    .attributes_bytes = sizeof(struct elementwise_loss_attributes),
    .gradient_op = &op_elementwise_loss_gradient,
    .gradient_reads = {READ_X0, READ_X1, READ_D, READ_X2},
    .keeps_inputs = 1 << 0 | 1 << 1 | 1 << 2,
};

const struct op op_elementwise_loss_gradient = {
    OP_HEAD(elementwise_loss_gradient, 4, 1, elementwise_loss_gradient_infer, cut_input_rows),
    .optional = 1 << 3,
    .attributes_bytes = sizeof(struct elementwise_loss_attributes),
    .no_gradient = NO_SECOND,
};

/* ---- two classes: sigmoid_crossentropy, and binary_crossentropy from probabilities ---- */

static plim_status targets_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_targets(node, 0, 1, error));
    return output_of(graph, node, 0, node->input[0]->type, shape_1(node->input[0]->shape.dim[0]), true);
}

static plim_status targets_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_targets(node, 0, 1, error));
    TRY(need_row_gradients(node, error));
    return output_like(graph, node, 0, node->input[0]);
}

static void mean_of(const struct call *call, formula *value)
{
    int64_t rows = call_rows(call, call->node->output[0]), width = call->node->input[0]->shape.dim[1];
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = row * width; i < (row + 1) * width; i++)
            sum += value(get(call, 0, i), get(call, 1, i), NULL);
        set(call, 0, row, sum / (double)width);
    }
}

static void gradient_of_mean(const struct call *call, formula *slope)
{
    int64_t width = call->node->input[0]->shape.dim[1];
    int64_t count = call_rows(call, call->node->output[0]) * width;
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 2, i / width) * slope(get(call, 0, i), get(call, 1, i), NULL) / (double)width);
}

#define CROSSENTROPY(word, value, slope)                                                                               \
    static void word##_reference(const struct call *call)                                                              \
    {                                                                                                                  \
        mean_of(call, value);                                                                                          \
    }                                                                                                                  \
    static void word##_gradient_reference(const struct call *call)                                                     \
    {                                                                                                                  \
        gradient_of_mean(call, slope);                                                                                 \
    }                                                                                                                  \
    const struct op op_##word = {                                                                                      \
        OP_HEAD(word, 2, 1, targets_infer, cut_input_rows),                                                            \
        .gradient_op = &op_##word##_gradient,                                                                          \
        .gradient_reads = {READ_X0, READ_X1, READ_D},                                                                  \
        .keeps_inputs = 1 << 0 | 1 << 1,                                                                               \
    };                                                                                                                 \
    const struct op op_##word##_gradient = {                                                                           \
        OP_HEAD(word##_gradient, 3, 1, targets_gradient_infer, cut_input_rows),                                        \
        .no_gradient = NO_SECOND,                                                                                      \
    };

CROSSENTROPY(sigmoid_crossentropy, logits_of, logits_slope)
CROSSENTROPY(binary_crossentropy, binary_of, binary_slope)
