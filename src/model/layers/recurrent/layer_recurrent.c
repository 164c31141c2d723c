/* layer_recurrent.c - SimpleRNN, GRU, LSTM, and their cells for RNN: options. What they make: layer_recurrent_run.c. */
#include "model/layers/recurrent/layer_recurrent.h"

#include <string.h>

#include "ops/ops.h"

#define TO(field) .offset = offsetof(struct recurrent, field)
#define CELL                                                                                                           \
    CELL_OPTIONS,                                                                                                      \
    {                                                                                                                  \
        "implementation", option_whole, TO(implementation)                                                             \
    }
#define LAYER_AND_CELL {.word = "activity_regularizer"}, {.word = "use_cudnn"}, SEQUENCE_OPTIONS, CELL
#define UNITS                                                                                                          \
    {                                                                                                                  \
        "units", option_extent, TO(units), .least = 1, .required = true                                                \
    }
#define RESET                                                                                                          \
    {                                                                                                                  \
        "reset_after", option_flag, TO(reset_after)                                                                    \
    }

static const struct model_option simple_options[] = {UNITS, LAYER_AND_CELL};
static const struct model_option simple_cell_options[] = {UNITS, CELL};
static const struct model_option gru_options[] = {UNITS, GATE_OPTION, RESET, LAYER_AND_CELL};
static const struct model_option gru_cell_options[] = {UNITS, GATE_OPTION, RESET, CELL};
static const struct model_option lstm_options[] = {UNITS, GATE_OPTION, FORGET_OPTION, LAYER_AND_CELL};
static const struct model_option lstm_cell_options[] = {UNITS, GATE_OPTION, FORGET_OPTION, CELL};

static const struct recurrent defaults = {.use_bias = true,
                                          .unit_forget_bias = true,
                                          .reset_after = true,
                                          .kernel = {.kind = INITIAL_GLOROT_UNIFORM},
                                          .recurrent = {.kind = INITIAL_ORTHOGONAL, .value = 1},
                                          .activation = RECURRENT_TANH,
                                          .recurrent_activation = RECURRENT_SIGMOID};

OPTION_READER(option_recurrent_activation)
{
    static const char *const words[RECURRENT_ACTIVATIONS] = {
        [RECURRENT_LINEAR] = "linear",    [RECURRENT_TANH] = "tanh", [RECURRENT_SIGMOID] = "sigmoid",
        [RECURRENT_RELU] = "relu",        [RECURRENT_ELU] = "elu",   [RECURRENT_HARD_SIGMOID] = "hard_sigmoid",
        [RECURRENT_SOFTSIGN] = "softsign"};
    const struct activation_type *type = NULL;
    TRY(option_activation(&type, option, at, node, error));
    for (int i = 0; i < COUNT(words); i++)
        if (!type || strcmp(type->name, words[i]) == 0) { /* null is linear */
            *(int64_t *)out = i;
            return PLIM_OK;
        }
    return yaml_fail(error, PLIM_UNSUPPORTED, at->job, node, "%s: %s '%s' is not supported yet in a recurrent layer",
                     at->owner, option->word, type->name);
}

void recurrent_count_outputs(struct layer *layer)
{
    const struct recurrent *options = layer->options;
    layer->outputs = options->return_state ? 1 + recurrent_states(layer) : 0;
}

/* A layer is its own cell. */
static plim_status recurrent_check(struct layer *layer, plim_error *error)
{
    struct recurrent *options = layer->options;
    (void)error;
    options->self = layer;
    options->cell = &options->self;
    options->cell_count = 1;
    recurrent_count_outputs(layer);
    return PLIM_OK;
}

/* ---- layers ---- */

/* A cell is what an RNN goes through a sequence with. */
static struct tensor *cell_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    (void)x;
    return graph_fail(graph, PLIM_BAD_JOB, "%s: a %s is no layer by itself: `RNN: {cell: {%s: ...}}`", layer->name,
                      layer->type->name, layer->type->name);
}

static const char *const simple_groups[] = {"simple_rnn_cell", "cell", NULL};
static const char *const gru_groups[] = {"gru_cell", "cell", NULL};
static const char *const lstm_groups[] = {"lstm_cell", "cell", NULL};

/* `LSTM: 128` is a number of units, though the layer takes several inputs. */
#define RECURRENT_TYPE(keras, small, table)                                                                            \
    .name = keras, .snake = small, .wide = true, OPTIONS(struct recurrent, table), .scalar_first = true,               \
    .defaults = &defaults, .example = "%s: {units: 64}", .check = recurrent_check
#define RECURRENT_LAYER(keras, small, table, groups)                                                                   \
    {                                                                                                                  \
        RECURRENT_TYPE(keras, small, table), .keeps_mask = true, .saved_groups = groups, .merge = recurrent_build      \
    }
#define CELL_LAYER(keras, small, table)                                                                                \
    {                                                                                                                  \
        RECURRENT_TYPE(keras, small, table), .build = cell_build                                                       \
    }

const struct layer_type layer_simple_rnn = RECURRENT_LAYER("SimpleRNN", "simple_rnn", simple_options, simple_groups);
const struct layer_type layer_gru = RECURRENT_LAYER("GRU", "gru", gru_options, gru_groups);
const struct layer_type layer_lstm = RECURRENT_LAYER("LSTM", "lstm", lstm_options, lstm_groups);
const struct layer_type layer_simple_rnn_cell = CELL_LAYER("SimpleRNNCell", "simple_rnn_cell", simple_cell_options);
const struct layer_type layer_gru_cell = CELL_LAYER("GRUCell", "gru_cell", gru_cell_options);
const struct layer_type layer_lstm_cell = CELL_LAYER("LSTMCell", "lstm_cell", lstm_cell_options);
