/* binary.c - the ops of binary.def, where, and their gradients: operands that
   broadcast (broadcast.h).

   Each element is read before it is written, and an operand that may be
   overwritten is read at the place that is written: in place is fine. */
#include "ops/broadcast.h"
#include "ops/elementwise/formulas_double.h"

typedef double formula2(double a, double b);

static void each(const struct call *call, formula2 *y)
{
    struct broadcast broadcast;
    int64_t count = output_elements(call);
    call_broadcast(&broadcast, call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, y(get(call, 0, broadcast_at(&broadcast, 0, i)), get(call, 1, broadcast_at(&broadcast, 1, i))));
}

/* ---- gradients ----------------------------------------------------------- */

static void add_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                     struct tensor **d_input)
{
    for (int i = 0; i < 2; i++)
        d_input[i] = wanted[i] ? sum_to_like(graph, d_output[0], NULL, node->input[i]) : NULL;
}

static void subtract_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                          struct tensor **d_input)
{
    add_back(graph, node, d_output, wanted, d_input);
    if (wanted[1])
        d_input[1] = unary(graph, &op_negative, d_input[1]);
}

/* d * other, summed: in one go where `other` is as large as d. */
static struct tensor *sum_product(struct graph *graph, struct tensor *d, struct tensor *other,
                                  const struct tensor *like)
{
    bool broadcast = !d || !like || !shape_equal(&d->shape, &like->shape) || d->batched != like->batched;
    bool large = d && other && shape_equal(&d->shape, &other->shape) && d->batched == other->batched;
    if (broadcast && large)
        return sum_to_like(graph, d, other, like);
    return sum_to_like(graph, binary(graph, &op_multiply, d, other), NULL, like);
}

static void multiply_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                          struct tensor **d_input)
{
    for (int i = 0; i < 2; i++) {
        if (wanted[i])
            d_input[i] = sum_product(graph, d_output[0], node->input[1 - i], node->input[i]);
    }
}

/* y = a / b: da = dy / b, db = -(dy / b) y. */
static void divide_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                        struct tensor **d_input)
{
    struct tensor *share = binary(graph, &op_divide, d_output[0], node->input[1]);
    if (wanted[0])
        d_input[0] = sum_to_like(graph, share, NULL, node->input[0]);
    if (wanted[1])
        d_input[1] = unary(graph, &op_negative, sum_product(graph, share, node->output[0], node->input[1]));
}

static void sloped_back(struct graph *graph, const struct node *node, const struct op *op, struct tensor *d,
                        const bool *wanted, struct tensor **d_input)
{
    for (int64_t i = 0; i < 2; i++) {
        struct operand_attributes attributes = {i};
        struct tensor *inputs[3] = {d, node->input[0], node->input[1]};
        if (wanted[i])
            d_input[i] = sum_to_like(graph, graph_add(graph, op, inputs, 3, &attributes, sizeof(attributes)), NULL,
                                     node->input[i]);
    }
}

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct operand_attributes *attributes = node->attributes;
    if (attributes->of < 0 || attributes->of > 1)
        return misfit(node, error, "there is no operand %lld", (long long)attributes->of);
    return infer_broadcast(graph, node, error);
}

static void each_gradient(const struct call *call, double (*slope)(double d, double a, double b, int64_t of))
{
    const struct operand_attributes *attributes = call->node->attributes;
    struct broadcast broadcast;
    int64_t count = output_elements(call);
    call_broadcast(&broadcast, call);
    for (int64_t i = 0; i < count; i++) {
        double d = get(call, 0, broadcast_at(&broadcast, 0, i)), a = get(call, 1, broadcast_at(&broadcast, 1, i));
        set(call, 0, i, slope(d, a, get(call, 2, broadcast_at(&broadcast, 2, i)), attributes->of));
    }
}

/* ---- the ops ------------------------------------------------------------- */

