/* update.c - what all updates of weights share, and the numbers that a step
   computes once for all elements. */
#include <math.h>

#include "base/numbers/count.h"
#include "ops/update/update_own.h"

plim_status need_one(const struct node *node, int at, enum type type, plim_error *error)
{
    TRY(need_type(node, at, type, error));
    if (node->input[at]->batched || shape_count(&node->input[at]->shape) != 1)
        return misfit(node, error, "input %d must be one value", at);
    return PLIM_OK;
}

plim_status need_control(const struct node *node, int at, plim_error *error)
{
    TRY(need_type(node, at, TYPE_F64, error));
    if (node->input[at]->batched || shape_count(&node->input[at]->shape) != CONTROL_COUNT)
        return misfit(node, error, "input %d must be the control of a step", at);
    return PLIM_OK;
}

plim_status need_weight(const struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    if (node->input[0]->kind != KIND_WEIGHT && node->input[0]->kind != KIND_STATE)
        return misfit(node, error, "only a weight can be updated");
    return PLIM_OK;
}

void cut_update(struct cut *cut, const struct node *node, unsigned whole)
{
    const struct tensor *w = node->input[0];
    cut_rows(cut, node, w, (double)shape_count(&w->shape));
    for (int i = 1; i < node->input_count; i++)
        if (whole >> i & 1)
            cut->input[i] = PART_WHOLE;
}

void cut_control_1(struct cut *cut, const struct node *node)
{
    cut_update(cut, node, 1 << 1);
}

void cut_control_2(struct cut *cut, const struct node *node)
{
    cut_update(cut, node, 1 << 2);
}

void cut_squares(struct cut *cut, const struct node *node)
{
    cut_update(cut, node, 1 << 2 | 1 << 3 | 1 << 4);
}

void cut_to_sum(struct cut *cut, const struct node *node)
{
    cut_input_rows(cut, node);
    cut->output[0] = PART_SUM;
}

plim_status infer_average(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_weight(node, error));
    TRY(need_alike(node, 0, 1, error));
    return need_control(node, 2, error);
}

plim_status infer_direction(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    TRY(need_control(node, 1, error));
    for (int i = 2; i < node->input_count; i++)
        TRY(need_alike(node, 0, i, error));
    output_like(graph, node, 0, node->input[0]);
    return PLIM_OK;
}

int64_t update_elements(const struct call *call)
{
    return (call->end - call->begin) * shape_row(&call->node->input[0]->shape);
}

/* ---- numbers of a step -------------------------------------------------- */

/* 1 - beta^t with the digits that Keras has of it. */
static double rest(double beta, double t)
{
    return 1 - (double)(float)pow((double)(float)beta, t);
}

static void sgd_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    (void)t, (void)product;
    k[0] = rate;
    k[1] = a->momentum;
}

static void rho_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    (void)t, (void)product;
    k[0] = rate;
    k[1] = a->rho;
    k[2] = 1 - a->rho;
    k[3] = a->epsilon;
    k[4] = a->momentum;
}

static void adam_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    (void)product;
    k[0] = 1 - a->beta_1;
    k[1] = 1 - a->beta_2;
    k[2] = rate * sqrt(rest(a->beta_2, t)) / rest(a->beta_1, t);
    k[3] = a->epsilon;
}

static void adamax_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    (void)product;
    k[0] = 1 - a->beta_1;
    k[1] = a->beta_2;
    k[2] = rate / rest(a->beta_1, t);
    k[3] = a->epsilon;
}

/* product is already this step's. */
static void nadam_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    double beta_1 = (double)(float)a->beta_1;
    double u = beta_1 * (1 - 0.5 * pow(0.96, t)), next = beta_1 * (1 - 0.5 * pow(0.96, t + 1));
    k[0] = 1 - beta_1;
    k[1] = 1 - (double)(float)a->beta_2;
    k[2] = rate * next / (1 - product * next);
    k[3] = rate * (1 - u) / (1 - product);
    k[4] = 1 / rest(a->beta_2, t);
    k[5] = a->epsilon;
}

static void lion_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    (void)t, (void)product;
    k[0] = rate;
    k[1] = a->beta_1;
    k[2] = 1 - a->beta_1;
    k[3] = a->beta_2;
    k[4] = 1 - a->beta_2;
}

static void ftrl_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    (void)t, (void)product;
    k[0] = 1 / rate;
    k[1] = -a->power;
    k[2] = a->l1;
    k[3] = 2 * (a->l2 + a->beta / (2 * rate));
    k[4] = 2 * a->shrinkage;
}

/* Adam's, without the rate: bias corrections of m and of v. */
static void lamb_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    (void)product, (void)rate;
    k[0] = 1 - a->beta_1;
    k[1] = 1 - a->beta_2;
    k[2] = 1 / rest(a->beta_1, t);
    k[3] = 1 / rest(a->beta_2, t);
    k[4] = a->epsilon;
}

static void no_numbers(double *k, const struct update_attributes *a, double rate, double t, double product)
{
    (void)k, (void)a, (void)rate, (void)t, (void)product;
}

static const struct {
    const struct op *op;
    void (*numbers)(double *k, const struct update_attributes *a, double rate, double t, double product);
} rules[] = {
    {&op_sgd, sgd_numbers},       {&op_rmsprop, rho_numbers},         {&op_adagrad, rho_numbers},
    {&op_adadelta, rho_numbers},  {&op_adam, adam_numbers},           {&op_adam_8bit, adam_numbers},
    {&op_adamax, adamax_numbers}, {&op_nadam, nadam_numbers},         {&op_lion, lion_numbers},
    {&op_ftrl, ftrl_numbers},     {&op_lamb_direction, lamb_numbers}, {&op_decay_weight, no_numbers},
};

void update_numbers(double out[UPDATE_NUMBERS], const struct node *node, const double *control, double product)
{
    const struct update_attributes *a = node->attributes;
    for (int i = 0; i < UPDATE_NUMBERS; i++)
        out[i] = 0;
    for (int i = 0; i < COUNT(rules); i++)
        if (rules[i].op == node->op)
            rules[i].numbers(out, a, control[CONTROL_RATE], control[CONTROL_STEP], product);
    out[UPDATE_NUMBERS - 1] = a->weight_decay * control[CONTROL_RATE];
}
