/* layer_recurrent.c - SimpleRNN, GRU, LSTM: x . kernel of all steps in one product, then the steps (ops/recurrent.h).

   Inputs are Keras's call: the sequence, and the states to begin with where there are any. Steps that the mask hides
   leave the state as it is; their output is the one before (0 before the first), or 0 with zero_output_for_mask.
   Dropout of the input draws one mask for all gates; Keras draws one for each gate where recurrent_dropout is there
   too. */
#include "model/layer_recurrent.h"

#include <stdio.h>
#include <string.h>

#include "model/shape_options.h"
#include "ops/ops.h"

#define AT(field) offsetof(struct recurrent, field)
#define COMMON_WORDS                                                                                                   \
    {"activation", SETTING_NODE, AT(activation_word), 0}, {"use_bias", SETTING_BOOL, AT(use_bias), 0},                 \
        {"kernel_initializer", SETTING_NODE, AT(kernel_word), 0},                                                      \
        {"recurrent_initializer", SETTING_NODE, AT(recurrent_word), 0},                                                \
        {"bias_initializer", SETTING_NODE, AT(bias_word), 0}, {"kernel_regularizer", SETTING_ELSEWHERE, 0, 0},         \
        {"recurrent_regularizer", SETTING_ELSEWHERE, 0, 0}, {"bias_regularizer", SETTING_ELSEWHERE, 0, 0},             \
        {"activity_regularizer", SETTING_ELSEWHERE, 0, 0}, {"kernel_constraint", SETTING_ELSEWHERE, 0, 0},             \
        {"recurrent_constraint", SETTING_ELSEWHERE, 0, 0}, {"bias_constraint", SETTING_ELSEWHERE, 0, 0},               \
        {"dropout", SETTING_NUMBER, AT(dropout), 0}, {"recurrent_dropout", SETTING_NUMBER, AT(recurrent_dropout), 0},  \
        {"seed", SETTING_NODE, AT(seed_word), 0}, {"return_sequences", SETTING_BOOL, AT(return_sequences), 0},         \
        {"return_state", SETTING_BOOL, AT(return_state), 0}, {"go_backwards", SETTING_BOOL, AT(go_backwards), 0},      \
        {"stateful", SETTING_NODE, AT(stateful), 0}, {"unroll", SETTING_BOOL, AT(unroll), 0},                          \
        {"zero_output_for_mask", SETTING_BOOL, AT(zero_output_for_mask), 0},                                           \
        {"implementation", SETTING_WHOLE, AT(implementation), 0}, {"use_cudnn", SETTING_NODE, AT(cudnn), 0},           \
        LAYER_WORDS
#define UNITS                                                                                                          \
    {                                                                                                                  \
        "units", SETTING_WHOLE, AT(units), 1                                                                           \
    }
#define GATE_WORD                                                                                                      \
    {                                                                                                                  \
        "recurrent_activation", SETTING_NODE, AT(recurrent_activation_word), 0                                         \
    }

static const struct setting simple_settings[] = {UNITS, COMMON_WORDS};
static const struct setting gru_settings[] = {
    UNITS, GATE_WORD, {"reset_after", SETTING_BOOL, AT(reset_after), 0}, COMMON_WORDS};
static const struct setting lstm_settings[] = {
    UNITS, GATE_WORD, {"unit_forget_bias", SETTING_BOOL, AT(unit_forget_bias), 0}, COMMON_WORDS};

/* ---- reading ---- */

static plim_status read_activation(int64_t *out, const struct layer *layer, const char *word, const struct yaml *node,
                                   plim_error *error)
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

static plim_status check_rate(const struct layer *layer, const char *word, double rate, plim_error *error)
{
    char where[256];
    layer_place(where, layer);
    if (!(rate >= 0 && rate < 1))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: %s must be in [0, 1), got %g", layer->type->name, word, rate);
    return PLIM_OK;
}

static plim_status read_rest(struct layer *layer, plim_error *error)
{
    struct recurrent *options = layer->options;
    const char *owner = layer->type->name, *job = layer->model->job;
    const struct setting seed = {"seed", SETTING_WHOLE, 0, 0};
    TRY(option_extent(layer, "units", options->units, error));
    TRY(read_activation(&options->activation, layer, "activation", options->activation_word, error));
    TRY(read_activation(&options->recurrent_activation, layer, "recurrent_activation",
                        options->recurrent_activation_word, error));
    TRY(option_initializer(&options->kernel, layer, "kernel_initializer", options->kernel_word, error));
    TRY(option_initializer(&options->recurrent, layer, "recurrent_initializer", options->recurrent_word, error));
    TRY(option_initializer(&options->bias, layer, "bias_initializer", options->bias_word, error));
    TRY(check_rate(layer, "dropout", options->dropout, error));
    TRY(check_rate(layer, "recurrent_dropout", options->recurrent_dropout, error));
    /* NEEDSWORK: states from one batch to the next. */
    TRY(option_default(owner, job, "stateful", "false", options->stateful, error));
    if (!options->seed_word || options->seed_word->is_null)
        return PLIM_OK;
    return setting_value(&options->seed, &seed, job, options->seed_word, error);
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
    TRY(read_rest(layer, error));
    return options->return_state ? layer_several_outputs(layer, 1 + recurrent_states(layer), error) : PLIM_OK;
}

