/* metric.c - accuracies: f32 [N], what the trainer averages and prints. */
#include "ops/helpers.h"

#define NO_GRADIENT "an accuracy moves in steps"

/* ---- sparse_accuracy: 1 where the first largest score is the label's ---- */

static plim_status sparse_accuracy_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_labels(node, 0, 1, error));
    return output_of(graph, node, 0, TYPE_F32, without_last(node->input[0]), true);
}

static int64_t first_largest(const struct call *call, int64_t row, int64_t classes)
{
    int64_t best = 0;
    for (int64_t i = 1; i < classes; i++) {
        if (get(call, 0, row * classes + i) > get(call, 0, row * classes + best))
            best = i;
    }
    return best;
}

static void sparse_accuracy_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    int64_t classes = last_dim(x), rows = call_rows(call, x) * (shape_row(&x->shape) / classes);
    for (int64_t row = 0; row < rows; row++)
        set(call, 0, row, (double)first_largest(call, row, classes) == get(call, 1, row));
}

const struct op op_sparse_accuracy = {
    OP_HEAD(sparse_accuracy, 2, 1, sparse_accuracy_infer, cut_input_rows),
    .no_gradient = NO_GRADIENT,
};

/* ---- binary_accuracy: mean over c of (score > threshold) == target ------ */

/* Outputs of any rank, and as many labels. */
static plim_status elements_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct shape shape = node->input[0]->shape;
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_batched(node, 1, error));
    if (shape.rank < 2 || !is_label(node->input[1]->type) || shape_count(&shape) != shape_count(&node->input[1]->shape))
        return misfit(node, error, "labels do not fit the outputs");
    shape.rank--;
    return output_of(graph, node, 0, TYPE_F32, shape, true);
}

static void binary_accuracy_reference(const struct call *call)
{
    const struct binary_accuracy_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t width = last_dim(x), rows = call_rows(call, x) * (shape_row(&x->shape) / width);
    for (int64_t row = 0; row < rows; row++) {
        int64_t right = 0;
        for (int64_t i = row * width; i < (row + 1) * width; i++)
            right += (double)(get(call, 0, i) > attributes->threshold) == get(call, 1, i);
        set(call, 0, row, (double)right / (double)width);
    }
}

const struct op op_binary_accuracy = {
    OP_HEAD(binary_accuracy, 2, 1, elements_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct binary_accuracy_attributes),
    .no_gradient = NO_GRADIENT,
};

/* ---- ranked_accuracy ---------------------------------------------------- */

static plim_status ranked_accuracy_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct ranked_accuracy_attributes *a = node->attributes;
    return a->sparse ? sparse_accuracy_infer(graph, node, error) : elements_infer(graph, node, error);
}

/* The right class of a row; -1: there is none. */
static int64_t right_class(const struct call *call, int64_t row, int64_t classes)
{
    const struct ranked_accuracy_attributes *a = call->node->attributes;
    int64_t best = 0;
    if (a->sparse) {
        double label = get(call, 1, row);
        return label >= 0 && label < (double)classes ? (int64_t)label : -1;
    }
    for (int64_t i = 1; i < classes; i++)
        if (get(call, 1, row * classes + i) > get(call, 1, row * classes + best))
            best = i;
    return best;
}

static void ranked_accuracy_reference(const struct call *call)
{
    const struct ranked_accuracy_attributes *a = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t classes = last_dim(x), rows = call_rows(call, x) * (shape_row(&x->shape) / classes);
    for (int64_t row = 0; row < rows; row++) {
        int64_t right = right_class(call, row, classes), larger = 0;
        for (int64_t i = 0; right >= 0 && i < classes; i++)
            larger += get(call, 0, row * classes + i) > get(call, 0, row * classes + right);
        bool hit = a->k ? larger < a->k : first_largest(call, row, classes) == right;
        set(call, 0, row, right >= 0 && hit);
    }
}

const struct op op_ranked_accuracy = {
    OP_HEAD(ranked_accuracy, 2, 1, ranked_accuracy_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct ranked_accuracy_attributes),
    .no_gradient = NO_GRADIENT,
};
