/* backend.h - who computes. A backend turns a node and a slice size into a
   kernel: a function with everything it needs already made. Kernels are keyed by
   op, attributes, shapes and slice, so equal layers share one.

   A kernel runs slices in any thread, several at once, and keeps no state of
   its own: its scratch is the worker's, its pack the instruction's. */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include <stdatomic.h>

#include "base/status.h"
#include "graph/op.h"

struct kernel {
    const char *implementation; /* "own avx512", "onednn jit:avx512_core", "reference" */
    void (*run)(const struct kernel *kernel, const struct call *call);
    size_t scratch_bytes; /* a worker */
    /* Done once an instruction, before its slices: re-lays inputs (weights)
       into `pack`. pack_units pieces may run in parallel. */
    size_t pack_bytes;
    int pack_units;
    void (*pack)(const struct kernel *kernel, const struct call *whole, int unit, void *pack);
    /* Where elements are made alone, each of those at its place in operands that are all alike: the same for rows of
       one element (call.count stays that of the batch), so that workers can share a slice. Else NULL. Runs begin at
       multiples of EACH_GRAIN. */
    const struct kernel *each;
};
#define EACH_GRAIN 512

struct backend;
struct batch;
struct code_range;
struct machine;
struct phase;

/* What a kernel is for: calls of at most `slice` rows of the node (of a node with sums: a leaf). `short_rows`
   (short_count of them) are all other lengths that will be asked for: pieces differ by a grain, and the last batch may
   end anywhere. */
struct kernel_request {
    const struct node *node;
    int64_t slice;
    const int64_t *short_rows;
    int short_count;
};

struct backend_type {
    const char *name; /* "cpu", "reference" */
    plim_status (*open)(struct backend **out, struct budget *budget, plim_error *error);
    void (*close)(struct backend *backend);
    /* The backend owns the kernel, and keeps nothing of `request` itself. */
    plim_status (*prepare)(const struct kernel **out, struct backend *backend, const struct kernel_request *request,
                           plim_error *error);
    /* Runs at the start of each worker thread; may be NULL. */
    void (*thread_start)(void);
    /* What bits depend on, in at most 31 characters: "avx512", "avx512 onednn-2.6.3". It is final once
       all kernels are prepared. */
    const char *(*features)(const struct backend *backend);
    /* What the machine does at best in a nanosecond, for shares of it; may be NULL. Operations (a multiply-add is two)
       of a loop of multiply-adds in registers; bytes of one that reads two thirds of `room` and writes the last
       third. */
    double (*peak_operations)(const struct backend *backend);
    double (*peak_bytes)(const struct backend *backend, void *room, size_t bytes);
    /* Where kernels lie in our code that nobody will run: those for other processors, and those that this backend has
       not prepared (NULL: none is). No page of theirs is touched but at the edges, so they are not counted as memory.
       Room for `most`; may be NULL. */
    int (*unused_code)(struct code_range *out, int most, const struct backend *backend);
    /* Runs a whole phase in the place of the machine's own loop over instructions, for a backend that records a phase
       once and replays it; may be NULL. `batch` and `phase` are the machine's (train/trainer.h, plan/plan.h). */
    plim_status (*run_phase)(struct backend *backend, struct machine *machine, const struct phase *phase,
                             const struct batch *batch, plim_error *error);
};

struct backend {
    const struct backend_type *type;
    int threads;       /* how many will run kernels at once; 0: as many as processors */
    atomic_int failed; /* the first plim_status that a kernel could not go on with; stays */
    uint64_t
        missing_bytes; /* of a library that the budget has no room for, or 0. Other kernels stand in its place, so that the
                               plan can tell about how much the job needs; it cannot be run */
};

/* Said before prepare: kernels that hold things for each thread hold this many. */
static inline void backend_threads(struct backend *backend, int threads)
{
    backend->threads = threads;
}

/* Kernels return nothing: one that cannot do its work leaves its outputs alone and says so here. */
void backend_fail(struct backend *backend, plim_status status);
/* After a step, before its results are used or saved: whether every kernel so far did its work. */
plim_status backend_check(struct backend *backend, plim_error *error);

#define BACKEND(name) extern const struct backend_type name##_backend;
#include "backends/backends.def"
#undef BACKEND

/* The first of backends.def. */
const struct backend_type *backend_standard(void);
/* unused_code of all backends, of which `backend` (or NULL) is the one that is open. */
#define MOST_UNUSED 64
int backends_unused_code(struct code_range *out, const struct backend *backend);

#endif
