/* iterator.c - batches in order: a fixed ring of slots, filled by workers and by the caller.

   1. released <= taken <= ready <= building < released + slots. [released, taken) is the one the caller holds,
      [taken, ready) are whole, [ready, building) have all their rows handed out, and `building` is being handed out
      from row `row` on.
   2. A part is a run of rows of one slot. Who sets `pulling` hands them out: gets them from the head, one at a time
      and in order. Then it finishes them beside others. Slots and rows are settled when a part is handed out,
      so neither the number of workers nor their speed can change what a batch holds.
   3. A caller that finds nothing ready does parts itself; it sleeps only when all that is left to do is being done.
   4. Positions are all there is to know: seeking throws away what is there and sets two cursors; over data without an
      index the head is rewound and passes over what was given. Nothing is taken after opening.
   5. An error stops the handing out. The caller meets the first one by place, after the good batches before
      it, and again until it seeks.
   6. Of data with an index the next epoch is read ahead. A stream waits at its end for the caller: its next
      epoch may cost a program run or a file fetched. */
#include "base/numbers/floats.h"
#include "base/threads/clock.h"
#include "base/threads/workers.h"
#include "pipeline/core/iterator_own.h"
#include "pipeline/stages/keep/held_blocks.h"

/* ---- giving ---- */

static void sleep_caller(struct iterator *iterator)
{
    iterator->caller_sleeps = true;
    pthread_cond_wait(&iterator->caller_wakes, &iterator->lock);
    iterator->caller_sleeps = false;
}

static bool is_over(const struct iterator *iterator)
{
    return iterator->ended && iterator->ready == iterator->building && iterator->failure.status == PLIM_OK &&
           slot_at(iterator, iterator->building)->parts == 0; /* rows of a batch that is dropped may be bad */
}

/* The failed slot is the next one, and no part can fail before the place that is known. */
static bool has_failed(const struct iterator *iterator)
{
    return iterator->failure.status != PLIM_OK && iterator->ready == iterator->failure.slot &&
           slot_at(iterator, iterator->ready)->parts == 0;
}

/* Until the next batch is there, or the end or an error in its place. Never hangs: what nobody does, we do. */
static void await_batch(struct iterator *iterator)
{
    uint64_t start = clock_ns();
    unsigned mode = floats_enter(); /* our arithmetic, on the caller's thread */
    while (iterator->ready == iterator->taken && !is_over(iterator) && !has_failed(iterator)) {
        if (may_pull(iterator))
            run_part(iterator, &iterator->worker[0]);
        else
            sleep_caller(iterator);
    }
    floats_restore(mode);
    iterator->figures.wait_ns += clock_ns() - start;
}

void set_position(struct iterator *iterator, int64_t epoch, int64_t step)
{
    iterator->source = NULL;
    iterator->first_rows = iterator->single ? step % iterator->rows : 0;
    step = iterator->single ? step / iterator->rows : step;
    iterator->giving = (struct cursor_position){.epoch = epoch, .step = step};
    iterator->reading = iterator->giving;
    if (!flow_head(iterator->dataset) &&
        is_last(iterator, iterator->reading)) /* the end of an epoch: the caller learns of it, reading goes on */
        iterator->reading = (struct cursor_position){.epoch = epoch + 1};
    iterator->building = iterator->ready = iterator->taken = iterator->released = 0;
    iterator->row = 0;
    iterator->ended = false;
    iterator->rewind = true;
    iterator->failure.status = PLIM_OK;
    iterator->failure_given = 0;
}

/* A stream has been given to its end; rows of a batch that was dropped may still be in somebody's hands. */
static void next_epoch(struct iterator *iterator)
{
    while (iterator->active)
        sleep_caller(iterator);
    set_position(iterator, iterator->giving.epoch + 1, 0);
    iterator->parked = true;
}

/* An element that is a batch: its samples are what the caller gets. */
static struct batch *open_element(struct slot *slot, const struct dataset *dataset)
{
    slot->opened = slot->batch;
    slot->opened.count = dataset->stacked;
    for (int c = 0; c < dataset->spec->column_count; c++) {
        if (!column_is_variable(&dataset->spec->column[c]))
            continue;
        const struct cell *cell = slot->batch.column[c];
        slot->opened.column[c] = cell->data;
        if (cell->dim[0] < slot->opened.count) /* no column is read beyond its end, should they disagree */
            slot->opened.count = cell->dim[0];
    }
    return &slot->opened;
}

