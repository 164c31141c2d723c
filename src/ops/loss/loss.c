/* loss.c - softmax cross-entropy, a value a row of scores, and its gradient, which reads scores and labels again. */
#include <math.h>

#include "ops/helpers.h"

/* ---- softmax_crossentropy ---------------------------------------------- */

static plim_status labels_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_labels(node, 0, 1, error));
    return output_of(graph, node, 0, node->input[0]->type, without_last(node->input[0]), true);
}

static plim_status labels_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_labels(node, 0, 1, error));
    TRY(need_row_gradients(node, error));
    return output_like(graph, node, 0, node->input[0]);
}

/* Rows of scores in this slice. */
static int64_t score_rows(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    return call_rows(call, x) * (shape_row(&x->shape) / last_dim(x));
}

static bool ignored(const struct call *call, int64_t row)
{
    const struct crossentropy_attributes *a = call->node->attributes;
    return a->ignores && get(call, 1, row) == a->ignored;
}

/* The class of a row, or -1 when there is no such class. */
static int64_t class_of(const struct call *call, int64_t row, int64_t classes)
{
    double label = get(call, 1, row);
    return label >= 0 && label < (double)classes ? (int64_t)label : -1;
}

/* log(sum(exp(x))) of one row. */
static double log_sum(const struct call *call, int64_t row, int64_t classes)
{
    double most = get(call, 0, row * classes), sum = 0;
    for (int64_t i = 1; i < classes; i++)
        most = fmax(most, get(call, 0, row * classes + i));
    for (int64_t i = 0; i < classes; i++)
        sum += exp(get(call, 0, row * classes + i) - most);
    return most + log(sum);
}

/* log(sum(exp(x))) - x[label] */
static void softmax_crossentropy_reference(const struct call *call)
{
    int64_t rows = score_rows(call), classes = last_dim(call->node->input[0]);
    for (int64_t row = 0; row < rows; row++) {
        int64_t label = class_of(call, row, classes);
        double loss = ignored(call, row) ? 0
                      : label < 0        ? (double)NAN
                                         : log_sum(call, row, classes) - get(call, 0, row * classes + label);
        set(call, 0, row, loss);
    }
}

/* d * (softmax(x)[i] - (i == label)) */
static void softmax_crossentropy_gradient_reference(const struct call *call)
{
    int64_t rows = score_rows(call), classes = last_dim(call->node->input[0]);
    for (int64_t row = 0; row < rows; row++) {
        int64_t label = class_of(call, row, classes);
        bool none = ignored(call, row);
        double log_of_sum = log_sum(call, row, classes), d = label < 0 ? (double)NAN : get(call, 2, row);
        for (int64_t i = 0; i < classes; i++) {
            double probability = exp(get(call, 0, row * classes + i) - log_of_sum);
            set(call, 0, row * classes + i, none ? 0 : d * (probability - (i == label)));
        }
    }
}

const struct op op_softmax_crossentropy = {
    OP_HEAD(softmax_crossentropy, 2, 1, labels_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct crossentropy_attributes),
    .gradient_op = &op_softmax_crossentropy_gradient,
    .gradient_reads = {READ_X0, READ_X1, READ_D},
    .keeps_inputs = 1 << 0 | 1 << 1,
};

const struct op op_softmax_crossentropy_gradient = {
    OP_HEAD(softmax_crossentropy_gradient, 3, 1, labels_gradient_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct crossentropy_attributes),
    .no_gradient = NO_SECOND,
};
