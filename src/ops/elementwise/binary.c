/* binary.c - the ops of binary.def, where, and their gradients: operands that
   spread (spread.h).

   Each element is read before it is written, and an operand that may be
   overwritten is read at the place that is written: in place is fine. */
#include "ops/elementwise/formulas_double.h"
#include "ops/spread.h"

typedef double formula2(double a, double b);

static int64_t elements(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    return call_rows(call, y) * shape_row(&y->shape);
}

static void each(const struct call *call, formula2 *y)
{
    struct spread spread;
    int64_t count = elements(call);
    call_spread(&spread, call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, y(get(call, 0, spread_at(&spread, 0, i)), get(call, 1, spread_at(&spread, 1, i))));
}

/* ---- examples: same, [c], scalar, a channel's scale by sample, [..., 1], both spread, no batch --------------- */

struct example_pair {
    int rank[2];
    int64_t row[2][4];
    bool weight[2]; /* without a batch: the row is all of it */
};

static const struct example_pair pairs[] = {
    {{1, 1}, {{7}, {7}}, {false, false}},
    {{3, 3}, {{3, 2, 37}, {3, 2, 37}}, {false, false}},
    {{0, 0}, {{0}, {0}}, {false, false}},
    {{3, 1}, {{2, 3, 37}, {37}}, {false, true}},
    {{1, 2}, {{5}, {1, 5}}, {true, false}},
    {{2, 1}, {{3, 19}, {1}}, {false, true}},
    {{3, 3}, {{2, 2, 70}, {1, 1, 70}}, {false, false}},
    {{3, 1}, {{2, 3, 5}, {5}}, {false, false}},
    {{2, 2}, {{3, 1}, {3, 70}}, {false, false}},
    {{2, 2}, {{3, 1}, {1, 4}}, {false, false}},
    {{2, 3}, {{3, 4}, {1, 3, 1}}, {false, true}},
    {{2, 1}, {{3, 4}, {4}}, {true, true}},
    {{2, 2}, {{3, 4}, {3, 1}}, {true, true}},
};

static struct tensor *example_side(struct graph *graph, const struct example_pair *pair, int side, const char *name,
                                   enum type type)
{
    if (pair->weight[side])
        return graph_weight(graph, name, type, shape_of(pair->rank[side], pair->row[side]), true);
    return example_input(graph, name, type, pair->rank[side], pair->row[side]);
}

#define PAIR_COUNT (int)(sizeof(pairs) / sizeof(*pairs))

static struct tensor *example_of(struct graph *graph, int variant, enum type type, const struct op *op,
                                 const char *first, const char *second)
{
    if (variant >= PAIR_COUNT)
        return NULL;
    struct tensor *a = example_side(graph, &pairs[variant], 0, first, type);
    struct tensor *b = example_side(graph, &pairs[variant], 1, second, type);
    return binary(graph, op, a, b);
}

/* dy has the shape that a and b spread to. */
static struct tensor *example_gradient(struct graph *graph, int variant, enum type type, const struct op *op,
                                       const char *first, const char *second)
{
    struct operand_attributes attributes = {variant % 2};
    struct spread spread;
    if (variant / 2 >= PAIR_COUNT)
        return NULL;
    struct tensor *a = example_side(graph, &pairs[variant / 2], 0, first, type);
    struct tensor *b = example_side(graph, &pairs[variant / 2], 1, second, type);
    if (!a || !b || !spread_of(&spread, (const struct tensor *[]){a, b}, 2))
        return NULL;
    struct tensor *d = spread.batched ? graph_input(graph, "dy", 2, type, spread.shape)
                                      : graph_weight(graph, "dy", type, spread.shape, true);
    return graph_add(graph, op, (struct tensor *[]){d, a, b}, 3, &attributes, sizeof(attributes));
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
    bool spread = !d || !like || !shape_equal(&d->shape, &like->shape) || d->batched != like->batched;
    bool large = d && other && shape_equal(&d->shape, &other->shape) && d->batched == other->batched;
    if (spread && large)
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
    return infer_spread(graph, node, error);
}

static void each_gradient(const struct call *call, double (*slope)(double d, double a, double b, int64_t of))
{
    const struct operand_attributes *attributes = call->node->attributes;
    struct spread spread;
    int64_t count = elements(call);
    call_spread(&spread, call);
    for (int64_t i = 0; i < count; i++) {
        double d = get(call, 0, spread_at(&spread, 0, i)), a = get(call, 1, spread_at(&spread, 1, i));
        set(call, 0, i, slope(d, a, get(call, 2, spread_at(&spread, 2, i)), attributes->of));
    }
}

