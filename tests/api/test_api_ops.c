/* test_api_ops.c - every op word, run forwards and backwards once; and what is said when one does not fit. */
#include "api_graph_support.h"

#include <math.h>

#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"

#define BATCH 3

struct example {
    plim_graph *graph;
    plim_value *input[4], *real[4];
    int count, reals;
    plim_batch batch;
    char data[4][4096];
};

/* "x43": a batch of (4, 3). */
static void add_input(struct example *example, const char *token, size_t length)
{
    int64_t shape[4];
    int rank = 0, i = example->count;
    char name[16];
    for (size_t k = 1; k < length; k++)
        shape[rank++] = token[k] - '0';
    snprintf(name, sizeof name, "%.*s_%d", (int)length, token, i);
    plim_type type = token[0] == 'i' ? PLIM_INT32 : token[0] == 'b' ? PLIM_BOOL : PLIM_FLOAT32;
    int64_t elements = BATCH;
    for (int k = 0; k < rank; k++)
        elements *= shape[k];
    for (int64_t k = 0; k < elements; k++) {
        float x = number_at((uint32_t)(1000 * i + k));
        if (type == PLIM_INT32)
            ((int32_t *)example->data[i])[k] = (int32_t)(k % 2);
        else if (type == PLIM_BOOL)
            ((bool *)example->data[i])[k] = x > 0;
        else
            ((float *)example->data[i])[k] = token[0] == 'p' ? 0.6f + 0.4f * x : x;
    }
    if (token[0] == 'w') {
        example->input[i] = plim_graph_weight(example->graph, name, shape, rank, "glorot_uniform", true);
    } else {
        int column = 0;
        while (example->batch.column[column])
            column++;
        example->batch.column[column] = example->data[i];
        example->input[i] = plim_graph_input(example->graph, name, type, shape, rank);
    }
    if (type == PLIM_FLOAT32)
        example->real[example->reals++] = example->input[i];
    example->count++;
}

static void open_example(struct example *example, plim_budget *budget, const char *inputs)
{
    memset(example, 0, sizeof *example);
    example->batch.count = BATCH;
    example->graph = graph_of(budget, BATCH, true);
    for (const char *at = inputs; *at; at += *at == ' ') {
        size_t length = strcspn(at, " ");
        add_input(example, at, length);
        at += length;
    }
}

/* Those whose slope is nowhere: their ops say so. */
static bool is_flat(const char *word)
{
    for (int i = 0; i < op_words_count; i++)
        if (strcmp(word, op_words[i].name) == 0)
            return op_words[i].op && op_words[i].op->no_gradient;
    return false;
}

static void check_numbers(const plim_program *program, const plim_value *value, const char *word)
{
    int64_t shape[PLIM_MOST_AXES];
    float data[1024];
    size_t count = 1;
    int rank = plim_value_shape(shape, value);
    for (int i = 0; i < rank; i++)
        count *= (size_t)shape[i];
    assert_true(count <= 1024);
    good(plim_program_read(data, count * sizeof *data, program, value, &told));
    for (size_t i = 0; i < count; i++)
        if (!isfinite(data[i]))
            fail_msg("%s: element %zu is %g", word, i, (double)data[i]);
}

/* Forwards, the mean of the output, its gradients; then all of it runs. */
static void run_word(const char *word, const char *inputs, const char *words)
{
    struct example example;
    plim_budget *budget = budget_of(64 * MIB);
    plim_program *program;
    plim_value *gradient[4] = {0};
    uint64_t before = held(budget);
    open_example(&example, budget, inputs);
    plim_graph *graph = example.graph;
    plim_value *y = plim_op(graph, word, example.input, example.count, words);
    good(plim_graph_check(graph, &told));
    bool real = plim_value_type(y) == PLIM_FLOAT32;
    plim_graph_result(graph, y, "y");
    int64_t shape[PLIM_MOST_AXES];
    bool one = plim_value_shape(shape, y) == 1 && shape[0] == 1;
    plim_value *row = one || !real ? y : plim_op(graph, "multiply", LIST(y, y), NULL);
    bool batched = !one && plim_value_shape(shape, y) && shape[0] == BATCH;
    plim_value *loss = batched && real ? plim_op(graph, "mean", &row, 1, NULL) : row;
    bool differentiates = real && !is_flat(word) && example.reals && (one || batched);
    if (differentiates) {
        good(plim_graph_gradients(gradient, graph, loss, example.real, example.reals, &told));
        for (int i = 0; i < example.reals; i++) {
            if (!gradient[i])
                fail_msg("%s: no gradient of input %d", word, i);
            plim_graph_result(graph, gradient[i], "gradient");
        }
    }
    good(plim_program_make(&program, &graph, 1, &(plim_program_options){.threads = 1}, &told));
    good(plim_program_run(program, 0, &example.batch, &told));
    if (real)
        check_numbers(program, y, word);
    for (int i = 0; i < example.reals && differentiates; i++)
        check_numbers(program, gradient[i], word);
    plim_program_free(program);
    plim_graph_free(graph);
    assert_int_equal(held(budget), before);
    plim_budget_free(budget);
}