#define FORWARD(name, expression)                                                                                      \
    static double name##_formula(double a, double b)                                                                   \
    {                                                                                                                  \
        return expression;                                                                                             \
    }                                                                                                                  \
    static void name##_reference(const struct call *call)                                                              \
    {                                                                                                                  \
        each(call, name##_formula);                                                                                    \
    }

#define OP_OF(name_, infer_, in_place_, ...)                                                                           \
    const struct op op_##name_ = {OP_HEAD(name_, 2, 1, infer_, cut_broadcast), .in_place = in_place_, __VA_ARGS__};

/* What backward reads of add and subtract, of multiply, and of divide. */
#define KEEPS_add
#define KEEPS_subtract
#define KEEPS_multiply .keeps_inputs = 1 << 0 | 1 << 1,
#define KEEPS_divide   .keeps_inputs = 1 << 1, .keeps_outputs = 1 << 0,

#define COMPOSED(name, expression)                                                                                     \
    FORWARD(name, expression)                                                                                          \
    OP_OF(name, infer_broadcast, 1 << 0, KEEPS_##name.gradient = name##_back)

#define SLOPED(word, expression, slope_a, slope_b)                                                                     \
    FORWARD(word, expression)                                                                                          \
    static void word##_back(struct graph *graph, struct node *node, struct tensor *const *d_output,                    \
                            const bool *wanted, struct tensor **d_input)                                               \
    {                                                                                                                  \
        sloped_back(graph, node, &op_##word##_gradient, d_output[0], wanted, d_input);                                 \
    }                                                                                                                  \
    OP_OF(word, infer_broadcast, 1 << 0, .keeps_inputs = 1 << 0 | 1 << 1, .gradient = word##_back)                     \
    static double word##_slope(double d, double a, double b, int64_t of)                                               \
    {                                                                                                                  \
        return of == 0 ? (slope_a) : (slope_b);                                                                        \
    }                                                                                                                  \
    static void word##_gradient_reference(const struct call *call)                                                     \
    {                                                                                                                  \
        each_gradient(call, word##_slope);                                                                             \
    }                                                                                                                  \
    const struct op op_##word##_gradient = {                                                                           \
        OP_HEAD(word##_gradient, 3, 1, gradient_infer, cut_broadcast),                                                 \
        .attributes_bytes = sizeof(struct operand_attributes),                                                         \
        .no_gradient = NO_SECOND,                                                                                      \
        .in_place = 1 << 0,                                                                                            \
    };

#define TESTED SLOPED
#define STEPPED(name, expression)                                                                                      \
    FORWARD(name, expression)                                                                                          \
    OP_OF(name, infer_broadcast, 1 << 0, .no_gradient = "it goes in steps: its slope is 0")
#define TRUTH(name, expression)                                                                                        \
    FORWARD(name, expression)                                                                                          \
    OP_OF(name, infer_truth, 0, .no_gradient = "its output is a truth value")

#include "ops/elementwise/binary.def"

/* ---- where: a where the condition holds, else b --------------------------- */

/* The condition is of any type; a and b of one. */
static plim_status where_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct broadcast broadcast;
    const struct tensor *a = node->input[1], *b = node->input[2];
    if (a->type != b->type)
        return misfit(node, error, "types %s and %s differ", type_name(a->type), type_name(b->type));
    if (!broadcast_of(&broadcast, (const struct tensor *const *)node->input, 3))
        return misfit(node, error, "the shapes of its inputs do not broadcast to one");
    return output_of(graph, node, 0, a->type, broadcast.shape, broadcast.batched);
}

static void where_reference(const struct call *call)
{
    struct broadcast broadcast;
    int64_t count = output_elements(call);
    call_broadcast(&broadcast, call);
    for (int64_t i = 0; i < count; i++) {
        int side = get(call, 0, broadcast_at(&broadcast, 0, i)) != 0 ? 1 : 2;
        set(call, 0, i, get(call, side, broadcast_at(&broadcast, side, i)));
    }
}

static void where_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                       struct tensor **d_input)
{
    for (int64_t i = 0; i < 2; i++) {
        struct operand_attributes attributes = {i};
        struct tensor *inputs[2] = {d_output[0], node->input[0]};
        if (wanted[i + 1])
            d_input[i + 1] =
                sum_to_like(graph, graph_add(graph, &op_where_gradient, inputs, 2, &attributes, sizeof(attributes)),
                            NULL, node->input[i + 1]);
    }
}

const struct op op_where = {
    OP_HEAD(where, 3, 1, where_infer, cut_broadcast),
    .gradient = where_back,
    .keeps_inputs = 1 << 0,
    .in_place = 1 << 1,
};

/* dy where the condition says this operand, else 0; inputs dy, condition. */
static plim_status where_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct broadcast broadcast;
    TRY(need_real(node, 0, error));
    if (!broadcast_of(&broadcast, (const struct tensor *const *)node->input, 2))
        return misfit(node, error, "the shapes of its inputs do not broadcast to one");
    return output_of(graph, node, 0, node->input[0]->type, broadcast.shape, broadcast.batched);
}

static void where_gradient_reference(const struct call *call)
{
    const struct operand_attributes *attributes = call->node->attributes;
    struct broadcast broadcast;
    int64_t count = output_elements(call);
    call_broadcast(&broadcast, call);
    for (int64_t i = 0; i < count; i++) {
        bool holds = get(call, 1, broadcast_at(&broadcast, 1, i)) != 0;
        set(call, 0, i, holds == (attributes->of == 0) ? get(call, 0, broadcast_at(&broadcast, 0, i)) : 0);
    }
}

const struct op op_where_gradient = {
    OP_HEAD(where_gradient, 2, 1, where_gradient_infer, cut_broadcast),
    .attributes_bytes = sizeof(struct operand_attributes),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};