/* Elements one by one: those of the failed slot that lie before the bad one are good. */
static bool give_before_failure(struct batch **batch, struct iterator *iterator)
{
    struct slot *slot = slot_at(iterator, iterator->taken);
    if (!iterator->single || iterator->failure.row <= iterator->failure_given)
        return false;
    slot->batch.count = iterator->failure.row;
    iterator->first_rows =
        iterator->failure_given > iterator->first_rows ? iterator->failure_given : iterator->first_rows;
    iterator->failure_given = iterator->failure.row;
    *batch = &slot->batch;
    return true;
}

static plim_status give(struct batch **batch, struct iterator *iterator, plim_error *error)
{
    if (iterator->ready == iterator->taken) {
        if (give_before_failure(batch, iterator))
            return PLIM_OK;
        if (error)
            *error = iterator->failure.error;
        return iterator->failure.status;
    }
    struct slot *slot = slot_at(iterator, iterator->taken++);
    *batch = iterator->dataset->stacked ? open_element(slot, iterator->dataset) : &slot->batch;
    iterator->giving.step++;
    iterator->figures.batches++;
    iterator->figures.elements += (uint64_t)(*batch)->count;
    return PLIM_OK;
}

static plim_status next_batch(struct batch **batch, struct iterator *iterator, plim_error *error)
{
    iterator->released = iterator->taken;
    iterator->parked = false;
    if (!iterator->head && is_last(iterator, iterator->giving)) {
        iterator->giving = (struct cursor_position){.epoch = iterator->giving.epoch + 1};
        *batch = NULL;
        return PLIM_OK;
    }
    if (iterator->ready > iterator->taken)
        iterator->figures.ready++;
    else
        await_batch(iterator);
    if (iterator->ready == iterator->taken && is_over(iterator)) {
        next_epoch(iterator);
        *batch = NULL;
        return PLIM_OK;
    }
    return give(batch, iterator, error);
}

static struct batch *next_element(struct iterator *iterator)
{
    const struct spec *spec = iterator->dataset->spec;
    for (int c = 0; c < spec->column_count; c++)
        iterator->element.column[c] =
            (uint8_t *)iterator->source->column[c] + (uint64_t)iterator->in_slot * spec->column[c].bytes;
    iterator->element.epoch = iterator->source->epoch;
    iterator->element.step = iterator->source->step * iterator->rows + iterator->in_slot++;
    iterator->element.count = 1;
    iterator->element.origin = iterator;
    return &iterator->element;
}

plim_status iterator_next(struct batch **batch, struct iterator *iterator, plim_error *error)
{
    if (iterator->source && iterator->in_slot < iterator->source->count) {
        *batch = next_element(iterator);
        return PLIM_OK;
    }
    lock(iterator);
    iterator->source = NULL;
    plim_status status = next_batch(batch, iterator, error);
    tune(iterator);
    wake_worker(iterator);
    unlock(iterator);
    if (status != PLIM_OK || !*batch || !iterator->single)
        return status;
    iterator->source = *batch;
    iterator->in_slot = iterator->first_rows;
    iterator->first_rows = 0;
    if (iterator->in_slot >= iterator->source->count) /* sought behind the last one */
        return iterator_next(batch, iterator, error);
    *batch = next_element(iterator);
    return PLIM_OK;
}

const struct spec *iterator_spec(const struct iterator *iterator)
{
    return iterator->dataset->spec;
}

bool iterator_is_worker(const struct iterator *iterator)
{
    for (int w = 1; w < iterator->worker_count; w++)
        if (iterator->worker[w].thread && thread_is_self(iterator->worker[w].thread))
            return true;
    return false;
}

struct shape iterator_shape(const struct iterator *iterator, int column)
{
    const struct dataset *dataset = iterator->dataset;
    const struct column *rows = &dataset->spec->column[column];
    if (dataset->stacked)
        return value_shape(rows, slot_at(iterator, iterator->taken - 1)->batch.column[column]);
    struct shape shape = {.rank = 1,
                          .dim = {iterator->source ? 1 : slot_at(iterator, iterator->taken - 1)->batch.count}};
    for (int d = 0; d < rows->shape.rank && shape.rank < MOST_AXES; d++)
        shape.dim[shape.rank++] = rows->shape.dim[d];
    return shape;
}

