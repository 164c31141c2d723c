/* test_outputs.c - models of several outputs: which column is whose label, what is trained and reported, and what is
   refused. Values are compared with Keras in interop/outputs.py. */
#include "model_bench.h"
#include "ops/ops.h"

static const char two[] = "layers:\n"
                          "- Input: {shape: [5], name: x}\n"
                          "- Dense: {units: 4, name: stem}\n"
                          "- Dense: {units: 3, activation: softmax, name: kind}\n"
                          "- Dense: {units: 1, activation: sigmoid, name: flag, inputs: stem}\n"
                          "outputs: [kind, flag]\n";

/* {loss: ..., loss_weights: ..., metrics: ...} */
static plim_status compile(struct bench *bench, const char *text)
{
    const struct yaml *words = parse(bench, text);
    const struct compile_keys compiled = {.loss = {yaml_get(words, "loss"), "job.yaml"},
                                          .loss_weights = {yaml_get(words, "loss_weights"), "job.yaml"},
                                          .metrics = {yaml_get(words, "metrics"), "job.yaml"},
                                          .weighted_metrics = {yaml_get(words, "weighted_metrics"), "job.yaml"},
                                          .class_weight = {yaml_get(words, "class_weight"), "job.yaml"}};
    bench->training = (struct training){0};
    TRY(optimizer_read(&bench->training.optimizer, "job.yaml", parse(bench, "sgd"), &bench->error));
    return compile_read(&bench->training, bench->model, &bench->arena, &compiled, &bench->error);
}

static struct column_spec column(const char *name)
{
    struct column_spec spec = {.name = name, .type = TYPE_F32};
    if (strcmp(name, "x") == 0)
        spec.shape = shape_of(1, (int64_t[]){5});
    return spec;
}

static plim_status build(struct bench *bench, const char *const *names, int count)
{
    struct column_spec columns[8];
    for (int i = 0; i < count; i++)
        columns[i] = column(names[i]);
    graph_release(&bench->graph);
    graph_init(&bench->graph, bench->budget, 4);
    return model_build(
        &bench->tensors, &bench->graph, bench->model,
        &(struct step_spec){.column = columns, .column_count = count, .training = &bench->training, .backward = true},
        &bench->error);
}
#define BUILD(bench, ...) build(bench, (const char *[]){__VA_ARGS__}, COUNT(((const char *[]){__VA_ARGS__})))

static void losses_are_added_and_reported(void **state)
{
    struct bench *bench = *state;
    static const char *const names[] = {"kind_accuracy", "flag_mse", "kind_loss", "flag_loss"};
    good(bench, read_model(bench, two));
    good(bench, compile(bench, "loss: {kind: sparse_categorical_crossentropy, flag: bce}\n"
                               "loss_weights: [1, 0.5]\n"
                               "metrics: {kind: [accuracy], flag: mse}\n"));
    good(bench, BUILD(bench, "x", "kind", "flag"));
    assert_int_equal(bench->tensors.metric_count, COUNT(names));
    for (int i = 0; i < COUNT(names); i++)
        assert_string_equal(bench->tensors.metric[i].name, names[i]);
    assert_int_equal(bench->model->output_count, 2);
    /* Both activations are left to the losses; mse wants a probability. */
    assert_int_equal(nodes_of(&bench->graph, &op_softmax), 0);
    assert_int_equal(nodes_of(&bench->graph, &op_sigmoid), 1);
    assert_int_equal(nodes_of(&bench->graph, &op_sgd), 6);
}

static void labels_by_name_or_in_order(void **state)
{
    struct bench *bench = *state;
    const struct output_tensors *output = bench->tensors.output;
    good(bench, read_model(bench, two));
    good(bench, compile(bench, "loss: [sparse_categorical_crossentropy, bce]\n"));
    good(bench, BUILD(bench, "flag", "x", "kind"));
    assert_true(output[0].label->column == 2 && output[1].label->column == 0);
    good(bench, BUILD(bench, "x", "p", "q"));
    assert_true(output[0].label->column == 1 && output[1].label->column == 2);
    assert_true(!output[0].weight && !output[1].weight);
}

