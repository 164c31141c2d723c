/* test_shape_layers.c - layers that move, cut, drop and look up: the shapes they make, what they refuse and where,
   and that what draws does so in training only. */
#include <stdio.h>

#include "model/layers/layer_options.h"
#include "model_bench.h"
#include "ops/ops.h"

/* For training with Adam. */
static int set_up_adam(void **state)
{
    set_up(state);
    struct bench *bench = *state;
    train_with(bench, "sparse_categorical_crossentropy", "adam");
    bench->training.metric_count = 0;
    bench->training.seed = 3;
    return 0;
}

static plim_status build(struct bench *bench, struct shape row, bool fitting)
{
    struct column_spec columns[2] = {{.type = TYPE_F32, .shape = row}, {.type = TYPE_I32}};
    graph_release(&bench->graph);
    graph_init(&bench->graph, bench->budget, 4);
    return model_build(
        &bench->tensors, &bench->graph, bench->model,
        &(struct step_spec){.column = columns, .column_count = 2, .training = &bench->training, .backward = fitting},
        &bench->error);
}

/* The list, ended by what makes a model of it. */
static plim_status build_list(struct bench *bench, const char *text, struct shape row, bool fitting)
{
    char list[1000];
    snprintf(list, sizeof list, "%s\n- Flatten\n- Dense: {units: 3, activation: softmax}\n", text);
    plim_status status = read_model(bench, list);
    return status ? status : build(bench, row, fitting);
}

static const struct shape PICTURE = {3, {8, 6, 2}}, STEPS = {2, {5, 3}}, FEATURES = {1, {12}},
                          VOLUME = {4, {3, 4, 5, 2}};

