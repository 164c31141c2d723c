/* plan.h - where every byte lives, and when. The plan is data; it is the
   only thing that runs.

   A program is what one job runs: a set of phases (train step, evaluate step,
   save, resume) over one arena. Weights and states have the same place in all of them;
   everything else of a phase is dead when the phase ends, so phases lie over
   one another.

   Invariants, proved by verify before anything runs:
    1. no two instances that are alive at the same instruction share a byte;
    2. every read sees the instance that the dataflow says, written before;
    3. every offset + bytes lies inside the arena, offsets are 64-aligned;
    4. the predicted peak is the sum of its tags. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "backends/backend.h"
#include "base/text/text.h"
#include "transform/transform.h"

enum space {
    SPACE_NONE,   /* absent operand */
    SPACE_ARENA,  /* offset from the arena's start */
    SPACE_WORKER, /* offset from the worker's slice buffers */
    SPACE_BATCH,  /* column `offset` of the current batch */
};

struct place {
    uint64_t space : 8; /* enum space; both in one word: a plan of thousands of layers has 100,000 places */
    uint64_t offset : 56;
    uint64_t row_bytes;  /* CUT operands: bytes a row; 0: not moved by slices */
    uint64_t unit_bytes; /* SUM outputs with partials: bytes between units' partials; 0: none */
};

/* One kernel inside an instruction. */
struct task {
    const struct node *node;
    const struct kernel *kernel;
    struct place *input, *output; /* as many as the node has */
    uint64_t scratch;             /* offset in the worker's buffers */
    uint64_t pack;                /* offset in the arena, when kernel->pack_bytes */
};

/* Adds the units' partial sums in order of units: to[i] = p0[i] + p1[i] + ... */
struct fold {
    uint64_t from, stride, to; /* arena */
    int64_t count;             /* elements */
    enum type type;
};

struct instruction {
    bool single_tail;   /* the last, short slice of a batch is run one row at a time */
    const char *name;   /* "conv2d_1 forward" */
    struct chain chain; /* extent, slice, unit, units */
    struct task *task;
    int task_count;
    struct fold *fold;
    int fold_count;
    uint64_t live_bytes; /* arena bytes alive while it runs: persistent, instances, workers' buffers */
};

/* A stretch of the arena with one owner from instruction `first` to `last`. */
struct instance {
    const char *name;
    enum tag tag;
    uint64_t bytes, offset;
    int first, last;
};

struct phase {
    const char *name;
    struct graph *graph; /* NULL for save and resume: they have one instance, their buffer */
    struct place *place; /* by tensor id: where it lives outside of slices; SPACE_NONE: nowhere */
    struct instruction *instruction;
    int instruction_count;
    struct instance *instance;
    int instance_count;
    uint64_t max_live;          /* of the instances: lower bound of any packing */
    uint64_t top;               /* what the packing needs, counted from persistent_bytes on */
    uint64_t worker_bytes;      /* slice buffers and scratch of one worker */
    int peak;                   /* instruction of the peak */
    uint64_t by_tag[TAG_COUNT]; /* arena bytes at the peak */
};

enum { PHASE_TRAIN, PHASE_EVALUATE, PHASE_SAVE, PHASE_RESUME, PHASE_COUNT };

struct program {
    struct arena arena; /* holds the tables, tag planner */
    struct backend *backend;
    int threads;                     /* workers: no more than were given or are of use */
    struct phase phase[PHASE_COUNT]; /* name NULL: not there */
    /* The one arena: persistent, then the phases over one another, then the workers' buffers. */
    uint64_t arena_bytes;
    uint64_t workers_offset; /* worker w's buffers: workers_offset + w * worker_bytes */
    uint64_t worker_bytes;
    /* Weights and states: */
    struct tensor **persistent;
    uint64_t *persistent_offset;
    int persistent_count;
    uint64_t persistent_bytes;
};

/* Nobody knows how many samples the last batch of an epoch has: what is left of a slice runs sample by sample. */
#define LAST_BATCH_ANY (-1)

struct program_input {
    struct budget *budget;
    struct backend *backend;
    int threads;
    struct graph *train, *evaluate; /* either may be NULL; weights and states match by name */
    int64_t last_batch_train,
        last_batch_evaluate; /* samples in the last batch of an epoch; 0: all full; LAST_BATCH_ANY */
    uint64_t save_buffer_bytes;
    bool size_only; /* nobody will run this plan: it is not verified */
};

/* Chains, kernels, lifetimes, offsets; then verifies. */
plim_status program_make(struct program **out, const struct program_input *input, plim_error *error);
void program_free(struct program *program);

/* How many tasks run on a kernel whose implementation begins with this word: "onednn"; "reference" is plain C,
   correct and slow. */
int program_kernels(const struct program *program, const char *word);

/* Symbolic replay of one phase: PLIM_INTERNAL names what is wrong. */
plim_status plan_verify(const struct program *program, const struct phase *phase, plim_error *error);

/* Offsets by TWA packing, from 0 on: fills offset of each instance, gives the
   top. Sizes are rounded up to LAYOUT_ALIGNMENT. */
#define LAYOUT_ALIGNMENT ((uint64_t)64)
uint64_t layout_bytes(uint64_t bytes);
plim_status layout_pack(uint64_t *top, struct instance *instance, int count, struct budget *budget, plim_error *error);
/* The bound of any packing, and the instruction where it is reached. live: the bytes at each instruction. */
uint64_t layout_max_live(uint64_t *live, const struct instance *instance, int count, int instructions, int *peak);

/* What the whole process will take. `outside` are the bytes the caller knows
   of: batches, pipeline, stacks, checkpoint, formats, ... */
struct prediction {
    uint64_t by_tag[TAG_COUNT];
    uint64_t peak;
    const char *peak_at;
};
/* The same for the arena alone: the tags sum to arena_bytes. Bytes of the arena that
   nobody owns at the peak are booked as activations. */
void program_arena_tags(uint64_t by_tag[TAG_COUNT], const char **peak_at, const struct program *program);
void program_predict(struct prediction *out, const struct program *program, const uint64_t outside[TAG_COUNT]);

/* Every instruction, instance and offset, for people and golden files. */
void program_print(struct text *out, const struct program *program);

#endif
