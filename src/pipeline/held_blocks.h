/* held_blocks.h - blocks of neighbouring rows in memory, for a shuffle that takes rows from a few blocks at a time.

   Rows that are read one by one cost a system call each. Where a shuffle mixes blocks (shuffle_blocks.c), the blocks of
   the group being given and of the next one are read whole and rows are copied from there. What is held changes
   the time, never the rows: what finds no place is read from the source as ever. */
#ifndef PIPELINE_HELD_BLOCKS_H
#define PIPELINE_HELD_BLOCKS_H

#include "pipeline/stage.h"

struct held_blocks;

/* What held_open takes (tag pipeline); 0: this dataset has no blocks that could be held. */
uint64_t held_bytes(const struct dataset *dataset);
plim_status held_open(struct held_blocks **out, const struct dataset *dataset, struct budget *budget,
                      plim_error *error);
void held_close(struct held_blocks *held);
/* As the source's own read; for any number of threads. count <= FLOW_ROWS. */
plim_status held_read(struct held_blocks *held, const int64_t *index, int64_t count, void *const *to,
                      const uint64_t *stride, plim_error *error);

#endif
