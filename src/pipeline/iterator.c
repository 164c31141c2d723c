/* iterator.c - batches in order: a fixed ring of slots, and a thread that reads ahead.

   1. released <= taken <= filled <= released + slots. [released, taken) is the one
      the caller holds, [taken, filled) are ready, the rest is the reader's to fill.
   2. Who has set `busy` owns slot filled % slots and the filler; everything else is
      under the lock. That is the reader, or the caller when nothing is ready and the
      reader sleeps: it reads the batch itself instead of waiting for a wake-up.
   3. Positions are all there is to know: seeking throws the ready ones away and
      sets two cursors. Nothing is taken after opening.
   4. An error stops the reader at its batch. The caller meets it there, after the
      good ones before it, and again until it seeks. */
#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/workers.h"
#include "pipeline/fill.h"

#define MOST_SLOTS          1025
#define MOST_POSITION       ((int64_t)1 << 61) /* in data without end: leaves room for skips */

struct cursor_position {
    int64_t epoch, step;
};

struct iterator {
    struct dataset *dataset;
    struct budget *budget;
    size_t bytes; /* of this block, slots included */
    int slot_count;
    int64_t steps, last_batch;
    uint8_t *ring;
    size_t ring_bytes;
    struct thread *thread; /* NULL: batches are read by the caller */
    bool has_lock;
    pthread_mutex_t lock;
    pthread_cond_t reader_wakes, caller_wakes;

    uint64_t filled, taken, released;
    struct cursor_position reading, giving; /* the next batch to be read; to be given */
    bool stop, seeking, busy, reader_sleeps, caller_sleeps;
    atomic_bool cancel; /* makes the reader give up the batch it is in */
    plim_status failed;
    plim_error error;
    struct iterator_figures figures;
    uint64_t bytes_read_before;

    struct filler filler;
    struct batch slot[];
};

/* ---- costs ---- */

static uint64_t ring_bytes(const struct filler *filler, int slots)
{
    uint64_t bytes;
    return mul_u64(&bytes, filler->slot_bytes, (uint64_t)slots) ? bytes : UINT64_MAX;
}

static size_t iterator_bytes(int slots)
{
    return sizeof(struct iterator) + (size_t)slots * sizeof(struct batch);
}

static struct dataset *first_node(const struct dataset *dataset)
{
    while (dataset->input)
        dataset = dataset->input;
    return (struct dataset *)dataset;
}

static void add(uint64_t *total, uint64_t bytes)
{
    *total = add_most(*total, bytes);
}

void dataset_cost(uint64_t by_tag[TAG_COUNT], uint64_t *scratch_bytes, const struct dataset *dataset, int slots)
{
    struct filler filler;
    if (dataset->error || !dataset->batch_size || slots < 1)
        return;
    filler_init(&filler, dataset, 0);
    add(&by_tag[TAG_BATCHES], budget_charge(ring_bytes(&filler, slots)));
    add(&by_tag[TAG_PIPELINE], budget_charge(iterator_bytes(slots)));
    if (filler.chunk_bytes)
        add(&by_tag[TAG_PIPELINE], budget_charge(filler.chunk_bytes));
    if (slots > 1)
        add(&by_tag[TAG_STACKS], thread_cost());
    if (first_node(dataset)->started)
        return;
    add(&by_tag[TAG_FORMATS], dataset->source->start_bytes);
    if (scratch_bytes)
        add(scratch_bytes, dataset->source->scratch_bytes);
}

/* ---- reading ---- */

static int64_t samples_at(const struct iterator *iterator, int64_t step)
{
    return step == iterator->steps - 1 ? iterator->last_batch : iterator->dataset->batch_size;
}

static plim_status read_batch(struct iterator *iterator, struct cursor_position at, plim_error *error)
{
    uint64_t number = iterator->filled % (uint64_t)iterator->slot_count;
    struct batch *batch = &iterator->slot[number];
    batch->count = samples_at(iterator, at.step);
    batch->epoch = at.epoch;
    batch->step = at.step;
    return filler_fill(&iterator->filler, iterator->ring + number * iterator->filler.slot_bytes, (uint64_t)at.epoch,
                       at.step * iterator->dataset->batch_size, batch->count, &iterator->cancel, error);
}

