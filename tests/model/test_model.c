/* test_model.c - layers: what they read and refuse and where, names, counts
   of parameters, graphs, first values, and the summary. */
#include <math.h>
#include <stdio.h>

#include "base/numbers/random.h"
#include "base/text/text.h"
#include "golden_text.h"
#include "model_bench.h"
#include "ops/ops.h"

static const char MLP[] = "- Dense: {units: 64, activation: relu}\n"
                          "- Dense: {units: 1, activation: sigmoid}\n";
static const char CNN[] = "- Conv2D: {filters: 32, kernel_size: 3, activation: relu}\n"
                          "- MaxPooling2D: 2\n"
                          "- Conv2D: {filters: 64, kernel_size: [3, 3], activation: relu}\n"
                          "- MaxPooling2D\n"
                          "- Flatten\n"
                          "- Dense: {units: 128, activation: relu}\n"
                          "- Dense: {units: 10, activation: softmax}\n";

static struct column_spec spec(enum type type, int rank, const int64_t *dim)
{
    return (struct column_spec){.type = type, .shape = shape_of(rank, dim)};
}

static plim_status build(struct bench *bench, struct column_spec input, struct column_spec label, bool backward)
{
    graph_release(&bench->graph);
    graph_init(&bench->graph, bench->budget, 4);
    struct column_spec columns[2] = {input, label};
    return model_build(
        &bench->tensors, &bench->graph, bench->model,
        &(struct step_spec){.column = columns, .column_count = 2, .training = &bench->training, .backward = backward},
        &bench->error);
}

static void make_mlp(struct bench *bench, bool backward)
{
    assert_int_equal(read_model(bench, MLP), PLIM_OK);
    train_with(bench, "binary_crossentropy", "adam");
    struct column_spec x = spec(TYPE_F32, 1, (int64_t[]){100}), y = spec(TYPE_F32, 0, NULL);
    assert_int_equal(build(bench, x, y, backward), PLIM_OK);
}

static void make_cnn(struct bench *bench, bool backward)
{
    assert_int_equal(read_model(bench, CNN), PLIM_OK);
    train_with(bench, "sparse_categorical_crossentropy", "{adam: {learning_rate: 0.01}}");
    struct column_spec x = spec(TYPE_F32, 3, (int64_t[]){64, 64, 3}), y = spec(TYPE_I32, 0, NULL);
    assert_int_equal(build(bench, x, y, backward), PLIM_OK);
}

static int64_t parameters(const struct build *build)
{
    int64_t sum = 0;
    for (int i = 0; i < build->model->layer_count; i++)
        sum += figures_of(build, &build->model->layer[i])->parameters;
    return sum;
}

/* ---- names, counts, graphs ---- */

static void mlp_parameters_and_names(void **state)
{
    struct bench *bench = *state;
    static const char *const names[] = {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"};
    make_mlp(bench, true);
    assert_int_equal(parameters(bench->graph.build), 6529);
    assert_int_equal(bench->graph.build->weight_count, COUNT(names));
    for (int i = 0; i < COUNT(names); i++)
        assert_string_equal(bench->graph.build->weight[i].name, names[i]);
    /* The loss takes logits: no sigmoid is computed. */
    assert_int_equal(nodes_of(&bench->graph, &op_sigmoid), 0);
    assert_int_equal(nodes_of(&bench->graph, &op_sigmoid_crossentropy), 1);
    assert_int_equal(nodes_of(&bench->graph, &op_adam), 4);
    assert_int_equal(nodes_of(&bench->graph, &op_count_step), 1);
    assert_non_null(bench->tensors.learning_rate);
    assert_string_equal(bench->tensors.iteration->name, "optimizer/iteration");
}

static void cnn_parameters_and_names(void **state)
{
    struct bench *bench = *state;
    static const char *const names[] = {"conv2d",  "max_pooling2d", "conv2d_1", "max_pooling2d_1",
                                        "flatten", "dense",         "dense_1"};
    make_cnn(bench, true);
    assert_int_equal(parameters(bench->graph.build), 1626442);
    for (int i = 0; i < COUNT(names); i++)
        assert_string_equal(bench->model->layer[i].name, names[i]);
    assert_int_equal(nodes_of(&bench->graph, &op_softmax), 0);
    assert_int_equal(nodes_of(&bench->graph, &op_softmax_crossentropy), 1);
    assert_int_equal(nodes_of(&bench->graph, &op_adam), 8);
    /* Nobody wants the gradient of the pixels. */
    assert_int_equal(nodes_of(&bench->graph, &op_conv2d_input_gradient), 1);
    assert_int_equal(bench->training.optimizer.learning_rate * 1000, 10);
}

static void states_are_named_after_their_weights(void **state)
{
    struct bench *bench = *state;
    int momentum = 0, velocity = 0;
    make_mlp(bench, true);
    for (int i = 0; i < bench->graph.tensor_count; i++) {
        const struct tensor *tensor = bench->graph.tensor[i];
        momentum += tensor->kind == KIND_STATE && strcmp(tensor->name, "optimizer/dense_1/kernel/momentum") == 0;
        velocity += tensor->kind == KIND_STATE && strcmp(tensor->name, "optimizer/dense/bias/velocity") == 0;
    }
    assert_int_equal(momentum, 1);
    assert_int_equal(velocity, 1);
}

static void sgd_keeps_a_state_only_with_momentum(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *words;
        int states;
    } cases[] = {{"sgd", 2}, {"{SGD: {learning_rate: 0.1}}", 2}, {"{sgd: {momentum: 0.9, nesterov: true}}", 6}};
    struct column_spec x = spec(TYPE_F32, 1, (int64_t[]){100}), y = spec(TYPE_F32, 1, (int64_t[]){1});
    assert_int_equal(read_model(bench, MLP), PLIM_OK);
    for (int c = 0; c < COUNT(cases); c++) {
        int states = 0;
        train_with(bench, "binary_crossentropy", cases[c].words);
        assert_int_equal(build(bench, x, y, true), PLIM_OK);
        for (int i = 0; i < bench->graph.tensor_count; i++)
            states += bench->graph.tensor[i]->kind == KIND_STATE;
        assert_int_equal(states, cases[c].states);
    }
}

