/* update_rules.c - optimizers that work element by element. Each is one
   formula over a weight, its gradient and up to three states. */
#include <math.h>

#include "ops/update/update_own.h"

struct element {
    double w, g;
    double state[3];
};

struct rule {
    int states;        /* at most */
    unsigned positive; /* of them, for examples */
    unsigned optional;
    void (*step)(struct element *e, const double *k, const struct call *call);
};

static bool has(const struct call *call, int state)
{
    return state + 3 < call->node->input_count && call->input[state + 3];
}

static plim_status rule_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_weight(node, error));
    TRY(need_alike(node, 0, 1, error));
    TRY(need_control(node, 2, error));
    for (int i = 3; i < node->input_count; i++)
        if (node->input[i])
            TRY(need_alike(node, 0, i, error));
    return PLIM_OK;
}

static void rule_reference(const struct call *call, const struct rule *rule, double product)
{
    const double *control = call->input[2];
    double k[UPDATE_NUMBERS];
    int64_t count = update_elements(call);
    if (control[CONTROL_APPLIES] == 0)
        return;
    update_numbers(k, call->node, control, product);
    for (int64_t i = 0; i < count; i++) {
        struct element e = {get(call, 0, i), get(call, 1, i), {0}};
        for (int s = 0; s < rule->states; s++)
            e.state[s] = has(call, s) ? get(call, s + 3, i) : 0;
        e.w -= e.w * k[UPDATE_NUMBERS - 1];
        rule->step(&e, k, call);
        put(call, 0, i, e.w);
        for (int s = 0; s < rule->states; s++)
            if (has(call, s))
                put(call, s + 3, i, e.state[s]);
    }
}

/* Every other variant leaves the optional states out. */
static struct tensor *rule_example(struct graph *graph, const struct op *op, const struct rule *rule, int variant,
                                   enum type type, const struct update_attributes *attributes)
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
    return graph_add(graph, op, inputs, 3 + rule->states, attributes, sizeof(*attributes));
}

#define RULE(word, ...)                                                                                                \
    static const struct rule word##_rule = {__VA_ARGS__};                                                              \
    static void word##_reference(const struct call *call)                                                              \
    {                                                                                                                  \
        rule_reference(call, &word##_rule, 0);                                                                         \
    }                                                                                                                  \
    static struct tensor *word##_example(struct graph *graph, int variant, enum type type)                             \
    {                                                                                                                  \
        struct update_attributes attributes = word##_attributes;                                                       \
        attributes.weight_decay = variant % 2 ? 0.01 : 0;                                                              \
        attributes.nesterov = variant % 3 == 0;                                                                        \
        return rule_example(graph, &op_##word, &word##_rule, variant, type, &attributes);                              \
    }

#define RULE_OP(word, all, written, left_out)                                                                          \
    const struct op op_##word = {                                                                                      \
        .name = #word,                                                                                                 \
        .inputs = 3 + (all),                                                                                           \
        .optional = (left_out) << 3,                                                                                   \
        .attributes_bytes = sizeof(struct update_attributes),                                                          \
        .infer = rule_infer,                                                                                           \
        .no_gradient = NO_GRADIENT,                                                                                    \
        .updates = 1 | (written) << 3,                                                                                 \
        .in_place = NO_INPUT,                                                                                          \
        .cut = cut_control_2,                                                                                          \
        .reference = word##_reference,                                                                                 \
        .example = word##_example,                                                                                     \
    }

/* ---- sgd ---------------------------------------------------------------- */

static void sgd_step(struct element *e, const double *k, const struct call *call)
{
    const struct update_attributes *a = call->node->attributes;
    double step = -k[0] * e->g;
    if (has(call, 0)) {
        e->state[0] = k[1] * e->state[0] + step;
        step = a->nesterov ? k[1] * e->state[0] + step : e->state[0];
    }
    e->w += step;
}
static const struct update_attributes sgd_attributes = {.momentum = 0.9};
RULE(sgd, 1, 0, 1, sgd_step)
RULE_OP(sgd, 1, 1, 1);

/* ---- rmsprop: velocity, momentum, average_gradient ---------------------- */

static void rmsprop_step(struct element *e, const double *k, const struct call *call)
{
    double average = 0;
    e->state[0] = k[1] * e->state[0] + k[2] * e->g * e->g;
    if (has(call, 2))
        average = e->state[2] = k[1] * e->state[2] + k[2] * e->g;
    double step = k[0] * e->g / sqrt(e->state[0] - average * average + k[3]);
    if (has(call, 1))
        step = e->state[1] = k[4] * e->state[1] + step;
    e->w -= step;
}
static const struct update_attributes rmsprop_attributes = {.rho = 0.1, .momentum = 0.5, .epsilon = 0.25};
RULE(rmsprop, 3, 1, 2 | 4, rmsprop_step)
RULE_OP(rmsprop, 3, 7, 2 | 4);

/* ---- adagrad, adadelta -------------------------------------------------- */

static void adagrad_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    e->state[0] += e->g * e->g;
    e->w -= k[0] * e->g / sqrt(e->state[0] + k[3]);
}
static const struct update_attributes adagrad_attributes = {.epsilon = 1e-7};
RULE(adagrad, 1, 1, 0, adagrad_step)
RULE_OP(adagrad, 1, 1, 0);

