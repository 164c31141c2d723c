/* op_time.h - about how long a node takes, for choices between time and memory.

   A function of op, attributes and shapes; given what an earlier run of the job took (train/calibration.c), times what
   it took for that node. */
#ifndef PLAN_SEARCH_OP_TIME_H
#define PLAN_SEARCH_OP_TIME_H

#include "graph/op.h"

/* Seconds, measured and by the nominal machine, of the nodes of an op in a layer. */
struct op_cost {
    uint64_t key; /* op_cost_key */
    double measured, nominal;
};

struct op_costs {
    struct op_cost *cost; /* by key, each once */
    int count;
    double others;     /* measured by nominal, for nodes that are not among them */
    double disk_bytes; /* a second; 0: not measured */
};

/* Of op and layer: a second computation has the same as the first. */
uint64_t op_cost_key(const char *op, const char *layer);
/* Sorts what was added in any order, with the same key more than once, and sets `others`. */
void op_costs_settle(struct op_costs *costs);

/* costs NULL: of the nominal machine. */
double node_seconds(const struct op_costs *costs, const struct node *node);
/* How long the disk writes or reads so many bytes. */
double transfer_seconds(const struct op_costs *costs, uint64_t bytes);

#endif