static void building_again_takes_nothing_more(void **state)
{
    struct bench *bench = *state;
    make_cnn(bench, true);
    graph_release(&bench->graph);
    graph_init(&bench->graph, bench->budget, 4);
    uint64_t before = budget_usage(bench->budget).now;
    struct column_spec x = spec(TYPE_F32, 3, (int64_t[]){64, 64, 3}), y = spec(TYPE_I32, 0, NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(build(bench, x, y, i % 2), PLIM_OK);
    graph_release(&bench->graph);
    graph_init(&bench->graph, bench->budget, 4);
    assert_int_equal(budget_usage(bench->budget).now, before);
}

/* A model is only read: graphs of it do not disturb each other, whichever was built last. */
static void graphs_of_a_model_keep_apart(void **state)
{
    struct bench *bench = *state;
    struct graph other;
    struct model_tensors tensors;
    struct column_spec columns[2] = {spec(TYPE_F32, 3, (int64_t[]){64, 64, 3}), spec(TYPE_I32, 0, NULL)};
    make_cnn(bench, true);
    struct build *first = bench->graph.build;
    struct build before = *first;
    graph_init(&other, bench->budget, 2);
    assert_int_equal(
        model_build(&tensors, &other, bench->model,
                    &(struct step_spec){.column = columns, .column_count = 2, .training = &bench->training},
                    &bench->error),
        PLIM_OK);
    assert_ptr_equal(bench->graph.build, first);
    assert_memory_equal(first, &before, sizeof before);
    assert_int_equal(other.build->weight_count, first->weight_count);
    for (int i = 0; i < first->weight_count; i++) {
        assert_string_equal(other.build->weight[i].name, first->weight[i].name);
        assert_ptr_equal(other.build->weight[i].tensor, graph_named(&other, first->weight[i].name));
        assert_ptr_equal(first->weight[i].tensor, graph_named(&bench->graph, first->weight[i].name));
    }
    for (int i = 0; i < bench->model->layer_count; i++) {
        assert_int_equal(figures_of(first, &bench->model->layer[i])->output.dim[0], 4);
        assert_int_equal(figures_of(other.build, &bench->model->layer[i])->output.dim[0], 2);
    }
    graph_release(&other);
}

static void bytes_become_floats_once(void **state)
{
    struct bench *bench = *state;
    struct column_spec x = spec(TYPE_U8, 3, (int64_t[]){8, 8, 1}), y = spec(TYPE_U8, 0, NULL);
    train_with(bench, "sparse_categorical_crossentropy", "adam");
    assert_int_equal(read_model(bench, "[Flatten, Dense: {units: 10, activation: softmax}]"), PLIM_OK);
    assert_int_equal(build(bench, x, y, true), PLIM_OK);
    assert_int_equal(nodes_of(&bench->graph, &op_rescale), 1);
    assert_int_equal(read_model(bench, "[Input: {shape: [8, 8, 1]}, Rescaling: 1/255, Flatten, Dense: 10, Softmax]"),
                     PLIM_OK);
    assert_int_equal(build(bench, x, y, true), PLIM_OK);
    assert_int_equal(nodes_of(&bench->graph, &op_rescale), 1);
    assert_int_equal(nodes_of(&bench->graph, &op_softmax), 0);
    const struct rescale_attributes *attributes = bench->graph.node[0]->attributes;
    assert_true(attributes->scale == 1.0 / 255.0);
}

static void same_padding_is_tensorflows(void **state)
{
    struct bench *bench = *state;
    struct column_spec x = spec(TYPE_F32, 3, (int64_t[]){7, 8, 2}), y = spec(TYPE_I64, 1, (int64_t[]){1});
    train_with(bench, "sparse_categorical_crossentropy", "sgd");
    assert_int_equal(read_model(bench, "[Conv2D: {filters: 3, kernel_size: [2, 5], strides: [2, 3], padding: same}, "
                                       "MaxPool2D: {pool_size: 3, strides: 1, padding: same}, Flatten, Dense: 2]"),
                     PLIM_OK);
    assert_int_equal(build(bench, x, y, true), PLIM_OK);
    const struct shape *shape = &figures_of(bench->graph.build, &bench->model->layer[1])->output;
    assert_int_equal(shape->dim[1], 4);
    assert_int_equal(shape->dim[2], 3);
    const struct conv_attributes *attributes = bench->graph.node[0]->attributes;
    static const int64_t pad[4] = {0, 1, 1, 2};
    assert_memory_equal(attributes->pad, pad, sizeof pad);
    /* Not a softmax: probabilities are clipped and the logarithm is taken, as in Keras. */
    assert_int_equal(nodes_of(&bench->graph, &op_clip_log), 1);
}

static void frozen_layers_are_not_updated(void **state)
{
    struct bench *bench = *state;
    struct column_spec x = spec(TYPE_F32, 1, (int64_t[]){5}), y = spec(TYPE_F32, 0, NULL);
    train_with(bench, "binary_crossentropy", "adam");
    assert_int_equal(
        read_model(bench, "[Dense: {units: 3, trainable: false, name: first}, Dense: {units: 1, activation: sigmoid}]"),
        PLIM_OK);
    assert_int_equal(build(bench, x, y, true), PLIM_OK);
    assert_int_equal(nodes_of(&bench->graph, &op_adam), 2);
    assert_string_equal(bench->model->layer[0].name, "first");
    assert_string_equal(bench->model->layer[1].name, "dense");
    assert_int_equal(figures_of(bench->graph.build, &bench->model->layer[0])->trainable_parameters, 0);
    assert_int_equal(figures_of(bench->graph.build, &bench->model->layer[0])->parameters, 18);
}

/* ---- what is refused, and where ---- */

static void bad_layers_are_refused_with_their_place(void **state)
{
    static const struct refusal refusals[] = {
        {"- Dense: {unit: 10}", PLIM_BAD_JOB, "job.yaml:1:11", "unit", "units"},
        {"- Dense: {units: many}", PLIM_BAD_JOB, "job.yaml:1:18", "units: expected a whole number, got 'many'", ""},
        {"- Dense: {units: 0}", PLIM_BAD_JOB, "job.yaml:1:18", "at least 1", ""},
        {"- Dense: {units: 99999999999}", PLIM_BAD_JOB, "job.yaml:1:3", "at most", ""},
        {"- Flatten\n- Dense:", PLIM_BAD_JOB, "job.yaml:2:3", "'units' is missing", "units: 10"},
        {"- Dense: {units: 3, activation: reul}", PLIM_BAD_JOB, "job.yaml:1:33", "unknown activation 'reul'", "relu"},
        {"- Dense: {units: 3, activation: threshold}", PLIM_UNSUPPORTED, "job.yaml:1:33", "threshold", ""},
        {"- Dense: {units: 3, kernel_initializer: he_norml}", PLIM_BAD_JOB, "job.yaml:1", "he_norml", "he_normal"},
        {"- Dense: {units: 3, kernel_initializer: STFT}", PLIM_UNSUPPORTED, "job.yaml:1", "STFT", ""},
        {"- Dense: {units: 3, kernel_initializer: {Zeros: {value: 3}}}", PLIM_BAD_JOB, "job.yaml:1", "value", ""},
        {"- Dense: {units: 3, kernel_initializer: {VarianceScaling: {mode: fan_on}}}", PLIM_BAD_JOB, "job.yaml:1",
         "fan_on", "fan_in"},
        {"- Dense: {units: 3, kernel_initializer: {VarianceScaling: {scale: 0}}}", PLIM_BAD_JOB, "job.yaml:1", "scale",
         ""},
        {"- Dense: {units: 3, kernel_regularizer: l3}", PLIM_BAD_JOB, "job.yaml:1", "l3", ""},
        {"- Dense: {units: 3, dtype: float16}", PLIM_UNSUPPORTED, "job.yaml:1", "dtype", ""},
        {"- Dense: {units: 3, name: a/b}", PLIM_BAD_JOB, "job.yaml:1", "'a/b'", ""},
        {"- Dense: {units: 3, name: a}\n- Dense: {units: 3, name: a}", PLIM_BAD_JOB, "job.yaml:2:3",
         "two layers are named 'a'", ""},
        {"- Dnse: 10", PLIM_BAD_JOB, "job.yaml:1:3", "unknown layer 'Dnse'", "Dense"},
        {"- MelSpectrogram: 10", PLIM_UNSUPPORTED, "job.yaml:1:3", "MelSpectrogram", ""},
        {"- Conv2D: {filters: 3}", PLIM_BAD_JOB, "job.yaml:1:3", "'kernel_size' is missing", ""},
        {"- Conv2D: {filters: 3, kernel_size: [3, 3, 3]}", PLIM_BAD_JOB, "job.yaml:1", "a list of 3", ""},
        {"- Conv2D: {filters: 3, kernel_size: 3, dilation_rate: 2, strides: 2}", PLIM_BAD_JOB, "job.yaml:1",
         "dilation_rate", ""},
        {"- Conv2D: {filters: 3, kernel_size: 3, groups: 2}", PLIM_BAD_JOB, "job.yaml:1", "groups", ""},
        {"- Conv2D: {filters: 3, kernel_size: 3, data_format: channels_first}", PLIM_UNSUPPORTED, "job.yaml:1",
         "data_format", ""},
        {"- Conv2D: {filters: 3, kernel_size: 3, padding: sam}", PLIM_BAD_JOB, "job.yaml:1", "padding 'sam'", "same"},
        {"- MaxPooling2D: [2, 2, 2]", PLIM_BAD_JOB, "job.yaml:1", "a list of 3", ""},
        {"- AveragePooling2D", PLIM_BAD_JOB, "job.yaml:1:3", "'pool_size' is missing", ""},
        {"- DepthwiseConv2D: {depth_multiplier: 2}", PLIM_BAD_JOB, "job.yaml:1:3", "'kernel_size' is missing", ""},
        {"- Conv1D: {filters: 3, kernel_size: [3, 3]}", PLIM_BAD_JOB, "job.yaml:1", "a list of 2", ""},
        {"- Conv2D: {filters: 3, kernel_size: 3, padding: causal}", PLIM_BAD_JOB, "job.yaml:1", "padding 'causal'", ""},
        {"- Conv2DTranspose: {filters: 3, kernel_size: 3, output_padding: 1}", PLIM_BAD_JOB, "job.yaml:1",
         "output_padding 1 must be below the stride 1", ""},
        {"- SeparableConv2D: {filters: 3, kernel_size: 3, pointwise_regularizer: l4}", PLIM_BAD_JOB, "job.yaml:1", "l4",
         ""},
        {"- ReLU: {max_value: -6}", PLIM_BAD_JOB, "job.yaml:1:3", "max_value must not be negative", ""},
        {"- ReLU: {threshold: -1}", PLIM_BAD_JOB, "job.yaml:1:3", "threshold must not be negative", ""},
        {"- LeakyReLU: {negative_slop: 1}", PLIM_BAD_JOB, "job.yaml:1", "negative_slop", "negative_slope"},
        {"- ELU: -1", PLIM_BAD_JOB, "job.yaml:1:3", "alpha must not be negative", ""},
        {"- Softmax: {axis: [1, 2]}", PLIM_UNSUPPORTED, "job.yaml:1", "several axes", ""},
        {"- PReLU: {shared_axes: [0]}", PLIM_BAD_JOB, "job.yaml:1", "at least 1", ""},
        {"- Rescaling: a", PLIM_BAD_JOB, "job.yaml:1:14", "scale: expected a number, got 'a'", ""},
        {"- Activation", PLIM_BAD_JOB, "job.yaml:1:3", "'activation' is missing", ""},
        {"- [Dense]", PLIM_BAD_JOB, "job.yaml:1:3", "one layer", ""},
        {"- {Dense: 3, Flatten: }", PLIM_BAD_JOB, "job.yaml:1:14", "'Flatten' stands beside 'Dense'", "- Dense"},
        {"- Input: {shape: 3}", PLIM_BAD_JOB, "job.yaml:1", "shape", ""},
        {"[]", PLIM_BAD_JOB, "job.yaml:1", "list of layers", ""},
        {"my_model.keras", PLIM_BAD_JOB, "job.yaml:1", "list of layers", ""},
        {"- Flatten\n- Input: {shape: [64]}", PLIM_BAD_JOB, "job.yaml:2:3", "first layer", ""},
    };
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(refusals); i++)
        expect(bench, read_model(bench, refusals[i].text), &refusals[i]);
}

