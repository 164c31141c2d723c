/* loss.c - cross-entropies, a value a sample, and their gradients.

   Each loss has two formulas, of a row or of an element: its value and its
   derivative. The gradients read scores and labels again, and d[N]. */
#include <math.h>

#include "ops/helpers.h"

/* What Keras clips probabilities to. */
#define CLIP 1e-7

static struct shape without_last(const struct tensor *x)
{
    struct shape shape = x->shape;
    shape.rank--;
    return shape;
}

static plim_status need_d(const struct node *node, plim_error *error)
{
    struct shape shape = without_last(node->input[0]);
    TRY(need_type(node, 2, node->input[0]->type, error));
    TRY(need_batched(node, 2, error));
    if (!shape_equal(&node->input[2]->shape, &shape))
        return misfit(node, error, "the gradient does not fit the outputs");
    return PLIM_OK;
}

/* ---- softmax_crossentropy ---------------------------------------------- */

static plim_status labels_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_labels(node, 0, 1, error));
    output_of(graph, node, 0, node->input[0]->type, without_last(node->input[0]), true);
    return PLIM_OK;
}

static plim_status labels_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_labels(node, 0, 1, error));
    TRY(need_d(node, error));
    output_like(graph, node, 0, node->input[0]);
    return PLIM_OK;
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
    .name = "softmax_crossentropy",
    .inputs = 2,
    .outputs = 1,
    .attributes_bytes = sizeof(struct crossentropy_attributes),
    .infer = labels_infer,
    .gradient_op = &op_softmax_crossentropy_gradient,
    .gradient_reads = {READ_X0, READ_X1, READ_D},
    .keeps_inputs = 1 << 0 | 1 << 1,
    .cut = cut_input_rows,
    .reference = softmax_crossentropy_reference,
};

const struct op op_softmax_crossentropy_gradient = {
    .name = "softmax_crossentropy_gradient",
    .inputs = 3,
    .outputs = 1,
    .attributes_bytes = sizeof(struct crossentropy_attributes),
    .infer = labels_gradient_infer,
    .no_gradient = NO_SECOND,
    .cut = cut_input_rows,
    .reference = softmax_crossentropy_gradient_reference,
};

/* ---- two classes: a mean over c of a formula of score and target -------- */

static plim_status targets_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_targets(node, 0, 1, error));
    output_of(graph, node, 0, node->input[0]->type, shape_1(node->input[0]->shape.dim[0]), true);
    return PLIM_OK;
}

static plim_status targets_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_targets(node, 0, 1, error));
    TRY(need_d(node, error));
    output_like(graph, node, 0, node->input[0]);
    return PLIM_OK;
}

static void mean_of(const struct call *call, double (*value)(double score, double target))
{
    int64_t rows = call_rows(call, call->node->output[0]), width = call->node->input[0]->shape.dim[1];
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = row * width; i < (row + 1) * width; i++)
            sum += value(get(call, 0, i), get(call, 1, i));
        set(call, 0, row, sum / (double)width);
    }
}

static void gradient_of_mean(const struct call *call, double (*derivative)(double score, double target))
{
    int64_t width = call->node->input[0]->shape.dim[1];
    int64_t count = call_rows(call, call->node->output[0]) * width;
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 2, i / width) * derivative(get(call, 0, i), get(call, 1, i)) / (double)width);
}

/* ---- sigmoid_crossentropy ---------------------------------------------- */

/* -t * log(s(x)) - (1 - t) * log(1 - s(x)), without overflow. */
static double sigmoid_value(double x, double target)
{
    return fmax(x, 0) - x * target + log1p(exp(-fabs(x)));
}

static double sigmoid_derivative(double x, double target)
{
    return 1 / (1 + exp(-x)) - target;
}

static void sigmoid_crossentropy_reference(const struct call *call)
{
    mean_of(call, sigmoid_value);
}

static void sigmoid_crossentropy_gradient_reference(const struct call *call)
{
    gradient_of_mean(call, sigmoid_derivative);
}

const struct op op_sigmoid_crossentropy = {
    .name = "sigmoid_crossentropy",
    .inputs = 2,
    .outputs = 1,
    .infer = targets_infer,
    .gradient_op = &op_sigmoid_crossentropy_gradient,
    .gradient_reads = {READ_X0, READ_X1, READ_D},
    .keeps_inputs = 1 << 0 | 1 << 1,
    .cut = cut_input_rows,
    .reference = sigmoid_crossentropy_reference,
};

const struct op op_sigmoid_crossentropy_gradient = {
    .name = "sigmoid_crossentropy_gradient",
    .inputs = 3,
    .outputs = 1,
    .infer = targets_gradient_infer,
    .no_gradient = NO_SECOND,
    .cut = cut_input_rows,
    .reference = sigmoid_crossentropy_gradient_reference,
};

/* ---- binary_crossentropy: from probabilities --------------------------- */

static double binary_value(double p, double target)
{
    p = p < CLIP ? CLIP : p > 1 - CLIP ? 1 - CLIP : p;
    return -target * log(p) - (1 - target) * log(1 - p);
}

/* Nothing flows where p was clipped. */
static double binary_derivative(double p, double target)
{
    return p < CLIP || p > 1 - CLIP ? 0 : (p - target) / (p * (1 - p));
}

static void binary_crossentropy_reference(const struct call *call)
{
    mean_of(call, binary_value);
}

static void binary_crossentropy_gradient_reference(const struct call *call)
{
    gradient_of_mean(call, binary_derivative);
}

const struct op op_binary_crossentropy = {
    .name = "binary_crossentropy",
    .inputs = 2,
    .outputs = 1,
    .infer = targets_infer,
    .gradient_op = &op_binary_crossentropy_gradient,
    .gradient_reads = {READ_X0, READ_X1, READ_D},
    .keeps_inputs = 1 << 0 | 1 << 1,
    .cut = cut_input_rows,
    .reference = binary_crossentropy_reference,
};

const struct op op_binary_crossentropy_gradient = {
    .name = "binary_crossentropy_gradient",
    .inputs = 3,
    .outputs = 1,
    .infer = targets_gradient_infer,
    .no_gradient = NO_SECOND,
    .cut = cut_input_rows,
    .reference = binary_crossentropy_gradient_reference,
};
