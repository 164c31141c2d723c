/* budget.c - the ledger and the two sources of bytes behind it.

   1. A block is charged what it costs: small ones in steps of 64 bytes, mapped
      ones in whole pages. The charge is a function of the size alone, so that
      giving back needs no header in front of a block.
   2. now <= limit, always; now is the sum of now_by_tag.
   3. The lock is held while a block is made: the peak is of blocks that really
      existed. Nothing takes blocks inside a training step, so nobody waits. */
#include "base/budget.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/blocks.h"
#include "base/checked.h"
#include "base/fault.h"
#include "base/text.h"

#define ALIGNMENT BLOCKS_STEP
_Static_assert(BUDGET_MAP_BYTES == BLOCKS_MOST, "a block is either small or mapped");
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct budget {
    pthread_mutex_t lock;
    struct budget_figures figures;
    uint64_t held; /* blocks that are taken now; the budget's own is not one of them */
    struct blocks blocks;
    /* Why the last block was not to be had: what was given back since must not change the answer. */
    struct {
        bool by_limit;
        uint64_t charge, now;
    } refusal;
};

static const char *const tag_names[TAG_COUNT] = {
#define X(upper, lower) #lower,
    BUDGET_TAGS(X)
#undef X
};

const char *tag_name(enum tag tag)
{
    return tag_names[tag];
}

static uint64_t page_bytes(void)
{
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (uint64_t)bytes : 4096;
}

uint64_t budget_charge(size_t bytes)
{
    if (bytes >= BUDGET_MAP_BYTES)
        return round_up(bytes, page_bytes());
    return round_up(bytes ? bytes : 1, ALIGNMENT);
}

/* Every page exists afterwards, or the kernel says that it cannot be: better
   here than in the middle of a step. */
static bool touch(unsigned char *block, size_t bytes)
{
    if (madvise(block, bytes, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno == ENOMEM || errno == EFAULT)
        return false;
    /* A kernel before 5.14 does not know this advice. */
    size_t step = page_bytes();
    for (size_t i = 0; i < bytes; i += step)
        ((volatile unsigned char *)block)[i] = 0;
    return true;
}

static void *map_block(size_t bytes)
{
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    if (!touch(block, bytes)) {
        munmap(block, bytes);
        return NULL;
    }
    return block;
}

/* Mapped and never touched: it costs address space for a moment, and no page. */
bool budget_probe(size_t bytes)
{
    int error_number = fault_at(FAULT_ALLOCATE);
    if (error_number)
        return false;
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block != MAP_FAILED && munmap(block, bytes) == 0;
}

static void *allocate(struct blocks *blocks, size_t bytes)
{
    int error_number = fault_at(FAULT_ALLOCATE);
    if (error_number) {
        errno = error_number;
        return NULL;
    }
    return bytes >= BUDGET_MAP_BYTES ? map_block(budget_charge(bytes)) : blocks_take(blocks, bytes);
}

static void deallocate(struct blocks *blocks, void *block, size_t bytes)
{
    if (bytes >= BUDGET_MAP_BYTES)
        munmap(block, budget_charge(bytes));
    else
        blocks_give(blocks, block, bytes);
}

static bool fits(const struct budget *budget, uint64_t charge)
{
    return charge <= budget->figures.limit - budget->figures.now;
}

static void note_refusal(struct budget *budget, bool by_limit, uint64_t charge)
{
    budget->refusal.by_limit = by_limit;
    budget->refusal.charge = charge;
    budget->refusal.now = budget->figures.now;
}

static void add(struct budget *budget, enum tag tag, uint64_t charge)
{
    struct budget_figures *f = &budget->figures;
    f->now += charge;
    f->now_by_tag[tag] += charge;
    if (f->now > f->peak)
        f->peak = f->now;
    if (f->now_by_tag[tag] > f->peak_by_tag[tag])
        f->peak_by_tag[tag] = f->now_by_tag[tag];
}

static void subtract(struct budget *budget, enum tag tag, uint64_t charge)
{
    assert(budget->figures.now_by_tag[tag] >= charge);
    budget->figures.now -= charge;
    budget->figures.now_by_tag[tag] -= charge;
}

/* The ledger lies in a block of its own. */
static void end_blocks(struct budget *budget)
{
    struct blocks blocks = budget->blocks;
    deallocate(&blocks, budget, sizeof *budget);
    blocks_release(&blocks);
}

plim_status budget_make(struct budget **out, uint64_t limit_bytes, plim_error *error)
{
    uint64_t charge = budget_charge(sizeof(struct budget));
    char limit_text[16];
    text_size(limit_text, limit_bytes);
    if (charge > limit_bytes)
        return fail(error, PLIM_OVER_BUDGET, "a budget of %s has no room for its own ledger", limit_text);
    struct blocks blocks = {.at = NULL}; /* the ledger is its first block, and then holds the rest */
    struct budget *budget = allocate(&blocks, sizeof *budget);
    if (!budget)
        return fail(error, PLIM_NO_MEMORY, "the system has no memory for the ledger of the budget");
    budget->blocks = blocks;
    if (pthread_mutex_init(&budget->lock, NULL) != 0) {
        end_blocks(budget);
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the ledger of the budget");
    }
    budget->figures.limit = limit_bytes;
    add(budget, TAG_PLANNER, charge);
    *out = budget;
    return PLIM_OK;
}

void budget_free(struct budget *budget)
{
    if (!budget)
        return;
    assert(budget->held == 0);
    pthread_mutex_destroy(&budget->lock);
    end_blocks(budget);
}

plim_status budget_limit(struct budget *budget, uint64_t limit_bytes, plim_error *error)
{
    pthread_mutex_lock(&budget->lock);
    uint64_t now = budget->figures.now;
    if (now <= limit_bytes)
        budget->figures.limit = limit_bytes;
    pthread_mutex_unlock(&budget->lock);
    if (now <= limit_bytes)
        return PLIM_OK;
    char now_text[16], limit_text[16];
    text_size(now_text, now);
    text_size(limit_text, limit_bytes);
    return fail(error, PLIM_OVER_BUDGET, "%s are taken already, more than the new limit of %s", now_text, limit_text);
}

void *budget_take(struct budget *budget, enum tag tag, size_t bytes)
{
    uint64_t charge = budget_charge(bytes);
    pthread_mutex_lock(&budget->lock);
    bool room = fits(budget, charge);
    void *block = room ? allocate(&budget->blocks, bytes) : NULL;
    if (block) {
        add(budget, tag, charge);
        budget->figures.takes++;
        budget->held++;
    } else {
        note_refusal(budget, !room, charge);
    }
    pthread_mutex_unlock(&budget->lock);
    return block;
}

void *budget_take_array(struct budget *budget, enum tag tag, size_t count, size_t size)
{
    uint64_t bytes;
    if (!mul_u64(&bytes, count, size) || bytes > SIZE_MAX)
        return NULL;
    return budget_take(budget, tag, bytes);
}

void budget_give(struct budget *budget, enum tag tag, void *block, size_t bytes)
{
    if (!block)
        return;
    pthread_mutex_lock(&budget->lock);
    assert(budget->held > 0);
    deallocate(&budget->blocks, block, bytes);
    subtract(budget, tag, budget_charge(bytes));
    budget->held--;
    pthread_mutex_unlock(&budget->lock);
}

void *budget_grow(struct budget *budget, enum tag tag, void *block, size_t old_bytes, size_t new_bytes)
{
    void *larger = budget_take(budget, tag, new_bytes);
    if (!larger || !block)
        return larger;
    memcpy(larger, block, old_bytes < new_bytes ? old_bytes : new_bytes);
    budget_give(budget, tag, block, old_bytes);
    return larger;
}

plim_status budget_reserve(struct budget *budget, enum tag tag, uint64_t bytes, plim_error *error)
{
    pthread_mutex_lock(&budget->lock);
    bool room = fits(budget, bytes);
    if (room)
        add(budget, tag, bytes);
    else
        note_refusal(budget, true, bytes);
    pthread_mutex_unlock(&budget->lock);
    return room ? PLIM_OK : budget_refused(budget, tag, bytes, error);
}

void budget_release(struct budget *budget, enum tag tag, uint64_t bytes)
{
    pthread_mutex_lock(&budget->lock);
    subtract(budget, tag, bytes);
    pthread_mutex_unlock(&budget->lock);
}

struct budget_figures budget_figures(const struct budget *budget)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&budget->lock; /* reading is const for the caller */
    pthread_mutex_lock(lock);
    struct budget_figures figures = budget->figures;
    pthread_mutex_unlock(lock);
    return figures;
}