static const struct {
    const char *text;
    const struct shape *from;
    struct shape to; /* of the first layer, after the batch */
} shapes[] = {
    {"- Reshape: [4, -1]", &FEATURES, {2, {4, 3}}},
    {"- Reshape: {target_shape: [2, 3, 2]}", &FEATURES, {3, {2, 3, 2}}},
    {"- Permute: [2, 1]", &STEPS, {2, {3, 5}}},
    {"- RepeatVector: 4", &FEATURES, {2, {4, 12}}},
    {"- Cropping1D", &STEPS, {2, {3, 3}}},
    {"- Cropping1D: {cropping: [0, 3]}", &STEPS, {2, {2, 3}}},
    {"- Cropping2D", &PICTURE, {3, {8, 6, 2}}},
    {"- Cropping2D: {cropping: [[1, 2], [0, 3]]}", &PICTURE, {3, {5, 3, 2}}},
    {"- Cropping3D", &VOLUME, {4, {1, 2, 3, 2}}},
    {"- ZeroPadding1D: 2", &STEPS, {2, {9, 3}}},
    {"- ZeroPadding2D", &PICTURE, {3, {10, 8, 2}}},
    {"- ZeroPadding2D: [1, 2]", &PICTURE, {3, {10, 10, 2}}},
    {"- ZeroPadding3D: {padding: [[1, 0], [0, 0], [0, 2]]}", &VOLUME, {4, {4, 4, 7, 2}}},
    {"- UpSampling1D", &STEPS, {2, {10, 3}}},
    {"- UpSampling2D: {size: [1, 3], interpolation: bilinear}", &PICTURE, {3, {8, 18, 2}}},
    {"- UpSampling3D", &VOLUME, {4, {6, 8, 10, 2}}},
    {"- Resizing: {height: 3, width: 20}", &PICTURE, {3, {3, 20, 2}}},
    {"- CenterCrop: {height: 3, width: 4}", &PICTURE, {3, {3, 4, 2}}},
    {"- CenterCrop: {height: 30, width: 4}", &PICTURE, {3, {30, 4, 2}}},
    {"- Embedding: {input_dim: 9, output_dim: 7}", &FEATURES, {2, {12, 7}}},
    {"- CategoryEncoding: {num_tokens: 9}", &FEATURES, {1, {9}}},
    {"- CategoryEncoding: {num_tokens: 9, output_mode: one_hot}", &FEATURES, {2, {12, 9}}},
    {"- Discretization: {bin_boundaries: [0, 1]}", &FEATURES, {1, {12}}},
    {"- Discretization: {bin_boundaries: [0, 1], output_mode: one_hot}", &FEATURES, {2, {12, 3}}},
    {"- LSTM: 7", &STEPS, {1, {7}}},
    {"- GRU: {units: 7, return_sequences: true}", &STEPS, {2, {5, 7}}},
    {"- SimpleRNN: {units: 7, activation: relu, dropout: 0.5, recurrent_dropout: 0.2}", &STEPS, {1, {7}}},
    {"- Bidirectional: {layer: {LSTM: 7}}", &STEPS, {1, {14}}},
    {"- Bidirectional: {layer: {GRU: {units: 4, return_sequences: true}}, merge_mode: ave}", &STEPS, {2, {5, 4}}},
    {"- RNN: {cell: {LSTMCell: 7}}", &STEPS, {1, {7}}},
    {"- RNN: {cell: [{LSTMCell: 7}, {GRUCell: 2}], stateful: true}", &STEPS, {1, {2}}},
    {"- Bidirectional: {layer: {LSTM: {units: 7, stateful: true}}}", &STEPS, {1, {14}}},
    {"- ConvLSTM1D: {filters: 4, kernel_size: 3}", &PICTURE, {2, {4, 4}}},
    {"- ConvLSTM2D: {filters: 4, kernel_size: 3, strides: 2, padding: same, return_sequences: true, stateful: true}",
     &VOLUME,
     {4, {3, 2, 3, 4}}},
    {"- ConvLSTM2D: {filters: 4, kernel_size: 2, dilation_rate: 2, return_state: true, dropout: 0.5}",
     &VOLUME,
     {3, {2, 3, 4}}},
    {"- SpectralNormalization: {layer: {Conv2D: {filters: 4, kernel_size: 3}}}", &PICTURE, {3, {6, 4, 4}}},
    {"- SpectralNormalization: {layer: {Dense: 4}, power_iterations: 3}", &STEPS, {2, {5, 4}}},
    {"- SpectralNormalization: {layer: {Embedding: {input_dim: 9, output_dim: 7}}}", &FEATURES, {2, {12, 7}}},
    {"- RNN: {cell: [{LSTMCell: 7}, {GRUCell: {units: 4, dropout: 0.5}}, {LSTMCell: 2}], return_sequences: true}",
     &STEPS,
     {2, {5, 2}}},
    {"- RNN: {cell: {StackedRNNCells: {cells: [{SimpleRNNCell: 6}]}}, return_state: true}", &STEPS, {1, {6}}},
    {"- Bidirectional: {layer: {RNN: {cell: [{GRUCell: 4}, {GRUCell: 3}]}}}", &STEPS, {1, {6}}},
    {"- Attention: {use_scale: true, score_mode: concat, dropout: 0.1}", &STEPS, {2, {5, 3}}},
    {"- AdditiveAttention: {use_causal_mask: true}", &STEPS, {2, {5, 3}}},
    {"- Dropout: 0.5", &STEPS, {2, {5, 3}}},
    {"- RandomFlip: horizontal", &PICTURE, {3, {8, 6, 2}}},
    {"- RandomRotation: 0.1", &PICTURE, {3, {8, 6, 2}}},
    {"- RandomZoom: 0.1", &PICTURE, {3, {8, 6, 2}}},
    {"- RandomTranslation: {height_factor: 0.1, width_factor: [0, 0.2]}", &PICTURE, {3, {8, 6, 2}}},
    {"- RandomBrightness: 0.1", &PICTURE, {3, {8, 6, 2}}},
    {"- RandomContrast: 0.1", &PICTURE, {3, {8, 6, 2}}},
    {"- RandomCrop: {height: 5, width: 4}", &PICTURE, {3, {5, 4, 2}}},
    {"- RandomCrop: {height: 5, width: 9}", &PICTURE, {3, {5, 9, 2}}},
    {"- Identity", &VOLUME, {4, {3, 4, 5, 2}}},
    {"- ActivityRegularization: {l1: 0.1, l2: 0.2}", &STEPS, {2, {5, 3}}},
    {"- SpatialDropout3D: 0.5", &VOLUME, {4, {3, 4, 5, 2}}},
};