/* One column for all, or one for each; those that share one read one input. */
static void samples_have_weights(void **state)
{
    struct bench *bench = *state;
    const struct output_tensors *output = bench->tensors.output;
    good(bench, read_model(bench, two));
    good(bench, compile(bench, "loss: [sparse_categorical_crossentropy, bce]\n"));
    good(bench, BUILD(bench, "x", "p", "q", "w"));
    assert_true(output[0].weight->column == 3 && output[0].weight == output[1].weight);
    good(bench, BUILD(bench, "x", "sample_weight", "p", "q"));
    assert_true(output[1].label->column == 3 && output[0].weight->column == 1 && output[0].weight == output[1].weight);
    good(bench, BUILD(bench, "x", "p", "q", "v", "w"));
    assert_true(output[1].label->column == 2 && output[0].weight->column == 3 && output[1].weight->column == 4);
    good(bench, BUILD(bench, "flag_sample_weight", "x", "flag", "kind"));
    assert_true(!output[0].weight && output[1].weight->column == 0);
    good(bench, BUILD(bench, "flag_sample_weight", "x", "sample_weight", "flag", "kind"));
    assert_true(output[0].weight->column == 2 && output[1].weight->column == 0);
    assert_int_equal(BUILD(bench, "x", "p", "q", "r", "v", "w"), PLIM_BAD_JOB); /* 5: three of what? */
}

/* A column more than labels that are needed may be anything: never by its place the label of another output. */
static void where_some_outputs_have_no_loss(void **state)
{
    static const struct refusal both = {"p, q", PLIM_BAD_JOB, "job.yaml",
                                        "2 columns are left besides the model's inputs, 1 of 2 outputs",
                                        "label: {flag: NAME"},
                                named = {"kind", PLIM_BAD_JOB, "job.yaml",
                                         "label of the output 'flag' is missing: the column 'kind'", "{old: flag}"};
    struct bench *bench = *state;
    const struct output_tensors *output = bench->tensors.output;
    good(bench, read_model(bench, two));
    good(bench, compile(bench, "loss: [null, bce]\n"));
    good(bench, BUILD(bench, "x", "p"));
    assert_true(!output[0].label && output[1].label->column == 1);
    assert_int_equal(bench->tensors.metric_count, 0);
    good(bench, BUILD(bench, "x", "flag", "kind"));
    assert_true(!output[0].label && output[1].label->column == 1);
    good(bench, BUILD(bench, "x", "p", "sample_weight"));
    assert_true(output[1].label->column == 1 && output[1].weight->column == 2);
    bench->error = (plim_error){0};
    expect(bench, BUILD(bench, "x", "p", "q"), &both);
    bench->error = (plim_error){0};
    expect(bench, BUILD(bench, "x", "kind"), &named);
}

/* Keras's names for them; a mean of weighted samples is a sum over the epoch. */
static void metrics_are_weighted(void **state)
{
    static const char *const names[] = {"accuracy", "weighted_accuracy", "mse", "auc"};
    struct bench *bench = *state;
    good(bench, read_model(bench, "- Dense: {units: 1, activation: sigmoid}\n"));
    good(bench, compile(bench, "loss: bce\nmetrics: [accuracy]\nweighted_metrics: [accuracy, mse, auc]\n"));
    for (int weights = 0; weights < 2; weights++) {
        good(bench, weights ? BUILD(bench, "x", "y", "w") : BUILD(bench, "x", "y"));
        assert_int_equal(bench->tensors.metric_count, COUNT(names));
        for (int i = 0; i < COUNT(names); i++) {
            assert_string_equal(bench->tensors.metric[i].name, names[i]);
            assert_int_equal(metric_has_sums(&bench->tensors.metric[i]), i == 3 || (weights && i > 0));
        }
    }
    assert_true(metric_value(&bench->tensors.metric[1], (double[]){3, 4}, 0) == 0.75);
    good(bench, read_model(bench, two));
    good(bench, compile(bench, "loss: mse\nmetrics: {flag: mse}\nweighted_metrics: {flag: [mse]}\n"));
    assert_string_equal(bench->training.metric[1].name, "flag_weighted_mse");
    /* Keras would weigh the steps of the mask too. */
    good(bench, read_model(bench, "- Embedding: {input_dim: 9, output_dim: 2, mask_zero: true}\n"));
    good(bench, compile(bench, "loss: sparse_categorical_crossentropy\nweighted_metrics: [accuracy]\n"));
    struct column_spec columns[] = {{"x", TYPE_I32, {1, {5}}}, {"y", TYPE_I32, {1, {5}}}, {"w", TYPE_F32, {0, {0}}}};
    graph_release(&bench->graph);
    graph_init(&bench->graph, bench->budget, 4);
    assert_int_equal(
        model_build(&bench->tensors, &bench->graph, bench->model,
                    &(struct step_spec){.column = columns, .column_count = 3, .training = &bench->training},
                    &bench->error),
        PLIM_UNSUPPORTED);
    assert_non_null(strstr(bench->error.message, "has a mask"));
}

