/* test_api_graph.c - loops of one's own, as a C program writes them: nothing but plimsoll.h. */
#include "api_graph_support.h"

#include <math.h>
#include <unistd.h>

#define DATA                                                                                                           \
    "{random: {elements: 200, shape: [6], classes: 3, seed: 1, learnable: true}, "                                     \
    "pipeline: [shuffle: exact, batch: 32]}"

static void path_of(char out[256], const char *name)
{
    snprintf(out, 256, "%s/plim-api-graph-%ld-%s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (long)getpid(), name);
}

static size_t load(char *out, size_t capacity, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t bytes = fread(out, 1, capacity, file);
    fclose(file);
    return bytes;
}

/* The weights that a job ends with. */
static void train_job(const char *weights, const char *model, const char *optimizer, const char *loss)
{
    char path[256], text[2048];
    plim_job *job;
    plim_error error = {0};
    path_of(path, "job.yaml");
    snprintf(text, sizeof text,
             "memory: 256MiB\nthreads: 1\nseed: 7\ndata:\n  train: %s\nmodel: %s\n"
             "train: {optimizer: %s, loss: %s, epochs: 3, callbacks: [checkpoint: none], save_weights: %s}\n",
             DATA, model, optimizer, loss, weights);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    plim_status status = plim_job_open(&job, path, NULL, &error);
    if (status == PLIM_OK)
        status = plim_job_train(job, NULL, NULL, &error);
    if (status != PLIM_OK)
        fail_msg("%s: %s; %s", error.where, error.message, error.hint);
    plim_job_close(job);
    unlink(path);
}

/* Three epochs of the same data. */
static void run_epochs(plim_program *program, plim_budget *budget)
{
    plim_dataset *data = plim_dataset_read(budget, DATA, 7);
    plim_iterator *iterator;
    const plim_batch *batch;
    good(plim_iterator_open(&iterator, data, budget, &(plim_iterator_options){.seed = 7}, &told));
    for (int epoch = 0; epoch < 3;) {
        good(plim_iterator_next(&batch, iterator, &told));
        if (batch)
            good(plim_program_run(program, 0, batch, &told));
        else
            epoch++;
    }
    plim_iterator_close(iterator);
    plim_dataset_unref(data);
}

static void same_files(const char *a, const char *b)
{
    static char first[65536], second[65536];
    size_t bytes = load(first, sizeof first, a);
    assert_true(bytes > 0 && bytes == load(second, sizeof second, b));
    assert_memory_equal(first, second, bytes);
    unlink(a);
    unlink(b);
}

/* A graph over x and label, and the first batch of data that may have other columns. */
static plim_status run_first(plim_error *error, plim_type label_type, int64_t width, const char *data)
{
    plim_budget *budget = budget_of(32 * MIB);
    plim_graph *graph = graph_of(budget, 32, false);
    plim_program *program;
    plim_iterator *iterator;
    const plim_batch *batch;
    plim_value *inputs[2] = {plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(width)),
                             plim_graph_input(graph, "label", label_type, SCALAR)};
    plim_graph_result(graph, plim_op(graph, "sum", inputs, 1, NULL), "sum");
    plim_graph_result(graph, plim_op(graph, "cast", inputs + 1, 1, "float32"), "labels");
    good(plim_program_make(&program, &graph, 1, NULL, &told));
    plim_dataset *dataset = plim_dataset_read(budget, data, 7);
    good(plim_iterator_open(&iterator, dataset, budget, NULL, &told));
    good(plim_iterator_next(&batch, iterator, &told));
    plim_status status = plim_program_run(program, 0, batch, error);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    plim_program_free(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
    return status;
}

static void batches_that_do_not_fit_are_refused(void **state)
{
    static const char data[] = "{random: {elements: 64, shape: [10], classes: 3}, pipeline: [batch: 32]}";
    plim_error error = {0};
    (void)state;
    assert_int_equal(PLIM_OK, run_first(&error, PLIM_INT32, 10, data));
    assert_int_equal(run_first(&error, PLIM_INT32, 100000, data), PLIM_USAGE);
    assert_non_null(strstr(error.message, "(None, 100000)"));
    assert_non_null(strstr(error.message, "(None, 10)"));
    assert_int_equal(run_first(&error, PLIM_INT32, 9, data), PLIM_USAGE);
    assert_int_equal(run_first(&error, PLIM_FLOAT32, 10, data), PLIM_USAGE);
    assert_non_null(strstr(error.message, "int32"));
    assert_int_equal(run_first(&error, PLIM_INT32, 10, "{range: 64, pipeline: [batch: 32]}"), PLIM_USAGE);
    assert_int_equal(PLIM_OK, run_first(&error, PLIM_INT32, 10,
                                        "{random: {elements: 64, shape: [5, 2], classes: 3}, pipeline: [batch: 32]}"));
}

/* Layers, loss and optimizer by the words of the job: the same bits. */
static void layers_train_like_a_job(void **state)
{
    static const char model[] =
        "[Dense: {units: 16, activation: relu}, Dropout: 0.2, Dense: {units: 3, activation: softmax}]";
    char ours[256], theirs[256];
    plim_budget *budget = budget_of(32 * MIB);
    uint64_t before = held(budget);
    plim_graph *graph = graph_of(budget, 32, true);
    plim_program *program;
    plim_value *weights[8], *gradients[8];
    (void)state;
    path_of(ours, "ours");
    path_of(theirs, "theirs");
    train_job(theirs, model, "adam", "sparse_categorical_crossentropy");
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(6));
    plim_value *label = plim_graph_input(graph, "label", PLIM_INT32, SCALAR);
    plim_value *y = plim_layers_apply(graph, plim_layers_read(graph, model), &x, 1);
    plim_value *loss = plim_loss(graph, "sparse_categorical_crossentropy", y, label);
    int count = plim_graph_weights(weights, 8, graph);
    assert_int_equal(count, 4);
    good(plim_graph_gradients(gradients, graph, loss, weights, count, &told));
    plim_graph_update(graph, "adam", NULL, weights, gradients, count);
    plim_graph_result(graph, loss, "loss");
    good(plim_graph_check(graph, &told));
    good(plim_program_make(&program, &graph, 1, &(plim_program_options){.threads = 2}, &told));
    plim_graph_free(graph); /* stays with its program */
    run_epochs(program, budget);
    good(plim_program_save(program, ours, &told));
    plim_program_free(program);
    assert_int_equal(held(budget), before);
    plim_budget_free(budget);
    same_files(ours, theirs);
}

