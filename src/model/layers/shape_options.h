/* shape_options.h - what layers that move things about read: numbers for each axis, borders, seeds. */
#ifndef MODEL_LAYERS_SHAPE_OPTIONS_H
#define MODEL_LAYERS_SHAPE_OPTIONS_H

#include "model/layers/layer_options.h"

/* `count` whole numbers of at least `least`; one alone counts for all. Nothing when node is NULL. */
plim_status option_wholes(int64_t *out, int count, int64_t least, const struct layer *layer, const char *word,
                          const struct yaml *node, plim_error *error);
/* What to add or to take before and after each of `axes` axes: one number for all, one an axis, or a pair an axis
   (of one axis: [before, after]). */
plim_status option_borders(int64_t (*out)[2], int axes, const struct layer *layer, const char *word,
                           const struct yaml *node, plim_error *error);
/* One of `words`, by its place. */
plim_status option_word(int *out, const struct layer *layer, const char *word, const struct yaml *node,
                        const char *const *words, int count, const char *const *keras, int keras_count,
                        plim_error *error);
/* Whether x has `rank` axes, batch and channels included; else the graph has failed. */
bool layer_needs_rank(const struct layer *layer, struct graph *graph, const struct tensor *x, int rank);
/* An axis as Keras counts: from the end below 0. 0 (the batch) and what is not there make the graph fail: -1. */
int layer_axis(const struct layer *layer, struct graph *graph, const struct tensor *x, int64_t axis);

/* layer_resizing.c: how places between pixels are made, by Keras's word. False: there is none. */
bool resize_method(int *out, const char *word);
/* Pictures [N, height, width, channels] of another size; of the largest part in the middle that has its proportions. */
struct tensor *resized(struct graph *graph, struct tensor *x, int method, int64_t height, int64_t width);
struct tensor *resized_whole(struct graph *graph, struct tensor *x, int method, int64_t height, int64_t width);

#endif
