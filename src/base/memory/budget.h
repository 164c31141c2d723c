/* budget.h - the only allocator. Every byte has a tag; none passes the limit.

   Small blocks come from chunks of its own (blocks.h), blocks of
   BUDGET_MAP_BYTES and more from mmap, so that giving them back gives them back
   to the system; malloc is not used at all. Bytes that we
   do not allocate ourselves (code, libraries, page tables) are *reserved*
   under the tags process and kernel: they count, but have no address. */
#ifndef BASE_MEMORY_BUDGET_H
#define BASE_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The order is the order in which plans print them. */
/* clang-format off */
#define BUDGET_TAGS(X)          \
    X(PROCESS, process)         \
    X(KERNEL, kernel)           \
    X(STACKS, stacks)           \
    X(WEIGHTS, weights)         \
    X(OPTIMIZER, optimizer)     \
    X(GRADIENTS, gradients)     \
    X(ACTIVATIONS, activations) \
    X(SCRATCH, scratch)         \
    X(BATCHES, batches)         \
    X(PIPELINE, pipeline)       \
    X(FORMATS, formats)         \
    X(CACHE, cache)             \
    X(CHECKPOINT, checkpoint)   \
    X(SPILL, spill)             \
    X(PLANNER, planner)

enum tag {
#define X(upper, lower) TAG_##upper,
    BUDGET_TAGS(X)
#undef X
    TAG_COUNT
};
/* clang-format on */

const char *tag_name(enum tag tag);

#define BUDGET_MAP_BYTES ((size_t)4096)
#define BUDGET_UNLIMITED UINT64_MAX

struct budget;

struct budget_usage {
    uint64_t limit, now, peak;
    uint64_t now_by_tag[TAG_COUNT], peak_by_tag[TAG_COUNT];
    uint64_t takes; /* how many blocks were ever taken: must stand still in a step */
};

/* The budget's own struct is the first block it counts. */
plim_status budget_make(struct budget **out, uint64_t limit_bytes, plim_error *error);
/* In debug builds it is an error of ours to free a budget that still holds
   blocks: tests check budget_usage(now) first. */
void budget_free(struct budget *budget);

/* Changes the limit; refused (OVER_BUDGET) when more than that is held. */
plim_status budget_limit(struct budget *budget, uint64_t limit_bytes, plim_error *error);

/* While a job is opened and planned nobody knows yet what code, libraries and their heaps will take. From here on the
   limit holds for the system's figure of the whole process instead: a block is refused when resident memory and page
   tables would pass the limit with it. PLIM_OVER_BUDGET when they do already. */
plim_status budget_bind_process(struct budget *budget, uint64_t limit_bytes, plim_error *error);
/* Back to what the ledger counts; the limit stays. */
void budget_unbind_process(struct budget *budget);
/* Whether somebody else (a library) may allocate this much now; always, where the process is not bound. */
plim_status budget_outside(struct budget *budget, uint64_t bytes, const char *what, plim_error *error);

/* Zeroed bytes aligned to 64, or NULL (limit reached, no memory, fault).
   bytes == 0 gives a valid pointer. Thread-safe. */
void *budget_take(struct budget *budget, enum tag tag, size_t bytes);
/* The same for count * size, checked for overflow. */
void *budget_take_array(struct budget *budget, enum tag tag, size_t count, size_t size);
/* Gives back a block; `bytes` must be what was taken. NULL is fine. */
void budget_give(struct budget *budget, enum tag tag, void *block, size_t bytes);
/* A larger block with the old one's bytes, or NULL (the old one is kept). */
void *budget_grow(struct budget *budget, enum tag tag, void *block, size_t old_bytes, size_t new_bytes);

/* What a block of this size costs: the size rounded up to steps, or to pages. */
uint64_t budget_charge(size_t bytes);

/* Whether the system would give this much more right now, counted nowhere. For
   libraries that do not survive a failed allocation: ask before they do. */
bool budget_probe(size_t bytes);

/* Counts bytes that somebody else allocates. */
plim_status budget_reserve(struct budget *budget, enum tag tag, uint64_t bytes, plim_error *error);
void budget_release(struct budget *budget, enum tag tag, uint64_t bytes);

struct budget_usage budget_usage(const struct budget *budget);

/* The error to return when budget_take said NULL: OVER_BUDGET when the limit
   was in the way, NO_MEMORY when the system was. */
plim_status budget_refused(struct budget *budget, enum tag tag, uint64_t bytes, plim_error *error);

/* Bytes that malloc holds for anybody in the process, libraries included:
   must stand still from step to step. */
uint64_t budget_heap_bytes(void);
/* Gives back to the system what malloc holds and nobody uses, as far as whole pages of it are free. */
void budget_trim_heap(void);

#endif
