/* flow.h - what any worker may do with rows: read them by index, run maps over them, put them where they go.

   A flow is the part of a dataset behind its head. The head is the nearest stream before it, pulled by one
   worker at a time (flow_take), or, where the data has an index, nothing but positions (flow_place). All else
   is a pure function of the rows (flow_finish), so each worker has a flow of its own and no order between
   them matters.

   A column goes straight to its target as soon as no later map makes another of it. Before that it lives in the flow's
   own buffer, each state of it in a place of its own. */
#ifndef PIPELINE_CORE_FLOW_H
#define PIPELINE_CORE_FLOW_H

#include "pipeline/core/stage.h"

#define FLOW_ROWS  256
#define FLOW_BYTES ((uint64_t)256 * 1024) /* rows between two types, unless one row is larger */

struct flow;

/* Where finished rows go: row 0 of each column of the dataset's spec. */
struct flow_target {
    uint8_t *column[MOST_COLUMNS];
};

/* The stream that a flow over `dataset` stands on, or NULL: it is read by index. */
const struct dataset *flow_head(const struct dataset *dataset);

uint64_t flow_bytes(const struct dataset *dataset);
/* What flow_start takes besides the block. */
uint64_t flow_cost(const struct dataset *dataset);
/* In a zeroed block of flow_bytes; the dataset must outlive it. */
plim_status flow_start(struct flow *flow, const struct dataset *dataset, struct budget *budget, uint64_t seed,
                       plim_error *error);
/* So many calls of flow_finish go on at a time: where rows have to be waited for, those that come after them are asked
   for. */
void flow_beside(struct flow *flow, int flows);
/* Rows come from here instead of the source, from now on. */
struct held_blocks;
void flow_hold(struct flow *flow, struct held_blocks *held);
void flow_stop(struct flow *flow);

/* At most so many rows at a time: FLOW_ROWS, fewer when rows are large, 1 when a map makes values that stay. */
int64_t flow_rows(const struct flow *flow);

/* Elements first.. of the epoch are the next ones; count <= flow_rows. */
void flow_place(struct flow *flow, uint64_t epoch, int64_t first, int64_t count);
/* The next elements of the head; *got == 0: its epoch is over. keep: what they refer to should outlive the head's
   next pull; *kept: it does. Where it does not fit the flow's buffer, finish before the head goes on. */
plim_status flow_take(int64_t *got, bool *kept, struct flow *flow, struct stream *head,
                      const struct flow_target *target, int64_t most, bool keep, plim_error *error);
/* Passes over up to `count` elements of the head without running anything; rows of the target, which has `rows` of
   them, are overwritten. */
plim_status flow_skip(int64_t *passed, struct flow *flow, struct stream *head, const struct flow_target *target,
                      int64_t rows, int64_t count, plim_error *error);
/* The `count` elements placed or taken, through all maps to their target. Values of the result lie in the
   flow's buffers, until its next call; where they fill it, *done < count, and the others have to be placed again. */
plim_status flow_finish(int64_t *done, struct flow *flow, const struct flow_target *target, int64_t count,
                        plim_error *error);
/* From now on the clock runs: a call a chunk, or one in some where elements go one by one. */
void flow_time(struct flow *flow);
typedef void flow_visit(void *context, const struct dataset *node, uint64_t figure, uint64_t elements);
/* Nanoseconds of each stage that ran here (the source's, where it is read by index), and the elements so far. */
void flow_times_each(flow_visit *visit, void *context, const struct flow *flow);
/* Bytes of flow_bytes and flow_cost that belong to one map alone. */
void flow_cost_each(flow_visit *visit, void *context, const struct dataset *dataset);
bool flow_has_maps(const struct flow *flow);
/* Which elements they were. */
const int64_t *flow_index(const struct flow *flow);
const uint64_t *flow_epoch(const struct flow *flow);

#endif
