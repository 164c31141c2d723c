/* layer_recurrent.h - SimpleRNN, GRU and LSTM, for those that hold them: Bidirectional. */
#ifndef MODEL_LAYER_RECURRENT_H
#define MODEL_LAYER_RECURRENT_H

#include "model/layer_options.h"

struct recurrent {
    struct layer_words words;
    int64_t units, seed, implementation;
    int64_t activation, recurrent_activation; /* enum recurrent_activation */
    double dropout, recurrent_dropout;
    bool use_bias, unit_forget_bias, reset_after, return_sequences, return_state, go_backwards, unroll,
        zero_output_for_mask;
    struct initializer kernel, recurrent, bias;
    /* Nodes of the job file: */
    const struct yaml *activation_word, *recurrent_activation_word, *kernel_word, *recurrent_word, *bias_word,
        *seed_word, *stateful, *cudnn;
};

#define MOST_STATES 2 /* of one layer: h; of LSTM h and c */

bool layer_is_recurrent(const struct layer *layer);
int recurrent_states(const struct layer *layer);

/* x: the sequence, then states to begin with. in_time: outputs stay where their step lies in time, whichever way the
   layer goes. state: where return_state says so, the states behind the last step. */
struct tensor *recurrent_run(struct tensor *state[MOST_STATES], struct layer *layer, struct graph *graph,
                             struct tensor *const *x, int count, bool in_time);

#endif
