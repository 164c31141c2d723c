/* remap.h - ops that take each element of the output from one place of the input, axis by axis:
   slice, pad, tile, repeat, roll, resize_nearest; and remap_gradient, which adds back.

   y[n, i, j, ...] = x[n, from(i), from(j), ...]; a place outside (pad) is `value`. Any type; axis 0 stays as it is. */
#ifndef OPS_SHAPE_REMAP_H
#define OPS_SHAPE_REMAP_H

#include "graph/graph.h"

enum axis_rule {
    AXIS_KEEP,
    AXIS_SLICE,     /* begin + i * step; a step below 0 goes backwards: reverse, flip */
    AXIS_PAD,       /* i - begin, outside: value */
    AXIS_REFLECT,   /* i - begin, mirrored at the first and last element */
    AXIS_SYMMETRIC, /* the same, mirrored before the first and after the last */
    AXIS_TILE,      /* i mod n: the axis again and again */
    AXIS_REPEAT,    /* i / step: each element `step` times */
    AXIS_ROLL,      /* (i - begin) mod n */
    AXIS_NEAREST,   /* the element nearest to the centre of i, by tf.image.resize's rule */
    AXIS_RULES
};

/* Whole numbers of one size: attributes are compared by their bytes. */
struct axis_map {
    int64_t rule;
    int64_t extent; /* of the output */
    int64_t begin, step;
};
struct remap_attributes {
    struct axis_map axis[MOST_AXES];
    double value;
};
struct remap_gradient_attributes {
    struct remap_attributes forward;
    struct shape input;
};

/* The input's place for output place i of an axis of `extent` places; -1: outside. */
int64_t axis_from(const struct axis_map *map, int64_t extent, int64_t i);

/* Builders. `axis` counts the batch as 0 and is at least 1; all other axes are kept. */
struct tensor *slice_axis(struct graph *graph, struct tensor *x, int axis, int64_t begin, int64_t size, int64_t step);
struct tensor *reverse_axis(struct graph *graph, struct tensor *x, int axis);
struct tensor *roll_axis(struct graph *graph, struct tensor *x, int axis, int64_t by);
struct tensor *tile_axis(struct graph *graph, struct tensor *x, int axis, int64_t times);
struct tensor *repeat_axis(struct graph *graph, struct tensor *x, int axis, int64_t times);
/* width: so many places before and after. rule: AXIS_PAD (with `value`), AXIS_REFLECT or AXIS_SYMMETRIC. */
struct tensor *pad_axis(struct graph *graph, struct tensor *x, int axis, const int64_t width[2], enum axis_rule rule,
                        double value);
/* Everything at once: axis[0] and those with rule AXIS_KEEP stay. */
struct op;
struct tensor *remap(struct graph *graph, const struct op *op, struct tensor *x, const struct axis_map *axis, int count,
                     double value);

/* transpose: axis k of the output is axis axes[k] of the input; axes[0] is 0. */
struct transpose_attributes {
    int64_t axes[MOST_AXES];
};
struct tensor *transpose(struct graph *graph, struct tensor *x, const int *axes);

/* concatenate: 1 to MOST_INPUTS inputs along an axis >= 1, all else equal. */
struct concatenate_attributes {
    int64_t axis;
};
/* Any number of inputs, in layers of MOST_INPUTS. */
struct tensor *concatenate(struct graph *graph, struct tensor *const *x, int count, int axis);
/* The same after a new axis of 1. */
struct tensor *stack(struct graph *graph, struct tensor *const *x, int count, int axis);
/* `count` parts of the axis, of the sizes given. */
void split(struct tensor **out, struct graph *graph, struct tensor *x, int axis, const int64_t *sizes, int count);
/* The same bytes under the shape of one sample `row`; x itself when it has that shape. */
struct tensor *reshape(struct graph *graph, struct tensor *x, struct shape row);

#endif
