/* step_model.h - what a training step would hold and how long it would take, were some forward values dropped or spilled.

   The model starts from a planned program and does not plan again: a dropped value leaves its bytes free from its last
   reader in the forward pass until it is computed again, a spilled one from the end of its way to the disk until it
   begins to come back. An evaluation takes microseconds, so that a search can try
   thousands of choices. What it finds is planned in earnest afterwards; only that counts. */
#ifndef PLAN_SEARCH_STEP_MODEL_H
#define PLAN_SEARCH_STEP_MODEL_H

#include "plan/plan.h"
#include "transform/rematerialize.h"

/* A value that need not stay in the arena. Slots are instructions of the program. */
struct releasable {
    int tensor;
    uint64_t bytes;      /* in the arena */
    uint64_t disk_bytes; /* in the scratch file */
    int begin;           /* the first slot behind its maker and its readers in the forward pass */
    int read;            /* the slot of the first backward reader */
    bool local;          /* computed again where it is read, it lives in slice buffers */
    bool may_drop, may_spill;
};

/* What happens to each value, by tensor id; none is both dropped and spilled. waits: of values that are spilled, as in
   struct spilled. */
struct step_choice {
    bool *dropped, *spilled, *waits;
};

/* A forward node that a dropped value may need. */
struct repeatable {
    int node;
    double seconds;
    uint64_t lost_bytes;           /* of outputs in the arena that the backward pass does not read */
    bool cheap;                    /* a chain of slices can take it */
    int input[MOST_INPUTS], count; /* repeatables that make its forward inputs; NEVER: the maker cannot run again */
    int tensor[MOST_INPUTS];       /* those inputs */
};

struct step_cost {
    uint64_t peak;  /* largest live total of a slot */
    double seconds; /* of the whole step */
};

/* What the model may choose from. */
struct step_freedom {
    bool may_drop;
    uint64_t spill_bytes; /* that the disk has room for; 0: nothing may be spilled */
};

struct step_model {
    const struct graph *graph;
    struct step_freedom freedom;
    struct retention retention;
    int slots;
    uint64_t *base; /* by slot: bytes of instances that are alive in the program */
    struct releasable *value;
    int value_count;
    int *value_of;           /* by tensor id; -1: none */
    int *by_begin, *by_read; /* indices of values: in the order in which they can go out, and last to first come back */
    double *time;            /* by slot, and for the end: when it begins */
    struct repeatable *repeat; /* in program order */
    int repeat_count;
    int *repeat_of; /* by node id; -1: none */
    double seconds; /* of the step when nothing is dropped */
    /* Of the last evaluation: */
    int64_t *live;    /* by slot */
    int *need, *last; /* by repeatable: the first and the last slot that ask for it; NEVER: none does */
    int *runs;        /* by repeatable: how often it runs again */
    int *use,
        *away; /* by value: the first slot that needs it after the forward pass; the first slot in which it is away */
};
#define NEVER INT32_MAX

/* The tables are in `work`. */
plim_status step_model_make(struct step_model *out, const struct phase *phase, struct step_freedom freedom,
                            struct arena *work, plim_error *error);
/* Sets live, need, runs and use. A choice that passes the disk's room has the largest peak that there is. */
struct step_cost step_model_try(struct step_model *model, const struct step_choice *choice);
/* What moving so many bytes out and in again costs while others compute. */
double spill_seconds(uint64_t bytes);

#endif