static void every_word_runs(void **state)
{
    (void)state;
    assert_true(op_words_count > 70);
    for (int i = 0; i < op_words_count; i++)
        run_word(op_words[i].name, op_words[i].inputs, op_words[i].words);
}

static void every_activation_is_an_op(void **state)
{
    (void)state;
    for (int i = 0; i < activations_count; i++)
        if (strcmp(activation_name(i), "linear") != 0) /* the value itself */
            run_word(activation_name(i), "x4", NULL);
}

static void every_loss_is_an_op(void **state)
{
    (void)state;
    for (int i = 0; i < losses_count; i++) {
        bool sparse = loss_named(loss_name(i))->sparse;
        struct example example;
        plim_budget *budget = budget_of(64 * MIB);
        plim_program *program;
        plim_value *gradient;
        float value;
        open_example(&example, budget, sparse ? "p4 i1" : "p4 p4");
        plim_value *values = plim_op(example.graph, loss_name(i), example.input, 2, NULL);
        plim_value *loss = plim_loss(example.graph, loss_name(i), example.input[0], example.input[1]);
        plim_value *mean = plim_op(example.graph, "mean", &values, 1, NULL);
        plim_graph_result(example.graph, mean, "mean");
        plim_graph_result(example.graph, loss, "loss");
        good(plim_graph_gradients(&gradient, example.graph, loss, example.input, 1, &told));
        assert_non_null(gradient);
        plim_graph_result(example.graph, gradient, "gradient");
        good(plim_program_make(&program, &example.graph, 1, NULL, &told));
        good(plim_program_run(program, 0, &example.batch, &told));
        check_numbers(program, loss, loss_name(i));
        check_numbers(program, gradient, loss_name(i));
        good(plim_program_read(&value, sizeof value, program, loss, &told));
        float first = value;
        good(plim_program_read(&value, sizeof value, program, mean, &told));
        assert_true(fabsf(first - value) <= 1e-6f * fabsf(first));
        plim_program_free(program);
        plim_graph_free(example.graph);
        plim_budget_free(budget);
    }
}