/* The same model from single ops and weights of its own, and a loss that is written out: the same but for rounding. */
static void ops_train_like_a_job(void **state)
{
    static const char model[] = "[Dense: {units: 16, activation: tanh}, Dense: {units: 3, activation: softmax}]";
    char theirs[256];
    plim_budget *budget = budget_of(32 * MIB);
    plim_graph *graph = graph_of(budget, 32, true);
    plim_program *program;
    plim_value *gradients[4];
    (void)state;
    path_of(theirs, "theirs");
    train_job(theirs, model, "{sgd: {learning_rate: 0.1, momentum: 0.9}}", "sparse_categorical_crossentropy");
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(6));
    plim_value *label = plim_graph_input(graph, "label", PLIM_INT32, SCALAR);
    plim_value *w[4] = {plim_graph_weight(graph, "dense/kernel", SHAPE(6, 16), "glorot_uniform", true),
                        plim_graph_weight(graph, "dense/bias", SHAPE(16), NULL, true),
                        plim_graph_weight(graph, "dense_1/kernel", SHAPE(16, 3), "glorot_uniform", true),
                        plim_graph_weight(graph, "dense_1/bias", SHAPE(3), NULL, true)};
    plim_value *y = plim_op(graph, "add", LIST(plim_op(graph, "matmul", LIST(x, w[0]), NULL), w[1]), NULL);
    y = plim_op(graph, "tanh", &y, 1, NULL);
    y = plim_op(graph, "add", LIST(plim_op(graph, "matmul", LIST(y, w[2]), NULL), w[3]), NULL);
    plim_value *chosen = plim_op(graph, "one_hot", &label, 1, "3");
    plim_value *log_p = plim_op(graph, "log_softmax", &y, 1, NULL);
    plim_value *values = plim_op(graph, "sum", LIST(plim_op(graph, "multiply", LIST(chosen, log_p), NULL)), "-1");
    values = plim_op(graph, "negative", &values, 1, NULL);
    plim_value *loss = plim_op(graph, "mean", &values, 1, NULL);
    good(plim_graph_gradients(gradients, graph, loss, w, 4, &told));
    plim_value *rate = plim_graph_update(graph, "{sgd: {learning_rate: 0.1, momentum: 0.9}}", NULL, w, gradients, 4);
    plim_graph_result(graph, loss, "loss");
    good(plim_program_make(&program, &graph, 1, NULL, &told));
    run_epochs(program, budget);
    float own[4][96], number;
    for (int i = 0; i < 4; i++) {
        static const size_t counts[] = {96, 16, 48, 3};
        good(plim_program_read(own[i], counts[i] * sizeof(float), program, w[i], &told));
    }
    good(plim_program_read(&number, sizeof number, program, rate, &told));
    assert_true(number == 0.1f);
    good(plim_program_load(program, theirs, &told));
    for (int i = 0; i < 4; i++) {
        static const size_t counts[] = {96, 16, 48, 3};
        float other[96];
        good(plim_program_read(other, counts[i] * sizeof(float), program, w[i], &told));
        for (size_t k = 0; k < counts[i]; k++)
            if (!(fabsf(own[i][k] - other[k]) <= 2e-6f))
                fail_msg("weight %d, element %zu: %g and %g", i, k, (double)own[i][k], (double)other[k]);
    }
    plim_program_free(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
    unlink(theirs);
}