static void layers_make_keras_shapes(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(shapes); i++) {
        if (build_list(bench, shapes[i].text, *shapes[i].from, true))
            fail_msg("%s: %s", shapes[i].text, bench->error.message);
        const struct shape *made = &figures_of(bench->graph.build, &bench->model->layer[0])->output;
        struct shape row = shape_of(made->rank - 1, made->dim + 1);
        if (!shape_equal(&row, &shapes[i].to))
            fail_msg("%s makes another shape", shapes[i].text);
    }
}

static const struct {
    const char *text;
    const struct shape *from;
    plim_status code;
    const char *where, *message;
} refused[] = {
    {"- Reshape: [5, -1]", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "cannot become"},
    {"- Reshape: [-1, -1]", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:12", "only one -1"},
    {"- Reshape", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "'target_shape' is missing"},
    {"- Reshape: [0, 12]", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "cannot become"},
    {"- Permute: [1, 1]", &STEPS, PLIM_BAD_JOB, "job.yaml:1:12", "each of 1 to 2"},
    {"- Permute: [2, 1]", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:3", "2 dims for"},
    {"- Masking\n- TimeDistributed: {layer: {RepeatVector: 2}, name: twice}\n- BatchNormalization: {name: bn}", &STEPS,
     PLIM_BAD_JOB, "job.yaml:3:3",
     "bn: a mask (None, 5) goes with (batch, steps, channels), got twice (None, 5, 2, 3)"},
    {"- Attention: {score_mode: concta}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:27", "unknown score_mode 'concta'"},
    {"- Attention: {dropout: 1}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "[0, 1)"},
    {"- AdditiveAttention: {score_mode: dot}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:23", "unknown key 'score_mode'"},
    {"- AdditiveAttention", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "got (None, 12)"},
    {"- Dense: {units: 4, name: a}\n- Dense: {units: 5, name: b, inputs: a}\n- AdditiveAttention: {inputs: [a, b], "
     "name: "
     "c}",
     &STEPS, PLIM_BAD_JOB, "job.yaml:3:3", "c: the query a (None, 5, 4) and the key b (None, 5, 5) differ in features"},
    {"- Identity: 3", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "takes no argument"},
    {"- ActivityRegularization: {l1: -1}", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "l1 must not be negative, got -1"},
    {"- ActivityRegularization: {l3: 1}", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:28", "unknown key 'l3'"},
    {"- RepeatVector: 0", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:17", "at least 1"},
    {"- RepeatVector: 2", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "(batch, features)"},
    {"- Cropping2D: 4", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:3", "leaves nothing"},
    {"- Cropping2D: [1, 2, 3]", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:15", "a list of 3"},
    {"- ZeroPadding2D: -1", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:18", "at least 0"},
    {"- ZeroPadding2D: {pading: 1}", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:19", "unknown key 'pading'"},
    {"- UpSampling2D: {interpolation: bilnear}", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:33", "bilnear"},
    {"- UpSampling2D: {interpolation: lanczos3}", &PICTURE, PLIM_UNSUPPORTED, "job.yaml:1:33", "not supported yet"},
    {"- UpSampling2D: {data_format: channels_first}", &PICTURE, PLIM_UNSUPPORTED, "job.yaml:1:31", "channels_last"},
    {"- UpSampling2D: 2000000000", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:3", ""},
    {"- Resizing: {height: 3}", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:3", "'width' is missing"},
    {"- Resizing: {height: 3, width: 3, antialias: true}", &PICTURE, PLIM_UNSUPPORTED, "job.yaml:1:46", "antialias"},
    {"- LSTM", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "'units' is missing"},
    {"- LSTM: 4", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "(None, 12)"},
    {"- GRU: {units: 4, stateful: 2}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:29", "stateful"},
    {"- ConvLSTM2D: {filters: 4}", &VOLUME, PLIM_BAD_JOB, "job.yaml:1:3", "'kernel_size' is missing"},
    {"- ConvLSTM2D: {kernel_size: 3}", &VOLUME, PLIM_BAD_JOB, "job.yaml:1:3", "'filters' is missing"},
    {"- ConvLSTM2D: {filters: 4, kernel_size: 3}", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:3", "(None, 8, 6, 2)"},
    {"- ConvLSTM2D: {filters: 4, kernel_size: 6}", &VOLUME, PLIM_BAD_JOB, "job.yaml:1:3",
     "its kernel does not fit into (None, 3, 4, 5, 2)"},
    {"- ConvLSTM2D: {filters: 4, kernel_size: 2, strides: 2, dilation_rate: 2}", &VOLUME, PLIM_BAD_JOB, "job.yaml:1:3",
     "do not go together"},
    {"- ConvLSTM2D: {filters: 4, kernel_size: 2, data_format: channels_first}", &VOLUME, PLIM_UNSUPPORTED,
     "job.yaml:1:57", "channels_last"},
    {"- ConvLSTM2D: {filters: 4, kernel_size: 2, activation: mish}", &VOLUME, PLIM_UNSUPPORTED, "job.yaml:1:56",
     "'mish'"},
    {"- ConvLSTM1D: {filters: 4, kernel_size: 2, recurrent_dropout: 1}", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:3",
     "[0, 1)"},
    {"- ConvLSTM1D: {filters: 4, kernel_size: 2, unitss: 1}", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:44", "unitss"},
    {"- Input: {shape: [8, 6, 2], name: a}\n- ConvLSTM1D: {filters: 4, kernel_size: 2, inputs: [a, a, a], name: r}",
     &PICTURE, PLIM_BAD_JOB, "job.yaml:2:3", "r: a state must be (None, 5, 4), got a (None, 8, 6, 2)"},
    {"- Input: {shape: [8, 6, 2], name: a}\n- ConvLSTM1D: {filters: 4, kernel_size: 2, inputs: [a, a]}", &PICTURE,
     PLIM_BAD_JOB, "job.yaml:2:3", "got 2 inputs"},
    {"- SpectralNormalization", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "'layer' is missing"},
    {"- SpectralNormalization: {layer: {LSTM: 4}}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3",
     "LSTM is no layer of one input"},
    {"- SpectralNormalization: {layer: {BatchNormalization: {}}, name: n}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3",
     "n: a BatchNormalization has neither a kernel nor embeddings"},
    {"- SpectralNormalization: {layer: {Dense: 4}, power_iterations: 0}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:64",
     "at least 1"},
    {"- SpectralNormalization: {layer: {Dense: 4}, power_iterations: 101}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3",
     "at most 100"},
    {"- GRU: {units: 4, activation: mish}", &STEPS, PLIM_UNSUPPORTED, "job.yaml:1:31", "'mish'"},
    {"- GRU: {units: 4, unit_forget_bias: true}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:19", "unit_forget_bias"},
    {"- LSTM: {units: 4, dropout: 1}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "[0, 1)"},
    {"- RNN", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "'cell' is missing"},
    {"- RNN: {cell: {LSTM: 4}}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:15", "LSTM is no cell"},
    {"- RNN: {cell: []}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:15", "a list of 1 to 32 cells"},
    {"- RNN: {cell: {StackedRNNCells: {cells: 4}}}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:41", "a list of 1 to 32 cells"},
    {"- RNN: {cell: {StackedRNNCells: {}}}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:15", "'cells' is missing"},
    {"- RNN: {cell: [{GRUCell: 4}, {Dense: 4}]}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:30", "Dense is no cell"},
    {"- RNN: {cell: [{GRUCell: {units: 4, name: a}}, {LSTMCell: {units: 4, name: a}}]}", &STEPS, PLIM_BAD_JOB,
     "job.yaml:1:48", "two layers are named 'a'"},
    {"- RNN: {cell: {GRUCell: {units: 4, return_state: true}}}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:36", "return_state"},
    {"- RNN: {cell: {MyCell: 4}}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:15", "unknown layer 'MyCell'"},
    {"- RNN: {cell: {GRUCell: 4}}", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "(None, 12)"},
    {"- GRUCell: 4", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "a GRUCell is no layer by itself"},
    {"- StackedRNNCells: [{GRUCell: 4}]", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "no layer by itself"},
    {"- Bidirectional: {layer: {LSTM: 4}, name: both}", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "both"},
    {"- Bidirectional: {layer: {Dense: 4}}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "no recurrent layer"},
    {"- Bidirectional: {layer: {LSTM: 4}, merge_mode: [sum]}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:49",
     "a word, or null"},
    {"- Bidirectional: {layer: {LSTM: {units: 4, return_state: true}}, backward_layer: {LSTM: {units: 4, go_backwards: "
     "true}}}",
     &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "differ in return_state"},
    {"- Bidirectional: {layer: {LSTM: 4}, backward_layer: {LSTM: 4}}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3",
     "the same way"},
    {"- Dropout: 1.5", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:12", "from 0 to 1"},
    {"- Dropout", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "'rate' is missing"},
    {"- GaussianDropout: 1", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:20", "below 1"},
    {"- GaussianNoise: -1", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:18", "at least 0"},
    {"- Dropout: {rate: 0.5, noise_shape: [null, 4]}", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "noise_shape"},
    {"- SpatialDropout2D: 0.5", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "(None, 5, 3)"},
    {"- Embedding: 5", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "'output_dim' is missing"},
    {"- CategoryEncoding: {num_tokens: 9, output_mode: int}", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:50", "'int'"},
    {"- Discretization: {bin_boundaries: [1, 0]}", &FEATURES, PLIM_BAD_JOB, "job.yaml:1:3", "must rise"},
    {"- Discretization: {num_bins: 3}", &FEATURES, PLIM_UNSUPPORTED, "job.yaml:1:30", "num_bins"},
    {"- RandomFlip: sideways", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:15", "'sideways'"},
    {"- RandomRotation: 2", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:19", "from -1 to 1"},
    {"- RandomContrast: [-0.5, 0]", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:19", "from 0 to 1"},
    {"- RandomTranslation: 0.1", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:3", "'width_factor' is missing"},
    {"- RandomZoom: {height_factor: 0.1, fill_mode: mirror}", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:47", "'mirror'"},
    {"- RandomBrightness: {factor: 0.1, value_range: 3}", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:48", "two numbers"},
    {"- RandomCrop: 5", &PICTURE, PLIM_BAD_JOB, "job.yaml:1:3", "'width' is missing"},
    {"- RandomFlip", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "(None, 5, 3)"},
    {"- Concatenate: {axis: 0}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "the batch"},
    {"- Concatenate: {axis: 5}", &STEPS, PLIM_BAD_JOB, "job.yaml:1:3", "not there"},
};

static void what_does_not_fit_is_refused(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(refused); i++) {
        plim_status status = build_list(bench, refused[i].text, *refused[i].from, true);
        if (status != refused[i].code || !strstr(bench->error.where, refused[i].where) ||
            !strstr(bench->error.message, refused[i].message))
            fail_msg("%s: %s \"%s\": %s", refused[i].text, plim_status_name(status), bench->error.where,
                     bench->error.message);
    }
}

static const struct node *find_node(const struct graph *graph, const struct op *op, const char *name)
{
    for (int i = 0; i < graph->node_count; i++)
        if (graph->node[i]->op == op && (!name || strcmp(graph->node[i]->name, name) == 0))
            return graph->node[i];
    return NULL;
}

static void what_draws_does_so_in_training_only(void **state)
{
    static const char *const texts[] = {"- Dropout: 0.5",
                                        "- SpatialDropout1D: 0.5",
                                        "- GaussianNoise: 0.5",
                                        "- GaussianDropout: 0.5",
                                        "- AlphaDropout: 0.5",
                                        "- Reshape: [5, 3, 1]\n- RandomFlip",
                                        "- Reshape: [5, 3, 1]\n- RandomContrast: 0.5"};
    static const struct op *const ops[] = {&op_dropout, &op_dropout,     &op_gaussian_noise, &op_gaussian_dropout,
                                           &op_dropout, &op_random_warp, &op_random_tone};
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(texts); i++) {
        assert_int_equal(build_list(bench, texts[i], STEPS, true), PLIM_OK);
        assert_non_null(find_node(&bench->graph, ops[i], NULL));
        assert_int_equal(build(bench, STEPS, false), PLIM_OK);
        assert_null(find_node(&bench->graph, ops[i], NULL));
    }
}

static uint64_t seed_of(struct bench *bench, const char *name)
{
    const struct node *node = find_node(&bench->graph, &op_dropout, name);
    assert_non_null(node);
    return ((const struct dropout_attributes *)node->attributes)->seed;
}

static void seeds_hang_on_the_job_the_name_and_the_word(void **state)
{
    struct bench *bench = *state;
    const char *text = "- Dropout: 0.5\n- Dropout: 0.5\n- Dropout: {rate: 0.5, seed: 4, name: a}";
    assert_int_equal(build_list(bench, text, STEPS, true), PLIM_OK);
    uint64_t first = seed_of(bench, "dropout"), named = seed_of(bench, "a");
    assert_int_not_equal(first, seed_of(bench, "dropout_1"));
    assert_int_equal(build_list(bench, text, PICTURE, true), PLIM_OK);
    assert_int_equal(seed_of(bench, "dropout"), first);
    bench->training.seed = 4;
    assert_int_equal(build(bench, STEPS, true), PLIM_OK);
    assert_int_not_equal(seed_of(bench, "dropout"), first);
    bench->training.seed = 3;
    assert_int_equal(build_list(bench, "- Dropout: {rate: 0.5, seed: 5, name: a}", STEPS, true), PLIM_OK);
    assert_int_not_equal(seed_of(bench, "a"), named);
}

/* Axes that share a number, as bits. */
static void noise_shapes_are_axes(void **state)
{
    static const struct {
        const char *text;
        int64_t shared;
    } cases[] = {
        {"- Dropout: 0.5", 0},
        {"- SpatialDropout1D: 0.5", 2},
        {"- Dropout: {rate: 0.5, noise_shape: [null, 1, null]}", 2},
        {"- Dropout: {rate: 0.5, noise_shape: [1, 5, 1]}", 5},
        {"- AlphaDropout: {rate: 0.5, noise_shape: [null, 1, 1]}", 6},
    };
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(cases); i++) {
        assert_int_equal(build_list(bench, cases[i].text, STEPS, true), PLIM_OK);
        const struct node *node = find_node(&bench->graph, &op_dropout, NULL);
        assert_int_equal(((const struct dropout_attributes *)node->attributes)->shared, cases[i].shared);
    }
}

/* More inputs than an op takes: nested. */
static void many_inputs_are_joined_in_layers(void **state)
{
    struct bench *bench = *state;
    struct tensor *x[50];
    struct graph *graph = &bench->graph;
    for (int i = 0; i < 50; i++)
        x[i] = graph_input(graph, "x", i, TYPE_F32, shape_of(2, (int64_t[]){4, i + 1}));
    struct tensor *y = concatenate(graph, x, 50, 1);
    assert_non_null(y);
    assert_int_equal(y->shape.dim[1], 50 * 51 / 2);
    struct tensor *rows = stack(graph, (struct tensor *[]){x[2], x[2], x[2], x[2], x[2], x[2], x[2]}, 7, 1);
    assert_non_null(rows);
    assert_int_equal(rows->shape.dim[1], 7);
    assert_int_equal(rows->shape.dim[2], 3);
}

/* Names as Keras has them; a forget gate begins open. */
static void cells_have_keras_weights(void **state)
{
    static const struct {
        const char *text, *name[3];
        int64_t bias; /* elements */
    } cases[] = {
        {"- LSTM: 2", {"lstm/lstm_cell/kernel", "lstm/lstm_cell/recurrent_kernel", "lstm/lstm_cell/bias"}, 8},
        {"- GRU: 2", {"gru/gru_cell/kernel", "gru/gru_cell/recurrent_kernel", "gru/gru_cell/bias"}, 12},
        {"- Bidirectional: {layer: {LSTM: {units: 2, unit_forget_bias: false}}}",
         {"bidirectional/forward_lstm/lstm_cell/kernel", "bidirectional/forward_lstm/lstm_cell/recurrent_kernel",
          "bidirectional/forward_lstm/lstm_cell/bias"},
         8},
    };
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(cases); i++) {
        float bias[12];
        assert_int_equal(build_list(bench, cases[i].text, STEPS, true), PLIM_OK);
        for (int k = 0; k < 3; k++)
            assert_string_equal(bench->graph.build->weight[k].name, cases[i].name[k]);
        const struct weight *weight = &bench->graph.build->weight[2];
        assert_int_equal(shape_count(&weight->tensor->shape), cases[i].bias);
        initializer_fill(bias, TYPE_F32, cases[i].bias, &weight->initializer, 1, weight->name);
        for (int k = 0; k < cases[i].bias; k++)
            assert_float_equal(bias[k], i == 0 && (k == 2 || k == 3) ? 1 : 0, 0);
    }
}

/* A summary without data: there is no seed to draw by, and nothing is drawn. */
static void shapes_without_training(void **state)
{
    static const char *const texts[] = {
        "- GaussianNoise: 0.1",  "- GaussianDropout: 0.1",
        "- Dropout: 0.1",        "- AlphaDropout: 0.1",
        "- RandomContrast: 0.1", "- RandomBrightness: 0.1",
        "- RandomRotation: 0.1", "- RandomCrop: {height: 4, width: 4}",
    };
    struct bench *bench = *state;
    struct column_spec column = {.type = TYPE_F32, .shape = PICTURE};
    for (int i = 0; i < COUNT(texts); i++) {
        good(bench, read_model(bench, texts[i]));
        graph_release(&bench->graph);
        graph_init(&bench->graph, bench->budget, 4);
        good(bench, model_build(&bench->tensors, &bench->graph, bench->model,
                                &(struct step_spec){.column = &column, .column_count = 1}, &bench->error));
        assert_int_equal(bench->tensors.output[0].value->shape.rank, 4);
    }
}

/* A penalty for each use, and one where the word stands at a layer; what it is about is what the activation makes. */
static void penalties_are_of_what_comes_out(void **state)
{
    struct bench *bench = *state;
    int penalties = 0;
    if (read_model(bench, "- ActivityRegularization: {l1: 0.1, name: a}\n- a\n- ActivityRegularization: 0\n"
                          "- Dense: {units: 3, activation: softmax, activity_regularizer: l2}\n") ||
        build(bench, FEATURES, true))
        fail_msg("%s", bench->error.message);
    for (int i = 0; i < bench->graph.node_count; i++)
        penalties += bench->graph.node[i]->op == &op_penalty;
    assert_int_equal(penalties, 3);
    assert_false(output_has_logits(bench->graph.build, 0));
    assert_ptr_equal(bench->tensors.output[0].value->producer->op, &op_softmax);
}

/* The batch's figures leave masked steps out; the moving ones know no mask. */
static void figures_of_a_batch_are_masked(void **state)
{
    struct bench *bench = *state;
    for (int fitting = 0; fitting < 2; fitting++) {
        int counts = 0, moving = 0, plain = 0;
        if (build_list(bench, "- Masking\n- BatchNormalization", STEPS, fitting))
            fail_msg("%s", bench->error.message);
        for (int i = 0; i < bench->graph.node_count; i++) {
            const struct op *op = bench->graph.node[i]->op;
            counts += op == &op_mask_count;
            moving += op == &op_batch_moving;
            plain += op == &op_batch_normalize;
        }
        assert_int_equal(counts, fitting);
        assert_int_equal(moving, fitting);
        assert_int_equal(plain, !fitting);
    }
}

/* Keras's numbers of one: a weight without axes. */
static void attention_has_keras_weights(void **state)
{
    static const struct {
        const char *text;
        int weights, rank;
    } cases[] = {{"- Attention: {use_scale: true}", 1, 0},
                 {"- Attention: {use_scale: true, score_mode: concat}", 2, 0},
                 {"- Attention: {score_mode: concat}", 1, 0},
                 {"- AdditiveAttention", 1, 1},
                 {"- AdditiveAttention: {use_scale: false}", 0, 0}};
    struct bench *bench = *state;
    for (int i = 0; i < COUNT(cases); i++) {
        if (build_list(bench, cases[i].text, STEPS, true))
            fail_msg("%s: %s", cases[i].text, bench->error.message);
        assert_int_equal(bench->graph.build->weight_count, cases[i].weights + 2);
        if (cases[i].weights)
            assert_int_equal(bench->graph.build->weight[0].tensor->shape.rank, cases[i].rank);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_adam, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(layers_make_keras_shapes),
        TEST(what_does_not_fit_is_refused),
        TEST(what_draws_does_so_in_training_only),
        TEST(seeds_hang_on_the_job_the_name_and_the_word),
        TEST(noise_shapes_are_axes),
        TEST(many_inputs_are_joined_in_layers),
        TEST(shapes_without_training),
        TEST(cells_have_keras_weights),
        TEST(figures_of_a_batch_are_masked),
        TEST(attention_has_keras_weights),
        TEST(penalties_are_of_what_comes_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
