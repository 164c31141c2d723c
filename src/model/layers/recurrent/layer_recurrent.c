/* layer_recurrent.c - SimpleRNN, GRU, LSTM, and their cells for RNN: words. What they make: layer_recurrent_run.c. */
#include "model/layers/recurrent/layer_recurrent.h"

#include <stdio.h>
#include <string.h>

#include "ops/ops.h"

#define AT(field) offsetof(struct recurrent, field)
#define CELL_WORDS                                                                                                     \
    {"activation", SETTING_NODE, AT(activation_word), 0}, {"use_bias", SETTING_BOOL, AT(use_bias), 0},                 \
        {"kernel_initializer", SETTING_NODE, AT(kernel_word), 0},                                                      \
        {"recurrent_initializer", SETTING_NODE, AT(recurrent_word), 0},                                                \
        {"bias_initializer", SETTING_NODE, AT(bias_word), 0}, {"kernel_regularizer", SETTING_ELSEWHERE, 0, 0},         \
        {"recurrent_regularizer", SETTING_ELSEWHERE, 0, 0}, {"bias_regularizer", SETTING_ELSEWHERE, 0, 0},             \
        {"kernel_constraint", SETTING_ELSEWHERE, 0, 0}, {"recurrent_constraint", SETTING_ELSEWHERE, 0, 0},             \
        {"bias_constraint", SETTING_ELSEWHERE, 0, 0}, {"dropout", SETTING_NUMBER, AT(dropout), 0},                     \
        {"recurrent_dropout", SETTING_NUMBER, AT(recurrent_dropout), 0}, {"seed", SETTING_NODE, AT(seed_word), 0},     \
        {"implementation", SETTING_WHOLE, AT(implementation), 0}, LAYER_WORDS
#define LAYER_AND_CELL_WORDS                                                                                           \
    {"activity_regularizer", SETTING_ELSEWHERE, 0, 0}, {"use_cudnn", SETTING_NODE, AT(cudnn), 0},                      \
        RECURRENT_WALK_WORDS(AT), CELL_WORDS
#define UNITS                                                                                                          \
    {                                                                                                                  \
        "units", SETTING_WHOLE, AT(units), 1                                                                           \
    }
#define GATE_WORD                                                                                                      \
    {                                                                                                                  \
        "recurrent_activation", SETTING_NODE, AT(recurrent_activation_word), 0                                         \
    }
#define RESET_WORD                                                                                                     \
    {                                                                                                                  \
        "reset_after", SETTING_BOOL, AT(reset_after), 0                                                                \
    }
#define FORGET_WORD                                                                                                    \
    {                                                                                                                  \
        "unit_forget_bias", SETTING_BOOL, AT(unit_forget_bias), 0                                                      \
    }

static const struct setting simple_settings[] = {UNITS, LAYER_AND_CELL_WORDS},
                            simple_cell_settings[] = {UNITS, CELL_WORDS};
static const struct setting gru_settings[] = {UNITS, GATE_WORD, RESET_WORD, LAYER_AND_CELL_WORDS},
                            gru_cell_settings[] = {UNITS, GATE_WORD, RESET_WORD, CELL_WORDS};
static const struct setting lstm_settings[] = {UNITS, GATE_WORD, FORGET_WORD, LAYER_AND_CELL_WORDS},
                            lstm_cell_settings[] = {UNITS, GATE_WORD, FORGET_WORD, CELL_WORDS};

/* ---- reading ---- */

plim_status recurrent_read_activation(int64_t *out, const struct layer *layer, const char *word,
                                      const struct yaml *node, plim_error *error)
{
    static const char *const words[RECURRENT_ACTIVATIONS] = {
        [RECURRENT_LINEAR] = "linear",    [RECURRENT_TANH] = "tanh", [RECURRENT_SIGMOID] = "sigmoid",
        [RECURRENT_RELU] = "relu",        [RECURRENT_ELU] = "elu",   [RECURRENT_HARD_SIGMOID] = "hard_sigmoid",
        [RECURRENT_SOFTSIGN] = "softsign"};
    const struct activation_type *type = NULL;
    char where[256];
    if (!node)
        return PLIM_OK;
    TRY(option_activation(&type, layer, node, error));
    for (int i = 0; i < LENGTH(words); i++)
        if (!type || strcmp(type->name, words[i]) == 0) { /* null is linear */
            *out = i;
            return PLIM_OK;
        }
    yaml_place(where, layer->model->job, node);
    return fail_at(error, PLIM_UNSUPPORTED, where, "%s: %s '%s' is not supported yet in a recurrent layer",
                   layer->type->name, word, type->name);
}

plim_status recurrent_check_rate(const struct layer *layer, const char *word, double rate, plim_error *error)
{
    char where[256];
    layer_place(where, layer);
    if (!(rate >= 0 && rate < 1))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: %s must be in [0, 1), got %g", layer->type->name, word, rate);
    return PLIM_OK;
}

plim_status recurrent_read_seed(int64_t *out, const struct layer *layer, const struct yaml *node, plim_error *error)
{
    const struct setting seed = {"seed", SETTING_WHOLE, 0, 0};
    return !node || node->is_null ? PLIM_OK : setting_value(out, &seed, layer->model->job, node, error);
}