/* Two outputs, each with a loss: the sum trains the trunk. */
static void layers_of_two_outputs(void **state)
{
    static const char text[] =
        "{outputs: [a, b], layers: [Dense: {units: 4, name: trunk}, "
        "Dense: {units: 3, activation: softmax, name: a}, Dense: {units: 1, name: b, inputs: trunk}]}";
    plim_budget *budget = budget_of(32 * MIB);
    plim_graph *graph = graph_of(budget, 8, true);
    plim_value *weights[8], *gradients[8], *y[2];
    plim_error refused = {0};
    int64_t shape[PLIM_MOST_AXES];
    (void)state;
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(6));
    plim_value *label = plim_graph_input(graph, "label", PLIM_INT32, SCALAR);
    plim_value *number = plim_graph_input(graph, "number", PLIM_FLOAT32, SCALAR);
    plim_layers *layers = plim_layers_read(graph, text);
    assert_int_equal(plim_layers_outputs(layers), 2);
    plim_layers_apply_all(y, 2, graph, layers, &x, 1);
    assert_true(plim_value_shape(shape, y[0]) == 2 && shape[1] == 3);
    assert_true(plim_value_shape(shape, y[1]) == 2 && shape[1] == 1);
    plim_value *loss = plim_op(
        graph, "add",
        LIST(plim_loss(graph, "sparse_categorical_crossentropy", y[0], label), plim_loss(graph, "mse", y[1], number)),
        NULL);
    int count = plim_graph_weights(weights, 8, graph);
    assert_int_equal(count, 6);
    good(plim_graph_gradients(gradients, graph, loss, weights, count, &told));
    for (int i = 0; i < count; i++)
        assert_non_null(gradients[i]);
    assert_null(plim_layers_apply(graph, layers, &x, 1)); /* takes one output */
    assert_int_equal(plim_graph_check(graph, &refused), PLIM_USAGE);
    assert_non_null(strstr(refused.message, "2 outputs"));
    plim_graph_free(graph);
    plim_budget_free(budget);
}

/* ---- gradients ---- */

static double loss_at(plim_program *program, plim_value *w, plim_value *loss, const float *weights, plim_batch *batch)
{
    float value;
    good(plim_program_write(program, w, weights, 12 * sizeof(float), &told));
    good(plim_program_run(program, 0, batch, &told));
    good(plim_program_read(&value, sizeof value, program, loss, &told));
    return (double)value;
}

/* A loss of one's own against differences, of a weight and of an input. */
static void gradients_are_slopes(void **state)
{
    plim_budget *budget = budget_of(16 * MIB);
    plim_graph *graph = graph_of(budget, 5, true);
    plim_program *program;
    plim_value *gradients[2];
    float x_data[20], t_data[15], weights[12], got[12], d_x[20];
    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        x_data[i] = number_at(i);
    for (uint32_t i = 0; i < 15; i++)
        t_data[i] = number_at(100 + i);
    for (uint32_t i = 0; i < 12; i++)
        weights[i] = number_at(200 + i);
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(4));
    plim_value *t = plim_graph_input(graph, "t", PLIM_FLOAT32, SHAPE(3));
    plim_value *w = plim_graph_weight(graph, "w", SHAPE(4, 3), NULL, true);
    /* log(1 + (y - t)^2) + 0.1 |y|, the mean over the last axis, and 0.01 |w|^2. */
    plim_value *y = plim_op(graph, "matmul", LIST(x, w), NULL);
    plim_value *far = plim_op(graph, "log1p", LIST(plim_op(graph, "squared_difference", LIST(y, t), NULL)), NULL);
    plim_value *size = plim_op(graph, "multiply", LIST(plim_op(graph, "abs", &y, 1, NULL)), "0.1");
    plim_value *loss = plim_op(graph, "mean", LIST(plim_op(graph, "add", LIST(far, size), NULL)), NULL);
    loss = plim_op(graph, "add", LIST(loss, plim_op(graph, "penalty", &w, 1, "{l2: 0.01}")), NULL);
    good(plim_graph_gradients(gradients, graph, loss, LIST(w, x), &told));
    plim_graph_result(graph, loss, "loss");
    plim_graph_result(graph, gradients[0], "dw");
    plim_graph_result(graph, gradients[1], "dx");
    good(plim_program_make(&program, &graph, 1, NULL, &told));
    plim_batch batch = {.count = 5, .column = {x_data, t_data}};
    loss_at(program, w, loss, weights, &batch);
    good(plim_program_read(got, sizeof got, program, gradients[0], &told));
    good(plim_program_read(d_x, sizeof d_x, program, gradients[1], &told));
    const float step = 1e-2f;
    for (int i = 0; i < 12 + 20; i++) {
        float *at = i < 12 ? &weights[i] : &x_data[i - 12], kept = *at, slope = i < 12 ? got[i] : d_x[i - 12];
        *at = kept + step;
        double above = loss_at(program, w, loss, weights, &batch);
        *at = kept - step;
        double below = loss_at(program, w, loss, weights, &batch);
        *at = kept;
        double expected = (above - below) / (2.0 * (double)step);
        if (fabs(expected - (double)slope) > 1e-3)
            fail_msg("number %d: %g, by differences %g", i, (double)slope, expected);
    }
    plim_program_free(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
}