static void several_numbers_are_one_metric(void **state)
{
    struct bench *bench = *state;
    const double *each = NULL;
    good(bench, read_model(bench, "- Dense: {units: 1, activation: sigmoid}\n"));
    good(bench, compile(bench, "loss: bce\nmetrics: [f1_score, {Precision: {thresholds: [0.75, 0.25]}}, recall]\n"));
    good(bench, BUILD(bench, "x", "y"));
    /* Of negative labels 1 passes both thresholds, of positive ones 1 the lower and 3 both. */
    double sums[] = {4, 0, 1, 2, 1, 3, 0, 0, 0};
    assert_int_equal(metric_each(&each, &bench->tensors.metric[1], sums), 2);
    assert_true(each[0] == 0.75 && each[1] == 0.8);
    assert_true(metric_value(&bench->tensors.metric[1], sums, 0) == (0.75 + 0.8) / 2);
    assert_int_equal(metric_each(&each, &bench->tensors.metric[0], sums), 1);
    assert_int_equal(metric_each(&each, &bench->tensors.metric[2], sums), 0);
    assert_null(each);
}

static void an_output_without_a_loss_trains_nothing(void **state)
{
    struct bench *bench = *state;
    good(bench, read_model(bench, two));
    good(bench, compile(bench, "loss: {kind: null, flag: bce}\nmetrics: [accuracy, null]\n"));
    good(bench, BUILD(bench, "x", "kind", "flag"));
    assert_int_equal(bench->tensors.metric_count, 1);
    assert_int_equal(nodes_of(&bench->graph, &op_sgd), 4); /* not those of kind */
}

/* The probabilities have another reader: they are made, and the loss takes the logits all the same. */
static void an_output_that_others_read(void **state)
{
    struct bench *bench = *state;
    good(bench, read_model(bench, "layers:\n"
                                  "- Dense: {units: 1, activation: sigmoid, name: flag}\n"
                                  "- Dense: {units: 1, name: size}\n"
                                  "outputs: [flag, size]\n"));
    good(bench, compile(bench, "loss: [bce, mse]\n"));
    good(bench, BUILD(bench, "x", "p", "q"));
    assert_int_equal(nodes_of(&bench->graph, &op_sigmoid), 1);
    assert_int_equal(nodes_of(&bench->graph, &op_sigmoid_crossentropy), 1);
}

/* Of training steps alone, with labels of both kinds. */
static void classes_have_weights(void **state)
{
    struct bench *bench = *state;
    good(bench, read_model(bench, "- Dense: {units: 3, activation: softmax}\n"));
    good(bench, compile(bench, "loss: sparse_categorical_crossentropy\nclass_weight: {0: 2, 2: 0.5}\n"));
    assert_int_equal(bench->training.class_weight->count, 3);
    assert_true(bench->training.class_weight->factor[1] == 1.0F && bench->training.class_weight->factor[2] == 0.5F);
    good(bench, BUILD(bench, "x", "y"));
    assert_int_equal(nodes_of(&bench->graph, &op_class_weight), 1);
    /* More than one node knows: those that say nothing are left out. */
    good(bench, compile(bench, "loss: sparse_categorical_crossentropy\nclass_weight: {0: 2, 1000: 0.5, 1001: 3}\n"));
    assert_int_equal(bench->training.class_weight_parts, 2);
    assert_int_equal(bench->training.class_weight[1].first, 768);
    assert_true(bench->training.class_weight[1].factor[1000 - 768] == 0.5F &&
                bench->training.class_weight[1].factor[0] == 1.0F);
    good(bench, BUILD(bench, "x", "y"));
    assert_int_equal(nodes_of(&bench->graph, &op_class_weight), 2);
    assert_int_equal(BUILD(bench, "x", "y", "w"), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.message, "weights of samples too"));
    assert_int_equal(compile(bench, "loss: mse\nclass_weight: {cat: 2}\n"), PLIM_BAD_JOB);
    assert_non_null(strstr(bench->error.message, "'cat' is no class"));
    assert_int_equal(compile(bench, "loss: mse\nclass_weight: 2\n"), PLIM_BAD_JOB);
}