/* Of the sample [[1, 2, 3], [4, 5, 6]]; the numbers are numpy's. */
static const struct {
    const char *word, *words;
    int count;
    double values[16];
} meanings[] = {
    {"sum", "{axis: 1}", 3, {5, 7, 9}},
    {"mean", "{axis: [1, 2]}", 1, {3.5}},
    {"sum", NULL, 1, {21}},
    {"max", "{axis: -1, keepdims: true}", 2, {3, 6}},
    {"min", "{axis: 1}", 3, {1, 2, 3}},
    {"prod", "{axis: 2}", 2, {6, 120}},
    {"var", "{axis: 1}", 3, {2.25, 2.25, 2.25}},
    {"std", "{axis: -1}", 2, {0.816496611, 0.816496611}},
    {"logsumexp", "{axis: -1}", 2, {3.40760589, 6.40760612}},
    {"cumsum", "{axis: 1}", 6, {1, 2, 3, 5, 7, 9}},
    {"cumsum", "{axis: -1, reverse: true}", 6, {6, 5, 3, 15, 11, 6}},
    {"transpose", NULL, 6, {1, 4, 2, 5, 3, 6}},
    {"transpose", "[0, 2, 1]", 6, {1, 4, 2, 5, 3, 6}},
    {"slice", "{axis: 2, start: 1}", 4, {2, 3, 5, 6}},
    {"slice", "{axis: -1, stop: -1}", 4, {1, 2, 4, 5}},
    {"slice", "{axis: 2, step: -2}", 4, {3, 1, 6, 4}},
    {"slice", "{axis: 2, start: -2, stop: 100}", 4, {2, 3, 5, 6}},
    {"flip", "{axis: 1}", 6, {4, 5, 6, 1, 2, 3}},
    {"roll", "{shift: -1, axis: -1}", 6, {2, 3, 1, 5, 6, 4}},
    {"pad", "[[0, 0], [1, 0], [0, 1]]", 12, {0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0}},
    {"pad", "{pad_width: [[0, 0], [0, 1], [2, 0]], mode: reflect}", 15, {3, 2, 1, 2, 3, 6, 5, 4, 5, 6, 3, 2, 1, 2, 3}},
    {"pad", "{pad_width: [[0, 0], [0, 0], [1, 1]], constant_values: 9}", 10, {9, 1, 2, 3, 9, 9, 4, 5, 6, 9}},
    {"tile", "[1, 1, 2]", 12, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}},
    {"repeat", "{repeats: 2, axis: 1}", 12, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}},
    {"reshape", "[3, -1]", 6, {1, 2, 3, 4, 5, 6}},
    {"expand_dims", "1", 6, {1, 2, 3, 4, 5, 6}},
    {"power", "2", 6, {1, 4, 9, 16, 25, 36}},
    {"power", "{a: 2}", 6, {2, 4, 8, 16, 32, 64}},
    {"subtract", "{a: 1}", 6, {0, -1, -2, -3, -4, -5}},
    {"subtract", "1", 6, {0, 1, 2, 3, 4, 5}},
    {"divide", "{a: 60}", 6, {60, 30, 20, 15, 12, 10}},
    {"mod", "4", 6, {1, 2, 3, 0, 1, 2}},
    {"floor_divide", "4", 6, {0, 0, 0, 1, 1, 1}},
    {"clip", "{x_min: 2, x_max: 5}", 6, {2, 2, 3, 4, 5, 5}},
    {"maximum", "3.5", 6, {3.5, 3.5, 3.5, 4, 5, 6}},
    {"relu", "{threshold: 2.5, negative_slope: 0.5}", 6, {-0.75, -0.25, 3, 4, 5, 6}},
    {"normalize", NULL, 6, {0.267261237, 0.534522474, 0.801783681, 0.455842316, 0.56980288, 0.683763444}},
    {"layer_normalization", "{epsilon: 0.001}", 6, {-1.22382736, 0, 1.22382736, -1.22382736, 0, 1.22382736}},
    {"rms_normalization", NULL, 6, {0.462909997, 0.925819993, 1.38873005, 0.78954196, 0.98692745, 1.18431294}},
    {"top_k", "2", 4, {3, 2, 6, 5}},
    {"threshold", "{threshold: 3, default_value: -1}", 6, {-1, -1, -1, 4, 5, 6}},
    {"penalty", "{l1: 1, l2: 2}", 1, {203}},
};

static void words_mean_what_they_do_in_numpy(void **state)
{
    float x_data[6] = {1, 2, 3, 4, 5, 6}, got[16];
    plim_budget *budget = budget_of(64 * MIB);
    plim_graph *graph = graph_of(budget, 1, false);
    plim_program *program;
    plim_value *y[COUNT(meanings)];
    (void)state;
    plim_value *x = plim_graph_input(graph, "x", PLIM_FLOAT32, SHAPE(2, 3));
    for (int i = 0; i < COUNT(meanings); i++) {
        y[i] = plim_op(graph, meanings[i].word, &x, 1, meanings[i].words);
        plim_graph_result(graph, y[i], meanings[i].word);
    }
    good(plim_program_make(&program, &graph, 1, NULL, &told));
    good(plim_program_run(program, 0, &(plim_batch){.count = 1, .column = {x_data}}, &told));
    for (int i = 0; i < COUNT(meanings); i++) {
        good(plim_program_read(got, (size_t)meanings[i].count * sizeof *got, program, y[i], &told));
        for (int k = 0; k < meanings[i].count; k++)
            if (!(fabs((double)got[k] - meanings[i].values[k]) <= 1e-6 * (1 + fabs(meanings[i].values[k]))))
                fail_msg("%s %s: element %d is %.9g, not %.9g", meanings[i].word,
                         meanings[i].words ? meanings[i].words : "", k, (double)got[k], meanings[i].values[k]);
    }
    plim_program_free(program);
    plim_graph_free(graph);
    plim_budget_free(budget);
}

