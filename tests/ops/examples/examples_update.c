/* examples_update.c - examples of the ops of src/ops/update/. */
#include "base/numbers/count.h"
#include "examples.h"

/* ---- regularize ------------------------------------------------------------ */

static struct tensor *example_penalized(struct graph *graph, int variant, enum type type)
{
    if (variant == 0)
        return graph_weight(graph, "w", type, shape_2(7, 5), true);
    if (variant == 1)
        return graph_weight(graph, "w", type, shape_1(1), true);
    return variant == 2 ? example_input(graph, "x", type, ROW(3, 9)) : NULL;
}

/* A gradient is taken of a mean over the batch: only the batched one is checked so. */
struct tensor *penalty_example(struct graph *graph, int variant, enum type type)
{
    struct penalty_attributes a = {variant % 2 ? 0.1 : 0.3, 0.2};
    struct tensor *x = example_penalized(graph, variant, type);
    return x ? graph_add(graph, &op_penalty, &x, 1, &a, sizeof(a)) : NULL;
}

struct tensor *penalty_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct penalty_attributes a = {variant % 2 ? 0 : 0.3, 0.2};
    struct tensor *x = example_penalized(graph, variant, type);
    if (!x)
        return NULL;
    struct tensor *inputs[2] = {variant % 2 ? graph_state(graph, "d", type, shape_1(1)) : NULL, x};
    return graph_add(graph, &op_penalty_gradient, inputs, 2, &a, sizeof(a));
}

struct tensor *constrain_example(struct graph *graph, int variant, enum type type)
{
    static const struct constrain_attributes cases[] = {
        {CONSTRAINT_MAX_NORM, 0, 1, 0, 1, 7, 5},    {CONSTRAINT_NON_NEG, 0, 0, 0, 1, 7, 5},
        {CONSTRAINT_UNIT_NORM, 0, 0, 0, 7, 5, 1},   {CONSTRAINT_MIN_MAX_NORM, 0.5, 1, 0.75, 1, 7, 5},
        {CONSTRAINT_MAX_NORM, 0, 0.5, 0, 1, 35, 1},
    };
    if (variant >= COUNT(cases))
        return NULL;
    struct tensor *w = graph_weight(graph, "w", type, shape_2(7, 5), true);
    return graph_add(graph, &op_constrain, &w, 1, &cases[variant], sizeof(cases[variant]));
}

/* ---- update ---------------------------------------------------------------- */

static struct tensor *example_control(struct graph *graph)
{
    return graph_state(graph, "positive:control", TYPE_F64, shape_1(CONTROL_COUNT));
}

/* ---- update_norm ----------------------------------------------------------- */

static struct tensor *example_like(struct graph *graph, const char *name, int variant, enum type type)
{
    return variant < update_shapes_count ? graph_state(graph, name, type, update_shapes[variant]) : NULL;
}

static struct tensor *example_squares(struct graph *graph, const char *name)
{
    return graph_state(graph, name, TYPE_F64, shape_1(1));
}

struct tensor *square_sum_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = example_like(graph, "x", variant, type);
    return x ? unary(graph, &op_square_sum, x) : NULL;
}

struct tensor *clip_value_example(struct graph *graph, int variant, enum type type)
{
    struct clip_attributes attributes = {.limit = 0.3};
    struct tensor *g = example_like(graph, "g", variant, type);
    return g ? graph_add(graph, &op_clip_value, &g, 1, &attributes, sizeof(attributes)) : NULL;
}

struct tensor *clip_norm_example(struct graph *graph, int variant, enum type type)
{
    struct clip_attributes attributes = {.limit = 0.5, .global = variant % 2};
    struct tensor *g = example_like(graph, "g", variant, type);
    if (!g)
        return NULL;
    struct tensor *inputs[2] = {g, example_squares(graph, "positive:squares")};
    return graph_add(graph, &op_clip_norm, inputs, 2, &attributes, sizeof(attributes));
}

struct tensor *lamb_direction_example(struct graph *graph, int variant, enum type type)
{
    struct update_attributes attributes = {.beta_1 = 0.9, .beta_2 = 0.99, .epsilon = 1e-7};
    struct tensor *g = example_like(graph, "g", variant, type);
    if (!g)
        return NULL;
    struct tensor *inputs[4] = {g, example_control(graph), graph_state(graph, "m", type, g->shape),
                                graph_state(graph, "positive:v", type, g->shape)};
    return graph_add(graph, &op_lamb_direction, inputs, 4, &attributes, sizeof(attributes));
}

