/* plan_builder.h - what the makers of a phase tell one another. */
#ifndef PLAN_PLAN_BUILDER_H
#define PLAN_PLAN_BUILDER_H

#include "plan/plan.h"
#include "transform/in_place.h"

#define NOWHERE (-1)

/* Of a tensor. Positions are places in chains.order. Tensors that take over one
   another's bytes form a group; what is said of a group stands at its root. */
struct life {
    int made, last; /* positions: its maker, its last reader (the maker if none) */
    int whole_read; /* last chain that reads it other than CUT; -1 */
    int root;       /* tensor id of its group's root */
    /* Of the group: */
    bool in_tensor_arena; /* has a place outside of slices */
    bool gradient;
    int first, end;  /* positions */
    bool result;     /* lives to the end of the phase */
    int instance;    /* in the tensor arena; or NOWHERE */
    int move;        /* index of builder->move; NOWHERE: it stays in the arena */
    uint64_t offset; /* in the worker's buffers, when not in the tensor arena */
};

/* When a group leaves the arena and comes back, or when a piece of a paged tensor visits it. A slot is an instruction
   that computes, before others are there. Steps are slots at first (before that one), then instructions; NOWHERE: not
   done. */
enum { MOVE_OUT, MOVE_OUT_DONE, MOVE_IN, MOVE_IN_DONE, MOVE_STEPS };
struct move {
    int root;   /* tensor id of the group's root; the paged tensor */
    int tensor; /* id of the member whose value it is */
    int piece;  /* NOT_PAGED: a value */
    bool waits;
    int first, last; /* of a piece: slots between which it is used, then instructions */
    int step[MOVE_STEPS];
    int returned; /* instance that it comes back into */
};

struct phase_input {
    const char *name;
    struct graph *graph;
    int64_t last_batch;
    const struct spilled *spilled; /* as in struct program_input */
    int spilled_count;
    bool lays_homes; /* decides which pieces paged tensors have: the first phase */
};

struct builder {
    struct program *program;
    struct phase *phase;
    struct graph *graph;
    struct chains chains;
    struct arena work; /* thrown away when the phase is made */
    const struct phase_input *input;
    struct move *move;
    int move_count;
    struct cut *cut; /* by node id */
    int *position;   /* by node id: in chains.order */
    int *chain_of;   /* by node id */
    int *pieces;     /* by chain: instructions that it is cut into */
    int *first_slot; /* by chain, and of the end */
    int *slot_at;    /* by slot: its instruction */
    int *visit;      /* by tensor id: of a paged one its first move; NOWHERE: it is not used. NULL: nothing is paged */
    struct life *life; /* by tensor id */
    int *partial;      /* by node id * MOST_OUTPUTS + k: instance of its partial sums */
    int *pack;         /* by node id: instance of its pack */
    int *persistent;   /* by tensor id: index of a weight or state */
};

/* lifetime.c: life of every value, groups in place. Needs chains, cut, position. */
void lifetime_find(struct builder *builder);
/* pages.c: into how many instructions chains are cut, so that paged tensors pass through the arena piece by piece. */
plim_status pages_cut(struct builder *builder, plim_error *error);
/* The home of a paged tensor; NULL: it is not paged. */
const struct home *home_of(const struct builder *builder, const struct tensor *tensor);
/* The instructions in which a node runs, once they are numbered. */
static inline int first_instruction(const struct builder *builder, const struct node *node)
{
    return builder->slot_at[builder->first_slot[builder->chain_of[node->id]]];
}
static inline int last_instruction(const struct builder *builder, const struct node *node)
{
    return builder->slot_at[builder->first_slot[builder->chain_of[node->id] + 1] - 1];
}
/* transfers.c: what leaves the arena or visits it, and when. Then there are instructions: those that move bytes are
   done. Needs lives and pieces. */
plim_status transfers_schedule(struct builder *builder, plim_error *error);
/* Offsets, once instances have theirs. */
plim_status transfers_place(struct builder *builder, plim_error *error);
/* Bytes of an instance that a transfer reads or writes, and where in it the value lies. */
uint64_t transfer_instance_bytes(uint64_t bytes);
uint64_t transfer_offset(uint64_t instance_offset);
/* instances.c: values, partial sums and packs into phase->instance; offsets. */
plim_status instances_make(struct builder *builder, plim_error *error);
/* buffers.c: offsets of local values and scratch in a worker's buffers. */
plim_status buffers_make(struct builder *builder, plim_error *error);
/* tasks.c: kernels first (before instances: packs), places and folds last. */
plim_status tasks_prepare(struct builder *builder, plim_error *error);
plim_status tasks_place(struct builder *builder, plim_error *error);

/* phase.c */
plim_status phase_make(struct program *program, int phase, const struct phase_input *input, plim_error *error);
plim_status phase_make_buffer(struct program *program, int phase, const char *name, uint64_t bytes, plim_error *error);
/* live_bytes and tags at the peak; when all phases are made. */
void phase_measure(struct program *program, struct phase *phase);

/* Tables that stay, or PLIM_OVER_BUDGET / PLIM_NO_MEMORY. */
plim_status program_refused(const struct program *program, plim_error *error);

static inline bool is_value(const struct tensor *tensor)
{
    return tensor->kind == KIND_VALUE || tensor->kind == KIND_RESULT;
}

#endif
