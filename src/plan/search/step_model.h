/* step_model.h - what a training step would hold and how long it would take, were some forward values dropped or
   spilled, and some weights and states paged.

   The model starts from a planned program and does not plan again: a dropped value leaves its bytes free from its last
   reader in the forward pass until it is computed again, a spilled one from the end of its way to the disk until it
   begins to come back, a paged tensor but for its visits. An evaluation takes microseconds, so that a search can try
   thousands of choices. What it finds is planned in earnest afterwards; only that counts. */
#ifndef PLAN_SEARCH_STEP_MODEL_H
#define PLAN_SEARCH_STEP_MODEL_H

#include "plan/plan.h"
#include "transform/rematerialize.h"

/* A value that need not stay in the arena; or a weight or state. Slots are instructions of the program. */
struct releasable {
    int tensor;
    uint64_t bytes;       /* in the arena */
    uint64_t disk_bytes;  /* in the scratch file */
    uint64_t moved_bytes; /* of both ways, in a step */
    int begin;            /* the first slot behind its maker and its readers in the forward pass */
    int read;             /* the slot of the first backward reader */
    bool local;           /* computed again where it is read, it lives in slice buffers */
    bool may_drop, may_spill;
    bool pages;  /* a weight or state */
    bool stated; /* paged, or dropped, in any case */
    bool in_row; /* it passes through the arena piece by piece, of which there are row_bytes at once */
    uint64_t row_bytes;
    int visit, visit_count; /* of a weight or state: in model->visit */
};

/* Slots in which a paged tensor is in the arena. */
struct page_visit {
    int first, last;
    bool writes;
    int in, out; /* of the last evaluation: it is there from slot `in` to slot `out` - 1 */
};

/* A way to or from the disk: of a value that is spilled (visit -1), or of a visit. */
struct way {
    int value, visit;
};

/* What happens to each value, by tensor id; none is both dropped and spilled. Of weights and states, spilled is paged.
   waits: of values that are spilled, as in struct spilled. */
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
    uint64_t
        peak; /* largest live total of a slot, weights and states included; what another phase needs, if that is more */
    double seconds; /* of the whole step */
};

/* What the model may choose from. */
struct step_freedom {
    bool may_drop, may_spill;
    bool may_page[2], pages[2];   /* weights, states; those that are paged in any case */
    uint64_t disk_bytes;          /* that the disk has room for */
    const struct op_costs *costs; /* op_time.h; NULL: of the nominal machine */
};
enum { PAGE_WEIGHTS, PAGE_STATES };
/* Whether anything may lie on the disk. */
static inline bool freedom_has_disk(const struct step_freedom *freedom)
{
    return freedom->disk_bytes &&
           (freedom->may_spill || freedom->may_page[PAGE_WEIGHTS] || freedom->may_page[PAGE_STATES]);
}

struct step_model {
    const struct graph *graph;
    const struct op_costs *costs;
    struct step_freedom freedom;
    struct retention retention;
    int slots;
    uint64_t *base;       /* by slot: bytes of instances that are alive in the program, and of weights and states */
    uint64_t other_bytes; /* that another phase needs, with weights and states */
    struct releasable *value;
    int value_count;
    int *value_of; /* by tensor id; -1: none */
    struct page_visit *visit;
    int visit_count;
    struct way *out_way, *in_way; /* in the order in which they begin; the last first */
    int out_count, in_count;
    double *time;              /* by slot, and for the end: when it begins */
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

/* Of the program's training step. The tables are in `work`. Times are by `freedom.costs`. */
plim_status step_model_make(struct step_model *out, const struct program *program, struct step_freedom freedom,
                            struct arena *work, plim_error *error);
/* Bytes of all weights and states that may be paged. */
uint64_t step_model_pageable(const struct step_model *model);
/* Bytes of the disk that what is paged in any case leaves. */
uint64_t step_model_room(const struct step_model *model);
/* Sets live, need, runs and use. A choice that passes the disk's room has the largest peak that there is. */
struct step_cost step_model_try(struct step_model *model, const struct step_choice *choice);
/* What moving so many bytes costs while others compute. */
double move_seconds(uint64_t bytes);

#endif