static struct tensor *squares_example(struct graph *graph, const struct op *op, int variant, enum type type)
{
    struct update_attributes attributes = {.epsilon_2 = 1e-3, .threshold = 0.5};
    if (variant >= update_shapes_count)
        return NULL;
    struct shape shape = update_shapes[variant];
    struct tensor *inputs[5] = {graph_weight(graph, "w", type, shape, true), graph_state(graph, "u", type, shape),
                                example_control(graph), example_squares(graph, "positive:w"),
                                example_squares(graph, "positive:u")};
    return graph_add(graph, op, inputs, 5, &attributes, sizeof(attributes));
}

struct tensor *lamb_example(struct graph *graph, int variant, enum type type)
{
    return squares_example(graph, &op_lamb, variant, type);
}

struct tensor *adafactor_example(struct graph *graph, int variant, enum type type)
{
    return squares_example(graph, &op_adafactor, variant, type);
}

static const struct shape factored_shapes[] = {{2, {7, 5}}, {2, {1, 1}}, {4, {3, 2, 4, 9}}, {3, {2, 3, 1}}};

static struct tensor *means_example(struct graph *graph, const struct op *op, int variant, enum type type)
{
    struct update_attributes attributes = {.epsilon = 1e-3};
    if (variant >= COUNT(factored_shapes))
        return NULL;
    struct tensor *g = graph_state(graph, "g", type, factored_shapes[variant]);
    return graph_add(graph, op, &g, 1, &attributes, sizeof(attributes));
}

struct tensor *square_rows_example(struct graph *graph, int variant, enum type type)
{
    return means_example(graph, &op_square_rows, variant, type);
}

struct tensor *square_columns_example(struct graph *graph, int variant, enum type type)
{
    return means_example(graph, &op_square_columns, variant, type);
}

struct tensor *adafactor_average_example(struct graph *graph, int variant, enum type type)
{
    struct update_attributes attributes = {.decay = 0.8};
    if (variant >= update_shapes_count)
        return NULL;
    struct shape shape = update_shapes[variant];
    struct tensor *inputs[3] = {graph_state(graph, "state", type, shape), graph_state(graph, "mean", type, shape),
                                example_control(graph)};
    return graph_add(graph, &op_adafactor_average, inputs, 3, &attributes, sizeof(attributes));
}

struct tensor *adafactor_factored_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(factored_shapes))
        return NULL;
    struct shape shape = factored_shapes[variant], rows = shape, columns = shape;
    rows.rank--;
    columns.rank--;
    columns.dim[columns.rank - 1] = shape.dim[shape.rank - 1];
    return trinary(graph, &op_adafactor_factored, graph_state(graph, "g", type, shape),
                   graph_state(graph, "positive:r", type, rows), graph_state(graph, "positive:c", type, columns));
}

struct tensor *adafactor_direction_example(struct graph *graph, int variant, enum type type)
{
    struct update_attributes attributes = {.decay = 0.8, .epsilon = 1e-3};
    struct tensor *g = example_like(graph, "g", variant, type);
    if (!g)
        return NULL;
    struct tensor *inputs[3] = {g, graph_state(graph, "positive:control", TYPE_F64, shape_1(CONTROL_COUNT)),
                                graph_state(graph, "positive:v", type, g->shape)};
    return graph_add(graph, &op_adafactor_direction, inputs, 3, &attributes, sizeof(attributes));
}

/* ---- update_quantized ------------------------------------------------------ */

struct tensor *adam_8bit_example(struct graph *graph, int variant, enum type type)
{
    static const struct shape shapes[] = {{2, {3, 300}}, {2, {5, 7}}, {4, {2, 3, 4, 30}}};
    struct update_attributes a = {.beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7, .weight_decay = variant ? 0.01 : 0};
    if (variant > 2)
        return NULL;
    struct shape shape = shapes[variant];
    struct tensor *inputs[6] = {
        graph_weight(graph, "w", type, shape, true),
        graph_state(graph, "g", type, shape),
        example_control(graph),
        graph_state(graph, "m", TYPE_I8, shape),
        graph_state(graph, "v", TYPE_U8, shape),
        graph_state(graph, "positive:scales", TYPE_F32, quantized_scales(&shape)),
    };
    return graph_add(graph, &op_adam_8bit, inputs, 6, &a, sizeof(a));
}