static void bad_optimizers_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"adm", PLIM_BAD_JOB, "job.yaml:1:1", "unknown optimizer 'adm'", "adam"},
        {"muon", PLIM_UNSUPPORTED, "job.yaml:1:1", "muon", ""},
        {"{adam: {learning_rat: 0.1}}", PLIM_BAD_JOB, "job.yaml:1", "learning_rat", "learning_rate"},
        {"{adam: {learning_rate: fast}}", PLIM_BAD_JOB, "job.yaml:1:24", "learning_rate: expected a number", ""},
        {"{adam: {learning_rate: -1}}", PLIM_BAD_JOB, "job.yaml:1:24", "learning_rate", ""},
        {"{adam: {learning_rate: {CosineDcay: {}}}}", PLIM_BAD_JOB, "job.yaml:1:24", "CosineDcay", "CosineDecay"},
        {"{adam: {learning_rate: {CosineDecay: {decay_steps: 5}}}}", PLIM_BAD_JOB, "job.yaml:1",
         "initial_learning_rate", ""},
        {"{adam: {learning_rate: {ExponentialDecay: {initial_learning_rate: 1, decay_steps: 0, decay_rate: 1}}}}",
         PLIM_BAD_JOB, "job.yaml:1", "decay_steps", ""},
        {"{adam: {learning_rate: {PiecewiseConstantDecay: {values: [1, 2]}}}}", PLIM_BAD_JOB, "job.yaml:1",
         "'boundaries' is missing", ""},
        {"{adam: {learning_rate: {PiecewiseConstantDecay: {boundaries: [1, 2], values: [1]}}}}", PLIM_BAD_JOB,
         "job.yaml:1", "one more", ""},
        {"{adam: {clipnorm: 1, clipvalue: 1}}", PLIM_BAD_JOB, "job.yaml:1", "only one of", ""},
        {"{adam: {gradient_accumulation_steps: 1}}", PLIM_BAD_JOB, "job.yaml:1", "gradient_accumulation_steps", ""},
        {"{adam: {use_ema: true, ema_momentum: 2}}", PLIM_BAD_JOB, "job.yaml:1", "ema_momentum", ""},
        {"{LossScaleOptimizer: {initial_scale: 2}}", PLIM_BAD_JOB, "job.yaml:1", "inner_optimizer", ""},
        {"{adam: {beta_1: 1}}", PLIM_BAD_JOB, "job.yaml:1:17", "beta_1", ""},
        {"{sgd: {momentum: 2}}", PLIM_BAD_JOB, "job.yaml:1:18", "momentum", ""},
        {"{sgd: {beta_1: 0.9}}", PLIM_BAD_JOB, "job.yaml:1:8", "beta_1", ""},
        {"[adam]", PLIM_BAD_JOB, "job.yaml:1:1", "a name", "adam"},
    };
    struct bench *bench = *state;
    struct optimizer optimizer;
    for (int i = 0; i < COUNT(refusals); i++) {
        bench->error = (plim_error){0};
        struct yaml *yaml = parse(bench, refusals[i].text);
        expect(bench, optimizer_read(&optimizer, "job.yaml", yaml, &bench->error), &refusals[i]);
    }
}