static void advance(struct cursor_position *at, const struct iterator *iterator)
{
    at->step++;
    if (at->step == iterator->steps)
        *at = (struct cursor_position){.epoch = at->epoch + 1};
}

/* After a batch was read, under the lock where there is one. */
static void settle(struct iterator *iterator, plim_status status)
{
    iterator->failed = status;
    if (status != PLIM_OK)
        return;
    iterator->filled++;
    advance(&iterator->reading, iterator);
}

static bool may_read(const struct iterator *iterator)
{
    return !iterator->busy && !iterator->seeking && iterator->failed == PLIM_OK &&
           iterator->filled - iterator->released < (uint64_t)iterator->slot_count;
}

/* Called and left with the lock held; let go in between. */
static void read_unlocked(struct iterator *iterator)
{
    struct cursor_position at = iterator->reading;
    iterator->busy = true;
    pthread_mutex_unlock(&iterator->lock);
    plim_status status = read_batch(iterator, at, &iterator->error);
    pthread_mutex_lock(&iterator->lock);
    iterator->busy = false;
    if (!iterator->seeking && !iterator->stop)
        settle(iterator, status);
}

static void reader_run(void *context)
{
    struct iterator *iterator = context;
    pthread_mutex_lock(&iterator->lock);
    for (;;) {
        iterator->reader_sleeps = true;
        while (!iterator->stop && !may_read(iterator))
            pthread_cond_wait(&iterator->reader_wakes, &iterator->lock);
        iterator->reader_sleeps = false;
        if (iterator->stop)
            break;
        read_unlocked(iterator);
        if (iterator->caller_sleeps)
            pthread_cond_signal(&iterator->caller_wakes);
    }
    pthread_mutex_unlock(&iterator->lock);
}

/* Waking a thread costs more than a small batch: in a deep ring it is left asleep until half of it is free. */
static void wake_reader(struct iterator *iterator)
{
    uint64_t free_slots = (uint64_t)iterator->slot_count - (iterator->filled - iterator->released);
    if (iterator->reader_sleeps && may_read(iterator) && free_slots * 2 >= (uint64_t)iterator->slot_count - 1)
        pthread_cond_signal(&iterator->reader_wakes);
}

/* ---- giving ---- */

/* Until the next batch is there, or the error in its place. Never hangs: when the reader is not busy, we read. */
static void await_batch(struct iterator *iterator)
{
    uint64_t start = clock_ns();
    while (iterator->filled == iterator->taken && iterator->failed == PLIM_OK) {
        if (may_read(iterator)) {
            read_unlocked(iterator);
            continue;
        }
        iterator->caller_sleeps = true;
        pthread_cond_wait(&iterator->caller_wakes, &iterator->lock);
        iterator->caller_sleeps = false;
    }
    iterator->figures.wait_ns += clock_ns() - start;
}

static void read_here(struct iterator *iterator)
{
    uint64_t start = clock_ns();
    settle(iterator, read_batch(iterator, iterator->reading, &iterator->error));
    iterator->figures.wait_ns += clock_ns() - start;
}

static plim_status give(struct batch **batch, struct iterator *iterator, plim_error *error)
{
    if (iterator->filled == iterator->taken) {
        if (error)
            *error = iterator->error;
        return iterator->failed;
    }
    *batch = &iterator->slot[iterator->taken++ % (uint64_t)iterator->slot_count];
    iterator->giving.step++;
    iterator->figures.batches++;
    iterator->figures.elements += (uint64_t)(*batch)->count;
    return PLIM_OK;
}