static plim_status simple_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return recurrent_read(layer, simple_settings, LENGTH(simple_settings), yaml, error);
}

static plim_status gru_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return recurrent_read(layer, gru_settings, LENGTH(gru_settings), yaml, error);
}

static plim_status lstm_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return recurrent_read(layer, lstm_settings, LENGTH(lstm_settings), yaml, error);
}

/* ---- weights ---- */

/* What a layer's type makes of it. */
struct cell {
    const struct op *op;
    enum recurrent_kind kind;
    int64_t gates;
    const char *kernel, *recurrent, *bias; /* names */
    int states;
};

static struct cell cell_of(const struct layer *layer)
{
    const struct recurrent *options = layer->options;
    if (layer->type == &layer_lstm)
        return (struct cell){
            &op_lstm, RECURRENT_LSTM, 4, "lstm_cell/kernel", "lstm_cell/recurrent_kernel", "lstm_cell/bias", 2};
    if (layer->type == &layer_gru)
        return (struct cell){&op_gru,
                             options->reset_after ? RECURRENT_GRU : RECURRENT_GRU_BEFORE,
                             3,
                             "gru_cell/kernel",
                             "gru_cell/recurrent_kernel",
                             "gru_cell/bias",
                             1};
    return (struct cell){&op_simple_rnn,
                         RECURRENT_SIMPLE,
                         1,
                         "simple_rnn_cell/kernel",
                         "simple_rnn_cell/recurrent_kernel",
                         "simple_rnn_cell/bias",
                         1};
}

static struct tensor *matrix(struct layer *layer, struct graph *graph, const char *name, int64_t in, int64_t out,
                             struct initializer initializer)
{
    initializer.fan_in = in;
    initializer.fan_out = out;
    return model_weight(layer, graph, name, shape_of(2, (int64_t[]){in, out}), initializer);
}

struct cell_weights {
    struct tensor *kernel, *recurrent, *bias;
};

static struct cell_weights weights_of(struct layer *layer, struct graph *graph, const struct cell *cell, int64_t in)
{
    const struct recurrent *options = layer->options;
    int64_t columns = cell->gates * options->units;
    struct cell_weights w = {.kernel = matrix(layer, graph, cell->kernel, in, columns, options->kernel)};
    w.recurrent = matrix(layer, graph, cell->recurrent, options->units, columns, options->recurrent);
    struct initializer bias = options->bias;
    bias.fan_in = bias.fan_out = columns;
    bias.forget = cell->kind == RECURRENT_LSTM && options->unit_forget_bias;
    if (options->use_bias && cell->kind == RECURRENT_GRU)
        w.bias = matrix(layer, graph, cell->bias, 2, columns, bias);
    else if (options->use_bias)
        w.bias = model_weight(layer, graph, cell->bias, shape_of(1, &columns), bias);
    return w;
}

/* ---- building ---- */

static bool inputs_fit(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count, int states)
{
    const struct recurrent *options = layer->options;
    char shape[96], name[96];
    if (!x[0] || !layer_needs_rank(layer, graph, x[0], 3))
        return false;
    if (count != 1 && count != 1 + states) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: takes a sequence, or one and %d state%s, got %d inputs", layer->name,
                   states, states > 1 ? "s" : "", count);
        return false;
    }
    for (int i = 1; i < count; i++) {
        if (!x[i])
            return false;
        shape_text(shape, sizeof shape, &x[i]->shape, true);
        if (x[i]->shape.rank != 2 || x[i]->shape.dim[1] != options->units) {
            input_name(name, layer, i);
            graph_fail(graph, PLIM_BAD_JOB, "%s: a state must be (batch, %lld), got %s %s", layer->name,
                       (long long)options->units, name, shape);
            return false;
        }
    }
    return true;
}

/* One mask for all steps. */
static struct tensor *drop_input(struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct recurrent *options = layer->options;
    struct dropout_attributes attributes = {.rate = options->dropout, .scale = 1 / (1 - options->dropout), .shared = 2};
    if (!layer->model->fitting || options->dropout == 0.0)
        return x;
    attributes.seed = layer_seed(layer, options->seed);
    struct tensor *inputs[2] = {x, model_iteration(layer->model, graph)};
    return graph_add(graph, &op_dropout, inputs, 2, &attributes, sizeof attributes);
}

/* As in Keras, whose layers look for a mask only where there is one input. */
static struct tensor *mask_of(const struct layer *layer, int count)
{
    return count == 1 ? layer_mask(layer, 0) : NULL;
}

