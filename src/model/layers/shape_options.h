/* shape_options.h - options of layers that move things about: shapes, borders, numbers for each axis. */
#ifndef MODEL_LAYERS_SHAPE_OPTIONS_H
#define MODEL_LAYERS_SHAPE_OPTIONS_H

#include "model/layers/layer_options.h"

/* struct shape: a list of at most MOST_AXES - 1 extents from `least` on, or one of them. */
option_reader option_shape;
/* The same, where null and None are -1, of a list that has been checked for its length. */
option_reader option_open_shape;
/* int64_t[axes of the layer's type]: one for all, or one for each. */
option_reader option_sizes;
/* int64_t[axes of the layer's type][2], what to add or to take before and after each axis: one number for all, one an
   axis, or a pair an axis (of one axis: [before, after]). */
option_reader option_borders;

/* layer_resizing.c: how places between pixels are made, by Keras's word. False: there is none. */
bool resize_method(int *out, const char *word);
/* Pictures [N, height, width, channels] of another size; of the largest part in the middle that has its proportions. */
struct tensor *resized(struct graph *graph, struct tensor *x, int method, int64_t height, int64_t width);
struct tensor *resized_whole(struct graph *graph, struct tensor *x, int method, int64_t height, int64_t width);

#endif
