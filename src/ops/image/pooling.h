/* pooling.h - pooling over one, two or three axes: data [N, ..., c], by sample.

   max_pool: outputs y and index: the place of the maximum in its window, cells counted with the last axis fastest, the
     first maximum wins. Padded cells never win. Windows of at most 2, 4 and 16 cells: numbers of 1, 2 and 4 bits in
     u8 [N, bytes of a sample] (activation_bits.h); then u8 of y's shape up to 255 cells, else i32.
   max_pool_gradient: dx from dy, index. Backward reads the index alone, never x or y.
   average_pool: the mean of the window's cells, padded ones not counted.
   average_pool_gradient: dx from dy.
   A global pooling is a window of the whole extent. */
#ifndef OPS_IMAGE_POOLING_H
#define OPS_IMAGE_POOLING_H

#include "graph/op.h"
#include "ops/products/convolution.h"

/* Entries follow the data's axes, as those of a convolution do. */
struct pool_attributes {
    int64_t window[MOST_SPACE], stride[MOST_SPACE];
    int64_t pad[2 * MOST_SPACE];
    /* window[] are the extents of y: output o takes the cells floor(o * in / out) to ceil((o + 1) * in / out). */
    int64_t adaptive;
};
struct pool_gradient_attributes {
    struct pool_attributes pool;
    int64_t input[MOST_SPACE]; /* extents of x */
};

/* Always three axes (depth, height, width): those that the data lacks are 1. */
struct pool_sizes {
    int64_t x[MOST_SPACE], y[MOST_SPACE], channels;
    int64_t window[MOST_SPACE], stride[MOST_SPACE], before[MOST_SPACE];
    bool adaptive;
};
/* Of a node that was inferred, forward or gradient. */
void pool_sizes_of(struct pool_sizes *sizes, const struct node *node);
/* Bits of a place in such a window: 1, 2, 4, 8 or 32. */
int pool_index_bits(const struct pool_sizes *sizes);

/* The window of output o along an axis: the cells begin..end of x that lie inside; cell `begin` is number `skipped`
   of `width` along that axis. */
struct pool_span {
    int64_t begin, end, skipped, width;
};
static inline struct pool_span pool_span(const struct pool_sizes *s, int axis, int64_t o)
{
    if (s->adaptive) {
        int64_t begin = o * s->x[axis] / s->y[axis], end = ((o + 1) * s->x[axis] + s->y[axis] - 1) / s->y[axis];
        return (struct pool_span){begin, end, 0, end - begin};
    }
    int64_t first = o * s->stride[axis] - s->before[axis], last = first + s->window[axis];
    struct pool_span span = {first < 0 ? 0 : first, last < s->x[axis] ? last : s->x[axis], first < 0 ? -first : 0,
                             s->window[axis]};
    return span;
}

#endif
