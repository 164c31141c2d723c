/* metric.c - accuracies: f32 [N], what the trainer averages and prints. */
#include "ops/helpers.h"

#define NO_GRADIENT "an accuracy moves in steps"

static void metric_cut(struct cut *cut, const struct node *node)
{
    cut_rows(cut, node, node->input[0], (double)shape_count(&node->input[0]->shape));
}

static void output_metric(struct graph *graph, struct node *node)
{
    output_of(graph, node, 0, TYPE_F32, shape_1(node->input[0]->shape.dim[0]), true);
}

/* ---- sparse_accuracy: 1 where the first largest score is the label's ---- */

static plim_status sparse_accuracy_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_labels(node, 0, 1, error));
    output_metric(graph, node);
    return PLIM_OK;
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
    int64_t rows = call_rows(call, call->node->output[0]), classes = call->node->input[0]->shape.dim[1];
    for (int64_t row = 0; row < rows; row++)
        set(call, 0, row, (double)first_largest(call, row, classes) == get(call, 1, row));
}

static struct tensor *sparse_accuracy_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *scores = NULL, *labels = example_labels(&scores, graph, variant, type);
    return labels ? binary(graph, &op_sparse_accuracy, scores, labels) : NULL;
}

const struct op op_sparse_accuracy = {
    .name = "sparse_accuracy",
    .inputs = 2,
    .outputs = 1,
    .infer = sparse_accuracy_infer,
    .no_gradient = NO_GRADIENT,
    .in_place = NO_INPUT,
    .cut = metric_cut,
    .reference = sparse_accuracy_reference,
    .example = sparse_accuracy_example,
};

/* ---- binary_accuracy: mean over c of (score > threshold) == target ------ */

static plim_status binary_accuracy_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_targets(node, 0, 1, error));
    output_metric(graph, node);
    return PLIM_OK;
}

static void binary_accuracy_reference(const struct call *call)
{
    const struct binary_accuracy_attributes *attributes = call->node->attributes;
    int64_t rows = call_rows(call, call->node->output[0]), width = call->node->input[0]->shape.dim[1];
    for (int64_t row = 0; row < rows; row++) {
        int64_t right = 0;
        for (int64_t i = row * width; i < (row + 1) * width; i++)
            right += (double)(get(call, 0, i) > attributes->threshold) == get(call, 1, i);
        set(call, 0, row, (double)right / (double)width);
    }
}

static struct tensor *binary_accuracy_example(struct graph *graph, int variant, enum type type)
{
    struct binary_accuracy_attributes attributes = {variant % 2 ? 0.5 : 0};
    struct tensor *scores = NULL, *targets = example_targets(&scores, graph, variant, type, "scores");
    if (!targets)
        return NULL;
    return graph_add(graph, &op_binary_accuracy, (struct tensor *[]){scores, targets}, 2, &attributes,
                     sizeof(attributes));
}

const struct op op_binary_accuracy = {
    .name = "binary_accuracy",
    .inputs = 2,
    .outputs = 1,
    .attributes_bytes = sizeof(struct binary_accuracy_attributes),
    .infer = binary_accuracy_infer,
    .no_gradient = NO_GRADIENT,
    .in_place = NO_INPUT,
    .cut = metric_cut,
    .reference = binary_accuracy_reference,
    .example = binary_accuracy_example,
};
