/* held_blocks.h - row blocks (neighbouring rows) in memory, for a shuffle that takes rows from a few of them at a time.

   Rows that are read one by one cost a system call each. Where a shuffle mixes row blocks (shuffle_blocks.c), those of
   the group being given and of the next ones are read whole and rows are copied from there. What is held changes
   the time, never the rows: what finds no frame is read from the source as ever. */
#ifndef PIPELINE_STAGES_KEEP_HELD_BLOCKS_H
#define PIPELINE_STAGES_KEEP_HELD_BLOCKS_H

#include "pipeline/core/stage.h"

struct held_blocks;

/* How much is held, as a grant says it: 1 is the row blocks of one group, each one more is one of the next groups that
   is read while rows of this one are given. */

/* The most that is of use: all of the next two groups; 0: this dataset has no row blocks that could be held. */
int held_most(const struct dataset *dataset);
/* What held_open takes (tag pipeline); 0: none. */
uint64_t held_bytes(const struct dataset *dataset, int held);
/* late_rows: so many rows at most are asked for before one that comes earlier in order. */
plim_status held_open(struct held_blocks **out, const struct dataset *dataset, int blocks, int64_t late_rows,
                      struct budget *budget, plim_error *error);
void held_close(struct held_blocks *held);
/* Rows first..first + count, a row block, are needed when it is their turn: a number that grows. Advice. */
void held_expect(struct held_blocks *held, int64_t first, uint64_t turn);
/* What comes is from elsewhere: turns begin anew. Nobody reads meanwhile. */
void held_forget(struct held_blocks *held);
/* As the source's own read; for any number of threads. count <= FLOW_ROWS. */
plim_status held_read(struct held_blocks *held, const int64_t *index, int64_t count, void *const *to,
                      const uint64_t *stride, plim_error *error);
/* Bytes that were read past the page cache so far. */
uint64_t held_direct_bytes(const struct held_blocks *held);

#endif
