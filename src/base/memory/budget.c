/* budget.c - the ledger of allocated bytes and its two sources of memory: chunks for small blocks (blocks.h) and mmap.

   1. A block is charged what it costs: small blocks in multiples of 64 bytes, mapped blocks in whole pages. The charge
      depends on the size alone, so freeing needs no header in front of a block.
   2. now <= limit, always; now is the sum of now_by_tag.
   3. Where the process is bound (budget_bind_process), the memory usage that the system last reported plus the bytes
      allocated since then stay within the limit, too.
   4. The lock is held while a block is allocated, so the peak counts only blocks that existed. No thread waits for the
      lock in a training step because a step allocates no blocks. */
#include "base/memory/budget.h"
#include "base/memory/budget_alloc.h"
#include "base/memory/work.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/memory/blocks.h"
#include "base/memory/budget_need.h"
#include "base/memory/budget_stop.h"
#include "base/memory/limits.h"
#include "base/numbers/checked.h"
#include "base/text/text.h"
#include "base/threads/stop.h"

#define ALIGNMENT BLOCKS_STEP
_Static_assert(BUDGET_MAP_BYTES == BLOCKS_MOST, "a block is either small or mapped");
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define TOUCH_BYTES ((size_t)64 * 1024 * 1024) /* between two checks of the stop flag: about 20 ms */

/* Memory usage of the whole process as the system counts it. Reading it takes from 50 us to milliseconds, so up to
   `trusted` bytes are allocated between two readings: at most half of the free memory that the last reading found. Far
   from the limit, read_process reads an upper bound instead because that is cheap. */
struct process_bound {
    bool on;
    uint64_t resident; /* RSS and page tables at the last reading, plus the bytes allocated since */
    uint64_t trusted;  /* bytes that may be allocated before the next reading */
};

#define TRUSTED_MOST ((uint64_t)1 << 20)

