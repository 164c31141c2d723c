/* repetition.h - computes forward values a second time, right before the backward node that reads them.

   Which values, say the rules of the caller: recompute() takes those that cost next to nothing, rematerialize() those
   that a plan has dropped. The second computation is a node like any other, with `again` set: the same op on the same
   inputs computes the same bits. */
#ifndef TRANSFORM_REPETITION_H
#define TRANSFORM_REPETITION_H

#include "transform/transform.h"

struct repeat {
    struct graph *graph;
    int tensors; /* number of tensors before the rewrite */
    /* Whether backward cannot read this value as it is, and it has not been computed again yet. */
    bool (*missing)(const struct repeat *repeat, const struct tensor *tensor);
    /* Whether what was computed again serves one backward node only; NULL: it stays to its last reader. */
    bool (*passing)(const struct repeat *repeat, const struct tensor *tensor);
    const void *rules; /* the caller's */

    struct arena *work;
    struct tensor **again;  /* by tensor id: the same value, computed again; or NULL */
    struct tensor **stack;  /* values to compute; each is an input of the one below it */
    struct tensor **passed; /* values that serve the current backward node only */
    int passed_count, passed_capacity;
    struct node **order; /* all nodes, with the new ones in their places */
    int count, capacity;
    uint64_t steps; /* number of nodes that were visited */
    plim_error *error;
};

/* Rewrites the inputs of all backward nodes. The caller has set graph, missing, passing and rules. */
plim_status repeat_rewrite(struct repeat *repeat, struct arena *work, plim_error *error);

/* For `missing`: it was there before the rewrite, a node makes it, and it has not been computed again. */
static inline bool repeat_may_miss(const struct repeat *repeat, const struct tensor *tensor)
{
    return tensor && tensor->id < repeat->tensors && tensor->kind == KIND_VALUE && tensor->producer &&
           !repeat->again[tensor->id];
}

#endif