/* ---- update_rules ---------------------------------------------------------- */

struct rule_case {
    const struct op *op;
    int states;        /* at most */
    unsigned positive; /* of them */
    unsigned optional;
};

/* Every other variant leaves the optional states out. */
static struct tensor *rule_example(struct graph *graph, const struct rule_case *rule, int variant, enum type type,
                                   const struct update_attributes *attributes)
{
    static const char *const names[2][3] = {{"a", "b", "c"}, {"positive:a", "positive:b", "positive:c"}};
    if (variant >= update_shapes_count)
        return NULL;
    struct shape shape = update_shapes[variant];
    struct tensor *inputs[6] = {graph_weight(graph, "w", type, shape, true), graph_state(graph, "g", type, shape),
                                example_control(graph)};
    for (int s = 0; s < rule->states; s++)
        if (!(rule->optional >> s & 1) || (variant + s) % 2)
            inputs[3 + s] = graph_state(graph, names[rule->positive >> s & 1][s], type, shape);
    return graph_add(graph, rule->op, inputs, 3 + rule->states, attributes, sizeof(*attributes));
}

#define RULE(name, states, positive, optional, ...)                                                                    \
    struct tensor *name##_example(struct graph *graph, int variant, enum type type)                                    \
    {                                                                                                                  \
        static const struct rule_case rule = {&op_##name, states, positive, optional};                                 \
        struct update_attributes attributes = {__VA_ARGS__};                                                           \
        attributes.weight_decay = variant % 2 ? 0.01 : 0;                                                              \
        attributes.nesterov = variant % 3 == 0;                                                                        \
        return rule_example(graph, &rule, variant, type, &attributes);                                                 \
    }
RULE(sgd, 1, 0, 1, .momentum = 0.9)
RULE(rmsprop, 3, 1, 2 | 4, .rho = 0.1, .momentum = 0.5, .epsilon = 0.25)
RULE(adagrad, 1, 1, 0, .epsilon = 1e-7)
RULE(adadelta, 2, 3, 0, .rho = 0.95, .epsilon = 1e-7)
RULE(adam, 3, 6, 4, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7)
RULE(adamax, 2, 2, 0, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7)
RULE(lion, 1, 0, 0, .beta_1 = 0.9, .beta_2 = 0.99)
RULE(ftrl, 2, 1, 0, .power = -0.5, .l1 = 0.01, .l2 = 0.1, .shrinkage = 0.05, .beta = 0.2)

struct tensor *decay_weight_example(struct graph *graph, int variant, enum type type)
{
    struct update_attributes attributes = {.weight_decay = 0.1};
    if (variant >= update_shapes_count)
        return NULL;
    struct tensor *inputs[2] = {graph_weight(graph, "w", type, update_shapes[variant], true), example_control(graph)};
    return graph_add(graph, &op_decay_weight, inputs, 2, &attributes, sizeof(attributes));
}

struct tensor *nadam_example(struct graph *graph, int variant, enum type type)
{
    struct update_attributes attributes = {
        .beta_1 = 0.9, .beta_2 = 0.99, .epsilon = 1e-7, .weight_decay = variant % 2 ? 0.01 : 0};
    if (variant >= update_shapes_count)
        return NULL;
    struct shape shape = update_shapes[variant];
    struct tensor *inputs[] = {
        graph_weight(graph, "w", type, shape, true),
        graph_state(graph, "g", type, shape),
        example_control(graph),
        graph_state(graph, "m", type, shape),
        graph_state(graph, "positive:v", type, shape),
        graph_state(graph, "positive:product", TYPE_F32, shape_1(1)),
    };
    return graph_add(graph, &op_nadam, inputs, 6, &attributes, sizeof(attributes));
}

struct tensor *nadam_product_example(struct graph *graph, int variant, enum type type)
{
    struct update_attributes attributes = {.beta_1 = 0.9};
    (void)type;
    if (variant > 0)
        return NULL;
    struct tensor *inputs[2] = {graph_state(graph, "product", TYPE_F32, shape_1(1)), example_control(graph)};
    return graph_add(graph, &op_nadam_product, inputs, 2, &attributes, sizeof(attributes));
}

/* ---- update_step ----------------------------------------------------------- */

struct tensor *step_control_example(struct graph *graph, int variant, enum type type)
{
    struct step_control_attributes attributes = {.accumulation = variant};
    (void)type;
    if (variant > 2)
        return NULL;
    if (variant == 1)
        attributes.schedule =
            (struct schedule){SCHEDULE_EXPONENTIAL, .decay_steps = 3, .initial = 0.5, .decay_rate = 0.9};
    struct tensor *inputs[3] = {graph_state(graph, "positive:rate", TYPE_F32, shape_1(1)),
                                graph_state(graph, "iteration", TYPE_I64, shape_1(1)),
                                variant ? graph_state(graph, "label:1", TYPE_F32, shape_1(1)) : NULL};
    return graph_add(graph, &op_step_control, inputs, 3, &attributes, sizeof(attributes));
}

struct tensor *accumulate_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct accumulate_attributes attributes = {3};
    if (variant >= update_shapes_count)
        return NULL;
    struct shape shape = update_shapes[variant];
    struct tensor *inputs[3] = {graph_state(graph, "g", type, shape),
                                variant % 2 ? example_control(graph)
                                            : graph_state(graph, "label:1", TYPE_F64, shape_1(CONTROL_COUNT)),
                                graph_state(graph, "sum", type, shape)};
    return graph_add(graph, &op_accumulate_gradient, inputs, 3, &attributes, sizeof(attributes));
}