static plim_status next_batch(struct batch **batch, struct iterator *iterator, plim_error *error)
{
    iterator->released = iterator->taken;
    if (iterator->giving.step == iterator->steps) {
        iterator->giving = (struct cursor_position){.epoch = iterator->giving.epoch + 1};
        *batch = NULL;
        return PLIM_OK;
    }
    if (iterator->filled > iterator->taken)
        iterator->figures.ready++;
    else if (iterator->failed == PLIM_OK && iterator->thread)
        await_batch(iterator);
    else if (iterator->failed == PLIM_OK)
        read_here(iterator);
    return give(batch, iterator, error);
}

plim_status iterator_next(struct batch **batch, struct iterator *iterator, plim_error *error)
{
    if (!iterator->thread)
        return next_batch(batch, iterator, error);
    pthread_mutex_lock(&iterator->lock);
    plim_status status = next_batch(batch, iterator, error);
    wake_reader(iterator);
    pthread_mutex_unlock(&iterator->lock);
    return status;
}

/* ---- seeking ---- */

static plim_status check_position(const struct iterator *iterator, int64_t epoch, int64_t step, plim_error *error)
{
    int64_t most = iterator->steps >= 0 ? iterator->steps : MOST_POSITION / iterator->dataset->batch_size;
    if (epoch < 0 || step < 0 || step > most)
        return fail(error, PLIM_BAD_DATA, "epoch %lld, batch %lld: an epoch of this pipeline has %lld batches",
                    (long long)epoch, (long long)step, (long long)most);
    return PLIM_OK;
}

static void set_position(struct iterator *iterator, int64_t epoch, int64_t step)
{
    iterator->giving = (struct cursor_position){.epoch = epoch, .step = step};
    iterator->reading = iterator->giving;
    if (step == iterator->steps) /* the end of an epoch: the caller is told so, the reader goes on */
        iterator->reading = (struct cursor_position){.epoch = epoch + 1};
    iterator->filled = iterator->taken = iterator->released = 0;
    iterator->failed = PLIM_OK;
}

plim_status iterator_seek(struct iterator *iterator, int64_t epoch, int64_t step, plim_error *error)
{
    TRY(check_position(iterator, epoch, step, error));
    if (!iterator->thread) {
        set_position(iterator, epoch, step);
        return PLIM_OK;
    }
    pthread_mutex_lock(&iterator->lock);
    iterator->seeking = true;
    atomic_store(&iterator->cancel, true);
    iterator->caller_sleeps = true;
    while (iterator->busy)
        pthread_cond_wait(&iterator->caller_wakes, &iterator->lock);
    iterator->caller_sleeps = false;
    set_position(iterator, epoch, step);
    atomic_store(&iterator->cancel, false);
    iterator->seeking = false;
    pthread_cond_signal(&iterator->reader_wakes);
    pthread_mutex_unlock(&iterator->lock);
    return PLIM_OK;
}

/* ---- opening and closing ---- */

static plim_status start_source(struct iterator *iterator, struct scratch *scratch, plim_error *error)
{
    struct dataset *first = first_node(iterator->dataset);
    struct source *source = first->source;
    if (!first->started && source->type->start)
        TRY(source->type->start(source, scratch, error));
    first->started = true;
    iterator->bytes_read_before = __atomic_load_n(&source->bytes_read, __ATOMIC_RELAXED);
    return PLIM_OK;
}

static plim_status take_buffers(struct iterator *iterator, plim_error *error)
{
    struct filler *filler = &iterator->filler;
    uint64_t bytes = ring_bytes(filler, iterator->slot_count);
    uint8_t *ring = bytes == UINT64_MAX ? NULL : budget_take(iterator->budget, TAG_BATCHES, bytes);
    if (!ring)
        return budget_refused(iterator->budget, TAG_BATCHES, bytes, error);
    iterator->ring = ring;
    iterator->ring_bytes = bytes;
    for (int s = 0; s < iterator->slot_count; s++)
        for (int c = 0; c < iterator->dataset->spec->column_count; c++)
            iterator->slot[s].column[c] = ring + (uint64_t)s * filler->slot_bytes + filler->column_at[c];
    if (!filler->chunk_bytes)
        return PLIM_OK;
    filler->chunk = budget_take(iterator->budget, TAG_PIPELINE, filler->chunk_bytes);
    return filler->chunk ? PLIM_OK : budget_refused(iterator->budget, TAG_PIPELINE, filler->chunk_bytes, error);
}

