/* layer_conv_lstm.c - ConvLSTM1D, 2D and 3D: words. What they make: layer_conv_lstm_run.c. */
#include "model/layers/recurrent/layer_conv_lstm.h"

#include <stdio.h>

#include "model/layers/recurrent/layer_recurrent.h"

#define AT(field) offsetof(struct conv_lstm, field)
static const struct setting settings[] = {
    {"filters", SETTING_WHOLE, AT(filters), 1},
    {"kernel_size", SETTING_NODE, AT(size_word), 0},
    {"strides", SETTING_NODE, AT(strides_word), 0},
    {"padding", SETTING_NODE, AT(padding_word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    {"dilation_rate", SETTING_NODE, AT(dilation_word), 0},
    {"activation", SETTING_NODE, AT(activation_word), 0},
    {"recurrent_activation", SETTING_NODE, AT(recurrent_activation_word), 0},
    {"use_bias", SETTING_BOOL, AT(use_bias), 0},
    {"kernel_initializer", SETTING_NODE, AT(kernel_word), 0},
    {"recurrent_initializer", SETTING_NODE, AT(recurrent_word), 0},
    {"bias_initializer", SETTING_NODE, AT(bias_word), 0},
    {"unit_forget_bias", SETTING_BOOL, AT(unit_forget_bias), 0},
    {"kernel_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"recurrent_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"bias_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"activity_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"kernel_constraint", SETTING_ELSEWHERE, 0, 0},
    {"recurrent_constraint", SETTING_ELSEWHERE, 0, 0},
    {"bias_constraint", SETTING_ELSEWHERE, 0, 0},
    {"dropout", SETTING_NUMBER, AT(dropout), 0},
    {"recurrent_dropout", SETTING_NUMBER, AT(recurrent_dropout), 0},
    {"seed", SETTING_NODE, AT(seed_word), 0},
    RECURRENT_WALK_WORDS(AT),
    LAYER_WORDS,
};

static plim_status missing(const struct layer *layer, const char *word, plim_error *error)
{
    char example[96];
    snprintf(example, sizeof example, "%s: {filters: 32, kernel_size: 3}", layer->type->name);
    return layer_missing(layer, word, example, error);
}

static plim_status read_window(struct layer *layer, plim_error *error)
{
    struct conv_lstm *options = layer->options;
    char where[256];
    bool strided = false, dilated = false;
    if (!options->filters)
        return missing(layer, "filters", error);
    TRY(option_extent(layer, "filters", options->filters, error));
    TRY(option_axes(options->kernel_size, options->axes, 1, layer, "kernel_size", options->size_word, error));
    if (!options->kernel_size[0])
        return missing(layer, "kernel_size", error);
    TRY(option_axes(options->strides, options->axes, 1, layer, "strides", options->strides_word, error));
    TRY(option_axes(options->dilation_rate, options->axes, 1, layer, "dilation_rate", options->dilation_word, error));
    TRY(option_padding(&options->same, layer, options->padding_word, error));
    for (int i = 0; i < options->axes; i++) {
        strided |= options->strides[i] > 1;
        dilated |= options->dilation_rate[i] > 1;
    }
    layer_place(where, layer);
    if (strided && dilated)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: strides above 1 and a dilation_rate above 1 do not go together",
                       layer->type->name);
    return option_default(layer->type->name, layer->model->job, "data_format", "channels_last", options->data_format,
                          error);
}

static plim_status read_cell(struct layer *layer, plim_error *error)
{
    struct conv_lstm *options = layer->options;
    TRY(recurrent_read_activation(&options->activation, layer, "activation", options->activation_word, error));
    TRY(recurrent_read_activation(&options->recurrent_activation, layer, "recurrent_activation",
                                  options->recurrent_activation_word, error));
    TRY(option_initializer(&options->kernel, layer, "kernel_initializer", options->kernel_word, error));
    TRY(option_initializer(&options->recurrent, layer, "recurrent_initializer", options->recurrent_word, error));
    TRY(option_initializer(&options->bias, layer, "bias_initializer", options->bias_word, error));
    TRY(recurrent_check_rate(layer, "dropout", options->dropout, error));
    TRY(recurrent_check_rate(layer, "recurrent_dropout", options->recurrent_dropout, error));
    return recurrent_read_seed(&options->seed, layer, options->seed_word, error);
}

static plim_status conv_lstm_read(struct layer *layer, int axes, const struct op *op, const struct yaml *yaml,
                                  plim_error *error)
{
    struct conv_lstm *options = layer->options;
    options->axes = axes;
    options->op = op;
    options->use_bias = options->unit_forget_bias = true;
    options->kernel.kind = INITIAL_GLOROT_UNIFORM;
    options->recurrent = (struct initializer){.kind = INITIAL_ORTHOGONAL, .value = 1};
    options->activation = RECURRENT_TANH;
    options->recurrent_activation = RECURRENT_SIGMOID;
    for (int i = 0; i < MOST_SPACE; i++)
        options->strides[i] = options->dilation_rate[i] = 1;
    TRY(layer_read(layer, settings, LENGTH(settings), yaml, error));
    TRY(read_window(layer, error));
    TRY(read_cell(layer, error));
    layer->outputs = options->return_state ? 3 : 0;
    return PLIM_OK;
}

static const char *const groups[] = {"conv_lstm_cell", "cell", NULL};

#define CONV_LSTM(number, keras)                                                                                       \
    static plim_status read_##number##d(struct layer *layer, const struct yaml *yaml, plim_error *error)               \
    {                                                                                                                  \
        return conv_lstm_read(layer, number, &op_conv##number##d, yaml, error);                                        \
    }                                                                                                                  \
    const struct layer_type layer_conv_lstm##number##d = {                                                             \
        .name = keras,                                                                                                 \
        .snake = "conv_lstm" #number "d",                                                                              \
        .wide = true,                                                                                                  \
        .saved_groups = groups,                                                                                        \
        .options_bytes = sizeof(struct conv_lstm),                                                                     \
        .read = read_##number##d,                                                                                      \
        .merge = conv_lstm_build,                                                                                      \
    };

CONV_LSTM(1, "ConvLSTM1D")
CONV_LSTM(2, "ConvLSTM2D")
CONV_LSTM(3, "ConvLSTM3D")
