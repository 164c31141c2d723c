/* indexing.h - ops that look places up: embedding, gather, scatter_add, one_hot, bucketize.

   Indices may be of any type that labels may be of. One that is outside makes NaN where a value is looked up
   (a loss shows it), and nothing where values are added. */
#ifndef OPS_SHAPE_INDEXING_H
#define OPS_SHAPE_INDEXING_H

#include <stdint.h>

/* embedding: y[N, ..., d] = w[ids[N, ...]]; inputs ids, w [v, d]. By sample.
   embedding_gradient: dw[v, d] from ids, dy; cut along v: each slice goes through all ids in their order and adds
   what is its own, so that there are no partial sums of the table, and the update may follow slice by slice. */
struct embedding_gradient_attributes {
    int64_t rows; /* v */
};

/* gather: inputs x, index. With `along` index has x's shape but for the axis (numpy's take_along_axis); else
   index is [N, k] and counts for all other axes: y[n, ..., k, ...] = x[n, ..., index[n, k], ...].
   scatter_add: inputs values, index; the other way: an axis of `extent` places, each the sum of its values. */
struct gather_attributes {
    int64_t axis, along;
};
struct scatter_attributes {
    struct gather_attributes gather;
    int64_t extent;
};

/* one_hot: f32 from index. ONE_HOT: [N, ...] -> [N, ..., depth]; over the last axis (of [N]: none) COUNT adds and
   MULTI_HOT takes the largest: [N, ..., k] -> [N, ..., depth]. */
enum one_hot_mode { ONE_HOT, ONE_HOT_MULTI, ONE_HOT_COUNT };
struct one_hot_attributes {
    int64_t depth, mode;
};

/* bucketize: how many of the boundaries (in rising order) are <= x; i64, of x's shape. */
#define MOST_BOUNDARIES 128
struct bucketize_attributes {
    int64_t count;
    double boundary[MOST_BOUNDARIES];
};

#endif
