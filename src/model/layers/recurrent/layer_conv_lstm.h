/* layer_conv_lstm.h - ConvLSTM1D, 2D and 3D: one set of options for all of them. */
#ifndef MODEL_LAYERS_RECURRENT_LAYER_CONV_LSTM_H
#define MODEL_LAYERS_RECURRENT_LAYER_CONV_LSTM_H

#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct conv_lstm {
    struct layer_keys keys;
    int64_t filters, seed;
    int64_t kernel_size[MOST_SPACE], strides[MOST_SPACE], dilation_rate[MOST_SPACE];
    int64_t activation, recurrent_activation; /* enum recurrent_activation */
    double dropout, recurrent_dropout;
    bool same, use_bias, unit_forget_bias;
    bool return_sequences, return_state, go_backwards, stateful, unroll, zero_output_for_mask;
    struct initializer kernel, recurrent, bias;
};

/* layer_conv_lstm_run.c. x: the sequence, and h and c to begin with where there are any. */
struct tensor *conv_lstm_build(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count);

#endif
