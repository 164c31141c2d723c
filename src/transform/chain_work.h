/* chain_work.h - what the parts of chain_find tell one another. */
#ifndef TRANSFORM_CHAIN_WORK_H
#define TRANSFORM_CHAIN_WORK_H

#include "transform/transform.h"

struct chain_work {
    struct graph *graph;
    struct chains *chains;
    struct arena arena;     /* thrown away at the end */
    struct cut *cut;        /* by node id */
    struct sum_order *sums; /* by node id */
    int *chain_of;          /* by node id */
    int *readers;           /* by tensor id: how many operands read it */
    int *last;              /* by tensor id: place in order of its last reader (its maker if none) */
    bool *homed;            /* by tensor id: local, but in bytes of the tensor arena that it shares in place */
};

/* chain_order.c: fills order, chain (first, count, extent, by_sample) and chain_of. */
plim_status chain_order(struct chain_work *work, plim_error *error);
/* chain_size.c: fills grain, units and slices of every chain; local must be known. */
void chain_sizes(struct chain_work *work);

#endif
