/* layer_attention.h - what the layers of attention share. */
#ifndef MODEL_LAYERS_ATTENTION_LAYER_ATTENTION_H
#define MODEL_LAYERS_ATTENTION_LAYER_ATTENTION_H

#include "model/layers/layer_options.h"

struct attention {
    struct layer_keys keys;
    int64_t heads, groups, key_dim, value_dim, output, seed;
    double dropout, scale;
    bool use_bias, causal, use_scale;
    int concat; /* scores are sums of tanh(query + key), not products */
    struct initializer kernel, bias;
};

/* int64_t: a whole number that may be null, or a list of one. */
option_reader option_one_whole;
/* query, value, key from 1 to 3 inputs; false: what does not fit has been said. */
bool attention_inputs(struct tensor *out[3], const struct layer *layer, struct graph *graph, struct tensor *const *x,
                      int count);
/* Which keys are there: the value's mask, or the key's. */
struct tensor *attention_key_mask(const struct graph *graph, int count);
/* heads: query, key, value [N, steps, heads, features]. */
struct tensor *attention_attend(const struct layer *layer, struct graph *graph, struct tensor *const heads[3],
                                struct tensor *mask);

#endif
