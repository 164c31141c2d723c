/* custom_loop.c - a training loop of one's own: layers, a loss from ops, gradients, an optimizer, an evaluation.

   cc custom_loop.c -lplimsoll -o custom_loop && ./custom_loop */
#include <plimsoll.h>

#include <stdio.h>

#define BATCH 32
#define DATA(elements, seed)                                                                                           \
    "{random: {elements: " elements ", shape: [20], classes: 3, seed: " seed ", learnable: true}, "                    \
    "pipeline: [shuffle: exact, batch: 32]}"

struct step {
    plim_graph *graph;
    plim_value *loss, *right; /* results: the loss, and the share of samples whose class is right */
};

/* The same layers and loss in both graphs: their weights are shared by name. */
static plim_status build(struct step *step, plim_budget *budget, bool training, plim_error *error)
{
    const plim_graph_options options = {.batch = BATCH, .training = training, .seed = 7};
    plim_status status = plim_graph_make(&step->graph, budget, &options, error);
    if (status != PLIM_OK)
        return status;
    plim_graph *graph = step->graph;
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, (const int64_t[]){20}, 1);
    plim_value *label = plim_graph_input(graph, "label", PLIM_INT32, NULL, 0);
    plim_layers *layers = plim_layers_read(graph, "[Dense: {units: 32, activation: relu}, Dropout: 0.1, Dense: 3]");
    plim_value *logits = plim_layers_apply(graph, layers, &x, 1);

    /* A focal loss: -(1 - p)^2 log p of the right class. */
    plim_value *hot = plim_op(graph, "one_hot", &label, 1, "{num_classes: 3}");
    plim_value *log_p = plim_op(graph, "log_softmax", &logits, 1, NULL);
    plim_value *chosen = plim_op(graph, "multiply", (plim_value *[]){hot, log_p}, 2, NULL);
    chosen = plim_op(graph, "sum", &chosen, 1, "{axis: -1}");
    plim_value *p = plim_op(graph, "exp", &chosen, 1, NULL);
    plim_value *rest = plim_op(graph, "subtract", &p, 1, "{a: 1}");
    plim_value *factor = plim_op(graph, "square", &rest, 1, NULL);
    plim_value *values = plim_op(graph, "multiply", (plim_value *[]){factor, chosen}, 2, NULL);
    step->loss = plim_op(graph, "negative", (plim_value *[]){plim_op(graph, "mean", &values, 1, NULL)}, 1, NULL);

    plim_value *best = plim_op(graph, "argmax", &logits, 1, NULL);
    plim_value *same = plim_op(graph, "equal", (plim_value *[]){best, label}, 2, NULL);
    step->right = plim_op(graph, "mean", &same, 1, NULL);
    plim_graph_result(graph, step->loss, "loss");
    plim_graph_result(graph, step->right, "right");
    return plim_graph_check(graph, error);
}

static plim_status add_updates(struct step *step, plim_error *error)
{
    plim_value *weights[8], *gradients[8]; /* two layers have four weights */
    int count = plim_graph_weights(weights, 8, step->graph);
    plim_status status = plim_graph_gradients(gradients, step->graph, step->loss, weights, count, error);
    if (status == PLIM_OK)
        plim_graph_update(step->graph, "{adam: {learning_rate: 0.01}}", NULL, weights, gradients, count);
    return status == PLIM_OK ? plim_graph_check(step->graph, error) : status;
}

/* One epoch of a data set through graph number `which`; the means over its samples. */
static plim_status epoch(double mean[2], plim_program *program, int which, const struct step *step,
                         plim_iterator *iterator, plim_error *error)
{
    const plim_batch *batch;
    double samples = 0;
    float number;
    mean[0] = mean[1] = 0;
    for (;;) {
        plim_status status = plim_iterator_next(&batch, iterator, error);
        if (status != PLIM_OK || !batch) {
            for (int i = 0; i < 2 && samples > 0; i++)
                mean[i] /= samples;
            return status;
        }
        status = plim_program_run(program, which, batch, error);
        for (int i = 0; i < 2 && status == PLIM_OK; i++) {
            status = plim_program_read(&number, sizeof number, program, i ? step->right : step->loss, error);
            mean[i] += (double)number * (double)batch->count;
        }
        if (status != PLIM_OK)
            return status;
        samples += (double)batch->count;
    }
}

static plim_status train(plim_program *program, const struct step step[2], plim_budget *budget, plim_error *error)
{
    plim_dataset *data[2] = {plim_dataset_read(budget, DATA("2000", "1"), 7),
                             plim_dataset_read(budget, DATA("500", "2"), 7)};
    plim_iterator *iterator[2] = {NULL, NULL};
    double mean[2][2];
    plim_status status = PLIM_OK;
    for (int i = 0; i < 2 && status == PLIM_OK; i++)
        status = plim_iterator_open(&iterator[i], data[i], budget, &(plim_iterator_options){.seed = 7}, error);
    for (int e = 1; e <= 3 && status == PLIM_OK; e++) {
        for (int i = 0; i < 2 && status == PLIM_OK; i++)
            status = epoch(mean[i], program, i, &step[i], iterator[i], error);
        if (status == PLIM_OK)
            printf("epoch %d: loss %.4f, right %.3f; evaluation: loss %.4f, right %.3f\n", e, mean[0][0], mean[0][1],
                   mean[1][0], mean[1][1]);
    }
    for (int i = 0; i < 2; i++) {
        plim_iterator_close(iterator[i]);
        plim_dataset_unref(data[i]);
    }
    return status;
}

static plim_status run(plim_budget *budget, plim_error *error)
{
    struct step step[2] = {{0}, {0}};
    plim_program *program = NULL;
    plim_status status = build(&step[0], budget, true, error);
    if (status == PLIM_OK)
        status = build(&step[1], budget, false, error);
    if (status == PLIM_OK)
        status = add_updates(&step[0], error);
    if (status == PLIM_OK)
        status = plim_program_make(&program, (plim_graph *[]){step[0].graph, step[1].graph}, 2, NULL, error);
    if (status == PLIM_OK)
        status = train(program, step, budget, error);
    plim_program_free(program);
    plim_graph_free(step[0].graph);
    plim_graph_free(step[1].graph);
    return status;
}

int main(void)
{
    plim_budget *budget;
    plim_error error = {0};
    plim_status status = plim_budget_make(&budget, 8 << 20, &error);
    if (status == PLIM_OK) {
        status = run(budget, &error);
        plim_budget_free(budget);
    }
    if (status != PLIM_OK)
        fprintf(stderr, "custom_loop: %s%s%s%s%s\n", error.where, *error.where ? ": " : "", error.message,
                *error.hint ? "; try: " : "", error.hint);
    return plim_status_exit(status);
}