/* The states of all steps; false: what failed has been said. */
static bool run_cell(struct tensor *all[MOST_STATES], struct layer *layer, struct graph *graph, const struct cell *cell,
                     struct tensor *const *x, int count)
{
    const struct recurrent *options = layer->options;
    struct cell_weights w = weights_of(layer, graph, cell, x[0]->shape.dim[2]);
    bool apart = cell->kind == RECURRENT_GRU; /* its bias is the cell's */
    struct matmul_attributes plain = {.transposed = false};
    struct tensor *product[3] = {drop_input(layer, graph, x[0]), w.kernel, apart ? NULL : w.bias};
    struct recurrent_attributes attributes = {.kind = cell->kind,
                                              .reverse = options->go_backwards,
                                              .activation = options->activation,
                                              .recurrent_activation = options->recurrent_activation};
    struct tensor *inputs[RECURRENT_INPUTS] = {
        [RECURRENT_Z] = graph_add(graph, &op_matmul, product, 3, &plain, sizeof plain),
        [RECURRENT_KERNEL] = w.recurrent,
        [RECURRENT_BIAS] = apart ? w.bias : NULL,
        [RECURRENT_MASK] = mask_of(layer, count),
        [RECURRENT_H0] = count > 1 ? x[1] : NULL,
        [RECURRENT_C0] = count > 2 ? x[2] : NULL,
    };
    if (layer->model->fitting && options->recurrent_dropout > 0) {
        attributes.dropout = options->recurrent_dropout;
        attributes.seed = layer_seed(layer, options->seed + 1);
        inputs[RECURRENT_ITERATION] = model_iteration(layer->model, graph);
    }
    struct tensor *y = graph_add(graph, cell->op, inputs, RECURRENT_INPUTS, &attributes, sizeof attributes);
    if (!y || graph->failed)
        return false;
    all[0] = cell->kind == RECURRENT_SIMPLE ? y : graph_output(y, RECURRENT_H);
    all[1] = cell->states > 1 ? graph_output(y, RECURRENT_EXTRA) : NULL;
    return true;
}

bool layer_is_recurrent(const struct layer *layer)
{
    return layer->type == &layer_lstm || layer->type == &layer_gru || layer->type == &layer_simple_rnn;
}

int recurrent_states(const struct layer *layer)
{
    return cell_of(layer).states;
}

/* Behind the last step. */
static struct tensor *last_of(const struct layer *layer, struct graph *graph, struct tensor *all)
{
    const struct recurrent *options = layer->options;
    int64_t last = options->go_backwards ? 0 : all->shape.dim[1] - 1;
    return reshape(graph, slice_axis(graph, all, 1, last, 1, 1), shape_of(1, &options->units));
}

struct tensor *recurrent_run(struct tensor *state[MOST_STATES], struct layer *layer, struct graph *graph,
                             struct tensor *const *x, int count, bool in_time)
{
    const struct recurrent *options = layer->options;
    struct cell cell = cell_of(layer);
    struct tensor *all[MOST_STATES], *mask = mask_of(layer, count);
    if (!inputs_fit(layer, graph, x, count, cell.states) || !run_cell(all, layer, graph, &cell, x, count))
        return NULL;
    bool zeroes = mask && options->zero_output_for_mask;
    for (int i = 0; options->return_state && i < cell.states; i++)
        state[i] = last_of(layer, graph, all[i]);
    struct tensor *h = zeroes ? binary(graph, &op_mask_rows, all[0], mask) : all[0];
    if (!h || graph->failed)
        return NULL;
    if (options->return_sequences)
        return options->go_backwards && !in_time ? reverse_axis(graph, h, 1) : h;
    return options->return_state && !zeroes ? state[0] : last_of(layer, graph, h);
}

static struct tensor *recurrent_merge(struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct recurrent *options = layer->options;
    struct tensor *state[MOST_STATES] = {NULL}, *y = recurrent_run(state, layer, graph, x, count, false);
    if (!options->return_sequences)
        layer_set_mask(layer, NULL);
    for (int i = 1; i < layer->outputs; i++)
        layer_set_output(layer, i, state[i - 1], NULL);
    return y;
}

#define RECURRENT_LAYER(variable, keras, small, groups)                                                                \
    const struct layer_type layer_##variable = {                                                                       \
        .name = keras,                                                                                                 \
        .snake = small,                                                                                                \
        .wide = true,                                                                                                  \
        .keeps_mask = true,                                                                                            \
        .saved_groups = groups,                                                                                        \
        .options_bytes = sizeof(struct recurrent),                                                                     \
        .read = reader_of_##variable,                                                                                  \
        .merge = recurrent_merge,                                                                                      \
    }
#define reader_of_simple_rnn simple_read
#define reader_of_gru        gru_read
#define reader_of_lstm       lstm_read

static const char *const simple_groups[] = {"simple_rnn_cell", "cell", NULL};
static const char *const gru_groups[] = {"gru_cell", "cell", NULL};
static const char *const lstm_groups[] = {"lstm_cell", "cell", NULL};

RECURRENT_LAYER(simple_rnn, "SimpleRNN", "simple_rnn", simple_groups);
RECURRENT_LAYER(gru, "GRU", "gru", gru_groups);
RECURRENT_LAYER(lstm, "LSTM", "lstm", lstm_groups);