/* What the limit was in the way of: this, or, where others have given back what they had by now, the block that was
   refused. False: the system was. */
static bool over_limit(uint64_t *charge, uint64_t *bytes, uint64_t *now, struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    bool this_one = !fits(budget, *charge), last_one = budget->refusal.by_limit;
    *now = budget->figures.now;
    if (!this_one && last_one) {
        *charge = *bytes = budget->refusal.charge;
        *now = budget->refusal.now;
    }
    budget->refusal.by_limit = false; /* told: it explains no later one */
    pthread_mutex_unlock(&budget->lock);
    return this_one || last_one;
}

plim_status budget_refused(struct budget *budget, enum tag tag, uint64_t bytes, plim_error *error)
{
    struct budget_figures figures = budget_figures(budget);
    uint64_t charge = bytes >= SIZE_MAX ? bytes : budget_charge(bytes);
    char bytes_text[16], now_text[16], limit_text[16], needed_text[16];
    bool by_limit = over_limit(&charge, &bytes, &figures.now, budget);
    text_size(bytes_text, bytes);
    text_size(now_text, figures.now);
    text_size(limit_text, figures.limit);
    if (!by_limit)
        return fail(error, PLIM_NO_MEMORY, "the system has no memory for %s of %s (%s taken so far)", bytes_text,
                    tag_name(tag), now_text);
    fail(error, PLIM_OVER_BUDGET, "%s more for %s do not fit: %s of %s are taken", bytes_text, tag_name(tag), now_text,
         limit_text);
    if (!add_u64(&charge, charge, figures.now))
        return PLIM_OVER_BUDGET;
    text_size(needed_text, charge);
    return hint(error, PLIM_OVER_BUDGET, "a budget of %s would have held this", needed_text);
}

uint64_t budget_heap_bytes(void)
{
    struct mallinfo2 heap = mallinfo2();
    return (uint64_t)heap.uordblks + (uint64_t)heap.hblkhd;
}