/* ---- two graphs ---- */

/* A step of training and one of evaluation, of another batch: the same weights, dropout in one alone. */
static void graphs_share_weights(void **state)
{
    static const char model[] = "[Dense: 4, BatchNormalization, Dropout: 0.5, Dense: {units: 2, name: head}]";
    plim_budget *budget = budget_of(16 * MIB);
    plim_graph *graph[2] = {graph_of(budget, 8, true), graph_of(budget, 3, false)};
    plim_value *x[2], *y[2], *loss, *weights[8], *gradients[8];
    plim_program *program;
    (void)state;
    for (int g = 0; g < 2; g++) {
        x[g] = plim_graph_input(graph[g], "x", PLIM_FLOAT32, SHAPE(5));
        y[g] = plim_layers_apply(graph[g], plim_layers_read(graph[g], model), &x[g], 1);
        plim_graph_result(graph[g], y[g], "y");
    }
    plim_value *t = plim_graph_input(graph[0], "t", PLIM_FLOAT32, SHAPE(2));
    loss = plim_loss(graph[0], "mse", y[0], t);
    plim_graph_result(graph[0], loss, "loss");
    int count = plim_graph_weights(weights, 8, graph[0]);
    assert_int_equal(count, 6);
    good(plim_graph_gradients(gradients, graph[0], loss, weights, count, &told));
    plim_graph_update(graph[0], "{sgd: 0.1}", NULL, weights, gradients, count);
    good(plim_program_make(&program, graph, 2, NULL, &told));
    float data[40], target[16], first[6], second[6], drawn[2][16];
    for (uint32_t i = 0; i < 40; i++)
        data[i] = number_at(i);
    for (uint32_t i = 0; i < 16; i++)
        target[i] = number_at(50 + i);
    const plim_batch train = {.count = 8, .column = {data, target}}, evaluate = {.count = 3, .column = {data}};
    plim_error error = {0};
    good(plim_program_run(program, 1, &evaluate, &told));
    good(plim_program_read(first, sizeof first, program, y[1], &told));
    assert_int_equal(plim_program_read(drawn[0], 4, program, loss, &error), PLIM_USAGE); /* not of this graph's run */
    for (int step = 0; step < 2; step++) {
        good(plim_program_run(program, 0, &train, &told));
        good(plim_program_read(drawn[step], sizeof drawn[step], program, y[0], &told));
    }
    assert_memory_not_equal(drawn[0], drawn[1], sizeof drawn[0]); /* other weights, other elements dropped */
    good(plim_program_run(program, 1, &evaluate, &told));
    good(plim_program_read(second, sizeof second, program, y[1], &told));
    assert_memory_not_equal(first, second, sizeof first);
    good(plim_program_run(program, 1, &evaluate, &told));
    good(plim_program_read(first, sizeof first, program, y[1], &told));
    assert_memory_equal(first, second, sizeof first);
    plim_program_free(program);
    plim_graph_free(graph[0]);
    plim_graph_free(graph[1]);
    plim_budget_free(budget);
}