static void adadelta_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    e->state[0] = k[1] * e->state[0] + k[2] * e->g * e->g;
    double step = -sqrt(e->state[1] + k[3]) * e->g / sqrt(e->state[0] + k[3]);
    e->state[1] = k[1] * e->state[1] + k[2] * step * step;
    e->w += k[0] * step;
}
static const struct update_attributes adadelta_attributes = {.rho = 0.95, .epsilon = 1e-7};
RULE(adadelta, 2, 3, 0, adadelta_step)
RULE_OP(adadelta, 2, 3, 0);

/* ---- adam: momentum, velocity, velocity_hat ----------------------------- */

static void adam_step(struct element *e, const double *k, const struct call *call)
{
    e->state[0] += (e->g - e->state[0]) * k[0];
    e->state[1] += (e->g * e->g - e->state[1]) * k[1];
    double v = e->state[1];
    if (has(call, 2))
        v = e->state[2] = fmax(e->state[2], v);
    e->w -= e->state[0] * k[2] / (sqrt(v) + k[3]);
}
static const struct update_attributes adam_attributes = {.beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7};
RULE(adam, 3, 6, 4, adam_step)
RULE_OP(adam, 3, 7, 4);

static void adamax_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    e->state[0] += (e->g - e->state[0]) * k[0];
    e->state[1] = fmax(k[1] * e->state[1], fabs(e->g));
    e->w -= e->state[0] * k[2] / (e->state[1] + k[3]);
}
static const struct update_attributes adamax_attributes = {.beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7};
RULE(adamax, 2, 2, 0, adamax_step)
RULE_OP(adamax, 2, 3, 0);

/* ---- lion, ftrl ---------------------------------------------------------- */

static void lion_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    double to = e->state[0] * k[1] + e->g * k[2];
    e->w -= k[0] * (double)((to > 0) - (to < 0));
    e->state[0] = e->state[0] * k[3] + e->g * k[4];
}
static const struct update_attributes lion_attributes = {.beta_1 = 0.9, .beta_2 = 0.99};
RULE(lion, 1, 0, 0, lion_step)
RULE_OP(lion, 1, 1, 0);

static void ftrl_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    double before = pow(e->state[0], k[1]);
    e->state[0] += e->g * e->g;
    double after = pow(e->state[0], k[1]);
    e->state[1] += e->g + k[4] * e->w - (after - before) * k[0] * e->w;
    double clipped = fmin(fmax(e->state[1], -k[2]), k[2]);
    e->w = (clipped - e->state[1]) / (after * k[0] + k[3]);
}
static const struct update_attributes ftrl_attributes = {
    .power = -0.5, .l1 = 0.01, .l2 = 0.1, .shrinkage = 0.05, .beta = 0.2};
RULE(ftrl, 2, 1, 0, ftrl_step)
RULE_OP(ftrl, 2, 3, 0);

/* ---- decay_weight: the decay alone, for rules of several nodes ---------- */

