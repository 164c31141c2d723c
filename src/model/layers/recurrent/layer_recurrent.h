/* layer_recurrent.h - SimpleRNN, GRU, LSTM, RNN and what RNN is made of, for those that hold them: Bidirectional. */
#ifndef MODEL_LAYERS_RECURRENT_LAYER_RECURRENT_H
#define MODEL_LAYERS_RECURRENT_LAYER_RECURRENT_H

#include "model/layers/layer_options.h"

#define STATES_OF_CELL 2 /* at most: h; of LSTM h and c */
#define MOST_CELLS     32
#define MOST_STATES    (STATES_OF_CELL * MOST_CELLS) /* of one layer */

/* A layer, a cell, or both in one: LSTM is its own cell. */
struct recurrent {
    struct layer_words words;
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
    /* Nodes of the job file: */
    const struct yaml *activation_word, *recurrent_activation_word, *kernel_word, *recurrent_word, *bias_word,
        *seed_word, *cudnn, *cell_word;
};

/* Words of any recurrent layer, for its table. */
#define RECURRENT_WALK_WORDS(at)                                                                                       \
    {"return_sequences", SETTING_BOOL, at(return_sequences), 0}, {"return_state", SETTING_BOOL, at(return_state), 0},  \
        {"go_backwards", SETTING_BOOL, at(go_backwards), 0}, {"stateful", SETTING_BOOL, at(stateful), 0},              \
        {"unroll", SETTING_BOOL, at(unroll), 0},                                                                       \
    {                                                                                                                  \
        "zero_output_for_mask", SETTING_BOOL, at(zero_output_for_mask), 0                                              \
    }
/* Values with a grammar of their own; of ConvLSTM layers too. */
plim_status recurrent_read_activation(int64_t *out, const struct layer *layer, const char *word,
                                      const struct yaml *node, plim_error *error);
plim_status recurrent_check_rate(const struct layer *layer, const char *word, double rate, plim_error *error);
plim_status recurrent_read_seed(int64_t *out, const struct layer *layer, const struct yaml *node, plim_error *error);
/* Behind the table: what they say. The cells have been read. */
void recurrent_read_walk(struct layer *layer);

bool layer_is_recurrent(const struct layer *layer);
int recurrent_states(const struct layer *layer);

/* layer_state.c: of layers with stateful: true. What sample n of the last batch left is row n of what sample n begins
   with. shape and value have an axis for the batch. */
struct tensor *layer_recall(const struct layer *layer, struct graph *graph, int i, struct shape shape);
void layer_remember(const struct layer *layer, struct graph *graph, int i, struct tensor *value);

/* x: the sequence, then states to begin with. in_time: outputs stay where their step lies in time, whichever way the
   layer goes. state: where return_state says so, the states behind the last step. */
struct tensor *recurrent_run(struct tensor *state[MOST_STATES], const struct layer *layer, struct graph *graph,
                             struct tensor *const *x, int count, bool in_time);
/* A layer's merge: the same, with its further outputs set. */
struct tensor *recurrent_build(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count);

#endif
