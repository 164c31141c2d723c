/* layer_attention.h - what the layers of attention share. */
#ifndef MODEL_LAYERS_ATTENTION_LAYER_ATTENTION_H
#define MODEL_LAYERS_ATTENTION_LAYER_ATTENTION_H

#include "model/layers/layer_options.h"

struct attention {
    struct layer_words words;
    int64_t heads, groups, key_dim, value_dim, output, seed;
    double dropout, scale;
    bool use_bias, causal, use_scale;
    bool concat; /* scores are sums of tanh(query + key), not products */
    struct initializer kernel, bias;
    /* Nodes of the job file: */
    const struct yaml *value_word, *output_word, *axes_word, *flash, *kernel_word, *bias_word, *seed_word, *gate,
        *window, *score_mode;
};

/* The words of a table, and what they say. */
plim_status attention_read(struct layer *layer, const struct setting *settings, int count, const struct yaml *yaml,
                           plim_error *error);
/* query, value, key from 1 to 3 inputs; false: what does not fit has been said. */
bool attention_inputs(struct tensor *out[3], const struct layer *layer, struct graph *graph, struct tensor *const *x,
                      int count);
/* Which keys are there: the value's mask, or the key's. */
struct tensor *attention_key_mask(const struct graph *graph, int count);
/* heads: query, key, value [N, steps, heads, features]. */
struct tensor *attention_attend(const struct layer *layer, struct graph *graph, struct tensor *const heads[3],
                                struct tensor *mask);

#endif