/* Two optimizers over two graphs that write weights of their own, one set of layers used twice: a small GAN. */
static void players_take_turns(void **state)
{
    plim_budget *budget = budget_of(32 * MIB);
    plim_graph *graph[2] = {graph_of(budget, 4, true), graph_of(budget, 4, true)};
    plim_value *real = NULL, *noise[2], *fake[2], *score[2], *weights[8], *gradients[8], *loss[2];
    plim_program *program;
    (void)state;
    for (int g = 0; g < 2; g++) {
        noise[g] = plim_graph_input(graph[g], "noise", PLIM_FLOAT32, SHAPE(2));
        plim_layers *maker = plim_layers_read(graph[g], "[Dense: {units: 3, name: maker}]");
        plim_layers *judge = plim_layers_read(graph[g], "[Dense: {units: 1, name: judge}]");
        fake[g] = plim_layers_apply(graph[g], maker, &noise[g], 1);
        score[g] = plim_layers_apply(graph[g], judge, &fake[g], 1);
        loss[g] = plim_op(graph[g], "mean", LIST(plim_op(graph[g], "softplus", &score[g], 1, NULL)), NULL);
        if (g == 0) {
            real = plim_graph_input(graph[g], "real", PLIM_FLOAT32, SHAPE(3));
            plim_value *right = plim_layers_apply(graph[g], judge, &real, 1);
            right = plim_op(graph[g], "softplus", LIST(plim_op(graph[g], "negative", &right, 1, NULL)), NULL);
            loss[g] = plim_op(graph[g], "add", LIST(loss[g], plim_op(graph[g], "mean", &right, 1, NULL)), NULL);
        }
        const char *who = g == 0 ? "judge" : "maker";
        char name[2][32];
        snprintf(name[0], sizeof name[0], "%s/kernel", who);
        snprintf(name[1], sizeof name[1], "%s/bias", who);
        for (int i = 0; i < 2; i++)
            weights[i] = plim_graph_find(graph[g], name[i]);
        good(plim_graph_gradients(gradients, graph[g], loss[g], weights, 2, &told));
        snprintf(name[0], sizeof name[0], "%s_optimizer", who);
        plim_graph_update(graph[g], "adam", name[0], weights, gradients, 2);
        plim_graph_result(graph[g], loss[g], "loss");
    }
    good(plim_program_make(&program, graph, 2, NULL, &told));
    float data[12], kernels[2][2][6];
    int64_t steps;
    for (uint32_t i = 0; i < 12; i++)
        data[i] = number_at(i);
    const plim_batch batch[2] = {{.count = 4, .column = {data, data}}, {.count = 4, .column = {data}}};
    plim_value *judge = plim_graph_find(graph[1], "judge/kernel"), *maker = plim_graph_find(graph[0], "maker/kernel");
    for (int turn = 0; turn < 2; turn++) {
        good(plim_program_run(program, turn, &batch[turn], &told));
        good(plim_program_read(kernels[turn][0], 3 * sizeof(float), program, judge, &told));
        good(plim_program_read(kernels[turn][1], 6 * sizeof(float), program, maker, &told));
    }
    assert_memory_equal(kernels[0][0], kernels[1][0], 3 * sizeof(float)); /* the second turn is the maker's */
    assert_memory_not_equal(kernels[0][1], kernels[1][1], 6 * sizeof(float));
    good(plim_program_read(&steps, sizeof steps, program, plim_graph_find(graph[1], "maker_optimizer/iteration"),
                           &told));
    assert_int_equal(steps, 1);
    plim_program_free(program);
    plim_graph_free(graph[0]);
    plim_graph_free(graph[1]);
    plim_budget_free(budget);
}

/* ---- states ---- */

/* Gradients that are kept over steps, and a running count. */
static void states_last(void **state)
{
    plim_budget *budget = budget_of(8 * MIB);
    plim_graph *graph = graph_of(budget, 2, true);
    plim_program *program;
    plim_value *gradient;
    (void)state;
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(2));
    plim_value *w = plim_graph_weight(graph, "w", SHAPE(2), "ones", true);
    plim_value *sum = plim_graph_state(graph, "sum", PLIM_FLOAT32, SHAPE(2), 0);
    plim_value *last = plim_graph_state(graph, "last", PLIM_FLOAT32, SHAPE(1), -1);
    plim_value *product = plim_op(graph, "multiply", LIST(x, w), NULL);
    plim_value *loss = plim_op(graph, "sum", &product, 1, NULL);
    good(plim_graph_gradients(&gradient, graph, loss, &w, 1, &told));
    plim_graph_assign_add(graph, sum, gradient);
    plim_graph_assign(graph, last, loss);
    good(plim_program_make(&program, &graph, 1, NULL, &told));
    float data[4] = {1, 2, 3, 4}, got[2];
    good(plim_program_read(got, sizeof got[0], program, last, &told));
    assert_true(got[0] == -1);
    uint64_t now = held(budget);
    for (int step = 0; step < 3; step++)
        good(plim_program_run(program, 0, &(plim_batch){.count = 2, .column = {data}}, &told));
    assert_int_equal(held(budget), now); /* running takes nothing */
    good(plim_program_read(got, sizeof got, program, sum, &told));
    assert_true(got[0] == 12 && got[1] == 18);
    good(plim_program_run(program, 0, &(plim_batch){.count = 1, .column = {data}}, &told));
    good(plim_program_read(got, sizeof got, program, sum, &told));
    assert_true(got[0] == 13 && got[1] == 20); /* of one sample */
    good(plim_program_read(got, sizeof got[0], program, last, &told));
    assert_true(got[0] == 3);
    good(plim_program_write(program, sum, (float[]){0, 0}, 8, &told));
    good(plim_program_read(got, sizeof got, program, sum, &told));
    assert_true(got[0] == 0 && got[1] == 0);
    plim_program_free(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
}