static void shapes_that_do_not_fit_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"- Dense: 10", PLIM_BAD_JOB, "job.yaml:1:3", "class numbers", ""},
        {"- Flatten\n- Conv2D: {filters: 1, kernel_size: 3}", PLIM_BAD_JOB, "job.yaml:2:3", "(None, 64)", ""},
        {"- Flatten\n- MaxPooling2D", PLIM_BAD_JOB, "job.yaml:2:3", "(None, 64)", ""},
        {"- Conv2D: {filters: 1, kernel_size: 9}", PLIM_BAD_JOB, "job.yaml:1:3", "9x9 does not fit", ""},
        {"- MaxPooling2D: 9", PLIM_BAD_JOB, "job.yaml:1:3", "9x9 does not fit", ""},
        {"- Conv1D: {filters: 1, kernel_size: 3}", PLIM_BAD_JOB, "job.yaml:1:3", "(batch, length, channels)", ""},
        {"- AveragePooling2D: {pool_size: [1, 9]}", PLIM_BAD_JOB, "job.yaml:1:3", "1x9 does not fit", ""},
        {"- Input: {shape: [8, 8, 3]}\n- Flatten", PLIM_BAD_JOB, "job.yaml:1:3", "(8, 8, 3)", ""},
        {"- Flatten\n- Dense: 1", PLIM_BAD_JOB, "job.yaml:2:3", "for each class", ""},
        {"- Conv2D: {filters: 1, kernel_size: 3}", PLIM_BAD_JOB, "job.yaml:1:3", "an output for each class", ""},
        {"- Flatten\n- Activation: softmax", PLIM_BAD_JOB, "job.yaml", "no weights", ""},
        {"- Conv2D: {filters: 2000000000, kernel_size: [2000000000, 2000000000], padding: same}", PLIM_BAD_JOB,
         "job.yaml:1:3", "", ""},
    };
    struct bench *bench = *state;
    struct column_spec x = spec(TYPE_F32, 3, (int64_t[]){8, 8, 1}), y = spec(TYPE_I32, 0, NULL);
    train_with(bench, "sparse_categorical_crossentropy", "adam");
    for (int i = 0; i < COUNT(refusals); i++) {
        assert_int_equal(read_model(bench, refusals[i].text), PLIM_OK);
        expect(bench, build(bench, x, y, true), &refusals[i]);
    }
}