static void bad_words_are_refused(void **state)
{
    static const struct refusal words[] =
        {
            {"loss: [mse]", PLIM_BAD_JOB, "job.yaml:1:7", "1 of them, the model has 2 outputs", "kind"},
            {"loss: {kind: mse}", PLIM_BAD_JOB, "job.yaml:1:7", "nothing is said of output 'flag'", "flag: null"},
            {"loss: {kind: mse, flg: mse}", PLIM_BAD_JOB, "job.yaml:1:19", "no output 'flg'", "'flag'"},
            {"loss: {mse: {}, mae: {}}", PLIM_BAD_JOB, "job.yaml:1:8", "no output 'mse'", "kind"},
            {"loss: [null, null]", PLIM_BAD_JOB, "job.yaml:1:7", "no output has one", "loss:"},
            {"loss: mse\nloss_weights: 2", PLIM_BAD_JOB, "job.yaml:2:15", "2 outputs", "{kind: 2"},
            {"loss: mse\nloss_weights: [1]", PLIM_BAD_JOB, "job.yaml:2:15", "1 of them", "kind"},
            {"loss: mse\nloss_weights: {kind: much, flag: 1}", PLIM_BAD_JOB, "job.yaml:2", "number", ""},
            {"loss: mse\nmetrics: [accuracy]", PLIM_BAD_JOB, "job.yaml:2:10", "1 of them", "kind"},
            {"loss: mse\nmetrics: accuracy", PLIM_BAD_JOB, "job.yaml:2:10", "2 outputs", "{kind: [accuracy]}"},
            {"loss: mse\nclass_weight: {0: 2}", PLIM_BAD_JOB, "job.yaml:2:15", "2 outputs", "sample_weight"},
            {"loss: mse\nmetrics: {knd: mse}", PLIM_BAD_JOB, "job.yaml:2:11", "no output 'knd'", "'kind'"},
            {"loss: mse\nweighted_metrics: accuracy", PLIM_BAD_JOB, "job.yaml:2:19",
             "weighted_metrics: the model has 2", "weighted_metrics: {kind: [accuracy]}"},
            {"loss: mse\nmetrics: {kind: [AUC: {thresholds: [0.5, 2]}]}", PLIM_BAD_JOB, "job.yaml:2:42",
             "from 0 to 1, got 2", ""},
            {"loss: mse\nmetrics: {kind: [AUC: {num_labels: 3}]}", PLIM_BAD_JOB, "job.yaml:2", "only with multi_label",
             "multi_label: true"},
            {"loss: mse\nmetrics: {kind: [AUC: {multi_label: true, num_labels: 3, label_weights: [1, 2]}]}",
             PLIM_BAD_JOB, "job.yaml:2", "2 of them, num_labels is 3", ""},
        },
                                models[] =
                                    {
                                        {"layers: [Dense: {units: 3, name: a}]\noutputs: [a, a]", PLIM_UNSUPPORTED,
                                         "job.yaml:2:14", "'a' twice", "once"},
                                    },
                                columns[] = {
                                    {"kind", PLIM_BAD_JOB, "job.yaml", "no column for the output 'flag'", "rename"},
                                    {"p", PLIM_BAD_JOB, "job.yaml", "1 columns are left", "label: {kind"},
                                };
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(models); i++)
        expect(bench, read_model(bench, models[i].text), &models[i]);
    good(bench, read_model(bench, two));
    for (int i = 0; i < COUNT(words); i++) {
        bench->error = (plim_error){0};
        expect(bench, compile(bench, words[i].text), &words[i]);
    }
    good(bench, compile(bench, "loss: mse"));
    for (int i = 0; i < COUNT(columns); i++) {
        bench->error = (plim_error){0};
        expect(bench, BUILD(bench, "x", columns[i].text), &columns[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(losses_are_added_and_reported),
        TEST(labels_by_name_or_in_order),
        TEST(samples_have_weights),
        TEST(where_some_outputs_have_no_loss),
        TEST(metrics_are_weighted),
        TEST(several_numbers_are_one_metric),
        TEST(an_output_without_a_loss_trains_nothing),
        TEST(an_output_that_others_read),
        TEST(classes_have_weights),
        TEST(bad_words_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
