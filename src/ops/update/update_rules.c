/* update_rules.c - optimizers that work element by element. Each is one
   formula over a weight, its gradient and up to three states. */
#include <math.h>

#include "ops/update/update_own.h"

struct element {
    double w, g;
    double state[3];
};

struct rule {
    int states; /* at most */
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

#define RULE(word, ...)                                                                                                \
    static const struct rule word##_rule = {__VA_ARGS__};                                                              \
    static void word##_reference(const struct call *call)                                                              \
    {                                                                                                                  \
        rule_reference(call, &word##_rule, 0);                                                                         \
    }

#define RULE_OP(word, all, written, left_out)                                                                          \
    const struct op op_##word = {                                                                                      \
        OP_HEAD(word, 3 + (all), 0, rule_infer, cut_control_2),                                                        \
        .optional = (left_out) << 3,                                                                                   \
        .attributes_bytes = sizeof(struct update_attributes),                                                          \
        .no_gradient = NO_GRADIENT,                                                                                    \
        .updates = 1 | (written) << 3,                                                                                 \
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
RULE(sgd, 1, sgd_step)
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
RULE(rmsprop, 3, rmsprop_step)
RULE_OP(rmsprop, 3, 7, 2 | 4);

/* ---- adagrad, adadelta -------------------------------------------------- */

static void adagrad_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    e->state[0] += e->g * e->g;
    e->w -= k[0] * e->g / sqrt(e->state[0] + k[3]);
}
RULE(adagrad, 1, adagrad_step)
RULE_OP(adagrad, 1, 1, 0);

static void adadelta_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    e->state[0] = k[1] * e->state[0] + k[2] * e->g * e->g;
    double step = -sqrt(e->state[1] + k[3]) * e->g / sqrt(e->state[0] + k[3]);
    e->state[1] = k[1] * e->state[1] + k[2] * step * step;
    e->w += k[0] * step;
}
RULE(adadelta, 2, adadelta_step)
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
RULE(adam, 3, adam_step)
RULE_OP(adam, 3, 7, 4);

static void adamax_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    e->state[0] += (e->g - e->state[0]) * k[0];
    e->state[1] = fmax(k[1] * e->state[1], fabs(e->g));
    e->w -= e->state[0] * k[2] / (e->state[1] + k[3]);
}
RULE(adamax, 2, adamax_step)
RULE_OP(adamax, 2, 3, 0);

/* ---- lion, ftrl ---------------------------------------------------------- */

static void lion_step(struct element *e, const double *k, const struct call *call)
{
    (void)call;
    double to = e->state[0] * k[1] + e->g * k[2];
    e->w -= k[0] * (double)((to > 0) - (to < 0));
    e->state[0] = e->state[0] * k[3] + e->g * k[4];
}
RULE(lion, 1, lion_step)
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
RULE(ftrl, 2, ftrl_step)
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

UPDATE_OP(decay_weight, 2, struct update_attributes, decay_weight_infer, 1 << 0, cut_control_1);

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
    static const struct rule rule = {2, nadam_step};
    rule_reference(call, &rule, get(call, 5, 0));
}

UPDATE_OP(nadam, 6, struct update_attributes, nadam_infer, 1 << 0 | 1 << 3 | 1 << 4, nadam_cut);

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

UPDATE_OP(nadam_product, 2, struct update_attributes, nadam_product_infer, 1 << 0, cut_control_1);
