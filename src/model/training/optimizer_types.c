/* optimizer_types.c - Keras's optimizers: words, defaults, states, ops. */
#include "model/model.h"
#include "ops/ops.h"

#define AT(field) offsetof(struct optimizer, field)
#define BETA(word, field, standard)                                                                                    \
    {                                                                                                                  \
        word, AT(rule.field), false, standard, 0.0, 0.999999999                                                        \
    }
#define NUMBER(word, field, standard)                                                                                  \
    {                                                                                                                  \
        word, AT(field), false, standard, 0.0, 1e30                                                                    \
    }
#define TRUTH(word, field, standard)                                                                                   \
    {                                                                                                                  \
        word, AT(field), true, standard, 0.0, 1.0                                                                      \
    }
#define EPSILON NUMBER("epsilon", rule.epsilon, 1e-7)

static bool has_momentum(const struct optimizer *optimizer)
{
    return optimizer->rule.momentum != 0.0;
}

static bool is_centered(const struct optimizer *optimizer)
{
    return optimizer->centered;
}

static bool is_amsgrad(const struct optimizer *optimizer)
{
    return optimizer->amsgrad;
}

static const struct optimizer_type sgd = {
    .name = "sgd",
    .learning_rate = 0.01,
    .word = {{"momentum", AT(rule.momentum), false, 0.0, 0.0, 1.0}, TRUTH("nesterov", rule.nesterov, 0)},
    .op = &op_sgd,
    .state = {{"momentum", has_momentum, false}},
};

static const struct optimizer_type rmsprop = {
    .name = "rmsprop",
    .learning_rate = 0.001,
    .word = {BETA("rho", rho, 0.9),
             {"momentum", AT(rule.momentum), false, 0.0, 0.0, 1.0},
             EPSILON,
             TRUTH("centered", centered, 0)},
    .op = &op_rmsprop,
    .state = {{"velocity", NULL, false}, {"momentum", has_momentum, false}, {"average_gradient", is_centered, false}},
};

static const struct optimizer_type adagrad = {
    .name = "adagrad",
    .learning_rate = 0.001,
    .word = {NUMBER("initial_accumulator_value", accumulator, 0.1), EPSILON},
    .op = &op_adagrad,
    .state = {{"accumulator", NULL, true}},
};

static const struct optimizer_type adadelta = {
    .name = "adadelta",
    .learning_rate = 0.001,
    .word = {BETA("rho", rho, 0.95), EPSILON},
    .op = &op_adadelta,
    .state = {{"accumulated_grad", NULL, false}, {"accumulated_delta_var", NULL, false}},
};

#define ADAM_WORDS BETA("beta_1", beta_1, 0.9), BETA("beta_2", beta_2, 0.999), EPSILON
#define ADAM_STATES                                                                                                    \
    {"momentum", NULL, false},                                                                                         \
    {                                                                                                                  \
        "velocity", NULL, false                                                                                        \
    }

/* A byte an element for rows that fill a good part of a block; short ones stay as they are. */
#define LEAST_SMALL_ROW 64

static bool adam_small(const struct update_step *step, struct graph *graph, struct tensor *w, struct tensor *g)
{
    const struct update_attributes *rule = &step->optimizer->rule;
    if (shape_row(&w->shape) < LEAST_SMALL_ROW)
        return false;
    const char *name[3] = {arena_format(&graph->arena, "%s/%s/momentum", step->prefix, w->name),
                           arena_format(&graph->arena, "%s/%s/velocity", step->prefix, w->name),
                           arena_format(&graph->arena, "%s/%s/scales", step->prefix, w->name)};
    if (!name[0] || !name[1] || !name[2]) {
        graph_refused(graph, 0);
        return true;
    }
    struct tensor *inputs[6] = {w,
                                g,
                                step->control,
                                graph_state(graph, name[0], TYPE_I8, w->shape),
                                graph_state(graph, name[1], TYPE_U8, w->shape),
                                graph_state(graph, name[2], TYPE_F32, quantized_scales(&w->shape))};
    graph_add(graph, &op_adam_8bit, inputs, 6, rule, sizeof *rule);
    return true;
}

static const struct optimizer_type adam = {
    .name = "adam",
    .learning_rate = 0.001,
    .word = {ADAM_WORDS, TRUTH("amsgrad", amsgrad, 0)},
    .op = &op_adam,
    .small = adam_small,
    .state = {ADAM_STATES, {"velocity_hat", is_amsgrad, false}},
};

static const struct optimizer_type adamw = {
    .name = "adamw",
    .learning_rate = 0.001,
    .weight_decay = 0.004,
    .word = {ADAM_WORDS, TRUTH("amsgrad", amsgrad, 0)},
    .op = &op_adam,
    .small = adam_small,
    .state = {ADAM_STATES, {"velocity_hat", is_amsgrad, false}},
};

static const struct optimizer_type adamax = {
    .name = "adamax",
    .learning_rate = 0.001,
    .word = {ADAM_WORDS},
    .op = &op_adamax,
    .state = {{"momentum", NULL, false}, {"norm", NULL, false}},
};

static const struct optimizer_type lion = {
    .name = "lion",
    .learning_rate = 0.001,
    .word = {BETA("beta_1", beta_1, 0.9), BETA("beta_2", beta_2, 0.99)},
    .op = &op_lion,
    .state = {{"momentum", NULL, false}},
};

