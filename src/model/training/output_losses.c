/* output_losses.c - what a model is trained by: the weighted sum of its outputs' losses, and penalties. */
#include <string.h>

#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

const char *output_name(const struct model *model, int output)
{
    return model->output_name[output];
}

/* Keras shows them where there are several. */
static bool is_shown(const struct build *build)
{
    int count = 0;
    for (int i = 0; i < build->model->output_count; i++)
        count += !build->training->output_loss[i].none;
    return count > 1;
}

/* Each part knows some of the classes, and says 1 for the others. */
static struct tensor *class_weights(struct graph *graph, const struct training *training, struct tensor *label)
{
    struct tensor *product = NULL;
    for (int i = 0; i < training->class_weight_parts; i++) {
        const struct class_weight_attributes *part = &training->class_weight[i];
        struct tensor *factors = graph_add(graph, &op_class_weight, &label, 1, part, sizeof *part);
        product = product && factors ? binary(graph, &op_multiply, product, factors) : factors;
    }
    return product;
}

struct tensor *sample_weights(struct graph *graph, const struct output_tensors *of)
{
    const struct training *training = graph->build->training;
    if (!training->class_weight_parts || !of->label)
        return of->weight;
    const struct shape *shape = &of->label->shape;
    const struct loss_type *type = training->output_loss[0].loss.type;
    if (of->weight)
        graph_fail(graph, PLIM_BAD_JOB, "class_weight: the data has weights of samples too; take one of them out");
    else if (shape->rank > 2 || (type->sparse && shape->rank == 2 && shape->dim[1] != 1))
        graph_fail(graph, PLIM_UNSUPPORTED, "class_weight: labels are one class a sample; give weights of samples");
    return graph->build->fitting && !graph->failed ? class_weights(graph, training, of->label) : NULL;
}

/* The loss of one output, before its weight; NULL: it has failed. */
static struct tensor *one_loss(const struct model_tensors *tensors, struct graph *graph, int output,
                               const struct output_loss *asked)
{
    const struct model *model = graph->build->model;
    const struct output_tensors *of = &tensors->output[output];
    bool logits = output_has_logits(graph->build, output);
    struct loss loss = asked->loss;
    struct loss_operands operands = {.output = of->value,
                                     .label = of->label,
                                     .mask = of->mask,
                                     .logits = logits,
                                     .layer = model->use[model->output[output].from].layer->name};
    if (!logits && !loss.from_logits) /* others read the output too: the logits are there beside it */
        operands.output = before_activation(&operands.logits, loss.type, of->value);
    operands.weight = sample_weights(graph, of);
    return loss_add(graph, &loss, &operands);
}

/* Named "a_loss" among the metrics. */
static void show_losses(struct model_tensors *out, struct graph *graph, const struct model *model,
                        struct tensor **losses)
{
    for (int i = 0; i < model->output_count && !graph->failed; i++) {
        if (!losses[i])
            continue;
        if (out->metric_count == MOST_METRICS) {
            graph_fail(graph, PLIM_UNSUPPORTED, "metrics: with the losses of %d outputs at most %d",
                       model->output_count, MOST_METRICS);
            return;
        }
        for (int m = 0; m < out->metric_count; m++)
            if (strcmp(out->metric[m].name, losses[i]->name) == 0)
                graph_fail(graph, PLIM_BAD_JOB, "metrics: '%s' is what the loss of the output '%s' is reported as",
                           losses[i]->name, output_name(model, i));
        out->metric[out->metric_count++] = (struct metric_tensor){.tensor = losses[i], .name = losses[i]->name};
    }
}

static const char *loss_layer(struct graph *graph, const struct model *model, int output, bool shown)
{
    const char *name = shown ? arena_format(&graph->arena, "%s_loss", output_name(model, output)) : "loss";
    if (!name)
        graph_refused(graph, 0);
    return name;
}

void losses_add(struct model_tensors *out, struct graph *graph)
{
    const struct build *build = graph->build;
    const struct model *model = build->model;
    struct tensor *losses[MOST_MODEL_OUTPUTS] = {0}, *sum = NULL;
    bool shown = is_shown(build);
    for (int i = 0; i < model->output_count; i++) {
        const struct output_loss *asked = &build->training->output_loss[i];
        struct scale_attributes weight = {asked->weight};
        if (asked->none || !(graph->layer = loss_layer(graph, model, i, shown)))
            continue;
        struct tensor *loss = one_loss(out, graph, i, asked);
        if (shown && loss) {
            graph_result(graph, loss, graph->layer);
            losses[i] = loss;
        }
        if (asked->weight != 1.0)
            loss = graph_add(graph, &op_scale, &loss, 1, &weight, sizeof weight);
        sum = sum && loss ? binary(graph, &op_add, sum, loss) : loss;
        if (graph->failed)
            return;
    }
    graph->layer = "loss";
    out->loss = penalties_add(graph, build, sum);
    graph_result(graph, out->loss, "loss");
    metrics_add(out, graph);
    show_losses(out, graph, model, losses);
}
