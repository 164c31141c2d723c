/* plan.h - the plan of a job: where every byte lives, and during which instructions. A plan is data, and the machine
   runs nothing but plans.

   A program is what one job runs: a set of phases (train step, evaluate step, save, resume) that share one tensor
   arena. Weights and states have the same place in all phases. Everything else of a phase is dead when the phase ends,
   so the phases overlap in memory.

   A value that nobody needs for a while can lie in the scratch file meanwhile (struct transfer): the arena's bytes are
   free then, and the value comes back into another instance. A weight or state that is paged has no place in the arena
   at all: it lies in the file (struct home), and comes in for the instructions that use it.

   Invariants, which plan_verify proves before anything runs:
    1. No two instances that are alive at the same instruction share a byte.
    2. Every read sees the instance that the dataflow requires, and that instance was written before.
    3. Every instance lies inside the tensor arena, and its offset is a multiple of 64.
    4. The predicted peak is the sum of its tags.
    5. What a transfer is writing or reading stays untouched until it was waited for; what comes back is what went out.
    6. When a phase ends, every piece of a paged tensor is in the file as it was written last. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "backends/backend.h"
#include "base/files/transfer_file.h"
#include "base/numbers/checked.h"
#include "base/text/text.h"
#include "transform/transform.h"

enum space {
    SPACE_NONE,         /* the operand is absent */
    SPACE_TENSOR_ARENA, /* offset from the tensor arena's start */
    SPACE_WORKER,       /* offset from the start of the worker's slice buffers */
    SPACE_PAGE,         /* offset from the tensor arena's start, of the rows that the instruction works on */
    SPACE_BATCH,        /* column `offset` of the current batch */
};

struct place {
    uint64_t space : 8; /* enum space; shares 8 bytes with offset: thousands of layers have 100,000 places */
    uint64_t offset : 56;
    uint64_t row_bytes;  /* CUT operands: bytes per row; 0: the address is the same for every slice */
    uint64_t part_bytes; /* SUM outputs with partial sums: bytes between the partials of two parts; 0: no partials */
};

/* One kernel call inside an instruction. */
struct task {
    const struct node *node;
    const struct kernel *kernel;
    struct place *input, *output; /* one place per input and output of the node */
    struct sum_order sums;        /* of the node; the kernel is called leaf by leaf */
    uint64_t scratch;             /* offset in the worker's buffers */
    uint64_t pack;                /* offset in the tensor arena; used if kernel->pack_bytes is not 0 */
};

/* Adds the partial sums of all parts, from first to last: to[i] = p0[i] + p1[i] + ... */
struct fold {
    uint64_t from, stride, to; /* offsets in the tensor arena; bytes between two partials */
    int64_t count;             /* elements */
    int parts;
    enum type type;
};

/* COMPUTE runs tasks. The others move the bytes of one transfer, while instructions behind them compute. */
enum instruction_kind {
    INSTRUCTION_COMPUTE, /* a chain over its units */
    INSTRUCTION_OUT,     /* begins to write the value to the scratch file */
    INSTRUCTION_IN,      /* begins to read it back */
    INSTRUCTION_WAIT,    /* until the one that was begun last is done */
};

/* A value that leaves the tensor arena between two uses: out, then in. Or a piece of a paged tensor that visits the
   arena: in, then out if it was written. */
struct transfer {
    const struct tensor *tensor;
    int piece;            /* of a paged tensor; NOT_PAGED: a value */
    uint64_t from, to;    /* offsets in the tensor arena: of what goes out, and of what comes in; of a piece the same */
    uint64_t file_offset; /* these four are multiples of TRANSFER_ALIGNMENT */
    uint64_t bytes;
};

#define NOT_PAGED (-1)

/* Where a paged weight or state lies in the scratch file: in pieces of whole rows, because one that is updated row by
   row need not be in the arena as a whole. */
struct home {
    int pieces;            /* 0: the tensor is not paged */
    bool shared;           /* two graphs use it: it has one piece */
    int64_t extent, grain; /* piece i has the rows from piece_begin(extent, grain, i, pieces) on */
    uint64_t row_bytes;
    uint64_t file_offset; /* of piece 0 */
};

static inline uint64_t home_first(const struct home *home, int piece)
{
    return (uint64_t)piece_begin(home->extent, home->grain, piece, home->pieces) * home->row_bytes;
}

static inline uint64_t home_bytes(const struct home *home, int piece)
{
    return home_first(home, piece + 1) - home_first(home, piece);
}

/* In the file each piece begins at a multiple of TRANSFER_ALIGNMENT. */
static inline uint64_t home_offset(const struct home *home, int piece)
{
    return home->file_offset + round_up(home_first(home, piece), TRANSFER_ALIGNMENT) +
           (uint64_t)piece * TRANSFER_ALIGNMENT;
}

struct instruction {
    enum instruction_kind kind;
    int transfer;             /* index of the phase's transfer; of COMPUTE it has no meaning */
    bool single_tail;         /* of a slice or leaf that the batch does not fill, rows run one at a time */
    const char *name;         /* "conv2d_1 forward" */
    struct chain chain;       /* extent, units, slices */
    int first_unit, end_unit; /* of the chain: a chain that reads paged tensors may be several instructions in a row */
    struct task *task;
    int task_count;
    struct fold *fold;
    int fold_count;
    uint64_t live_bytes; /* live bytes of the tensor arena while it runs: persistent, instances, workers' buffers */
};

/* An interval of the tensor arena that has one owner from instruction `first` to instruction `last`. */
struct instance {
    const char *name;
    enum tag tag;
    uint64_t bytes, offset;
    int first, last;
};