/* top_k's places, parts of an axis, regularised layers. */
static void outputs_are_parts(void **state)
{
    plim_budget *budget = budget_of(8 * MIB);
    plim_graph *graph = graph_of(budget, 1, true);
    plim_program *program;
    plim_value *parts[2];
    (void)state;
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(5));
    plim_value *best = plim_op(graph, "top_k", &x, 1, "2"), *places = plim_op_output(graph, best, 1);
    plim_op_split(parts, graph, x, -1, SHAPE(2, 3));
    plim_layers *layers =
        plim_layers_read(graph, "[Dense: {units: 1, kernel_initializer: ones, kernel_regularizer: {l2: 0.5}}]");
    plim_value *y = plim_layers_apply(graph, layers, &x, 1);
    plim_value *loss = plim_layers_penalties(graph, plim_op(graph, "mean", &y, 1, NULL));
    plim_graph_result(graph, best, "best");
    plim_graph_result(graph, places, "places");
    plim_graph_result(graph, parts[0], "first");
    plim_graph_result(graph, parts[1], "second");
    plim_graph_result(graph, loss, "loss");
    assert_int_equal(plim_value_type(places), PLIM_INT32);
    good(plim_program_make(&program, &graph, 1, NULL, &told));
    float data[5] = {1, 5, 3, 7, 2}, got[3];
    int32_t at[2];
    good(plim_program_run(program, 0, &(plim_batch){.count = 1, .column = {data}}, &told));
    good(plim_program_read(got, 2 * sizeof(float), program, best, &told));
    good(plim_program_read(at, sizeof at, program, places, &told));
    assert_true(got[0] == 7 && got[1] == 5 && at[0] == 3 && at[1] == 1);
    good(plim_program_read(got, sizeof got, program, parts[1], &told));
    assert_true(got[0] == 3 && got[1] == 7 && got[2] == 2);
    good(plim_program_read(got, sizeof(float), program, loss, &told));
    assert_true(got[0] == 18 + 2.5f);
    plim_program_free(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
}

/* A model that Keras wrote (golden/make_keras.py says its numbers), beside a weight of one's own. */
static void a_keras_file_brings_its_weights(void **state)
{
    plim_budget *budget = budget_of(32 * MIB);
    plim_graph *graph = graph_of(budget, 2, false);
    plim_program *program;
    char path[1024];
    (void)state;
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/keras/sequential.keras");
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(6, 6, 1));
    plim_value *scale = plim_graph_weight(graph, "scale", SHAPE(1), "{constant: 3}", true);
    plim_value *y = plim_layers_apply(graph, plim_layers_read(graph, path), &x, 1);
    plim_graph_result(graph, plim_op(graph, "multiply", LIST(y, scale), NULL), "y");
    good(plim_program_make(&program, &graph, 1, NULL, &told));
    float got[4], own;
    good(plim_program_read(got, sizeof got, program, plim_graph_find(graph, "hidden/bias"), &told));
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == 4 + (float)i / 64);
    good(plim_program_read(&own, sizeof own, program, scale, &told));
    assert_true(own == 3);
    plim_program_free(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
}

/* ---- what is refused ---- */

static void refused(plim_status got, const plim_error *error, plim_status status, const char *says)
{
    if (got != status || !strstr(error->message, says))
        fail_msg("status %d, \"%s\"; wanted \"%s\"", (int)got, error->message, says);
}

static void graphs_are_not_mixed(void **state)
{
    plim_budget *budget = budget_of(8 * MIB);
    plim_error error = {0};
    (void)state;
    plim_graph *graph = graph_of(budget, 4, true), *other = graph_of(budget, 4, true);
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(3));
    assert_null(plim_op(other, "relu", &x, 1, NULL));
    refused(plim_graph_check(other, &error), &error, PLIM_USAGE, "another graph");
    plim_graph_free(other);
    other = graph_of(budget, 4, true);
    plim_value *fed = plim_graph_input(other, "x", PLIM_FLOAT32, SHAPE(3));
    plim_layers *layers = plim_layers_read(graph, "- Dense: 2");
    assert_non_null(plim_layers_apply(graph, layers, &x, 1));
    assert_null(plim_layers_apply(other, layers, &fed, 1));
    refused(plim_graph_check(other, &error), &error, PLIM_USAGE, "layers are of another graph");
    plim_graph_free(other);
    other = graph_of(budget, 4, true);
    assert_null(plim_graph_state(other, "constant/float32/2", PLIM_FLOAT32, SHAPE(5), 7));
    refused(plim_graph_check(other, &error), &error, PLIM_USAGE, "the library's");
    plim_graph_free(other);
    plim_graph_free(graph);
    plim_budget_free(budget);
}