/* ---- what is said ---- */

static void expect(const char *word, const char *inputs, const char *words, plim_status status, const char *says,
                   const char *also)
{
    struct example example;
    plim_budget *budget = budget_of(16 * MIB);
    plim_error error = {0};
    char all[1100];
    open_example(&example, budget, inputs);
    assert_null(plim_op(example.graph, word, example.input, example.count, words));
    plim_status got = plim_graph_check(example.graph, &error);
    snprintf(all, sizeof all, "%s: %s; %s", error.where, error.message, error.hint);
    if (got != status || !strstr(all, says) || !strstr(all, also))
        fail_msg("%s: status %d, \"%s\"; wanted \"%s\" and \"%s\"", word, (int)got, all, says, also);
    /* The first error stays; what follows returns NULL without a crash. */
    assert_null(plim_op(example.graph, "relu", LIST(NULL), NULL));
    assert_null(plim_loss(example.graph, "mse", NULL, NULL));
    assert_int_equal(plim_graph_check(example.graph, NULL), status);
    plim_graph_free(example.graph);
    plim_budget_free(budget);
}

static void misfits_name_the_op_and_its_shapes(void **state)
{
    (void)state;
    expect("matmul", "x4 w53", NULL, PLIM_BAD_MODEL, "(None, 4)", "(5, 3)");
    expect("add", "x43 x5", NULL, PLIM_BAD_MODEL, "(None, 4, 3)", "(None, 5)");
    expect("concatenate", "x43 x52", NULL, PLIM_BAD_MODEL, "concatenate of", "(None, 5, 2)");
    expect("add", "b4 b4", NULL, PLIM_BAD_MODEL, "bool", "a number");
    expect("sigmoid", "i4", NULL, PLIM_BAD_MODEL, "int32", "float32");
    expect("add", "i4", "3000000000", PLIM_USAGE, "3000000000", "no int32");
    expect("mean", "x4", "{axis: 2}", PLIM_BAD_MODEL, "axis 2", "(None, 4)");
    expect("max", "x4", NULL, PLIM_UNSUPPORTED, "batch", "max");
    expect("sum", "w4", NULL, PLIM_UNSUPPORTED, "penalty", "sum");
    expect("reshape", "x4", "[3]", PLIM_BAD_MODEL, "(3,)", "(None, 4)");
    expect("mean_squared_error", "x4 x3", NULL, PLIM_BAD_JOB, "(None, 4)", "(None, 3)");
    expect("transpose", "x43", "[1, 0, 2]", PLIM_BAD_MODEL, "transpose", "(None, 4, 3)");
    expect("slice", "x4", "{start: 4}", PLIM_USAGE, "nothing", "(None, 4)");
}

static void unknown_words_offer_the_nearest(void **state)
{
    (void)state;
    expect("matmull", "x4 w43", NULL, PLIM_USAGE, "'matmull'", "'matmul'");
    expect("sigmod", "x4", NULL, PLIM_USAGE, "'sigmod'", "'sigmoid'");
    expect("mean_square_error", "x4 x4", NULL, PLIM_USAGE, "mean_square_error", "'mean_squared_error'");
    expect("mean", "x4", "{axs: 1}", PLIM_BAD_JOB, "axs", "axis");
    expect("cast", "x4", "{dtype: float23}", PLIM_USAGE, "float23", "float32");
    expect("relu", "x4", "{negative_slope: steep}", PLIM_BAD_JOB, "steep", "negative_slope");
    expect("relu", "x4 x4", NULL, PLIM_USAGE, "relu takes 1 inputs", "2");
    expect("tanh", "x4", "{axis: 1}", PLIM_USAGE, "tanh", "no arguments");
    expect("mean", "x4", "{axis: [", PLIM_BAD_JOB, "mean:", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_runs),
        cmocka_unit_test(every_activation_is_an_op),
        cmocka_unit_test(every_loss_is_an_op),
        cmocka_unit_test(words_mean_what_they_do_in_numpy),
        cmocka_unit_test(misfits_name_the_op_and_its_shapes),
        cmocka_unit_test(unknown_words_offer_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
