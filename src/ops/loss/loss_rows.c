/* loss_rows.c - losses of a whole row of scores: categorical cross-entropies,
   cosine similarity, the categorical hinge. */
#include <math.h>

#include "ops/helpers.h"

#define EPSILON 1e-7 /* Keras's */

struct row {
    const struct call *call;
    const struct row_loss_attributes *a;
    int64_t first, width;
    double d; /* of the value; 0: the value is wanted */
};

static double score(const struct row *row, int64_t i)
{
    return get(row->call, 0, row->first + i);
}

static double target(const struct row *row, int64_t i)
{
    double s = row->a->smoothing;
    return get(row->call, 1, row->first + i) * (1 - s) + s / (double)row->width;
}

static void give(const struct row *row, int64_t i, double value)
{
    set(row->call, 0, row->first + i, value);
}

/* ---- from logits -------------------------------------------------------- */

static double log_sum(const struct row *row)
{
    double most = score(row, 0), sum = 0;
    for (int64_t i = 1; i < row->width; i++)
        most = fmax(most, score(row, i));
    for (int64_t i = 0; i < row->width; i++)
        sum += exp(score(row, i) - most);
    return most + log(sum);
}

static double logits_value(const struct row *row)
{
    double all = log_sum(row), sum = 0;
    for (int64_t i = 0; i < row->width; i++)
        sum += target(row, i) * (all - score(row, i));
    return sum;
}

static void logits_slope(const struct row *row)
{
    double all = log_sum(row), sum = 0;
    for (int64_t i = 0; i < row->width; i++)
        sum += target(row, i);
    for (int64_t i = 0; i < row->width; i++)
        give(row, i, row->d * (exp(score(row, i) - all) * sum - target(row, i)));
}

/* ---- from probabilities: p = x / sum(x), clipped; focal with its factor -- */

static double weight(const struct row *row, double p)
{
    return row->a->formula == ROW_CATEGORICAL_FOCAL ? row->a->alpha * pow(1 - p, row->a->gamma) : 1;
}

/* d(-weight(p) log(p)) / dp */
static double slope_of(const struct row *row, double p)
{
    const struct row_loss_attributes *a = row->a;
    double change = 0;
    if (a->formula == ROW_CATEGORICAL_FOCAL && a->gamma != 0)
        change = a->alpha * a->gamma * pow(1 - p, a->gamma - 1) * log(p);
    return change - weight(row, p) / p;
}

static double total(const struct row *row)
{
    double sum = 0;
    for (int64_t i = 0; i < row->width; i++)
        sum += score(row, i);
    return sum;
}

static double clipped(double p)
{
    return p < EPSILON ? EPSILON : p > 1 - EPSILON ? 1 - EPSILON : p;
}

static double probability_value(const struct row *row)
{
    double all = total(row), sum = 0;
    for (int64_t i = 0; i < row->width; i++) {
        double p = clipped(score(row, i) / all);
        sum -= target(row, i) * weight(row, p) * log(p);
    }
    return sum;
}

static double probability_part(const struct row *row, int64_t i, double all)
{
    double p = score(row, i) / all;
    return p < EPSILON || p > 1 - EPSILON ? 0 : target(row, i) * slope_of(row, p);
}

static void probability_slope(const struct row *row)
{
    double all = total(row), sum = 0;
    for (int64_t i = 0; i < row->width; i++)
        sum += probability_part(row, i, all) * score(row, i) / all;
    for (int64_t i = 0; i < row->width; i++)
        give(row, i, row->d * (probability_part(row, i, all) - sum) / all);
}

/* ---- cosine: -sum(t p) of both at length 1 ------------------------------ */

static double length(const struct row *row, double (*of)(const struct row *row, int64_t i))
{
    double sum = 0;
    for (int64_t i = 0; i < row->width; i++)
        sum += of(row, i) * of(row, i);
    return sqrt(fmax(sum, EPSILON * EPSILON));
}

