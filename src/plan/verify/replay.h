/* replay.h - the symbolic replay of a phase, which plan_verify is made of: what is where at the current instruction.

   replay.c keeps the state: instances, copies of tensors, versions. replay_tasks.c runs the tasks of an instruction on
   it, replay_transfers.c what moves to and from the disk. */
#ifndef PLAN_VERIFY_REPLAY_H
#define PLAN_VERIFY_REPLAY_H

#include "base/files/transfer_file.h"
#include "plan/offset_set.h"
#include "plan/plan_builder.h"

/* Where a whole copy of a tensor lies at the current instruction. */
struct copy {
    enum space space; /* SPACE_NONE: there is no copy */
    uint64_t offset, bytes;
    bool rows_only; /* written as PART_CUT in this instruction: a slice may read its own rows only */
    int piece;      /* of a paged tensor: the rows that there are */
};

/* An access to one operand in the tensor arena, for rule 3. */
struct access {
    uint64_t offset, bytes, row_bytes;
    bool write;
    const struct node *node;
};

/* Where the value of a transfer is. */
enum whereabouts { IN_ARENA, GOING_OUT, ON_DISK, COMING_IN, IS_BACK };
struct moving {
    enum whereabouts where;
    int owner;   /* instance whose bytes are written or read */
    int version; /* of the tensor that went out */
};

struct replay {
    const struct program *program;
    const struct phase *phase;
    struct arena work;
    struct copy *copy;        /* by tensor id */
    struct offset_set held;   /* tensors with a copy in an instance of the tensor arena */
    struct offset_set slices; /* tensors in the worker's slice buffers during the current instruction */
    int *version;             /* by tensor id: number of updates so far */
    int *expected;            /* by node id * MOST_INPUTS + i: the version that the node reads in program order */
    bool *ran;                /* by node id */
    const struct instruction *begun; /* the first instruction of a chain of which units are left; NULL: there is none */
    int end_unit;                    /* that it has come to */
    const struct home **home;        /* by tensor id; NULL: nothing is paged */
    int *page;                       /* by tensor id: of a paged one its first piece in `written` */
    int *written;                    /* by piece of all paged tensors: the version that is in the file */
    struct access *access;           /* accesses of the current instruction */
    int access_count;
    const struct fold **fold; /* folds of the current instruction, sorted by the offset of their partial sums */
    struct moving *moving;    /* by transfer */
    /* Transfers that have begun and were not waited for: their bytes, and by piece of a paged tensor. */
    struct offset_set going_out, coming_in;
    int flying_count;
    bool *flying;
    struct offset_set alive; /* instances that are alive at the current instruction */
    uint64_t alive_bytes;
    /* Lists of instances by the instruction at which they begin and end. Entries are indices + 1; 0: the list's end. */
    int *begins, *ends;         /* by instruction: first of the list */
    int *next_begin, *next_end; /* by instance */
    int at;                     /* index of the current instruction */
    const struct instruction *instruction;
    uint64_t steps; /* number of operands, intervals and accesses examined */
    plim_error *error;
};

#define WRONG(replay, ...) fail((replay)->error, PLIM_INTERNAL, "plan: " __VA_ARGS__)

/* The message begins with the node's op and name. */
__attribute__((format(printf, 3, 4))) plim_status replay_wrong(const struct replay *r, const struct node *node,
                                                               const char *format, ...);

static inline bool updates(const struct node *node, int input)
{
    return node->op->updates >> input & 1;
}

/* NULL: the tensor is not paged. */
static inline const struct home *replay_home(const struct replay *r, const struct tensor *tensor)
{
    return r->home ? r->home[tensor->id] : NULL;
}

/* ---- replay.c ---- */

/* The tables of the phase, in r->work. */
plim_status replay_begin(struct replay *r);
/* Updates the set of live instances for instruction `at`. A new instance must not overlap a live one. The instructions
   are visited in order. */
plim_status replay_enter(struct replay *r, int at);
/* Whether the bytes lie inside one live instance. */
bool replay_owns(const struct replay *r, uint64_t offset, uint64_t bytes);
/* Invalidates every copy that shares a byte with this range. The range cannot overlap a weight, because values lie
   inside instances and instances lie outside the region of the weights. */
void replay_forget(struct replay *r, enum space space, uint64_t offset, uint64_t bytes);
/* From here on the tensor is there, and what was there before is not. */
void replay_record(struct replay *r, const struct tensor *tensor, struct copy copy);

/* ---- replay_tasks.c, replay_transfers.c: the current instruction ---- */

plim_status replay_tasks(struct replay *r);
plim_status replay_transfer(struct replay *r);
/* Regions of the scratch file are apart. */
plim_status replay_check_transfers(const struct replay *r);
plim_status replay_check_homes(const struct replay *r);

#endif