static void labels_follow_keras_rank_rule(void **state)
{
    struct bench *bench = *state;
    struct column_spec x = spec(TYPE_F32, 1, (int64_t[]){5});
    train_with(bench, "binary_crossentropy", "adam");
    assert_int_equal(read_model(bench, "[Dense: {units: 1, activation: sigmoid}]"), PLIM_OK);
    assert_int_equal(build(bench, x, spec(TYPE_U8, 0, NULL), true), PLIM_OK);
    assert_int_equal(build(bench, x, spec(TYPE_F32, 1, (int64_t[]){1}), true), PLIM_OK);
    assert_int_equal(build(bench, x, spec(TYPE_F32, 1, (int64_t[]){2}), true), PLIM_BAD_JOB);
    assert_int_equal(read_model(bench, "[Dense: {units: 2, activation: sigmoid}]"), PLIM_OK);
    assert_int_equal(build(bench, x, spec(TYPE_F32, 0, NULL), true), PLIM_BAD_JOB);
    assert_int_equal(build(bench, x, spec(TYPE_F32, 1, (int64_t[]){2}), true), PLIM_OK);
    assert_int_equal(nodes_of(&bench->graph, &op_ranked_accuracy), 1); /* Keras's categorical one */
    bench->training.metric_count = 0;
    assert_int_equal(build(bench, x, spec(TYPE_F32, 1, (int64_t[]){2}), true), PLIM_OK);
    assert_int_equal(build(bench, spec(TYPE_F64, 1, (int64_t[]){5}), spec(TYPE_F64, 1, (int64_t[]){2}), true), PLIM_OK);
}

/* ---- first values ---- */

static void initializers_have_keras_moments(void **state)
{
    (void)state;
    enum { N = 20000 };
    static float w[N], again[N];
    const struct initializer glorot = {.kind = INITIAL_GLOROT_UNIFORM, .fan_in = 100, .fan_out = 64};
    const struct initializer he = {.kind = INITIAL_HE_NORMAL, .fan_in = 50};
    double limit = sqrt(6.0 / 164), sum = 0, square = 0, most = 0;
    initializer_fill(w, TYPE_F32, N, &glorot, 7, "dense/kernel");
    for (int i = 0; i < N; i++) {
        assert_true(fabs((double)w[i]) <= limit);
        sum += w[i];
        square += (double)w[i] * (double)w[i];
    }
    assert_true(fabs(sum / N) < 0.02 * limit && fabs(square / N / (limit * limit / 3) - 1) < 0.03);
    initializer_fill(again, TYPE_F32, N / 2, &glorot, 7, "dense/kernel");
    assert_memory_equal(w, again, sizeof(float) * N / 2);
    initializer_fill(again, TYPE_F32, N, &glorot, 7, "dense_1/kernel");
    assert_memory_not_equal(w, again, sizeof w);
    initializer_fill(again, TYPE_F32, N, &glorot, 8, "dense/kernel");
    assert_memory_not_equal(w, again, sizeof w);
    initializer_fill(w, TYPE_F32, N, &he, 7, "dense/kernel");
    sum = square = 0;
    for (int i = 0; i < N; i++) {
        sum += w[i];
        square += (double)w[i] * (double)w[i];
        most = fmax(most, fabs((double)w[i]));
    }
    assert_true(fabs(sum / N) < 0.01 && fabs(square / N / (2.0 / 50) - 1) < 0.03);
    assert_true(most <= 2 * sqrt(2.0 / 50) / 0.87962566 * 1.000001);
}

