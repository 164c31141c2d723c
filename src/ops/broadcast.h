/* broadcast.h - operands that broadcast to a common shape: numpy's rule with a
   batch (elementwise.h says it). */
#ifndef OPS_BROADCAST_H
#define OPS_BROADCAST_H

#include "ops/helpers.h"

#define MOST_BROADCAST 3

/* One node's operands over the axes of its output. */
struct broadcast {
    struct shape shape; /* of the output */
    bool batched;
    int count;
    int64_t step[MOST_BROADCAST][MOST_AXES]; /* in elements; 0: the operand is broadcast along that axis */
};

/* False when the shapes do not fit. */
bool broadcast_of(struct broadcast *out, const struct tensor *const *operand, int count);
/* Element `operand` that element i of a slice's rows reads: axis 0 of step is walked from the slice's first row. */
int64_t broadcast_at(const struct broadcast *broadcast, int operand, int64_t i);

/* An op's parts from all of its inputs (at most MOST_BROADCAST). */
plim_status infer_broadcast(struct graph *graph, struct node *node, plim_error *error);
plim_status infer_truth(struct graph *graph, struct node *node, plim_error *error);
void cut_broadcast(struct cut *cut, const struct node *node);
/* The inputs' steps as a call sees them. */
void call_broadcast(struct broadcast *out, const struct call *call);

/* Where axis 0 of `tensor` lies among the axes of an output of `rank`, axis k > 0 lies k behind. */
static inline int broadcast_axis(const struct tensor *tensor, int axis, int rank)
{
    return tensor->batched && axis == 0 ? 0 : rank - tensor->shape.rank + axis;
}

#endif
