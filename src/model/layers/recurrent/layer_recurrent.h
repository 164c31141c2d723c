/* layer_recurrent.h - SimpleRNN, GRU, LSTM, RNN and what RNN is made of, for those that hold them: Bidirectional. */
#ifndef MODEL_LAYERS_RECURRENT_LAYER_RECURRENT_H
#define MODEL_LAYERS_RECURRENT_LAYER_RECURRENT_H

#include "model/layers/layer_options.h"

#define STATES_OF_CELL 2 /* at most: h; of LSTM h and c */
#define MOST_CELLS     32
#define MOST_STATES    (STATES_OF_CELL * MOST_CELLS) /* of one layer */

/* A layer, a cell, or both in one: LSTM is its own cell. */
struct recurrent {
    struct layer_keys keys;
    /* Of a cell: */
    int64_t units, seed, implementation;
    int64_t activation, recurrent_activation; /* enum recurrent_activation */
    double dropout, recurrent_dropout;
    bool use_bias, unit_forget_bias, reset_after;
    struct initializer kernel, recurrent, bias;
    /* Of a layer: the way through the sequence, and the cells one behind the other. */
    bool return_sequences, return_state, go_backwards, stateful, unroll, zero_output_for_mask;
    struct layer **cell, *self;
    int cell_count;
    const struct yaml *cell_word; /* RNN: cell, StackedRNNCells: cells */
};

/* Options of any recurrent layer, by the file's TO. */
#define SEQUENCE_OPTIONS                                                                                               \
    {"return_sequences", option_flag, TO(return_sequences)}, {"return_state", option_flag, TO(return_state)},          \
        {"go_backwards", option_flag, TO(go_backwards)}, {"stateful", option_flag, TO(stateful)},                      \
        {"unroll", option_flag, TO(unroll)},                                                                           \
    {                                                                                                                  \
        "zero_output_for_mask", option_flag, TO(zero_output_for_mask)                                                  \
    }
/* Options of any cell, by the file's TO. */
#define CELL_OPTIONS                                                                                                   \
    {"activation", option_recurrent_activation, TO(activation)}, {"use_bias", option_flag, TO(use_bias)},              \
        {"kernel_initializer", option_initializer, TO(kernel)},                                                        \
        {"recurrent_initializer", option_initializer, TO(recurrent)},                                                  \
        {"bias_initializer", option_initializer, TO(bias)}, {.word = "kernel_regularizer"},                            \
        {.word = "recurrent_regularizer"}, {.word = "bias_regularizer"}, {.word = "kernel_constraint"},                \
        {.word = "recurrent_constraint"}, {.word = "bias_constraint"}, {"dropout", option_rate, TO(dropout)},          \
        {"recurrent_dropout", option_rate, TO(recurrent_dropout)},                                                     \
    {                                                                                                                  \
        "seed", option_whole, TO(seed), .nullable = true                                                               \
    }
#define GATE_OPTION                                                                                                    \
    {                                                                                                                  \
        "recurrent_activation", option_recurrent_activation, TO(recurrent_activation)                                  \
    }
#define FORGET_OPTION                                                                                                  \
    {                                                                                                                  \
        "unit_forget_bias", option_flag, TO(unit_forget_bias)                                                          \
    }
/* int64_t: enum recurrent_activation. */
option_reader option_recurrent_activation;
/* When options and cells have been read: the number of outputs. */
void recurrent_count_outputs(struct layer *layer);

bool layer_is_recurrent(const struct layer *layer);
int recurrent_states(const struct layer *layer);

/* layer_state.c: of layers with stateful: true. What sample n of the last batch left is row n of what sample n begins
   with. shape and value have an axis for the batch. */
struct tensor *layer_state_read(const struct layer *layer, struct graph *graph, int i, struct shape shape);
void layer_state_write(const struct layer *layer, struct graph *graph, int i, struct tensor *value);

/* x: the sequence, then states to begin with. in_time: outputs stay where their step lies in time, whichever way the
   layer goes. state: where return_state says so, the states behind the last step. */
struct tensor *recurrent_run(struct tensor *state[MOST_STATES], const struct layer *layer, struct graph *graph,
                             struct tensor *const *x, int count, bool in_time);
/* A layer's merge: the same, with its further outputs set. */
struct tensor *recurrent_build(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count);

#endif