/* ---- seeking ---- */

plim_status check_position(const struct iterator *iterator, int64_t epoch, int64_t step, plim_error *error)
{
    int64_t most = iterator->steps >= 0 ? iterator->steps : MOST_POSITION / iterator->rows;
    if (iterator->single)
        most = iterator->dataset->cardinality >= 0 ? iterator->dataset->cardinality : MOST_POSITION;
    if (epoch < 0 || step < 0 || step > most)
        return fail(error, PLIM_BAD_DATA, "epoch %lld, batch %lld: an epoch of this pipeline has %lld batches",
                    (long long)epoch, (long long)step, (long long)most);
    return PLIM_OK;
}

/* Throws away what was read ahead. */
static void go_on_at(struct iterator *iterator, int64_t epoch, int64_t step, int64_t origin)
{
    lock(iterator);
    iterator->seeking = true;
    atomic_store(&iterator->cancel, true);
    while (iterator->active)
        sleep_caller(iterator);
    iterator->origin_epoch = epoch;
    iterator->origin = origin;
    if (iterator->held)
        held_forget(iterator->held);
    set_position(iterator, epoch, step);
    atomic_store(&iterator->cancel, false);
    iterator->seeking = false;
    wake_worker(iterator);
    unlock(iterator);
}

plim_status iterator_seek(struct iterator *iterator, int64_t epoch, int64_t step, plim_error *error)
{
    TRY(check_position(iterator, epoch, step, error));
    go_on_at(iterator, epoch, step, 0);
    return PLIM_OK;
}

plim_status iterator_seek_element(struct iterator *iterator, int64_t epoch, int64_t element, plim_error *error)
{
    int64_t cardinality = iterator->dataset->cardinality;
    int64_t most = cardinality >= 0 ? cardinality : MOST_POSITION;
    if (epoch < 0 || element < 0 || element > most)
        return fail(error, PLIM_BAD_DATA, "epoch %lld, element %lld: an epoch of this pipeline has %lld elements",
                    (long long)epoch, (long long)element, (long long)most);
    go_on_at(iterator, epoch, 0, element);
    return PLIM_OK;
}

void iterator_position(int64_t *epoch, int64_t *element, const struct iterator *iterator)
{
    const struct batch *source = iterator->source; /* where elements are given one by one */
    const struct cursor_position *giving = &iterator->giving;
    *epoch = source ? source->epoch : giving->epoch;
    *element = origin_of(iterator, *epoch) + (source ? source->step : giving->step) * iterator->rows +
               (source ? iterator->in_slot : iterator->first_rows);
}

/* ---- figures ---- */

uint64_t bytes_read(const struct dataset *dataset)
{
    uint64_t bytes = __atomic_load_n(&dataset->source->bytes_read, __ATOMIC_RELAXED);
    for (const struct dataset *node = dataset; node; node = node->input)
        for (int i = 0; i < node->other_count; i++)
            bytes += bytes_read(node->others[i]);
    return bytes;
}

void iterator_figures(struct iterator_figures *out, const struct iterator *iterator)
{
    *out = iterator->figures; /* written by the caller's thread only */
    out->bytes_read = bytes_read(iterator->dataset) - iterator->bytes_read_before;
    out->skipped = stream_skipped(iterator->head);
    out->threads = iterator->wanted;
    out->direct_bytes = iterator->held ? held_direct_bytes(iterator->held) : 0;
}

void iterator_times_each(iterator_visit *visit, void *context, struct iterator *iterator)
{
    lock(iterator);
    iterator->paused = true; /* nothing new is begun meanwhile */
    while (iterator->active)
        sleep_caller(iterator);
    if (iterator->head)
        stream_times_each(visit, context, iterator->head);
    for (int w = 0; w < iterator->worker_count; w++)
        flow_times_each(visit, context, iterator->worker[w].flow);
    iterator->paused = false;
    wake_worker(iterator);
    unlock(iterator);
}