static void graphs_without_an_end_are_told(void **state)
{
    plim_budget *budget = budget_of(8 * MIB);
    plim_error error = {0};
    plim_value *gradient;
    plim_program *program = NULL;
    (void)state;
    plim_graph *graph = graph_of(budget, 4, true);
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(3));
    refused(plim_program_make(&program, &graph, 1, NULL, &error), &error, PLIM_USAGE, "computes nothing");
    plim_value *y = plim_op(graph, "relu", &x, 1, NULL);
    refused(plim_program_make(&program, &graph, 1, NULL, &error), &error, PLIM_USAGE, "computes nothing");
    refused(plim_graph_gradients(&gradient, graph, y, &x, 1, &error), &error, PLIM_USAGE, "one number");
    assert_non_null(strstr(error.hint, "mean"));
    plim_graph_free(graph);
    plim_budget_free(budget);
}

static void what_gradients_took_in_is_gone(void **state)
{
    plim_budget *budget = budget_of(8 * MIB);
    plim_error error = {0};
    plim_value *gradient;
    plim_program *program = NULL;
    (void)state;
    plim_graph *graph = graph_of(budget, 4, true);
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(3));
    plim_value *w = plim_graph_weight(graph, "w", SHAPE(3, 2), "he_normal", true);
    plim_value *z = plim_op(graph, "matmul", LIST(x, w), NULL), *y = plim_op(graph, "relu", &z, 1, NULL);
    plim_value *loss = plim_op(graph, "mean", &y, 1, NULL);
    good(plim_graph_gradients(&gradient, graph, loss, &w, 1, &told));
    assert_null(plim_op(graph, "exp", &z, 1, NULL)); /* relu took it in */
    refused(plim_graph_check(graph, &error), &error, PLIM_USAGE, "when gradients were taken");
    refused(plim_program_make(&program, &graph, 1, NULL, &error), &error, PLIM_USAGE, "when gradients were taken");
    assert_null(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
}

static void programs_are_used_as_made(void **state)
{
    plim_budget *budget = budget_of(8 * MIB);
    plim_error error = {0};
    plim_program *program = NULL;
    (void)state;
    plim_graph *graph = graph_of(budget, 4, true);
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(3)), *y = plim_op(graph, "relu", &x, 1, NULL);
    plim_value *unread = plim_op(graph, "exp", &x, 1, NULL), *kept = plim_op(graph, "exp", &y, 1, NULL);
    plim_graph_result(graph, kept, "kept");
    good(plim_program_make(&program, &graph, 1, NULL, &told));
    float data[12] = {0}, out[12];
    const plim_batch whole = {.count = 4, .column = {data}}, large = {.count = 5, .column = {data}},
                     empty = {.count = 4};
    refused(plim_program_run(program, 1, &whole, &error), &error, PLIM_USAGE, "no graph 1");
    refused(plim_program_run(program, 0, &large, &error), &error, PLIM_USAGE, "5 samples");
    refused(plim_program_run(program, 0, &empty, &error), &error, PLIM_USAGE, "column 0");
    refused(plim_program_read(out, 48, program, kept, &error), &error, PLIM_USAGE, "last one to run");
    good(plim_program_run(program, 0, &whole, &told));
    good(plim_program_read(out, 24, program, kept, &told));
    refused(plim_program_read(out, 20, program, kept, &error), &error, PLIM_USAGE, "48 bytes in rows");
    refused(plim_program_read(out, 48, program, y, &error), &error, PLIM_USAGE, "outlive");
    refused(plim_program_read(out, 48, program, unread, &error), &error, PLIM_USAGE, "no value");
    refused(plim_program_write(program, kept, out, 48, &error), &error, PLIM_USAGE, "result");
    assert_null(plim_op(graph, "exp", &x, 1, NULL));
    refused(plim_graph_check(graph, &error), &error, PLIM_USAGE, "nothing can be added");
    plim_program_free(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
}