/* Deviations of the others, and that rows or columns of an orthogonal matrix are. */
static void initializers_of_every_kind(void **state)
{
    (void)state;
    enum { N = 20000 };
    static float w[N];
    static const struct {
        struct initializer is;
        double mean, deviation;
    } cases[] = {
        {{.kind = INITIAL_UNIFORM, .value = 0.3, .center = 1}, 1, 0.3 / 1.7320508},
        {{.kind = INITIAL_NORMAL, .value = 0.3, .center = -1}, -1, 0.3},
        {{.kind = INITIAL_TRUNCATED_NORMAL, .value = 0.3}, 0, 0.3 * 0.87962566},
        {{.kind = INITIAL_SCALED, .value = 1, .fan_in = 50, .fan_out = 150, .fans = FANS_BOTH}, 0, 0.1},
        {{.kind = INITIAL_SCALED, .value = 2, .fan_in = 50, .distribution = DISTRIBUTION_UNIFORM}, 0, 0.2},
        {{.kind = INITIAL_SCALED, .value = 4, .fan_out = 100, .fans = FANS_OUT, .distribution = DISTRIBUTION_NORMAL},
         0,
         0.2},
    };
    for (int c = 0; c < COUNT(cases); c++) {
        double sum = 0, square = 0;
        initializer_fill(w, TYPE_F32, N, &cases[c].is, 3, "w");
        for (int i = 0; i < N; i++)
            sum += (double)w[i];
        for (int i = 0; i < N; i++)
            square += ((double)w[i] - sum / N) * ((double)w[i] - sum / N);
        assert_true(fabs(sum / N - cases[c].mean) < 0.02 * cases[c].deviation + 1e-3);
        assert_true(fabs(sqrt(square / N) / cases[c].deviation - 1) < 0.02);
    }
    for (int columns = 7; columns <= 20; columns += 13) { /* 20 rows of 7, 7 rows of 20 */
        struct initializer orthogonal = {.kind = INITIAL_ORTHOGONAL, .value = 2, .columns = columns};
        int rows = 140 / columns, few = rows < columns ? rows : columns, step = rows < columns ? 1 : columns;
        initializer_fill(w, TYPE_F32, 140, &orthogonal, 3, "w");
        for (int a = 0; a < few; a++)
            for (int b = 0; b < few; b++) {
                double product = 0;
                for (int i = 0; i < 20; i++)
                    product += (double)w[a * (21 - (step == 1 ? 1 : 20)) + i * step] *
                               (double)w[b * (21 - (step == 1 ? 1 : 20)) + i * step];
                assert_true(fabs(product - (a == b ? 4 : 0)) < 1e-5);
            }
    }
    struct initializer identity = {.kind = INITIAL_IDENTITY, .value = 1.5, .columns = 3};
    initializer_fill(w, TYPE_F32, 6, &identity, 3, "w");
    static const float expected[6] = {1.5f, 0, 0, 0, 1.5f, 0};
    assert_memory_equal(w, expected, sizeof expected);
}

/* Mean and deviation of a (50, 40) kernel, from Keras's definitions. */
static void all_initializers(void **state)
{
    static const struct {
        const char *words;
        double mean, deviation;
    } cases[] = {
        {"glorot_uniform", 0, 0.14907},
        {"GlorotNormal", 0, 0.14907},
        {"he_uniform", 0, 0.2},
        {"lecun_normal", 0, 0.14142},
        {"LecunUniform", 0, 0.14142},
        {"{VarianceScaling: {scale: 4, mode: fan_out, distribution: uniform}}", 0, 0.31623},
        {"{VarianceScaling: {scale: 4, mode: fan_avg, distribution: untruncated_normal}}", 0, 0.29814},
        {"random_uniform", 0, 0.028868},
        {"{RandomUniform: {minval: 1, maxval: 2}}", 1.5, 0.28868},
        {"{RandomNormal: {mean: 3, stddev: 0.5}}", 3, 0.5},
        {"truncated_normal", 0, 0.043981},
        {"{constant: 0.5}", 0.5, 0},
        {"orthogonal", 0, 0.141421},
        {"{Orthogonal: {gain: 2}}", 0, 0.282843},
        {"identity", 0.02, 0.14},
    };
    struct bench *bench = *state;
    struct column_spec x = spec(TYPE_F32, 1, (int64_t[]){50}), y = spec(TYPE_I32, 0, NULL);
    train_with(bench, "sparse_categorical_crossentropy", "Adam");
    for (int c = 0; c < COUNT(cases); c++) {
        static float w[2000];
        char text[256];
        double sum = 0, square = 0;
        snprintf(text, sizeof text, "[Dense: {units: 40, kernel_initializer: %s}]", cases[c].words);
        assert_int_equal(read_model(bench, text), PLIM_OK);
        assert_int_equal(build(bench, x, y, false), PLIM_OK);
        initializer_fill(w, TYPE_F32, 2000, &bench->graph.build->weight[0].initializer, 5, "dense/kernel");
        for (int i = 0; i < 2000; i++) {
            sum += (double)w[i];
            square += (double)w[i] * (double)w[i];
        }
        double mean = sum / 2000, deviation = sqrt(fmax(square / 2000 - mean * mean, 0));
        if (fabs(mean - cases[c].mean) > 0.08 * cases[c].deviation + 1e-6 ||
            fabs(deviation - cases[c].deviation) > 0.05 * cases[c].deviation + 1e-6)
            fail_msg("%s: mean %g, deviation %g", cases[c].words, mean, deviation);
    }
}

