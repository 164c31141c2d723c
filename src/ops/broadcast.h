/* spread.h - operands that spread to a common shape: numpy's rule with a
   batch (elementwise.h says it). */
#ifndef OPS_SPREAD_H
#define OPS_SPREAD_H

#include "ops/helpers.h"

#define MOST_SPREAD 3

/* One node's operands over the axes of its output. */
struct spread {
    struct shape shape; /* of the output */
    bool batched;
    int count;
    int64_t step[MOST_SPREAD][MOST_AXES]; /* in elements; 0: the operand is spread along that axis */
};

/* False when the shapes do not fit. */
bool spread_of(struct spread *out, const struct tensor *const *operand, int count);
/* Element `operand` that element i of a slice's rows reads: axis 0 of step is walked from the slice's first row. */
int64_t spread_at(const struct spread *spread, int operand, int64_t i);

/* An op's parts from all of its inputs (at most MOST_SPREAD). */
plim_status infer_spread(struct graph *graph, struct node *node, plim_error *error);
plim_status infer_truth(struct graph *graph, struct node *node, plim_error *error);
void cut_spread(struct cut *cut, const struct node *node);
/* The inputs' steps as a call sees them. */
void call_spread(struct spread *out, const struct call *call);

/* Where axis 0 of `tensor` lies among the axes of an output of `rank`, axis k > 0 lies k behind. */
static inline int spread_axis(const struct tensor *tensor, int axis, int rank)
{
    return tensor->batched && axis == 0 ? 0 : rank - tensor->shape.rank + axis;
}

#endif
