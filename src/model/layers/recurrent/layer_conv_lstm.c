/* layer_conv_lstm.c - ConvLSTM1D, 2D and 3D: options. What they make: layer_conv_lstm_run.c. */
#include "model/layers/recurrent/layer_conv_lstm.h"

#include "model/layers/convolution/layer_convolution.h"
#include "model/layers/recurrent/layer_recurrent.h"

#define TO(field) .offset = offsetof(struct conv_lstm, field)
static const struct model_option conv_lstm_options[] = {
    {"filters", option_extent, TO(filters), .least = 1, .required = true},
    {"kernel_size", option_axes, TO(kernel_size), .least = 1, .required = true, .nullable = true},
    {"strides", option_axes, TO(strides), .least = 1},
    {"padding", option_padding, TO(same)},
    DATA_FORMAT,
    {"dilation_rate", option_axes, TO(dilation_rate), .least = 1},
    GATE_OPTION,
    FORGET_OPTION,
    {.word = "activity_regularizer"},
    CELL_OPTIONS,
    SEQUENCE_OPTIONS,
};

static const struct conv_lstm defaults = {.use_bias = true,
                                          .unit_forget_bias = true,
                                          .kernel = {.kind = INITIAL_GLOROT_UNIFORM},
                                          .recurrent = {.kind = INITIAL_ORTHOGONAL, .value = 1},
                                          .activation = RECURRENT_TANH,
                                          .recurrent_activation = RECURRENT_SIGMOID,
                                          .strides = {1, 1, 1},
                                          .dilation_rate = {1, 1, 1}};

static plim_status conv_lstm_check(struct layer *layer, plim_error *error)
{
    const struct conv_lstm *options = layer->options;
    layer->outputs = options->return_state ? 3 : 0;
    return check_strides(layer, options->strides, options->dilation_rate, error);
}

static const char *const groups[] = {"conv_lstm_cell", "cell", NULL};

#define CONV_LSTM(number, keras)                                                                                       \
    const struct layer_type layer_conv_lstm##number##d = {                                                             \
        NAMES(keras, "conv_lstm" #number "d"),                                                                         \
        .wide = true,                                                                                                  \
        .saved_groups = groups,                                                                                        \
        OPTIONS(struct conv_lstm, conv_lstm_options),                                                                  \
        .defaults = &defaults,                                                                                         \
        .example = "%s: {filters: 32, kernel_size: 3}",                                                                \
        .check = conv_lstm_check,                                                                                      \
        .axes = number,                                                                                                \
        .op = &op_conv##number##d,                                                                                     \
        .merge = conv_lstm_build,                                                                                      \
    }

CONV_LSTM(1, "ConvLSTM1D");
CONV_LSTM(2, "ConvLSTM2D");
CONV_LSTM(3, "ConvLSTM3D");
