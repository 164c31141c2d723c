/* losses.c - losses and accuracies over the model's output, with Keras's
   rules for shapes.

   Where the output is a softmax (sparse) or a sigmoid (binary) the loss takes
   the logits, as Keras does on TensorFlow: the same value, computed without loss of
   digits. Otherwise probabilities are clipped first, with Keras's epsilon. */
#include "model/model.h"
#include "ops/ops.h"

#define EPSILON 1e-7

static void refuse(struct graph *graph, const struct model *model, const char *loss, const struct tensor *x,
                   const struct tensor *label, const char *rule)
{
    char output[96], labels[96];
    shape_text(output, sizeof output, &x->shape, true);
    shape_text(labels, sizeof labels, &label->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: outputs %s of layer %s, labels %s: %s", loss, output,
               model->layer[model->layer_count - 1].name, labels, rule);
}

/* Labels [N] or [N, 1] of class numbers (of any type, as in Keras) against scores [N, c]. */
static bool sparse_fits(struct graph *graph, const struct model *model, const struct tensor *x,
                        const struct tensor *label)
{
    static const char loss[] = "sparse_categorical_crossentropy";
    const struct shape *labels = &label->shape;
    if (x->shape.rank != 2)
        refuse(graph, model, loss, x, label, "outputs must be (batch, classes)");
    else if (x->shape.dim[1] < 2)
        refuse(graph, model, loss, x, label, "wants an output for each class; for one output use binary_crossentropy");
    else if (labels->rank != 1 && !(labels->rank == 2 && labels->dim[1] == 1))
        refuse(graph, model, loss, x, label, "labels must be class numbers, one a sample");
    return !graph->failed;
}

/* Targets [N] get the missing axis against [N, 1]; else shapes are equal. */
static bool binary_fits(struct graph *graph, const struct model *model, const struct tensor *x,
                        const struct tensor *label)
{
    if (x->shape.rank != 2)
        refuse(graph, model, "binary_crossentropy", x, label, "outputs must be (batch, units)");
    else if (!(label->shape.rank == 1 && x->shape.dim[1] == 1) && !shape_equal(&x->shape, &label->shape))
        refuse(graph, model, "binary_crossentropy", x, label, "there must be a label for each output");
    return !graph->failed;
}

static struct tensor *sparse_loss(struct graph *graph, const struct model *model, struct tensor *x,
                                  struct tensor *label)
{
    struct clip_log_attributes clip = {.low = EPSILON, .high = 1.0 - EPSILON};
    if (!model->from_logits)
        x = graph_add(graph, &op_clip_log, &x, 1, &clip, sizeof clip);
    return binary(graph, &op_softmax_crossentropy, x, label);
}

static struct tensor *binary_loss(struct graph *graph, const struct model *model, struct tensor *x,
                                  struct tensor *label)
{
    return binary(graph, model->from_logits ? &op_sigmoid_crossentropy : &op_binary_crossentropy, x, label);
}

static struct tensor *sparse_accuracy(struct graph *graph, const struct model *model, struct tensor *x,
                                      struct tensor *label)
{
    (void)model; /* the largest logit is the largest probability */
    return binary(graph, &op_sparse_accuracy, x, label);
}

/* "accuracy" of several outputs with a target each is Keras's categorical one. */
static struct tensor *binary_accuracy(struct graph *graph, const struct model *model, struct tensor *x,
                                      struct tensor *label)
{
    struct binary_accuracy_attributes attributes = {.threshold = model->from_logits ? 0.0 : 0.5};
    if (x->shape.dim[1] != 1) {
        graph_fail(graph, PLIM_UNSUPPORTED,
                   "accuracy of %lld binary outputs (Keras's categorical_accuracy) is not supported yet",
                   (long long)x->shape.dim[1]);
        return NULL;
    }
    struct tensor *inputs[2] = {x, label};
    return graph_add(graph, &op_binary_accuracy, inputs, 2, &attributes, sizeof attributes);
}

struct loss_type {
    bool (*fits)(struct graph *graph, const struct model *model, const struct tensor *x, const struct tensor *label);
    struct tensor *(*loss)(struct graph *graph, const struct model *model, struct tensor *x, struct tensor *label);
    struct tensor *(*accuracy)(struct graph *graph, const struct model *model, struct tensor *x, struct tensor *label);
};

static const struct loss_type losses[] = {
    [LOSS_SPARSE_CATEGORICAL] = {sparse_fits, sparse_loss, sparse_accuracy},
    [LOSS_BINARY] = {binary_fits, binary_loss, binary_accuracy},
};

void losses_add(struct model_tensors *out, struct graph *graph, struct model *model, struct tensor *x,
                struct tensor *label)
{
    const struct loss_type *type = &losses[model->training->loss];
    if (graph->failed || !x || !label || !type->fits(graph, model, x, label))
        return;
    graph->layer = "loss";
    out->loss = mean_of_values(graph, type->loss(graph, model, x, label), out->mask);
    graph_result(graph, out->loss, "loss");
    if (!model->training->accuracy)
        return;
    graph->layer = "accuracy";
    out->accuracy = mean_of_values(graph, type->accuracy(graph, model, x, label), out->mask);
    graph_result(graph, out->accuracy, "accuracy");
}
