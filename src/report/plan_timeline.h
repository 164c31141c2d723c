/* plan_timeline.h - what lies in the tensor arena while each instruction of the training step runs, and which of it the
   instruction reads and writes. */
#ifndef REPORT_PLAN_TIMELINE_H
#define REPORT_PLAN_TIMELINE_H

#include "plan/plan.h"

/* Where an instruction reads or writes. */
struct access {
    int block;
    bool writes;
};

struct timeline {
    const struct program *program;
    const struct phase *phase;
    struct instance *block; /* of weights and states, of the phase, and the workers' buffers */
    int block_count;
    int at; /* the instruction that timeline_next was called for last */
    /* Blocks that are there during it, by offset: */
    int *alive;
    int alive_count;
    struct access *access; /* each block once for reading and once for writing */
    int access_count;
    int *first_at, *next_block; /* by instruction: a list of the blocks that begin there; -1 ends it */
    int *read_at, *written_at;  /* by block: the last instruction that did */
};

typedef void block_visitor(void *context, const struct instance *block);
/* Every block of the training step: weights and states that stay, the instances, the workers' buffers. */
void timeline_blocks(const struct program *program, block_visitor *visit, void *context);

/* The tables are in `work`. */
plim_status timeline_begin(struct timeline *out, const struct program *program, struct arena *work, plim_error *error);
/* Goes on to the next instruction; false: there is none. */
bool timeline_next(struct timeline *timeline);

#endif