struct budget {
    pthread_mutex_t lock;
    struct budget_usage usage;
    uint64_t work; /* work.h */
    uint64_t held; /* number of blocks allocated now; the budget's own block is not counted */
    struct blocks blocks;
    struct process_bound process;
    const struct stop *stop;  /* or NULL */
    atomic_bool stop_refuses; /* a stop also refuses blocks and file transfers (budget_stop.h) */
    /* Why the last block was refused. It is stored because memory that is freed later must not change the answer. */
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

static bool stopped(const struct budget *budget)
{
    return budget->stop && stop_asked(budget->stop);
}

static bool stop_refuses(const struct budget *budget)
{
    return stopped(budget) && atomic_load_explicit(&budget->stop_refuses, memory_order_relaxed);
}

static bool touch_part(unsigned char *block, size_t bytes)
{
    if (madvise(block, bytes, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno == ENOMEM || errno == EFAULT)
        return false;
    /* Kernels before 5.14 do not know MADV_POPULATE_WRITE. */
    size_t step = page_bytes();
    for (size_t i = 0; i < bytes; i += step)
        ((volatile unsigned char *)block)[i] = 0;
    return true;
}

/* Makes every page resident. False: the system has no memory for them, or a stop refuses them. It is better to fail
   here than in the middle of a training step. */
static bool touch(const struct budget *budget, unsigned char *block, size_t bytes)
{
    bool touched = true;
    for (size_t at = 0; at < bytes && touched; at += TOUCH_BYTES) {
        touched = !budget || !stop_refuses(budget);
        touched = touched && touch_part(block + at, bytes - at < TOUCH_BYTES ? bytes - at : TOUCH_BYTES);
    }
    return touched;
}

static void *map_block(const struct budget *budget, size_t bytes)
{
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    if (!touch(budget, block, bytes)) {
        munmap(block, bytes);
        return NULL;
    }
    return block;
}

/* The block is mapped and never touched, so it costs address space for a moment and no page. */
bool budget_probe(size_t bytes)
{
    int error_number = fault_at(FAULT_ALLOCATE);
    if (error_number)
        return false;
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block != MAP_FAILED && munmap(block, bytes) == 0;
}

/* budget: NULL while the budget itself is being created. */
static void *allocate(const struct budget *budget, struct blocks *blocks, size_t bytes)
{
    int error_number = fault_at(FAULT_ALLOCATE);
    if (error_number) {
        errno = error_number;
        return NULL;
    }
    return bytes >= BUDGET_MAP_BYTES ? map_block(budget, budget_charge(bytes)) : blocks_take(blocks, bytes);
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
    return charge <= budget->usage.limit - budget->usage.now;
}

static uint64_t process_room(const struct budget *budget)
{
    uint64_t limit = budget->usage.limit, resident = budget->process.resident;
    return limit > resident ? limit - resident : 0;
}

/* Usage that cannot be read counts as 0 and refuses nothing, because the measurement at the end of planning reports
   the failure. */
static void read_process(struct budget *budget, bool exact)
{
    struct process_usage now;
    uint64_t limit = budget->usage.limit, most = exact ? 0 : process_usage_at_most();
    if (most && most <= limit - limit / 8)
        budget->process.resident = most;
    else
        budget->process.resident = process_usage_now(&now) ? now.rss + now.page_tables : 0;
    uint64_t half = process_room(budget) / 2;
    budget->process.trusted = half < TRUSTED_MOST ? half : TRUSTED_MOST;
}

/* Whether the whole process stays within the limit with `charge` more bytes. */
static bool process_fits(struct budget *budget, uint64_t charge)
{
    if (!budget->process.on || charge <= budget->process.trusted)
        return true;
    read_process(budget, false);
    if (charge > process_room(budget))
        read_process(budget, true);
    return charge <= process_room(budget);
}

/* Counts the bytes of a new block until the next reading includes them. */
static void process_taken(struct budget *budget, uint64_t charge)
{
    struct process_bound *process = &budget->process;
    process->resident = add_most(process->resident, charge);
    process->trusted -= charge < process->trusted ? charge : process->trusted;
}

static void note_refusal(struct budget *budget, bool by_limit, uint64_t charge)
{
    budget->refusal.by_limit = by_limit;
    budget->refusal.charge = charge;
    budget->refusal.now = budget->process.on ? budget->process.resident : budget->usage.now;
}

static void add(struct budget *budget, enum tag tag, uint64_t charge)
{
    struct budget_usage *usage = &budget->usage;
    usage->now += charge;
    usage->now_by_tag[tag] += charge;
    if (usage->now > usage->peak)
        usage->peak = usage->now;
    if (usage->now_by_tag[tag] > usage->peak_by_tag[tag])
        usage->peak_by_tag[tag] = usage->now_by_tag[tag];
}

static void subtract(struct budget *budget, enum tag tag, uint64_t charge)
{
    assert(budget->usage.now_by_tag[tag] >= charge);
    budget->usage.now -= charge;
    budget->usage.now_by_tag[tag] -= charge;
}

/* `blocks` is copied first because the ledger, which contains it, is itself one of the blocks that are freed. */
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
    struct blocks blocks = {.at = NULL}; /* the ledger is its first block, and then contains it */
    struct budget *budget = allocate(NULL, &blocks, sizeof *budget);
    if (!budget)
        return fail(error, PLIM_NO_MEMORY, "the system has no memory for the ledger of the budget");
    budget->blocks = blocks;
    if (pthread_mutex_init(&budget->lock, NULL) != 0) {
        end_blocks(budget);
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the ledger of the budget");
    }
    budget->usage.limit = limit_bytes;
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
    uint64_t now = budget->usage.now;
    if (now <= limit_bytes)
        budget->usage.limit = limit_bytes;
    pthread_mutex_unlock(&budget->lock);
    if (now <= limit_bytes)
        return PLIM_OK;
    char now_text[16], limit_text[16];
    text_size(now_text, now);
    text_size(limit_text, limit_bytes);
    return fail(error, PLIM_OVER_BUDGET, "%s are taken already, more than the new limit of %s", now_text, limit_text);
}

plim_status budget_bind_process(struct budget *budget, uint64_t limit_bytes, plim_error *error)
{
    TRY(budget_limit(budget, limit_bytes, error));
    pthread_mutex_lock(&budget->lock);
    budget->process.on = true;
    read_process(budget, false);
    if (budget->process.resident > limit_bytes)
        read_process(budget, true);
    uint64_t resident = budget->process.resident;
    pthread_mutex_unlock(&budget->lock);
    if (resident <= limit_bytes)
        return PLIM_OK;
    char resident_text[16], limit_text[16];
    text_size(resident_text, resident);
    text_size(limit_text, limit_bytes);
    return fail(error, PLIM_OVER_BUDGET, "the process itself takes %s already, the budget is %s", resident_text,
                limit_text);
}

void budget_unbind_process(struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    budget->process.on = false;
    pthread_mutex_unlock(&budget->lock);
}

bool budget_has_room(struct budget *budget, uint64_t bytes)
{
    pthread_mutex_lock(&budget->lock);
    bool has = fits(budget, bytes) && process_fits(budget, bytes);
    pthread_mutex_unlock(&budget->lock);
    return has;
}

uint64_t budget_room(struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    uint64_t room = budget->usage.limit - budget->usage.now, process = room;
    if (budget->process.on) {
        read_process(budget, true);
        process = process_room(budget);
    }
    pthread_mutex_unlock(&budget->lock);
    return room < process ? room : process;
}

plim_status budget_outside(struct budget *budget, uint64_t bytes, const char *what, plim_error *error)
{
    char bytes_text[16], now_text[16], limit_text[16];
    pthread_mutex_lock(&budget->lock);
    bool bound = budget->process.on;
    if (bound)
        read_process(budget, false);
    if (bound && bytes > process_room(budget))
        read_process(budget, true);
    uint64_t room = process_room(budget), resident = budget->process.resident, limit = budget->usage.limit;
    budget->process.trusted = 0; /* the next block needs a reading, because the caller allocates these bytes */
    pthread_mutex_unlock(&budget->lock);
    if (!bound || bytes <= room)
        return PLIM_OK;
    text_size(bytes_text, bytes);
    text_size(now_text, resident);
    text_size(limit_text, limit);
    return fail(error, PLIM_OVER_BUDGET, "%s takes %s, which do not fit: %s of %s are taken", what, bytes_text,
                now_text, limit_text);
}

void *budget_take(struct budget *budget, enum tag tag, size_t bytes)
{
    uint64_t charge = budget_charge(bytes);
    pthread_mutex_lock(&budget->lock);
    bool room = fits(budget, charge) && process_fits(budget, charge), stopped = stop_refuses(budget);
    void *block = room && !stopped ? allocate(budget, &budget->blocks, bytes) : NULL;
    if (block) {
        add(budget, tag, charge);
        process_taken(budget, charge);
        budget->usage.takes++;
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

void work_count(struct budget *budget, uint64_t steps)
{
    pthread_mutex_lock(&budget->lock);
    budget->work += steps;
    pthread_mutex_unlock(&budget->lock);
}

uint64_t work_counted(struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    uint64_t steps = budget->work;
    pthread_mutex_unlock(&budget->lock);
    return steps;
}

struct budget_usage budget_usage(const struct budget *budget)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&budget->lock; /* the caller sees a read as const */
    pthread_mutex_lock(lock);
    struct budget_usage usage = budget->usage;
    pthread_mutex_unlock(lock);
    return usage;
}

/* Whether the limit refused the allocation; false: the system had no memory. If `charge` fits by now because others
   have freed memory, the outputs describe the block that was refused. bound: the limit is that of the whole process. */
static bool over_limit(uint64_t *charge, uint64_t *bytes, uint64_t *now, bool *bound, struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    *bound = budget->process.on;
    bool this_one = !fits(budget, *charge), last_one = budget->refusal.by_limit;
    *now = budget->process.on ? budget->process.resident : budget->usage.now;
    if (!this_one && last_one) {
        *charge = *bytes = budget->refusal.charge;
        *now = budget->refusal.now;
    }
    budget->refusal.by_limit = false; /* reported: it explains no later refusal */
    pthread_mutex_unlock(&budget->lock);
    return this_one || last_one;
}

plim_status budget_refused(struct budget *budget, enum tag tag, uint64_t bytes, plim_error *error)
{
    if (stop_refuses(budget))
        return budget_go_on(budget, error);
    struct budget_usage usage = budget_usage(budget);
    uint64_t charge = bytes >= SIZE_MAX ? bytes : budget_charge(bytes);
    char bytes_text[16], now_text[16], limit_text[16], needed_text[16];
    bool bound, by_limit = over_limit(&charge, &bytes, &usage.now, &bound, budget);
    text_size(bytes_text, bytes);
    text_size(now_text, usage.now);
    text_size(limit_text, usage.limit);
    if (!by_limit)
        return fail(error, PLIM_NO_MEMORY, "the system has no memory for %s of %s (%s taken so far)", bytes_text,
                    tag_name(tag), now_text);
    fail(error, PLIM_OVER_BUDGET, "%s more for %s do not fit: %s of %s are taken", bytes_text, tag_name(tag), now_text,
         limit_text);
    if (bound || !add_u64(&charge, charge, usage.now)) /* no hint: a job that is being planned will need more */
        return PLIM_OVER_BUDGET;
    text_size(needed_text, charge);
    return hint(error, PLIM_OVER_BUDGET, "a budget of %s would have held this", needed_text);
}

plim_status budget_alloc(void *out, struct budget *budget, enum tag tag, size_t bytes, plim_error *error)
{
    void *block = budget_take(budget, tag, bytes);
    if (!block)
        return budget_refused(budget, tag, bytes, error);
    memcpy(out, &block, sizeof block); /* `out` points at a pointer of another type */
    return PLIM_OK;
}

/* ---- stopping ---- */

void budget_watch_stop(struct budget *budget, const struct stop *stop)
{
    budget->stop = stop;
}

plim_status budget_go_on(const struct budget *budget, plim_error *error)
{
    return stopped(budget) ? fail(error, PLIM_INTERRUPTED, "stopped") : PLIM_OK;
}

bool budget_stop_refuses(struct budget *budget, bool refuses)
{
    return atomic_exchange(&budget->stop_refuses, refuses);
}

plim_status budget_may_transfer(const struct budget *budget, plim_error *error)
{
    return stop_refuses(budget) ? budget_go_on(budget, error) : PLIM_OK;
}

uint64_t budget_heap_bytes(void)
{
    struct mallinfo2 heap = mallinfo2();
    return (uint64_t)heap.uordblks + (uint64_t)heap.hblkhd;
}

void budget_trim_heap(void)
{
    malloc_trim(0);
}
