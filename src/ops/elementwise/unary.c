/* unary.c - the ops of unary.def: formula, slope, and what every such op shares.

   Each element is read before it is written: in place is fine. */
#include <string.h>

#include "ops/elementwise/formulas_double.h"
#include "ops/helpers.h"

typedef double formula(double x, const struct numbers_attributes *numbers);

static const struct numbers_attributes *numbers_of(const struct call *call)
{
    static const struct numbers_attributes none = {0, 0, 0};
    return call->node->attributes ? call->node->attributes : &none;
}

static void each(const struct call *call, formula *y)
{
    const struct numbers_attributes *numbers = numbers_of(call);
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, y(get(call, 0, i), numbers));
}

/* Inputs dy and what the slope reads. */
static void each_gradient(const struct call *call, formula *slope)
{
    const struct numbers_attributes *numbers = numbers_of(call);
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 0, i) * slope(get(call, 1, i), numbers));
}

/* ---- rules of shapes and numbers ---------------------------------------- */

static plim_status predicate_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0];
    (void)error;
    return output_of(graph, node, 0, TYPE_BOOL, x->shape, x->batched);
}

/* Formulas that hold for some numbers only; others would give a wrong slope from y. */
static plim_status numbers_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct numbers_attributes *n = node->attributes;
    const char *name = node->op->name;
    if (!n)
        return infer_alike(graph, node, error);
    if (n->a != n->a || n->b != n->b || n->c != n->c)
        return misfit(node, error, "not a number among its arguments");
    if (strcmp(name, "clip") == 0 && !(n->a <= n->b))
        return misfit(node, error, "clipping to [%g, %g] is not possible", n->a, n->b);
    if (strncmp(name, "rectify", 7) == 0 && !(n->b >= 0))
        return misfit(node, error, "max_value must not be negative, got %g", n->b);
    if ((strcmp(name, "rectify") == 0 || strcmp(name, "rectify_gradient") == 0) && !(n->a >= 0 && n->c >= 0))
        return misfit(node, error, "a slope of %g and a threshold of %g are for rectify_any", n->a, n->c);
    if (strncmp(name, "elu", 3) == 0 && !(n->a >= 0))
        return misfit(node, error, "alpha must not be negative, got %g", n->a);
    if (strncmp(name, "celu", 4) == 0 && n->a == 0)
        return misfit(node, error, "alpha must not be 0");
    if (strncmp(name, "squareplus", 10) == 0 && !(n->a > 0))
        return misfit(node, error, "b must be more than 0, got %g", n->a);
    return infer_alike(graph, node, error);
}

/* ---- gradients ----------------------------------------------------------- */

static void flat_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                      struct tensor **d_input)
{
    struct scale_attributes nothing = {0};
    (void)node;
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_scale, d_output, 1, &nothing, sizeof(nothing));
}

/* Slopes of which there are two or three, that change where what they read rises above `low` and reaches `high`. */
static bool numbers_encoding(struct encoded_input *out, const struct node *node)
{
    const struct numbers_attributes *n = node->attributes;
    struct slope_attributes slopes = {.high = 1, .bits = 1, .product = 1};
    if (node->op == &op_rectify_gradient) {
        slopes = (struct slope_attributes){0, n->b, {n->a, 1, 0}, n->a == 0 ? 1 : 2, 1};
        if (n->a == 0 && signbit(n->a)) /* 0 with a sign is a third slope */
            return false;
    } else if (node->op == &op_hard_sigmoid_gradient) {
        slopes.slope[1] = 1.0 / 6;
    } else if (node->op == &op_sparse_sigmoid_gradient) {
        slopes.slope[1] = 0.5;
    } else if (node->op == &op_hard_tanh_gradient) {
        slopes.low = -1;
        slopes.slope[1] = 1;
    } else if (node->op == &op_threshold_gradient) {
        slopes.low = n->a;
        slopes.high = NAN;
        slopes.slope[1] = 1;
    } else {
        return false;
    }
    slope_encoding(out, &slopes);
    return true;
}

