/* fill.h - one batch into one slot: positions to indices, rows from the source, maps over them.

   A pure function of (dataset, seed, epoch, position): the iterator calls it from
   its thread or from the caller's, and nothing of it is state. */
#ifndef PIPELINE_FILL_H
#define PIPELINE_FILL_H

#include "pipeline/stage.h"

#define CHUNK_ROWS  256
#define CHUNK_BYTES ((uint64_t)256 * 1024) /* rows between two types, unless one row is larger */

/* Where the rows of a column are at one moment: in the slot, or in the chunk buffer. */
struct site {
    uint64_t at; /* of row 0 */
    bool in_slot;
};

struct map_step {
    const struct dataset *node;
    uint64_t seed;
    struct site from[MOST_COLUMNS], to[MOST_COLUMNS];
};

struct locate_step {
    const struct dataset *node;
    struct stage_state state;
};

struct filler {
    const struct dataset *dataset;
    int locate_count, map_count;
    struct locate_step locate[MOST_STAGES]; /* from the last stage to the first */
    struct map_step map[MOST_STAGES];       /* from the first to the last */
    struct site source[MOST_COLUMNS];       /* where the source's rows go */
    uint64_t column_at[MOST_COLUMNS];       /* in a slot */
    uint64_t slot_bytes, chunk_bytes;       /* UINT64_MAX: more than can be counted */
    int64_t chunk_rows;
    uint8_t *chunk; /* chunk_bytes, or NULL when maps work in place */
    int64_t position[CHUNK_ROWS];
    uint64_t epoch[CHUNK_ROWS];
};

/* Takes nothing; the caller sets `chunk`. The dataset must be batched and must outlive it. */
void filler_init(struct filler *filler, const struct dataset *dataset, uint64_t seed);
/* Elements first..first + count of the epoch. Stops early, with PLIM_OK, when *cancel turns true. */
plim_status filler_fill(struct filler *filler, uint8_t *slot, uint64_t epoch, int64_t first, int64_t count,
                        const atomic_bool *cancel, plim_error *error);

#endif
