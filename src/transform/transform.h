/* transform.h - graph to graph, and graph to chains. */
#ifndef TRANSFORM_TRANSFORM_H
#define TRANSFORM_TRANSFORM_H

#include "graph/op.h"
#include "transform/sum_order.h"

/* Appends the nodes that compute d(loss)/d(tensor) for each of `count`
   tensors into gradients[] (NULL where none flows). loss is a [1] value. */
plim_status gradient_append(struct graph *graph, struct tensor *loss, struct tensor *const *of, int count,
                            struct tensor **gradients, plim_error *error);
/* What loss scaling differentiates: loss * scale. */
struct scaled_loss {
    struct tensor *loss;
    struct tensor *scale; /* f32 [1]; NULL: 1 */
};
plim_status gradient_append_from(struct graph *graph, const struct scaled_loss *scaled, struct tensor *const *of,
                                 int count, struct tensor **gradients, plim_error *error);

/* Exact rewrites, before gradients are taken:
   relu -> max_pool  becomes  max_pool -> relu (the same values and gradients,
   a quarter of the relu's tensor); relu -> flatten becomes flatten -> relu (one
   tensor is kept for backward instead of two); matmul or conv2d followed by a relu
   that is its only reader takes it in as its activation; a dense layer over many classes
   and its softmax cross-entropy become vocabulary_crossentropy. */
plim_status fuse(struct graph *graph, plim_error *error);

/* After gradients and updates were appended, before recompute(): values of which backward reads a few bits are kept as
   those bits (encode.c). */
plim_status encode_kept(struct graph *graph, plim_error *error);

/* After gradients and updates were appended: values that are cheap to make again are made again in backward instead of
   being kept (recompute.c). */
plim_status recompute(struct graph *graph, plim_error *error);

/* Takes nodes away whose outputs nobody reads: results, updates and what leads to them stay. After gradients were
   taken. */
plim_status prune(struct graph *graph, plim_error *error);

/* Sizes of slices and units come from these and from shapes: never from the machine, the budget or the threads. */
#define NOMINAL_L2_BYTES  ((int64_t)2 * 1024 * 1024) /* slice buffers take half of it */
#define LEAST_WORK_SHARED 2e6                        /* multiply-adds; below it one unit */
#define MOST_UNITS        16

/* A chain: nodes first..first+count-1 of chains->order, run slice by slice. Slices and units are pieces of the cut axis
   (piece_begin). They do not change results: sums have their own order (sum_order.h), and a slice consists of whole
   leaves, a unit of whole parts of each sum. */
struct chain {
    int first, count;
    int64_t extent;
    int64_t grain; /* slices begin at multiples of it */
    bool by_sample;
    int units;      /* what workers take: each a run of slices / units slices */
    int64_t slices; /* a multiple of units */
};

struct chains {
    struct node **order; /* every node once, in running order */
    int node_count;
    struct chain *chain;
    int chain_count;
    bool *local; /* by tensor id: lives in slice buffers only */
};

static inline int64_t chain_row(const struct chain *chain, int64_t slice)
{
    return piece_begin(chain->extent, chain->grain, slice, chain->slices);
}

/* Rows of the longest slice. */
static inline int64_t chain_slice(const struct chain *chain)
{
    return piece_most(chain->extent, chain->grain, chain->slices);
}

/* Groups nodes into chains from their cuts alone. The tables live in the graph's arena. */
plim_status chain_find(struct chains *out, struct graph *graph, plim_error *error);

#endif