struct phase {
    const char *name;
    struct graph *graph; /* NULL for save and resume, whose only instance is their buffer */
    struct place *place; /* by tensor id: where the whole tensor lies; SPACE_NONE: nowhere outside slice buffers */
    struct instruction *instruction;
    int instruction_count;
    struct instance *instance;
    int instance_count;
    struct transfer *transfer;
    int transfer_count, spilled_count;   /* of these the values; the others are of paged tensors */
    uint64_t spilled_bytes, paged_bytes; /* that a step writes and reads; paged: the sum of both ways */
    uint64_t scratch_file_bytes;         /* up to the end of what the transfers need */
    uint64_t max_live;                   /* largest live total of the instances: lower bound of any packing */
    uint64_t top;                        /* bytes that the packing needs, counted from persistent_bytes */
    uint64_t worker_bytes;               /* slice buffers and scratch of one worker */
    int peak;                            /* index of the instruction with the peak */
    float *seconds;             /* by instruction: the least that it took in a run that was timed; 0: in none */
    uint64_t by_tag[TAG_COUNT]; /* bytes of the tensor arena at the peak */
};

enum { PHASE_TRAIN, PHASE_EVALUATE, PHASE_SAVE, PHASE_RESUME, PHASE_COUNT };

struct program {
    struct arena arena; /* holds the tables; its tag is TAG_PLANNER */
    struct backend *backend;
    int threads;                     /* workers: at most program_input.threads, and no more than have work */
    struct phase phase[PHASE_COUNT]; /* name NULL: the program does not have this phase */
    /* The tensor arena: persistent tensors, then the phases (which overlap), then the workers' buffers. */
    uint64_t tensor_arena_bytes;
    uint64_t workers_offset; /* the buffers of worker w begin at workers_offset + w * worker_bytes */
    uint64_t worker_bytes;
    /* Weights and states: */
    struct tensor **persistent;
    uint64_t *persistent_offset; /* of one that is not paged */
    struct home *home;           /* NULL: nothing is paged */
    int persistent_count, paged_count;
    uint64_t persistent_bytes; /* of those that are not paged */
    uint64_t homes_bytes;      /* of the scratch file: it begins with what is paged */
    /* Where a piece of a paged tensor lies while no phase runs (first values, checkpoints): behind the buffer of
       save. */
    uint64_t window_offset, window_bytes;
    /* Of the phase that has the most: */
    uint64_t scratch_file_bytes;
    int transfer_count;
    const char *scratch_folder; /* of program_input */
};

/* NULL: this weight or state is not paged. */
static inline const struct home *program_home(const struct program *program, int i)
{
    return program->home && program->home[i].pieces ? &program->home[i] : NULL;
}

/* The size of the last batch of an epoch is unknown, so the rest that does not fill a slice (of a sum: a leaf) runs
   sample by sample. */
#define LAST_BATCH_ANY (-1)

/* A value that leaves, or a weight or state that is paged. waits: the step waits for the disk, so that the bytes are
   free for as long as nobody needs them; otherwise they go and come while others compute, for which there must be
   time. */
struct spilled {
    int tensor;
    bool waits;
};

struct program_input {
    struct budget *budget;
    struct backend *backend;
    int threads;
    struct graph *train, *evaluate; /* either may be NULL; weights and states are matched by name */
    int64_t last_batch_train,
        last_batch_evaluate; /* samples in the last batch of an epoch; 0: all full; LAST_BATCH_ANY */
    uint64_t save_buffer_bytes;
    const struct spilled *spilled; /* tensors of the training graph that leave the arena between two uses */
    int spilled_count;
    const char *scratch_folder; /* where they lie meanwhile; NULL if there are none */
    bool keeps_results;         /* reading a paged tensor leaves results as they are */
    bool size_only;             /* the plan is only measured, never run: plan_verify is skipped */
};

/* Makes the plan (chains, kernels, lifetimes, offsets) and verifies it. */
plim_status program_make(struct program **out, const struct program_input *input, plim_error *error);
void program_free(struct program *program);

/* The number of tasks whose kernel's implementation name begins with `word`, e.g. "onednn". "reference" kernels are
   plain C, which is correct and slow. */
int program_kernels(const struct program *program, const char *word);

/* Symbolic replay of one phase. The message of PLIM_INTERNAL says what is wrong. */
plim_status plan_verify(const struct program *program, const struct phase *phase, plim_error *error);

/* Packs the instances greedily (TWA order first, layout.c): sets the offset of each instance, counted from 0, and
   returns the top. Sizes are rounded up to LAYOUT_ALIGNMENT. */
#define LAYOUT_ALIGNMENT ((uint64_t)64)
uint64_t layout_bytes(uint64_t bytes);
plim_status layout_pack(uint64_t *top, struct instance *instance, int count, struct budget *budget, plim_error *error);
/* The lower bound of any packing. peak: the instruction that reaches it. live: the live bytes at each instruction. */
uint64_t layout_max_live(uint64_t *live, const struct instance *instance, int count, int instructions, int *peak);

/* The predicted memory of the whole process. `outside` (program_predict) holds the bytes outside the tensor arena that
   the caller knows: batches, pipeline, stacks, checkpoint, formats, ... */
struct prediction {
    uint64_t by_tag[TAG_COUNT];
    uint64_t peak;
    const char *peak_at;
};
/* The same for the tensor arena alone: the tags sum to tensor_arena_bytes. Bytes without an owner at the peak count
   as activations. */
void program_tensor_arena_tags(uint64_t by_tag[TAG_COUNT], const char **peak_at, const struct program *program);
/* program NULL: data is read, and nothing else runs. */
void program_predict(struct prediction *out, const struct program *program, const uint64_t outside[TAG_COUNT]);

/* Prints every instruction, instance and offset, for people and for golden files. */
void program_print(struct text *out, const struct program *program);

#endif