static void orthogonal_is_orthogonal(void **state)
{
    (void)state;
    for (int tall = 0; tall < 2; tall++) {
        int rows = tall ? 30 : 20, columns = tall ? 20 : 30;
        const struct initializer orthogonal = {.kind = INITIAL_ORTHOGONAL, .value = 1, .columns = columns};
        float w[600];
        initializer_fill(w, TYPE_F32, 600, &orthogonal, 3, "dense/kernel");
        for (int a = 0; a < 20; a++)
            for (int b = 0; b < 20; b++) {
                double sum = 0;
                for (int i = 0; i < 30; i++)
                    sum += tall ? (double)w[i * columns + a] * (double)w[i * columns + b]
                                : (double)w[a * columns + i] * (double)w[b * columns + i];
                assert_true(fabs(sum - (a == b)) < 1e-5);
            }
        assert_true(rows * columns == 600);
    }
}

static void bad_words_of_training(void **state)
{
    static const struct refusal
        losses[] =
            {
                {"mean_squared_eror", PLIM_BAD_JOB, "job.yaml:1", "unknown loss", "mean_squared_error"},
                {"ctc", PLIM_UNSUPPORTED, "job.yaml:1", "ctc", ""},
                {"{Huber: {dleta: 1}}", PLIM_BAD_JOB, "job.yaml:1", "dleta", "delta"},
                {"{mse: {reduction: none}}", PLIM_UNSUPPORTED, "job.yaml:1", "reduction", ""},
                {"{bce: {label_smoothing: 2}}", PLIM_BAD_JOB, "job.yaml:1", "label_smoothing", ""},
                {"[mse]", PLIM_BAD_JOB, "job.yaml:1", "a name", ""},
            },
        metrics[] =
            {
                {"[acuracy]", PLIM_BAD_JOB, "job.yaml:1", "unknown metric", "accuracy"},
                {"[pearson_correlation]", PLIM_UNSUPPORTED, "job.yaml:1", "pearson_correlation", ""},
                {"[{AUC: {curve: RC}}]", PLIM_BAD_JOB, "job.yaml:1", "unknown curve", "ROC"},
                {"[{AUC: {num_thresholds: 1}}]", PLIM_BAD_JOB, "job.yaml:1", "num_thresholds", ""},
                {"[{TruePositives: {top_k: 2}}]", PLIM_BAD_JOB, "job.yaml:1", "top_k", ""},
                {"[recall_at_precision]", PLIM_BAD_JOB, "job.yaml:1", "'precision' must be said", "precision: 0.9"},
                {"[{AUC: {thresholds: []}}]", PLIM_BAD_JOB, "job.yaml:1", "a list of 1 to", "thresholds: [0.2, 0.5]"},
                {"[{Precision: {thresholds: [0.1, -0.2]}}]", PLIM_BAD_JOB, "job.yaml:1:33", "from 0 to 1, got -0.2",
                 ""},
                {"[{F1Score: {average: [macro]}}]", PLIM_BAD_JOB, "job.yaml:1", "expected a word", "macro"},
                {"[{F1Score: {average: many}}]", PLIM_BAD_JOB, "job.yaml:1", "unknown average", ""},
                {"[MeanIoU]", PLIM_BAD_JOB, "job.yaml:1", "'num_classes' must be said", "num_classes: 3"},
                {"[{IoU: {num_classes: 2}}]", PLIM_BAD_JOB, "job.yaml:1", "target_class_ids", "[0]"},
                {"[{IoU: {num_classes: 2, target_class_ids: [2]}}]", PLIM_BAD_JOB, "job.yaml:1", "2 is no class", ""},
                {"[{R2Score: {class_aggregation: none}}]", PLIM_BAD_JOB, "job.yaml:1", "class_aggregation", ""},
                {"[{R2Score: {class_aggregation: null}}]", PLIM_UNSUPPORTED, "job.yaml:1", "class_aggregation", ""},
                {"[{AUC: {curve: null}}]", PLIM_BAD_JOB, "job.yaml:1", "unknown curve", "ROC"},
                {"[mse, mse]", PLIM_BAD_JOB, "job.yaml:1", "two metrics", ""},
                {"[{TopKCategoricalAccuracy: {k: 0}}]", PLIM_BAD_JOB, "job.yaml:1", "k", ""},
            },
        layers[] = {
            {"[Dense: {units: 1, kernel_regularizer: l3}]", PLIM_BAD_JOB, "job.yaml:1", "unknown regularizer", ""},
            {"[Dense: {units: 1, kernel_regularizer: {L2: {l1: 3}}}]", PLIM_BAD_JOB, "job.yaml:1", "l1", ""},
            {"[Dense: {units: 1, bias_constraint: max_nrom}]", PLIM_BAD_JOB, "job.yaml:1", "max_nrom", "max_norm"},
            {"[Conv2D: {filters: 1, kernel_size: null}]", PLIM_BAD_JOB, "job.yaml:1", "'kernel_size' is missing", ""},
            {"[ConvLSTM2D: {filters: 1, kernel_size: null}]", PLIM_BAD_JOB, "job.yaml:1", "'kernel_size' is missing",
             ""},
            {"[AdaptiveMaxPooling2D: {output_size: null}]", PLIM_BAD_JOB, "job.yaml:1", "'output_size' is missing", ""},
        };
    struct bench *bench = *state;
    struct loss loss;
    enum loss_kind kind;
    for (int i = 0; i < COUNT(losses); i++)
        expect(bench, loss_read(&loss, &kind, "job.yaml", parse(bench, losses[i].text), &bench->error), &losses[i]);
    for (int i = 0; i < COUNT(metrics); i++) {
        struct training training = {0};
        expect(bench,
               metrics_read(&training, &(struct metric_place){0}, &bench->arena, "job.yaml",
                            parse(bench, metrics[i].text), &bench->error),
               &metrics[i]);
    }
    for (int i = 0; i < COUNT(layers); i++)
        expect(bench, read_model(bench, layers[i].text), &layers[i]);
}

