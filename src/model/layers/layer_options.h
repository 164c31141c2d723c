/* layer_options.h - what the readers of layers' options share.

   A layer's table is one of settings (base/text/settings.h); values with a
   grammar of their own (pairs, initializers, activations) are taken as nodes
   and read by the functions below. */
#ifndef MODEL_LAYERS_LAYER_OPTIONS_H
#define MODEL_LAYERS_LAYER_OPTIONS_H

#include "base/text/settings.h"
#include "model/build.h"
#include "ops/elementwise/elementwise.h"

#define LAYER(name) extern const struct layer_type layer_##name;
#include "model/layers/layers.def"
#undef LAYER

/* Words that every layer takes: the first member of its options. */
struct layer_words {
    const char *name;
    const struct yaml *dtype, *inputs;
    bool trainable;
};
#define LAYER_WORDS                                                                                                    \
    {"name", SETTING_WORD, offsetof(struct layer_words, name), 0},                                                     \
        {"dtype", SETTING_NODE, offsetof(struct layer_words, dtype), 0},                                               \
        {"inputs", SETTING_NODE, offsetof(struct layer_words, inputs), 0},                                             \
    {                                                                                                                  \
        "trainable", SETTING_BOOL, offsetof(struct layer_words, trainable), 0                                          \
    }

/* Of layers with a kernel and a bias: the fields kernel_word and bias_word, by the file's AT. */
#define KERNEL_AND_BIAS_WORDS                                                                                          \
    {"kernel_initializer", SETTING_NODE, AT(kernel_word), 0}, {"bias_initializer", SETTING_NODE, AT(bias_word), 0},    \
        {"kernel_regularizer", SETTING_ELSEWHERE, 0, 0}, {"bias_regularizer", SETTING_ELSEWHERE, 0, 0},                \
        {"activity_regularizer", SETTING_ELSEWHERE, 0, 0}, {"kernel_constraint", SETTING_ELSEWHERE, 0, 0},             \
    {                                                                                                                  \
        "bias_constraint", SETTING_ELSEWHERE, 0, 0                                                                     \
    }

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define MOST_EXTENT   INT32_MAX /* of one axis: products of a few of them are checked by the graph */

/* A map by its words; a scalar or a list of scalars is the first setting, or the inputs of a layer that merges. */
plim_status layer_read(struct layer *layer, const struct setting *settings, int count, const struct yaml *yaml,
                       plim_error *error);
/* "Dense: 'units' is missing", with an example to add. */
plim_status layer_missing(const struct layer *layer, const char *word, const char *example, plim_error *error);

/* PLIM_BAD_JOB when an extent is larger than MOST_EXTENT. */
plim_status option_extent(const struct layer *layer, const char *word, int64_t extent, plim_error *error);

/* PLIM_BAD_JOB when a number that something is divided by is not above 0. */
plim_status option_positive(const struct layer *layer, const char *word, double value, plim_error *error);

/* For build: x has a last axis besides the batch, and `axis` (from the end when below 0) is that one. */
bool layer_last_axis(const struct layer *layer, struct graph *graph, const struct tensor *x, int64_t axis);

/* Each leaves *out alone when node is NULL (the word is absent). */
/* A whole number of at least `least`, or one for each of `axes` axes. */
plim_status option_axes(int64_t *out, int axes, int64_t least, const struct layer *layer, const char *word,
                        const struct yaml *node, plim_error *error);
plim_status option_padding(bool *same, const struct layer *layer, const struct yaml *node, plim_error *error);
plim_status option_initializer(struct initializer *out, const struct layer *layer, const char *word,
                               const struct yaml *node, plim_error *error);
/* Words that Keras has and we have only the default of: anything else is
   PLIM_UNSUPPORTED. `only` is a word, a number, or "null". */
plim_status option_default(const char *owner, const char *job, const char *word, const char *only,
                           const struct yaml *node, plim_error *error);

/* Looks a word up as Keras does: GlorotUniform is glorot_uniform. */
bool same_word(const char *a, const char *b);
/* "unknown WHAT 'word'", the nearest right one; or PLIM_UNSUPPORTED when
   Keras knows the word. */
plim_status option_unknown(const char *what, const char *word, const char *where, const char *const *ours,
                           int our_count, const char *const *keras, int keras_count, plim_error *error);

/* layer_shape.c: what an Input layer says; an extent of -1 is any. */
void input_spec(struct column_spec *out, const struct layer *layer);

/* layer_activation.c */
struct activation_type {
    const char *name;
    const struct op *op;               /* NULL: linear */
    struct numbers_attributes numbers; /* of ops that have them */
    bool has_logits;                   /* the loss below takes what comes before it */
    enum loss_kind loss;
};
plim_status option_activation(const struct activation_type **out, const struct layer *layer, const struct yaml *node,
                              plim_error *error);
/* By Keras's word, or NULL; every word, for those who offer them. */
const struct activation_type *activation_named(const char *name);
const char *activation_name(int i);
extern const int activations_count;
struct tensor *activation_add(struct graph *graph, const struct activation_type *type, struct tensor *x);
/* Applies it, or leaves it to the loss (build->logits) when the layer
   makes an output and its loss wants logits. type NULL: linear. */
struct tensor *activation_apply(const struct layer *layer, struct graph *graph, const struct activation_type *type,
                                struct tensor *x);

/* layer_dropout.c: the seed of what a layer draws, a function of the job's seed and the layer's name; `own` is the
   layer's `seed:`, and tells apart what one layer draws for several purposes. */
uint64_t layer_seed(const struct layer *layer, const struct graph *graph, uint64_t own);

/* Windows over height and width: the size of the output and the padding by
   TensorFlow's rule (same: ceil(in / stride), the odd pixel at the end). */
bool window_place(int64_t *out, int64_t *before, int64_t *after, int64_t in, int64_t window, int64_t stride, bool same);

#endif
