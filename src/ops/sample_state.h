/* sample_state.h - values of samples that one batch leaves for the next.

   state_read: state[N, ...], which lasts, -> y like it, of the batch: row n is sample n's. No gradient flows into
     what an earlier batch left.
   state_write: inputs state[N, ...], y (of the batch): the state's rows become y's; those beyond a short batch stay.
   Both are cut by sample. */
#ifndef OPS_SAMPLE_STATE_H
#define OPS_SAMPLE_STATE_H

#include "graph/graph.h"

/* A state with a row for each sample, whatever axis 0 of `shape` says. */
struct tensor *graph_sample_state(struct graph *graph, const char *name, enum type type, struct shape shape);
/* A state that the graph leaves for the next batch, or NULL: such a graph takes whole batches alone. */
const struct tensor *graph_find_sample_state(const struct graph *graph);

#endif
