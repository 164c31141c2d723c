/* rematerialize.h - forward values that a plan does not keep, computed again in the backward pass whatever that costs.

   Which values to drop is the planner's choice. Everything that it has to know of them is in struct retention, which the
   rewrite uses too, so that what was simulated is what is built. */
#ifndef TRANSFORM_REMATERIALIZE_H
#define TRANSFORM_REMATERIALIZE_H

#include "transform/transform.h"

/* What the backward pass reads of the forward pass. By tensor id and by node id of the graph as it is now. */
struct retention {
    int *first_read, *last_read; /* backward nodes that read a forward value; INT_MAX, -1: none */
    bool *repeatable;            /* by node id: a forward node that can run again anywhere before the updates */
};

/* The tables are in `work`. */
plim_status retention_find(struct retention *out, const struct graph *graph, struct arena *work, plim_error *error);

/* Whether the value may be dropped: it is large, the backward pass reads it, and its node can run again. */
bool retention_may_drop(const struct retention *retention, const struct tensor *tensor);

/* Whether a second computation finds this operand without computing it again too: all but forward values that are dropped,
   or that the backward pass does not read. */
static inline bool retention_has(const struct retention *retention, const bool *dropped, const struct tensor *tensor)
{
    bool forward = tensor->kind == KIND_VALUE && tensor->producer && !tensor->producer->backward;
    return !forward || (retention->last_read[tensor->id] >= 0 && !dropped[tensor->id]);
}

/* Whether the second computation of this node serves one backward node only: it is cheap, and finds all its inputs. Others
   stay to their last reader, so that the work does not grow with the square of the depth. */
bool retention_passes(const struct retention *retention, const bool *dropped, const struct node *node);

/* After recompute(): `dropped`, by tensor id, says which values are not kept. What is computed again are those, and the
   forward values that they are made of and that nobody keeps. */
plim_status rematerialize(struct graph *graph, const bool *dropped, plim_error *error);

#endif