/* ---- the ops ------------------------------------------------------------- */

#define FORWARD(name, first, second, expression)                                                                       \
    static double name##_formula(double a, double b)                                                                   \
    {                                                                                                                  \
        return expression;                                                                                             \
    }                                                                                                                  \
    static void name##_reference(const struct call *call)                                                              \
    {                                                                                                                  \
        each(call, name##_formula);                                                                                    \
    }                                                                                                                  \
    static struct tensor *name##_example(struct graph *graph, int variant, enum type type)                             \
    {                                                                                                                  \
        return example_of(graph, variant, type, &op_##name, first, second);                                            \
    }

#define OP_OF(name_, infer_, in_place_, ...)                                                                           \
    const struct op op_##name_ = {.name = #name_,                                                                      \
                                  .inputs = 2,                                                                         \
                                  .outputs = 1,                                                                        \
                                  .infer = infer_,                                                                     \
                                  .in_place = in_place_,                                                               \
                                  .cut = cut_spread,                                                                   \
                                  .reference = name_##_reference,                                                      \
                                  .example = name_##_example,                                                          \
                                  __VA_ARGS__};

/* What backward reads of add and subtract, of multiply, and of divide. */
#define KEEPS_add
#define KEEPS_subtract
#define KEEPS_multiply .keeps_inputs = 1 << 0 | 1 << 1,
#define KEEPS_divide   .keeps_inputs = 1 << 1, .keeps_outputs = 1 << 0,

#define COMPOSED(name, expression)                                                                                     \
    FORWARD(name, "a", "positive:b", expression)                                                                       \
    OP_OF(name, infer_spread, 0, KEEPS_##name.gradient = name##_back)

#define SLOPED_ON(word, first, second, expression, slope_a, slope_b)                                                   \
    FORWARD(word, first, second, expression)                                                                           \
    static void word##_back(struct graph *graph, struct node *node, struct tensor *const *d_output,                    \
                            const bool *wanted, struct tensor **d_input)                                               \
    {                                                                                                                  \
        sloped_back(graph, node, &op_##word##_gradient, d_output[0], wanted, d_input);                                 \
    }                                                                                                                  \
    OP_OF(word, infer_spread, 0, .keeps_inputs = 1 << 0 | 1 << 1, .gradient = word##_back)                             \
    static double word##_slope(double d, double a, double b, int64_t of)                                               \
    {                                                                                                                  \
        return of == 0 ? (slope_a) : (slope_b);                                                                        \
    }                                                                                                                  \
    static void word##_gradient_reference(const struct call *call)                                                     \
    {                                                                                                                  \
        each_gradient(call, word##_slope);                                                                             \
    }                                                                                                                  \
    static struct tensor *word##_gradient_example(struct graph *graph, int variant, enum type type)                    \
    {                                                                                                                  \
        return example_gradient(graph, variant, type, &op_##word##_gradient, first, second);                           \
    }                                                                                                                  \
    const struct op op_##word##_gradient = {                                                                           \
        .name = #word "_gradient",                                                                                     \
        .inputs = 3,                                                                                                   \
        .outputs = 1,                                                                                                  \
        .attributes_bytes = sizeof(struct operand_attributes),                                                         \
        .infer = gradient_infer,                                                                                       \
        .no_gradient = NO_SECOND,                                                                                      \
        .in_place = 0,                                                                                                 \
        .cut = cut_spread,                                                                                             \
        .reference = word##_gradient_reference,                                                                        \
        .example = word##_gradient_example,                                                                            \
    };

#define SLOPED(name, expression, slope_a, slope_b) SLOPED_ON(name, "a", "positive:b", expression, slope_a, slope_b)
#define TESTED(name, expression, slope_a, slope_b) SLOPED_ON(name, "positive:a", "wide:b", expression, slope_a, slope_b)
#define STEPPED(name, expression)                                                                                      \
    FORWARD(name, "a", "positive:b", expression)                                                                       \
    OP_OF(name, infer_spread, 0, .no_gradient = "it goes in steps: its slope is 0")
#define TRUTH(name, expression)                                                                                        \
    FORWARD(name, "label:3", "label:2", expression)                                                                    \
    OP_OF(name, infer_truth, NO_INPUT, .no_gradient = "its output is a truth value")

#include "ops/elementwise/binary.def"

/* ---- where: a where the condition holds, else b --------------------------- */

/* The condition is of any type; a and b of one. */
static plim_status where_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct spread spread;
    const struct tensor *a = node->input[1], *b = node->input[2];
    if (a->type != b->type)
        return misfit(node, error, "types %s and %s differ", type_name(a->type), type_name(b->type));
    if (!spread_of(&spread, (const struct tensor *const *)node->input, 3))
        return misfit(node, error, "the shapes of its inputs do not spread to one");
    output_of(graph, node, 0, a->type, spread.shape, spread.batched);
    return PLIM_OK;
}

static void where_reference(const struct call *call)
{
    struct spread spread;
    int64_t count = elements(call);
    call_spread(&spread, call);
    for (int64_t i = 0; i < count; i++) {
        int side = get(call, 0, spread_at(&spread, 0, i)) != 0 ? 1 : 2;
        set(call, 0, i, get(call, side, spread_at(&spread, side, i)));
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

static struct tensor *example_condition(struct graph *graph, int variant, bool batched)
{
    static const enum type types[] = {TYPE_BOOL, TYPE_U8, TYPE_BOOL, TYPE_BOOL, TYPE_I32, TYPE_BOOL};
    enum type type = types[variant % 6];
    if (!batched || variant % 3 == 2)
        return graph_weight(graph, "label:2", type, shape_1(1), false);
    return example_input(graph, "label:2", type, variant % 3, (int64_t[]){1});
}

static struct tensor *where_example(struct graph *graph, int variant, enum type type)
{
    if (variant == 0) {
        struct tensor *condition = example_input(graph, "label:2", TYPE_BOOL, ROW(3, 7));
        struct tensor *a = example_input(graph, "a", type, ROW(3, 7)), *b = example_input(graph, "b", type, ROW(3, 7));
        return trinary(graph, &op_where, condition, a, b);
    }
    if (variant >= PAIR_COUNT)
        return NULL;
    bool batched = !pairs[variant].weight[0] || !pairs[variant].weight[1];
    struct tensor *condition = example_condition(graph, variant, batched);
    struct tensor *a = example_side(graph, &pairs[variant], 0, "a", type);
    struct tensor *b = example_side(graph, &pairs[variant], 1, "b", type);
    return trinary(graph, &op_where, condition, a, b);
}

const struct op op_where = {
    .name = "where",
    .inputs = 3,
    .outputs = 1,
    .infer = where_infer,
    .gradient = where_back,
    .keeps_inputs = 1 << 0,
    .in_place = 1,
    .cut = cut_spread,
    .reference = where_reference,
    .example = where_example,
};

/* dy where the condition says this operand, else 0; inputs dy, condition. */
static plim_status where_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct spread spread;
    TRY(need_real(node, 0, error));
    if (!spread_of(&spread, (const struct tensor *const *)node->input, 2))
        return misfit(node, error, "the shapes of its inputs do not spread to one");
    output_of(graph, node, 0, node->input[0]->type, spread.shape, spread.batched);
    return PLIM_OK;
}

static void where_gradient_reference(const struct call *call)
{
    const struct operand_attributes *attributes = call->node->attributes;
    struct spread spread;
    int64_t count = elements(call);
    call_spread(&spread, call);
    for (int64_t i = 0; i < count; i++) {
        bool holds = get(call, 1, spread_at(&spread, 1, i)) != 0;
        set(call, 0, i, holds == (attributes->of == 0) ? get(call, 0, spread_at(&spread, 0, i)) : 0);
    }
}

static struct tensor *where_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct operand_attributes attributes = {variant % 2};
    if (variant > 3)
        return NULL;
    struct tensor *d = example_input(graph, "dy", type, ROW(3, 7));
    struct tensor *condition =
        variant < 2 ? example_input(graph, "label:2", TYPE_BOOL, ROW(3, 7)) : example_condition(graph, variant, true);
    return graph_add(graph, &op_where_gradient, (struct tensor *[]){d, condition}, 2, &attributes, sizeof(attributes));
}

const struct op op_where_gradient = {
    .name = "where_gradient",
    .inputs = 2,
    .outputs = 1,
    .attributes_bytes = sizeof(struct operand_attributes),
    .infer = where_gradient_infer,
    .no_gradient = NO_SECOND,
    .in_place = 0,
    .cut = cut_spread,
    .reference = where_gradient_reference,
    .example = where_gradient_example,
};
