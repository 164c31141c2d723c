/* step_model.h - what a training step would hold and how long it would take, were some forward values dropped.

   The model starts from a planned program and does not plan again: a dropped value leaves its bytes free from its last
   reader in the forward pass until it is computed again. An evaluation takes microseconds, so that a search can try
   thousands of choices. What it finds is planned in earnest afterwards; only that counts. */
#ifndef PLAN_SEARCH_STEP_MODEL_H
#define PLAN_SEARCH_STEP_MODEL_H

#include "plan/plan.h"
#include "transform/rematerialize.h"

/* A value that may be dropped. Slots are instructions of the program. */
struct droppable {
    int tensor;
    uint64_t bytes;
    int begin;  /* the first slot behind its maker and its readers in the forward pass */
    int read;   /* the slot of the first backward reader */
    bool local; /* computed again where it is read, it lives in slice buffers */
};

/* A forward node that a dropped value may need. */
struct repeatable {
    int node;
    double seconds;
    uint64_t lost_bytes;           /* of outputs in the arena that the backward pass does not read */
    bool cheap;                    /* a chain of slices can take it */
    int input[MOST_INPUTS], count; /* repeatables that make its inputs */
    int tensor[MOST_INPUTS];       /* those inputs */
};

struct step_cost {
    uint64_t peak;  /* largest live total of a slot */
    double seconds; /* of the whole step */
};

struct step_model {
    const struct graph *graph;
    struct retention retention;
    int slots;
    uint64_t *base; /* by slot: bytes of instances that are alive in the program */
    struct droppable *drop;
    int drop_count;
    struct repeatable *repeat; /* in program order */
    int repeat_count;
    int *repeat_of; /* by node id; -1: none */
    double seconds; /* of the step when nothing is dropped */
    /* Of the last evaluation: */
    int64_t *live;    /* by slot */
    int *need, *last; /* by repeatable: the first and the last slot that ask for it; NEVER: none does */
    int *runs;        /* by repeatable: how often it runs again */
};
#define NEVER INT32_MAX

/* The tables are in `work`. */
plim_status step_model_make(struct step_model *out, const struct phase *phase, struct arena *work, plim_error *error);
/* dropped: by tensor id. Sets live, need and runs. */
struct step_cost step_model_try(struct step_model *model, const bool *dropped);

#endif
