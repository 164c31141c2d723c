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
    return output_like(graph, node, 0, node->input[0]);
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

struct step {
    const struct update_attributes *a;
    double rate, t, product; /* product: nadam's */
};

static void sgd_numbers(double *k, const struct step *s)
{
    k[0] = s->rate;
    k[1] = s->a->momentum;
}

static void rho_numbers(double *k, const struct step *s)
{
    k[0] = s->rate;
    k[1] = s->a->rho;
    k[2] = 1 - s->a->rho;
    k[3] = s->a->epsilon;
    k[4] = s->a->momentum;
}

static void adam_numbers(double *k, const struct step *s)
{
    k[0] = 1 - s->a->beta_1;
    k[1] = 1 - s->a->beta_2;
    k[2] = s->rate * sqrt(rest(s->a->beta_2, s->t)) / rest(s->a->beta_1, s->t);
    k[3] = s->a->epsilon;
}

static void adamax_numbers(double *k, const struct step *s)
{
    k[0] = 1 - s->a->beta_1;
    k[1] = s->a->beta_2;
    k[2] = s->rate / rest(s->a->beta_1, s->t);
    k[3] = s->a->epsilon;
}

/* product is already this step's. */
static void nadam_numbers(double *k, const struct step *s)
{
    double beta_1 = (double)(float)s->a->beta_1;
    double u = beta_1 * (1 - 0.5 * pow(0.96, s->t)), next = beta_1 * (1 - 0.5 * pow(0.96, s->t + 1));
    k[0] = 1 - beta_1;
    k[1] = 1 - (double)(float)s->a->beta_2;
    k[2] = s->rate * next / (1 - s->product * next);
    k[3] = s->rate * (1 - u) / (1 - s->product);
    k[4] = 1 / rest(s->a->beta_2, s->t);
    k[5] = s->a->epsilon;
}

static void lion_numbers(double *k, const struct step *s)
{
    k[0] = s->rate;
    k[1] = s->a->beta_1;
    k[2] = 1 - s->a->beta_1;
    k[3] = s->a->beta_2;
    k[4] = 1 - s->a->beta_2;
}

static void ftrl_numbers(double *k, const struct step *s)
{
    k[0] = 1 / s->rate;
    k[1] = -s->a->power;
    k[2] = s->a->l1;
    k[3] = 2 * (s->a->l2 + s->a->beta / (2 * s->rate));
    k[4] = 2 * s->a->shrinkage;
}

/* Adam's, without the rate: bias corrections of m and of v. */
static void lamb_numbers(double *k, const struct step *s)
{
    k[0] = 1 - s->a->beta_1;
    k[1] = 1 - s->a->beta_2;
    k[2] = 1 / rest(s->a->beta_1, s->t);
    k[3] = 1 / rest(s->a->beta_2, s->t);
    k[4] = s->a->epsilon;
}

static const struct {
    const struct op *op;
    void (*numbers)(double *k, const struct step *s);
} rules[] = {
    {&op_sgd, sgd_numbers},       {&op_rmsprop, rho_numbers},         {&op_adagrad, rho_numbers},
    {&op_adadelta, rho_numbers},  {&op_adam, adam_numbers},           {&op_adam_8bit, adam_numbers},
    {&op_adamax, adamax_numbers}, {&op_nadam, nadam_numbers},         {&op_lion, lion_numbers},
    {&op_ftrl, ftrl_numbers},     {&op_lamb_direction, lamb_numbers},
};

void update_numbers(double out[UPDATE_NUMBERS], const struct node *node, const double *control, double product)
{
    const struct step step = {node->attributes, control[CONTROL_RATE], control[CONTROL_STEP], product};
    for (int i = 0; i < UPDATE_NUMBERS; i++)
        out[i] = 0;
    for (int i = 0; i < COUNT(rules); i++)
        if (rules[i].op == node->op)
            rules[i].numbers(out, &step);
    out[UPDATE_NUMBERS - 1] = step.a->weight_decay * step.rate;
}
