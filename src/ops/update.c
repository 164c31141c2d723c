/* update.c - optimizers: sgd and adam write weights and states in place, and
   count_step counts. They have no outputs, and stand at the end of a step. */
#include <math.h>

#include "ops/helpers.h"

#define NO_GRADIENT "an update ends the step"

static int64_t update_elements(const struct call *call)
{
    return (call->end - call->begin) * shape_row(&call->node->input[0]->shape);
}

/* Input `at` holds one number of that type. */
static plim_status need_one(const struct node *node, int at, enum type type, plim_error *error)
{
    TRY(need_type(node, at, type, error));
    if (node->input[at]->batched || shape_count(&node->input[at]->shape) != 1)
        return misfit(node, error, "input %d must be one value", at);
    return PLIM_OK;
}

static plim_status need_weight(const struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    if (node->input[0]->kind != KIND_WEIGHT && node->input[0]->kind != KIND_STATE)
        return misfit(node, error, "only a weight can be updated");
    return need_alike(node, 0, 1, error);
}

static void put(const struct call *call, int input, int64_t i, double value)
{
    element_set(call->input[input], call->node->input[input]->type, i, value);
}

/* ---- sgd: inputs w, g, learning_rate, momentum ------------------------- */

static plim_status sgd_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct sgd_attributes *attributes = node->attributes;
    (void)graph;
    TRY(need_weight(node, error));
    TRY(need_one(node, 2, TYPE_F32, error));
    if (!node->input[3] && attributes->momentum != 0)
        return misfit(node, error, "a momentum of %g needs a state", attributes->momentum);
    return node->input[3] ? need_alike(node, 0, 3, error) : PLIM_OK;
}

static void sgd_cut(struct cut *cut, const struct node *node)
{
    cut_elementwise(cut, node);
    cut->input[2] = PART_WHOLE;
}

/* m = mu * m - lr * g; w += m, or with nesterov w += mu * m - lr * g. */
static void sgd_reference(const struct call *call)
{
    const struct sgd_attributes *attributes = call->node->attributes;
    double rate = get(call, 2, 0);
    int64_t count = update_elements(call);
    for (int64_t i = 0; i < count; i++) {
        double step = -rate * get(call, 1, i);
        if (call->input[3]) {
            double m = attributes->momentum * get(call, 3, i) + step;
            put(call, 3, i, m);
            step = attributes->nesterov ? attributes->momentum * m + step : m;
        }
        put(call, 0, i, get(call, 0, i) + step);
    }
}

static const struct shape example_shapes[] = {{2, {7, 5}}, {1, {13}}, {1, {1}}, {4, {3, 2, 1, 9}}};
#define EXAMPLES (int)(sizeof(example_shapes) / sizeof(example_shapes[0]))

static struct tensor *sgd_example(struct graph *graph, int variant, enum type type)
{
    static const struct sgd_attributes attributes[EXAMPLES] = {{0, false}, {0.9, false}, {0.5, true}, {0.9, true}};
    if (variant >= EXAMPLES)
        return NULL;
    struct shape shape = example_shapes[variant];
    struct tensor *inputs[4] = {graph_weight(graph, "w", type, shape, true), graph_state(graph, "g", type, shape)};
    inputs[2] = graph_state(graph, "positive:learning_rate", TYPE_F32, shape_1(1));
    inputs[3] = attributes[variant].momentum != 0 ? graph_state(graph, "m", type, shape) : NULL;
    return graph_add(graph, &op_sgd, inputs, 4, &attributes[variant], sizeof(attributes[variant]));
}

const struct op op_sgd = {
    .name = "sgd",
    .inputs = 4,
    .optional = 1 << 3,
    .attributes_bytes = sizeof(struct sgd_attributes),
    .infer = sgd_infer,
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 0 | 1 << 3,
    .in_place = NO_INPUT,
    .cut = sgd_cut,
    .reference = sgd_reference,
    .example = sgd_example,
};

/* ---- adam: inputs w, g, m, v, learning_rate, iteration ----------------- */

static plim_status adam_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_weight(node, error));
    TRY(need_alike(node, 0, 2, error));
    TRY(need_alike(node, 0, 3, error));
    TRY(need_one(node, 4, TYPE_F32, error));
    return need_one(node, 5, TYPE_I64, error);
}

static void adam_cut(struct cut *cut, const struct node *node)
{
    cut_elementwise(cut, node);
    cut->input[4] = cut->input[5] = PART_WHOLE;
}

static void adam_reference(const struct call *call)
{
    const struct adam_attributes *a = call->node->attributes;
    double t = get(call, 5, 0) + 1;
    double rate = get(call, 4, 0) * sqrt(1 - pow(a->beta_2, t)) / (1 - pow(a->beta_1, t));
    int64_t count = update_elements(call);
    for (int64_t i = 0; i < count; i++) {
        double g = get(call, 1, i), m = get(call, 2, i), v = get(call, 3, i);
        m += (g - m) * (1 - a->beta_1);
        v += (g * g - v) * (1 - a->beta_2);
        put(call, 2, i, m);
        put(call, 3, i, v);
        put(call, 0, i, get(call, 0, i) - m * rate / (sqrt(v) + a->epsilon));
    }
}

static struct tensor *adam_example(struct graph *graph, int variant, enum type type)
{
    struct adam_attributes attributes = {variant % 2 ? 0.8 : 0.9, 0.999, 1e-7};
    if (variant >= EXAMPLES)
        return NULL;
    struct shape shape = example_shapes[variant];
    struct tensor *inputs[] = {
        graph_weight(graph, "w", type, shape, true),
        graph_state(graph, "g", type, shape),
        graph_state(graph, "m", type, shape),
        graph_state(graph, "positive:v", type, shape),
        graph_state(graph, "positive:learning_rate", TYPE_F32, shape_1(1)),
        graph_state(graph, "iteration", TYPE_I64, shape_1(1)),
    };
    return graph_add(graph, &op_adam, inputs, 6, &attributes, sizeof(attributes));
}

const struct op op_adam = {
    .name = "adam",
    .inputs = 6,
    .attributes_bytes = sizeof(struct adam_attributes),
    .infer = adam_infer,
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 0 | 1 << 2 | 1 << 3,
    .in_place = NO_INPUT,
    .cut = adam_cut,
    .reference = adam_reference,
    .example = adam_example,
};

/* ---- count_step: iteration += 1 ---------------------------------------- */

static plim_status count_step_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    return need_one(node, 0, TYPE_I64, error);
}

/* As the whole number that it is: a double ends at 2^53. */
static void count_step_reference(const struct call *call)
{
    int64_t *iteration = call->input[0];
    if (call->begin < call->end)
        *iteration += 1;
}

static struct tensor *count_step_example(struct graph *graph, int variant, enum type type)
{
    (void)type;
    if (variant > 0)
        return NULL;
    return unary(graph, &op_count_step, graph_state(graph, "iteration", TYPE_I64, shape_1(1)));
}

const struct op op_count_step = {
    .name = "count_step",
    .inputs = 1,
    .infer = count_step_infer,
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 0,
    .in_place = NO_INPUT,
    .cut = cut_elementwise,
    .reference = count_step_reference,
    .example = count_step_example,
};
