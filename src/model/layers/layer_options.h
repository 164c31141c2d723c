/* layer_options.h - what layers share: readers of options (option_table.h), and checks when a graph is built. */
#ifndef MODEL_LAYERS_LAYER_OPTIONS_H
#define MODEL_LAYERS_LAYER_OPTIONS_H

#include "model/build.h"
#include "model/option_table.h"
#include "ops/elementwise/elementwise.h"

#define LAYER(name) extern const struct layer_type layer_##name;
#include "model/layers/layers.def"
#undef LAYER

/* Options that every layer has: the first member of its options. */
struct layer_keys {
    const char *name;
    const struct yaml *dtype, *inputs;
    bool trainable;
};

#define MOST_EXTENT INT32_MAX /* of one axis: products of a few of them are checked by the graph */

/* The field is: */
option_reader option_extent;       /* int64_t, from `least` to MOST_EXTENT */
option_reader option_positive;     /* double above 0 */
option_reader option_not_negative; /* double */
option_reader option_rate;         /* double in [0, 1) */
option_reader option_padding;      /* bool: "same", not "valid" */
option_reader option_axes;         /* int64_t[axes of the layer's type]: one number for all, or one for each */

#define DATA_FORMAT                                                                                                    \
    {                                                                                                                  \
        "data_format", option_only, .with = "channels_last"                                                            \
    }
/* Of layers with a kernel and a bias: the fields kernel and bias, by the file's TO. */
#define KERNEL_AND_BIAS                                                                                                \
    {"kernel_initializer", option_initializer, TO(kernel)}, {"bias_initializer", option_initializer, TO(bias)},        \
        {.word = "kernel_regularizer"}, {.word = "bias_regularizer"}, {.word = "activity_regularizer"},                \
        {.word = "kernel_constraint"},                                                                                 \
    {                                                                                                                  \
        .word = "bias_constraint"                                                                                      \
    }

/* Of layers with a factor and an offset that are learned: the fields gamma, beta, scale and center, by the file's
   TO. */
#define SCALE_AND_CENTER                                                                                               \
    {"center", option_flag, TO(center)}, {"scale", option_flag, TO(scale)},                                            \
        {"beta_initializer", option_initializer, TO(beta)}, {"gamma_initializer", option_initializer, TO(gamma)},      \
        {.word = "beta_regularizer"}, {.word = "gamma_regularizer"}, {.word = "beta_constraint"},                      \
    {                                                                                                                  \
        .word = "gamma_constraint"                                                                                     \
    }

/* ---- layers ---- */

/* The options of a layer by its type's table. A scalar, or a list of scalars, is the first option; of a layer that
   merges it is its inputs. */
plim_status layer_read(struct layer *layer, const struct yaml *yaml, plim_error *error);
/* PLIM_BAD_JOB "Dense: 'units' is missing", with the type's example to add. */
plim_status layer_missing(const struct layer *layer, const char *word, plim_error *error);
/* fail_at with the place of the layer; its type's name stands before the message. */
__attribute__((format(printf, 4, 5)))
plim_status(layer_fail)(const struct layer *layer, plim_error *error, plim_status code, const char *format, ...);
#define layer_fail(layer, error, code, ...) KNOWN_CODE((layer_fail)(layer, error, code, __VA_ARGS__), code)

/* For build: fails with "NAME: message SHAPE", where the shape is x's. Returns NULL. */
__attribute__((format(printf, 4, 5))) struct tensor *layer_misfit(const struct layer *layer, struct graph *graph,
                                                                  const struct tensor *x, const char *format, ...);
/* For build: x has a last axis besides the batch, and `axis` (from the end when below 0) is that one. */
bool layer_last_axis(const struct layer *layer, struct graph *graph, const struct tensor *x, int64_t axis);
/* For build: whether x has `rank` axes, batch and channels included; else the graph has failed. */
bool layer_needs_rank(const struct layer *layer, struct graph *graph, const struct tensor *x, int rank);
/* For build: the same for the axes of the layer's type: (batch, length, channels), (batch, height, width, channels). */
bool has_spatial_axes(const struct layer *layer, struct graph *graph, const struct tensor *x);
/* An axis as Keras counts: from the end below 0. 0 (the batch) and what is not there make the graph fail: -1. */
int layer_axis(const struct layer *layer, struct graph *graph, const struct tensor *x, int64_t axis);

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

/* Windows over height and width: the size of the output and the padding (before, after) by
   TensorFlow's rule (same: ceil(in / stride), the odd pixel at the end). */
bool window_place(int64_t *out, int64_t pad[2], int64_t in, int64_t window, int64_t stride, bool same);

#endif
