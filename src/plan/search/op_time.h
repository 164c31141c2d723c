/* op_time.h - about how long a node takes, for choices between time and memory. */
#ifndef PLAN_SEARCH_OP_TIME_H
#define PLAN_SEARCH_OP_TIME_H

#include "graph/op.h"

/* A function of op, attributes and shapes, so that plans repeat. */
double node_seconds(const struct node *node);
/* How long the nominal disk writes or reads so many bytes. */
double transfer_seconds(uint64_t bytes);

#endif