static void words_are_checked(void **state)
{
    static const struct {
        const char *initializer, *layers, *loss, *optimizer, *says;
    } cases[] = {
        {"glorot", NULL, NULL, NULL, "glorot"},
        {NULL, "[Dens: 4]", NULL, NULL, "Dens"},
        {NULL, "[Dense: {units: 0}]", NULL, NULL, "units"},
        {NULL, "[Dense: 4", NULL, NULL, ""},
        {NULL, "no-such-file.keras", NULL, NULL, "no-such-file.keras"},
        {NULL, "[Conv2D: {filters: 1, kernel_size: 2}]", NULL, NULL, "(None, 3)"},
        {NULL, NULL, "mean_squared", NULL, "mean_squared"},
        {NULL, NULL, "sparse_categorical_crossentropy", NULL, "(None, 3)"},
        {NULL, NULL, NULL, "adm", "adm"},
        {NULL, NULL, NULL, "{sgd: {learning_rate: -1}}", "learning_rate"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        plim_budget *budget = budget_of(8 * MIB);
        plim_error error = {0};
        plim_graph *graph = graph_of(budget, 4, true);
        plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(3)), *gradient = NULL;
        plim_value *w = plim_graph_weight(graph, "w", SHAPE(3), cases[i].initializer, true);
        plim_value *y = plim_op(graph, "multiply", LIST(x, w), NULL);
        if (cases[i].layers)
            y = plim_layers_apply(graph, plim_layers_read(graph, cases[i].layers), &x, 1);
        plim_value *loss = plim_loss(graph, cases[i].loss ? cases[i].loss : "mse", y, x);
        (void)plim_graph_gradients(&gradient, graph, loss, &w, 1, NULL);
        plim_graph_update(graph, cases[i].optimizer ? cases[i].optimizer : "adam", NULL, &w, &gradient, 1);
        plim_status status = plim_graph_check(graph, &error);
        char all[1100];
        snprintf(all, sizeof all, "%s: %s; %s", error.where, error.message, error.hint);
        if (status == PLIM_OK || !strstr(all, cases[i].says))
            fail_msg("case %d: status %d, \"%s\"; wanted \"%s\"", i, (int)status, all, cases[i].says);
        plim_graph_free(graph);
        plim_budget_free(budget);
    }
}

/* A budget that is too small is refused with the number that would do, and that number does. */
static void over_budget_says_how_much(void **state)
{
    uint64_t bytes = 256 * 1024;
    bool refused_once = false;
    (void)state;
    for (int attempt = 0; attempt < 20; attempt++) {
        plim_budget *budget = budget_of(bytes);
        plim_error error = {0};
        plim_program *program = NULL;
        plim_graph *graph = NULL;
        plim_status status =
            plim_graph_make(&graph, budget, &(plim_graph_options){.batch = 64, .training = true}, &error);
        if (status == PLIM_OK) {
            plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(1000));
            plim_value *w = plim_graph_weight(graph, "w", SHAPE(1000, 500), "ones", true);
            plim_graph_result(graph, plim_op(graph, "matmul", LIST(x, w), NULL), "y");
            status = plim_program_make(&program, &graph, 1, &(plim_program_options){.threads = 1, .in_memory = true},
                                       &error);
        }
        unsigned long long needs = 0;
        const char *at = strstr(error.message, "the program needs ");
        if (status == PLIM_OVER_BUDGET && at && sscanf(at, "the program needs %llu bytes", &needs) == 1) {
            assert_true(needs > bytes && !refused_once);
            refused_once = true;
        }
        if (status == PLIM_OK)
            assert_true(plim_program_bytes(program) > 2000000 && plim_program_bytes(program) < bytes);
        plim_program_free(program);
        plim_graph_free(graph);
        plim_budget_free(budget);
        if (status == PLIM_OK) {
            assert_true(refused_once);
            return;
        }
        assert_int_equal(status, PLIM_OVER_BUDGET);
        bytes = needs ? needs : bytes + bytes / 4;
    }
    fail_msg("never fits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_train_like_a_job),
        cmocka_unit_test(batches_that_do_not_fit_are_refused),
        cmocka_unit_test(ops_train_like_a_job),
        cmocka_unit_test(layers_of_two_outputs),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(graphs_share_weights),
        cmocka_unit_test(players_take_turns),
        cmocka_unit_test(states_last),
        cmocka_unit_test(outputs_are_parts),
        cmocka_unit_test(a_keras_file_brings_its_weights),
        cmocka_unit_test(graphs_are_not_mixed),
        cmocka_unit_test(graphs_without_an_end_are_told),
        cmocka_unit_test(what_gradients_took_in_is_gone),
        cmocka_unit_test(programs_are_used_as_made),
        cmocka_unit_test(words_are_checked),
        cmocka_unit_test(over_budget_says_how_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