/* ---- the ops ------------------------------------------------------------- */

#define NONE         (0)
#define NUMBERS(...) (__VA_ARGS__)
#define IN_BRACES(...)                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define NUMBERS_BYTES(given)                                                                                           \
    (sizeof((double[])IN_BRACES given) > sizeof(double) ? sizeof(struct numbers_attributes) : 0)

#define FORMULA_OF(name, what, read, expression)                                                                       \
    static double name##_##what(double read, const struct numbers_attributes *numbers)                                 \
    {                                                                                                                  \
        const double a = numbers->a, b = numbers->b, c = numbers->c;                                                   \
        (void)a, (void)b, (void)c;                                                                                     \
        return expression;                                                                                             \
    }

#define FORWARD(name, expression)                                                                                      \
    FORMULA_OF(name, formula, x, expression)                                                                           \
    static void name##_reference(const struct call *call)                                                              \
    {                                                                                                                  \
        each(call, name##_formula);                                                                                    \
    }

#define SMOOTH(word, numbers_given, expression, read, from, kept, rise)                                                \
    FORWARD(word, expression)                                                                                          \
    FORMULA_OF(word, slope, read, rise)                                                                                \
    const struct op op_##word = {                                                                                      \
        OP_HEAD(word, 1, 1, numbers_infer, cut_elementwise),                                                           \
        .attributes_bytes = NUMBERS_BYTES(numbers_given),                                                              \
        .gradient_op = &op_##word##_gradient,                                                                          \
        .gradient_reads = {READ_D, from},                                                                              \
        .kept = 1 << 0,                                                                                                \
        .in_place = 1 << 0,                                                                                            \
    };                                                                                                                 \
    static void word##_gradient_reference(const struct call *call)                                                     \
    {                                                                                                                  \
        each_gradient(call, word##_slope);                                                                             \
    }                                                                                                                  \
    const struct op op_##word##_gradient = {                                                                           \
        OP_HEAD(word##_gradient, 2, 1, numbers_infer, cut_elementwise),                                                \
        .attributes_bytes = NUMBERS_BYTES(numbers_given),                                                              \
        .no_gradient = NO_SECOND,                                                                                      \
        .in_place = 1 << 0,                                                                                            \
        .encoding = numbers_encoding,                                                                                  \
    };

#define FROM_X(name, example, numbers, expression, slope)                                                              \
    SMOOTH(name, numbers, expression, x, READ_X0, keeps_inputs, slope)

#define FROM_Y(name, example, numbers, expression, slope)                                                              \
    SMOOTH(name, numbers, expression, y, READ_Y0, keeps_outputs, slope)
#define FAR_X FROM_X
#define FAR_Y FROM_Y

#define FLAT(word, example_, expression)                                                                               \
    FORWARD(word, expression)                                                                                          \
    const struct op op_##word = {                                                                                      \
        OP_HEAD(word, 1, 1, infer_alike, cut_elementwise),                                                             \
        .gradient = flat_back,                                                                                         \
        .in_place = 1 << 0,                                                                                            \
    };

#define PREDICATE(word, example_, expression)                                                                          \
    FORWARD(word, expression)                                                                                          \
    const struct op op_##word = {                                                                                      \
        OP_HEAD(word, 1, 1, predicate_infer, cut_elementwise),                                                         \
        .no_gradient = "its output is a truth value",                                                                  \
    };

#include "ops/elementwise/unary.def"

/* ---- negative: its slope reads nothing ----------------------------------- */

static void negative_reference(const struct call *call)
{
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, -get(call, 0, i));
}

const struct op op_negative = {
    OP_HEAD(negative, 1, 1, infer_alike, cut_elementwise),
    .gradient_op = &op_negative,
    .gradient_reads = {READ_D},
    .in_place = 1 << 0,
};