static plim_status make_lock(struct iterator *iterator, plim_error *error)
{
    if (pthread_mutex_init(&iterator->lock, NULL) != 0)
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
    if (pthread_cond_init(&iterator->reader_wakes, NULL) != 0) {
        pthread_mutex_destroy(&iterator->lock);
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
    }
    if (pthread_cond_init(&iterator->caller_wakes, NULL) != 0) {
        pthread_cond_destroy(&iterator->reader_wakes);
        pthread_mutex_destroy(&iterator->lock);
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
    }
    iterator->has_lock = true;
    return PLIM_OK;
}

static plim_status open_parts(struct iterator *iterator, struct scratch *scratch, plim_error *error)
{
    TRY(take_buffers(iterator, error));
    TRY(start_source(iterator, scratch, error));
    if (iterator->slot_count == 1)
        return PLIM_OK;
    TRY(make_lock(iterator, error));
    return thread_start(&iterator->thread, iterator->budget, reader_run, iterator, error);
}

plim_status iterator_open(struct iterator **out, struct dataset *dataset, struct budget *budget,
                          struct scratch *scratch, int slots, uint64_t seed, int64_t epoch, int64_t step,
                          plim_error *error)
{
    TRY(dataset_check(dataset, error));
    if (slots < 1 || slots > MOST_SLOTS)
        return fail(error, PLIM_USAGE, "a pipeline works with 1 to %d batch slots, not %d", MOST_SLOTS, slots);
    struct iterator *iterator = budget_take(budget, TAG_PIPELINE, iterator_bytes(slots));
    if (!iterator)
        return budget_refused(budget, TAG_PIPELINE, iterator_bytes(slots), error);
    iterator->bytes = iterator_bytes(slots);
    iterator->budget = budget;
    iterator->dataset = dataset_ref(dataset);
    iterator->slot_count = slots;
    iterator->steps = dataset_steps(dataset, &iterator->last_batch);
    filler_init(&iterator->filler, dataset, seed);
    plim_status status = check_position(iterator, epoch, step, error);
    if (status == PLIM_OK) {
        set_position(iterator, epoch, step);
        status = open_parts(iterator, scratch, error);
    }
    if (status != PLIM_OK) {
        iterator_close(iterator);
        return status;
    }
    *out = iterator;
    return PLIM_OK;
}

static void stop_reader(struct iterator *iterator)
{
    pthread_mutex_lock(&iterator->lock);
    iterator->stop = true;
    atomic_store(&iterator->cancel, true);
    pthread_cond_signal(&iterator->reader_wakes);
    pthread_mutex_unlock(&iterator->lock);
    thread_join(iterator->thread);
}

void iterator_close(struct iterator *iterator)
{
    if (!iterator)
        return;
    if (iterator->thread)
        stop_reader(iterator);
    if (iterator->has_lock) {
        pthread_cond_destroy(&iterator->caller_wakes);
        pthread_cond_destroy(&iterator->reader_wakes);
        pthread_mutex_destroy(&iterator->lock);
    }
    budget_give(iterator->budget, TAG_PIPELINE, iterator->filler.chunk, iterator->filler.chunk_bytes);
    budget_give(iterator->budget, TAG_BATCHES, iterator->ring, iterator->ring_bytes);
    dataset_unref(iterator->dataset);
    budget_give(iterator->budget, TAG_PIPELINE, iterator, iterator->bytes);
}

void iterator_figures(struct iterator_figures *out, const struct iterator *iterator)
{
    const struct source *source = iterator->dataset->source;
    *out = iterator->figures; /* written by the caller's thread only */
    out->bytes_read = __atomic_load_n(&source->bytes_read, __ATOMIC_RELAXED) - iterator->bytes_read_before;
}