static plim_status read_rest(struct layer *layer, plim_error *error)
{
    struct recurrent *options = layer->options;
    TRY(option_extent(layer, "units", options->units, error));
    TRY(recurrent_read_activation(&options->activation, layer, "activation", options->activation_word, error));
    TRY(recurrent_read_activation(&options->recurrent_activation, layer, "recurrent_activation",
                                  options->recurrent_activation_word, error));
    TRY(option_initializer(&options->kernel, layer, "kernel_initializer", options->kernel_word, error));
    TRY(option_initializer(&options->recurrent, layer, "recurrent_initializer", options->recurrent_word, error));
    TRY(option_initializer(&options->bias, layer, "bias_initializer", options->bias_word, error));
    TRY(recurrent_check_rate(layer, "dropout", options->dropout, error));
    TRY(recurrent_check_rate(layer, "recurrent_dropout", options->recurrent_dropout, error));
    recurrent_read_walk(layer);
    return recurrent_read_seed(&options->seed, layer, options->seed_word, error);
}

/* `LSTM: 128` is a number of units, though the layer takes several inputs. */
static plim_status recurrent_read(struct layer *layer, const struct setting *settings, int count,
                                  const struct yaml *yaml, plim_error *error)
{
    struct recurrent *options = layer->options;
    bool number = yaml && yaml->kind == YAML_SCALAR && !yaml->is_null;
    char example[64];
    options->use_bias = options->unit_forget_bias = options->reset_after = true;
    options->kernel.kind = INITIAL_GLOROT_UNIFORM;
    options->recurrent = (struct initializer){.kind = INITIAL_ORTHOGONAL, .value = 1};
    options->activation = RECURRENT_TANH;
    options->recurrent_activation = RECURRENT_SIGMOID;
    TRY(layer_read(layer, settings, count, number ? NULL : yaml, error));
    if (number)
        TRY(setting_value(&options->units, &settings[0], layer->model->job, yaml, error));
    snprintf(example, sizeof example, "%s: {units: 64}", layer->type->name);
    if (!options->units)
        return layer_missing(layer, "units", example, error);
    options->self = layer;
    options->cell = &options->self;
    options->cell_count = 1;
    return read_rest(layer, error);
}

void recurrent_read_walk(struct layer *layer)
{
    const struct recurrent *options = layer->options;
    layer->outputs = options->return_state ? 1 + recurrent_states(layer) : 0;
}

#define READER(name)                                                                                                   \
    static plim_status name##_read(struct layer *layer, const struct yaml *yaml, plim_error *error)                    \
    {                                                                                                                  \
        return recurrent_read(layer, name##_settings, LENGTH(name##_settings), yaml, error);                           \
    }
READER(simple)
READER(gru)
READER(lstm)
READER(simple_cell)
READER(gru_cell)
READER(lstm_cell)

/* ---- layers ---- */

/* A cell is what an RNN goes through a sequence with. */
static struct tensor *cell_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    (void)x;
    graph_fail(graph, PLIM_BAD_JOB, "%s: a %s is no layer by itself: `RNN: {cell: {%s: ...}}`", layer->name,
               layer->type->name, layer->type->name);
    return NULL;
}

#define RECURRENT_LAYER(variable, keras, small, reader, groups)                                                        \
    const struct layer_type layer_##variable = {                                                                       \
        .name = keras,                                                                                                 \
        .snake = small,                                                                                                \
        .wide = true,                                                                                                  \
        .keeps_mask = true,                                                                                            \
        .saved_groups = groups,                                                                                        \
        .options_bytes = sizeof(struct recurrent),                                                                     \
        .read = reader,                                                                                                \
        .merge = recurrent_build,                                                                                      \
    }
#define RECURRENT_CELL(variable, keras, small, reader)                                                                 \
    const struct layer_type layer_##variable = {                                                                       \
        .name = keras,                                                                                                 \
        .snake = small,                                                                                                \
        .wide = true,                                                                                                  \
        .options_bytes = sizeof(struct recurrent),                                                                     \
        .read = reader,                                                                                                \
        .build = cell_build,                                                                                           \
    }

static const char *const simple_groups[] = {"simple_rnn_cell", "cell", NULL};
static const char *const gru_groups[] = {"gru_cell", "cell", NULL};
static const char *const lstm_groups[] = {"lstm_cell", "cell", NULL};

RECURRENT_LAYER(simple_rnn, "SimpleRNN", "simple_rnn", simple_read, simple_groups);
RECURRENT_LAYER(gru, "GRU", "gru", gru_read, gru_groups);
RECURRENT_LAYER(lstm, "LSTM", "lstm", lstm_read, lstm_groups);
RECURRENT_CELL(simple_rnn_cell, "SimpleRNNCell", "simple_rnn_cell", simple_cell_read);
RECURRENT_CELL(gru_cell, "GRUCell", "gru_cell", gru_cell_read);
RECURRENT_CELL(lstm_cell, "LSTMCell", "lstm_cell", lstm_cell_read);