static void initializers_read_keras_spellings(void **state)
{
    struct bench *bench = *state;
    struct column_spec x = spec(TYPE_F32, 1, (int64_t[]){5}), y = spec(TYPE_I32, 0, NULL);
    train_with(bench, "sparse_categorical_crossentropy", "Adam");
    assert_int_equal(read_model(bench,
                                "[Dense: {units: 4, kernel_initializer: HeNormal, bias_initializer: Ones}, "
                                "Dense: {units: 2, use_bias: false, kernel_initializer: {Constant: {value: 0.5}}}]"),
                     PLIM_OK);
    assert_int_equal(build(bench, x, y, false), PLIM_OK);
    assert_int_equal(bench->graph.build->weight_count, 3);
    assert_int_equal(bench->graph.build->weight[0].initializer.kind, INITIAL_HE_NORMAL);
    assert_int_equal(bench->graph.build->weight[0].initializer.fan_in, 5);
    assert_int_equal(bench->graph.build->weight[1].initializer.kind, INITIAL_ONES);
    assert_int_equal(bench->graph.build->weight[2].initializer.kind, INITIAL_CONSTANT);
    assert_true(bench->graph.build->weight[2].initializer.value == 0.5);
}

/* ---- summary ---- */

static void summary_is_keras_table(void **state)
{
    struct bench *bench = *state;
    struct text text;
    text_init(&text, bench->budget, TAG_PLANNER);
    make_cnn(bench, false);
    assert_int_equal(model_summary(&text, bench->graph.build, 80), PLIM_OK);
    compare_golden("summary_cnn.txt", text.data);
    text_clear(&text);
    model_summary_json(&text, bench->graph.build);
    text_add(&text, "\n");
    compare_golden("summary_cnn.json", text.data);
    text_release(&text);
}

static void graph_of_the_mlp(void **state)
{
    struct bench *bench = *state;
    struct text text;
    text_init(&text, bench->budget, TAG_PLANNER);
    make_mlp(bench, true);
    graph_print(&text, &bench->graph);
    compare_golden("graph_mlp.txt", text.data);
    text_release(&text);
}

/* ---- lack of memory ---- */

static void a_small_budget_is_an_error(void **state)
{
    struct bench *bench = *state;
    struct yaml *yaml = parse(bench, CNN);
    int refused = 0;
    for (uint64_t limit = 4096; limit < 400000; limit += 4096) {
        struct budget *budget = NULL;
        struct graph graph;
        struct model *model = NULL;
        struct model_tensors tensors;
        struct column_spec x = spec(TYPE_F32, 3, (int64_t[]){64, 64, 3}), y = spec(TYPE_I32, 0, NULL);
        train_with(bench, "sparse_categorical_crossentropy", "adam");
        if (budget_make(&budget, limit, &bench->error) != PLIM_OK)
            continue;
        graph_init(&graph, budget, 4);
        plim_status status = model_read(&model, budget, "job.yaml", yaml, &bench->error);
        if (status == PLIM_OK)
            status = model_build(&tensors, &graph, model,
                                 &(struct step_spec){.column = (struct column_spec[]){x, y},
                                                     .column_count = 2,
                                                     .training = &bench->training,
                                                     .backward = true},
                                 &bench->error);
        assert_true(status == PLIM_OK || status == PLIM_OVER_BUDGET || status == PLIM_NO_MEMORY);
        refused += status != PLIM_OK;
        model_free(model);
        graph_release(&graph);
        budget_free(budget);
    }
    assert_true(refused > 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mlp_parameters_and_names),
        TEST(cnn_parameters_and_names),
        TEST(states_are_named_after_their_weights),
        TEST(sgd_keeps_a_state_only_with_momentum),
        TEST(building_again_takes_nothing_more),
        TEST(graphs_of_a_model_keep_apart),
        TEST(bytes_become_floats_once),
        TEST(same_padding_is_tensorflows),
        TEST(frozen_layers_are_not_updated),
        TEST(bad_layers_are_refused_with_their_place),
        TEST(bad_optimizers_are_refused),
        TEST(shapes_that_do_not_fit_are_refused),
        TEST(labels_follow_keras_rank_rule),
        TEST(initializers_have_keras_moments),
        TEST(initializers_of_every_kind),
        TEST(initializers_read_keras_spellings),
        TEST(all_initializers),
        TEST(orthogonal_is_orthogonal),
        TEST(bad_words_of_training),
        TEST(summary_is_keras_table),
        TEST(graph_of_the_mlp),
        TEST(a_small_budget_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