static plim_status decay_weight_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_weight(node, error));
    return need_control(node, 1, error);
}

static void decay_weight_reference(const struct call *call)
{
    const double *control = call->input[1];
    double k[UPDATE_NUMBERS];
    int64_t count = update_elements(call);
    update_numbers(k, call->node, control, 0);
    for (int64_t i = 0; i < count && control[CONTROL_APPLIES] != 0; i++)
        put(call, 0, i, get(call, 0, i) - get(call, 0, i) * k[UPDATE_NUMBERS - 1]);
}

static struct tensor *decay_weight_example(struct graph *graph, int variant, enum type type)
{
    struct update_attributes attributes = {.weight_decay = 0.1};
    if (variant >= update_shapes_count)
        return NULL;
    struct tensor *inputs[2] = {graph_weight(graph, "w", type, update_shapes[variant], true), example_control(graph)};
    return graph_add(graph, &op_decay_weight, inputs, 2, &attributes, sizeof(attributes));
}

const struct op op_decay_weight = {
    .name = "decay_weight",
    .inputs = 2,
    .attributes_bytes = sizeof(struct update_attributes),
    .infer = decay_weight_infer,
    .no_gradient = NO_GRADIENT,
    .updates = 1,
    .in_place = NO_INPUT,
    .cut = cut_control_1,
    .reference = decay_weight_reference,
    .example = decay_weight_example,
};

/* ---- nadam: momentum, velocity, and the product of the betas so far ----- */

static plim_status nadam_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_weight(node, error));
    TRY(need_alike(node, 0, 1, error));
    TRY(need_control(node, 2, error));
    TRY(need_alike(node, 0, 3, error));
    TRY(need_alike(node, 0, 4, error));
    return need_one(node, 5, TYPE_F32, error);
}

static void nadam_cut(struct cut *cut, const struct node *node)
{
    cut_update(cut, node, 1 << 2 | 1 << 5);
}

static void nadam_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    e->state[0] += (e->g - e->state[0]) * k[0];
    e->state[1] += (e->g * e->g - e->state[1]) * k[1];
    e->w -= (k[2] * e->state[0] + k[3] * e->g) / (sqrt(e->state[1] * k[4]) + k[5]);
}

static void nadam_reference(const struct call *call)
{
    static const struct rule rule = {2, 2, 0, nadam_step};
    rule_reference(call, &rule, get(call, 5, 0));
}

static struct tensor *nadam_example(struct graph *graph, int variant, enum type type)
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

const struct op op_nadam = {
    .name = "nadam",
    .inputs = 6,
    .attributes_bytes = sizeof(struct update_attributes),
    .infer = nadam_infer,
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 0 | 1 << 3 | 1 << 4,
    .in_place = NO_INPUT,
    .cut = nadam_cut,
    .reference = nadam_reference,
    .example = nadam_example,
};

static plim_status nadam_product_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_one(node, 0, TYPE_F32, error));
    return need_control(node, 1, error);
}

static void nadam_product_reference(const struct call *call)
{
    const struct update_attributes *a = call->node->attributes;
    const double *control = call->input[1];
    if (call->begin < call->end && control[CONTROL_APPLIES] != 0)
        put(call, 0, 0, get(call, 0, 0) * a->beta_1 * (1 - 0.5 * pow(0.96, control[CONTROL_STEP])));
}

static struct tensor *nadam_product_example(struct graph *graph, int variant, enum type type)
{
    struct update_attributes attributes = {.beta_1 = 0.9};
    (void)type;
    if (variant > 0)
        return NULL;
    struct tensor *inputs[2] = {graph_state(graph, "product", TYPE_F32, shape_1(1)), example_control(graph)};
    return graph_add(graph, &op_nadam_product, inputs, 2, &attributes, sizeof(attributes));
}

const struct op op_nadam_product = {
    .name = "nadam_product",
    .inputs = 2,
    .attributes_bytes = sizeof(struct update_attributes),
    .infer = nadam_product_infer,
    .no_gradient = NO_GRADIENT,
    .updates = 1,
    .in_place = NO_INPUT,
    .cut = cut_control_1,
    .reference = nadam_product_reference,
    .example = nadam_product_example,
};
