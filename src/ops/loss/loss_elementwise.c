/* loss_elementwise.c - losses that are a mean over the last axis of a formula
   of a score and its target. */
#include <math.h>

#include "ops/helpers.h"

#define EPSILON 1e-7 /* Keras's */

typedef double formula(double x, double t, const struct elementwise_loss_attributes *a);

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static double sign(double x)
{
    return (double)((x > 0) - (x < 0));
}

static double squared(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return (t - x) * (t - x);
}
static double squared_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return 2 * (x - t);
}

static double absolute(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return fabs(t - x);
}
static double absolute_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return sign(x - t);
}

static double percentage(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return 100 * fabs((t - x) / fmax(fabs(t), EPSILON));
}
static double percentage_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return 100 * sign(x - t) / fmax(fabs(t), EPSILON);
}

static double logarithmic(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    double difference = log(fmax(x, EPSILON) + 1) - log(fmax(t, EPSILON) + 1);
    return difference * difference;
}
static double logarithmic_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return x < EPSILON ? 0 : 2 * (log(x + 1) - log(fmax(t, EPSILON) + 1)) / (x + 1);
}

static double huber(double x, double t, const struct elementwise_loss_attributes *a)
{
    double e = fabs(x - t);
    return e <= a->delta ? 0.5 * e * e : a->delta * e - 0.5 * a->delta * a->delta;
}
static double huber_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    double e = x - t;
    return fabs(e) <= a->delta ? e : a->delta * sign(e);
}

/* log(cosh(e)) = |e| + log(1 + exp(-2 |e|)) - log(2) */
static double log_cosh(double x, double t, const struct elementwise_loss_attributes *a)
{
    double e = fabs(x - t);
    (void)a;
    return e + log1p(exp(-2 * e)) - 0.69314718055994530942;
}
static double log_cosh_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return tanh(x - t);
}

static double hinge(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return fmax(1 - t * x, 0);
}
static double hinge_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return 1 - t * x > 0 ? -t : 0;
}

static double squared_hinge(double x, double t, const struct elementwise_loss_attributes *a)
{
    return hinge(x, t, a) * hinge(x, t, a);
}
static double squared_hinge_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    return -2 * t * hinge(x, t, a);
}

static double poisson(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return x - t * log(x + EPSILON);
}
static double poisson_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return 1 - t / (x + EPSILON);
}

static double divergence(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    t = clip(t, EPSILON, 1);
    return t * log(t / clip(x, EPSILON, 1));
}
static double divergence_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return x < EPSILON || x > 1 ? 0 : -clip(t, EPSILON, 1) / x;
}

static double binary_of(double x, double t, const struct elementwise_loss_attributes *a)
{
    double p = clip(x, EPSILON, 1 - EPSILON);
    (void)a;
    return -t * log(p) - (1 - t) * log(1 - p);
}
static double binary_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return x < EPSILON || x > 1 - EPSILON ? 0 : (x - t) / (x * (1 - x));
}

static double logits_of(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
}
static double logits_slope(double x, double t, const struct elementwise_loss_attributes *a)
{
    (void)a;
    return 1 / (1 + exp(-x)) - t;
}

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

static struct shape without_last(const struct tensor *x)
{
    struct shape shape = x->shape;
    shape.rank--;
    return shape;
}

static plim_status need_elements(const struct node *node, int others, plim_error *error)
{
    const struct elementwise_loss_attributes *a = node->attributes;
    const struct tensor *x = node->input[0], *t = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_batched(node, 1, error));
    if (x->shape.rank < 2 || !is_label(t->type) || shape_count(&x->shape) != shape_count(&t->shape))
        return misfit(node, error, "targets do not fit the outputs");
    if ((int)a->formula < 0 || a->formula >= FORMULA_COUNT)
        return misfit(node, error, "there is no formula %d", (int)a->formula);
    if (node->input[others] && (node->input[others]->batched || node->input[others]->type != TYPE_F32))
        return misfit(node, error, "input %d must be one number", others);
    return PLIM_OK;
}

static plim_status elementwise_loss_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_elements(node, 2, error));
    output_of(graph, node, 0, node->input[0]->type, without_last(node->input[0]), true);
    return PLIM_OK;
}

static plim_status elementwise_loss_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct shape shape = without_last(node->input[0]);
    TRY(need_elements(node, 3, error));
    TRY(need_type(node, 2, node->input[0]->type, error));
    if (!shape_equal(&node->input[2]->shape, &shape))
        return misfit(node, error, "the gradient does not fit the outputs");
    output_like(graph, node, 0, node->input[0]);
    return PLIM_OK;
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
    .name = "elementwise_loss",
    .inputs = 3,
    .outputs = 1,
    .optional = 1 << 2,
    .attributes_bytes = sizeof(struct elementwise_loss_attributes),
    .infer = elementwise_loss_infer,
    .gradient_op = &op_elementwise_loss_gradient,
    .gradient_reads = {READ_X0, READ_X1, READ_D, READ_X2},
    .keeps_inputs = 1 << 0 | 1 << 1 | 1 << 2,
    .cut = cut_input_rows,
    .reference = elementwise_loss_reference,
};

const struct op op_elementwise_loss_gradient = {
    .name = "elementwise_loss_gradient",
    .inputs = 4,
    .outputs = 1,
    .optional = 1 << 3,
    .attributes_bytes = sizeof(struct elementwise_loss_attributes),
    .infer = elementwise_loss_gradient_infer,
    .no_gradient = NO_SECOND,
    .cut = cut_input_rows,
    .reference = elementwise_loss_gradient_reference,
};