static double cosine_value(const struct row *row)
{
    double x = length(row, score), t = length(row, target), sum = 0;
    for (int64_t i = 0; i < row->width; i++)
        sum -= score(row, i) * target(row, i) / (x * t);
    return sum;
}

static void cosine_slope(const struct row *row)
{
    double x = length(row, score), t = length(row, target), value = cosine_value(row);
    double around = x > EPSILON ? value / (x * x) : 0;
    for (int64_t i = 0; i < row->width; i++)
        give(row, i, row->d * (-target(row, i) / (x * t) - score(row, i) * around));
}

/* ---- categorical hinge: max(max((1 - t) x) - sum(t x) + 1, 0) ------------ */

static double hinge_at(const struct row *row, int64_t *most)
{
    double right = 0, wrong = (1 - target(row, 0)) * score(row, 0);
    *most = 0;
    for (int64_t i = 0; i < row->width; i++) {
        double other = (1 - target(row, i)) * score(row, i);
        right += target(row, i) * score(row, i);
        if (other > wrong) {
            wrong = other;
            *most = i;
        }
    }
    return fmax(wrong - right + 1, 0);
}

static double hinge_value(const struct row *row)
{
    int64_t most;
    return hinge_at(row, &most);
}

static void hinge_slope(const struct row *row)
{
    int64_t most;
    double flows = hinge_at(row, &most) > 0 ? row->d : 0;
    for (int64_t i = 0; i < row->width; i++)
        give(row, i, flows * ((i == most ? 1 - target(row, i) : 0) - target(row, i)));
}

/* ---- the ops ------------------------------------------------------------ */

static const struct {
    double (*value)(const struct row *row);
    void (*slope)(const struct row *row);
} formulas[ROW_FORMULA_COUNT] = {
    [ROW_CATEGORICAL] = {probability_value, probability_slope},
    [ROW_CATEGORICAL_LOGITS] = {logits_value, logits_slope},
    [ROW_CATEGORICAL_FOCAL] = {probability_value, probability_slope},
    [ROW_COSINE] = {cosine_value, cosine_slope},
    [ROW_CATEGORICAL_HINGE] = {hinge_value, hinge_slope},
};

static plim_status need_rows(const struct node *node, plim_error *error)
{
    const struct row_loss_attributes *a = node->attributes;
    TRY(need_alike_targets(node, error));
    if ((int)a->formula < 0 || a->formula >= ROW_FORMULA_COUNT)
        return misfit(node, error, "there is no formula %d", (int)a->formula);
    return PLIM_OK;
}

static plim_status row_loss_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_rows(node, error));
    return output_of(graph, node, 0, node->input[0]->type, without_last(node->input[0]), true);
}

static plim_status row_loss_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_rows(node, error));
    TRY(need_row_gradients(node, error));
    return output_like(graph, node, 0, node->input[0]);
}

static void row_loss_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    struct row row = {call, call->node->attributes, 0, last_dim(x), 0};
    int64_t rows = call_rows(call, x) * (shape_row(&x->shape) / row.width);
    for (int64_t i = 0; i < rows; i++, row.first += row.width)
        set(call, 0, i, formulas[row.a->formula].value(&row));
}

static void row_loss_gradient_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    struct row row = {call, call->node->attributes, 0, last_dim(x), 0};
    int64_t rows = call_rows(call, x) * (shape_row(&x->shape) / row.width);
    for (int64_t i = 0; i < rows; i++, row.first += row.width) {
        row.d = get(call, 2, i);
        formulas[row.a->formula].slope(&row);
    }
}

const struct op op_row_loss = {
    OP_HEAD(row_loss, 2, 1, row_loss_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct row_loss_attributes),
    .gradient_op = &op_row_loss_gradient,
    .gradient_reads = {READ_X0, READ_X1, READ_D},
    .keeps_inputs = 1 << 0 | 1 << 1,
};

const struct op op_row_loss_gradient = {
    OP_HEAD(row_loss_gradient, 3, 1, row_loss_gradient_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct row_loss_attributes),
    .no_gradient = NO_SECOND,
};