static const struct optimizer_type ftrl = {
    .name = "ftrl",
    .learning_rate = 0.001,
    .word = {{"learning_rate_power", AT(rule.power), false, -0.5, -1e3, 0.0},
             NUMBER("initial_accumulator_value", accumulator, 0.1),
             NUMBER("l1_regularization_strength", rule.l1, 0),
             NUMBER("l2_regularization_strength", rule.l2, 0),
             NUMBER("l2_shrinkage_regularization_strength", rule.shrinkage, 0),
             NUMBER("beta", rule.beta, 0)},
    .op = &op_ftrl,
    .state = {{"accumulator", NULL, true}, {"linear", NULL, false}},
};

/* ---- nadam: a product of betas for all weights -------------------------- */

static void nadam_begin(struct update_step *step, struct graph *graph)
{
    const struct update_attributes *rule = &step->optimizer->rule;
    step->product = optimizer_number(step->prefix, graph, "u_product", TYPE_F32, 1.0);
    if (!step->product)
        return;
    struct tensor *inputs[2] = {step->product, step->control};
    graph_add(graph, &op_nadam_product, inputs, 2, rule, sizeof *rule);
}

static void nadam_update(const struct update_step *step, struct graph *graph, struct tensor *w, struct tensor *g)
{
    const struct update_attributes *rule = &step->optimizer->rule;
    struct tensor *inputs[6] = {w,
                                g,
                                step->control,
                                optimizer_add_state(step, graph, w, "momentum", w->shape, 0),
                                optimizer_add_state(step, graph, w, "velocity", w->shape, 0),
                                step->product};
    graph_add(graph, &op_nadam, inputs, 6, rule, sizeof *rule);
}

static const struct optimizer_type nadam = {
    .name = "nadam",
    .learning_rate = 0.001,
    .word = {ADAM_WORDS},
    .begin = nadam_begin,
    .update = nadam_update,
};

/* ---- lamb, adafactor: rules with norms ---------------------------------- */

static void decay(const struct update_step *step, struct graph *graph, struct tensor *w)
{
    const struct update_attributes *rule = &step->optimizer->rule;
    struct tensor *inputs[2] = {w, step->control};
    if (rule->weight_decay != 0.0)
        graph_add(graph, &op_decay_weight, inputs, 2, rule, sizeof *rule);
}

/* w -= factor * u, the factor from both norms. */
static void take_off(const struct update_step *step, struct graph *graph, const struct op *op, struct tensor *w,
                     struct tensor *u)
{
    const struct update_attributes *rule = &step->optimizer->rule;
    struct tensor *inputs[5] = {w, u, step->control, unary(graph, &op_square_sum, w), unary(graph, &op_square_sum, u)};
    graph_add(graph, op, inputs, 5, rule, sizeof *rule);
}

static void lamb_update(const struct update_step *step, struct graph *graph, struct tensor *w, struct tensor *g)
{
    const struct update_attributes *rule = &step->optimizer->rule;
    struct tensor *inputs[4] = {g, step->control, optimizer_add_state(step, graph, w, "momentum", w->shape, 0),
                                optimizer_add_state(step, graph, w, "velocity", w->shape, 0)};
    decay(step, graph, w);
    take_off(step, graph, &op_lamb, w, graph_add(graph, &op_lamb_direction, inputs, 4, rule, sizeof *rule));
}

static const struct optimizer_type lamb = {
    .name = "lamb",
    .learning_rate = 0.001,
    .word = {ADAM_WORDS},
    .update = lamb_update,
};

/* A running mean of squares over one axis: "r" (over columns) or "c" (over rows). */
static struct tensor *squares(const struct update_step *step, struct graph *graph, const struct op *op,
                              const char *name, struct tensor *w, struct tensor *g)
{
    const struct update_attributes *rule = &step->optimizer->rule;
    struct tensor *mean = graph_add(graph, op, &g, 1, rule, sizeof *rule);
    struct tensor *state = mean ? optimizer_add_state(step, graph, w, name, mean->shape, 0) : NULL;
    struct tensor *inputs[3] = {state, mean, step->control};
    graph_add(graph, &op_adafactor_average, inputs, 3, rule, sizeof *rule);
    return state;
}

/* The squares of a matrix are kept as a row and a column; Keras's third state, their product, is not kept. */
static void adafactor_update(const struct update_step *step, struct graph *graph, struct tensor *w, struct tensor *g)
{
    const struct update_attributes *rule = &step->optimizer->rule;
    struct tensor *u;
    decay(step, graph, w);
    if (w->shape.rank < 2) {
        struct tensor *inputs[3] = {g, step->control, optimizer_add_state(step, graph, w, "velocity", w->shape, 0)};
        u = graph_add(graph, &op_adafactor_direction, inputs, 3, rule, sizeof *rule);
    } else {
        struct tensor *inputs[3] = {g, squares(step, graph, &op_square_rows, "r", w, g),
                                    squares(step, graph, &op_square_columns, "c", w, g)};
        u = graph_add(graph, &op_adafactor_factored, inputs, 3, NULL, 0);
    }
    take_off(step, graph, &op_adafactor, w, u);
}

static const struct optimizer_type adafactor = {
    .name = "adafactor",
    .learning_rate = 0.001,
    .word = {{"beta_2_decay", AT(rule.decay), false, -0.8, -1e3, 0.0},
             NUMBER("epsilon_1", rule.epsilon, 1e-30),
             NUMBER("epsilon_2", rule.epsilon_2, 1e-3),
             NUMBER("clip_threshold", rule.threshold, 1.0),
             TRUTH("relative_step", relative_step, 1)},
    .update = adafactor_update,
};

const struct optimizer_type *const optimizer_types[] = {
    &adam, &sgd, &rmsprop, &adamw, &adadelta, &adagrad, &adamax, &adafactor, &nadam, &ftrl, &lion, &lamb,
};
const int optimizer_types_count = COUNT(optimizer_types);