struct tensor *moving_average_example(struct graph *graph, int variant, enum type type)
{
    struct average_attributes attributes = {0.9, variant % 2};
    if (variant >= update_shapes_count)
        return NULL;
    struct shape shape = update_shapes[variant];
    struct tensor *inputs[3] = {graph_weight(graph, "w", type, shape, true), graph_state(graph, "average", type, shape),
                                graph_state(graph, "iteration:control", TYPE_F64, shape_1(CONTROL_COUNT))};
    return graph_add(graph, &op_moving_average, inputs, 3, &attributes, sizeof(attributes));
}

struct tensor *gradient_seed_example(struct graph *graph, int variant, enum type type)
{
    struct seed_attributes attributes = {type};
    if (variant > 1)
        return NULL;
    struct tensor *scale = variant ? graph_state(graph, "positive:scale", TYPE_F32, shape_1(1)) : NULL;
    return graph_add(graph, &op_gradient_seed, &scale, 1, &attributes, sizeof(attributes));
}

struct tensor *unscale_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= update_shapes_count)
        return NULL;
    return binary(graph, &op_unscale_gradient, graph_state(graph, "g", type, update_shapes[variant]),
                  graph_state(graph, "positive:scale", TYPE_F32, shape_1(1)));
}

struct tensor *count_nonfinite_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= update_shapes_count)
        return NULL;
    return unary(graph, &op_count_nonfinite, graph_state(graph, "g", type, update_shapes[variant]));
}

struct tensor *loss_scale_example(struct graph *graph, int variant, enum type type)
{
    struct loss_scale_attributes attributes = {variant ? 1 : 2000};
    (void)type;
    if (variant > 2)
        return NULL;
    struct tensor *inputs[4] = {
        graph_state(graph, "positive:scale", TYPE_F32, shape_1(1)), graph_state(graph, "label:1", TYPE_I64, shape_1(1)),
        graph_state(graph, "skipped", TYPE_I64, shape_1(1)),
        variant < 2 ? example_control(graph) : graph_state(graph, "label:1 control", TYPE_F64, shape_1(CONTROL_COUNT))};
    return graph_add(graph, &op_loss_scale, inputs, 4, &attributes, sizeof(attributes));
}

struct tensor *count_step_example(struct graph *graph, int variant, enum type type)
{
    (void)type;
    if (variant > 1)
        return NULL;
    struct tensor *iteration = graph_state(graph, "iteration", TYPE_I64, shape_1(1));
    return binary(graph, &op_count_step, iteration, variant ? example_control(graph) : NULL);
}
