/* iterator_fill.c - filling slots: rows are handed out one part at a time and in order, and finished side by side. */
#include "pipeline/core/iterator_own.h"

/* Batches of an epoch, and samples of its last one. */
int64_t steps_of(const struct iterator *iterator, int64_t epoch, int64_t *last)
{
    int64_t origin = origin_of(iterator, epoch), rows = iterator->rows;
    *last = iterator->last_batch;
    if (!origin || iterator->steps < 0)
        return iterator->steps;
    int64_t left = iterator->dataset->cardinality - origin, rest = left % rows;
    bool partial = rest && !iterator->drops;
    *last = partial ? rest : rows;
    return left / rows + partial;
}

bool is_last(const struct iterator *iterator, struct cursor_position at)
{
    int64_t last;
    return at.step == steps_of(iterator, at.epoch, &last);
}

static int64_t samples_at(const struct iterator *iterator, struct cursor_position at)
{
    int64_t last, steps = steps_of(iterator, at.epoch, &last);
    return at.step == steps - 1 ? last : iterator->rows;
}

bool may_pull(const struct iterator *iterator)
{
    return !iterator->pulling && !iterator->seeking && !iterator->paused && !iterator->parked && !iterator->stop &&
           !iterator->ended && iterator->failure.status == PLIM_OK &&
           iterator->building - iterator->released < (uint64_t)iterator->slot_count;
}

static void aim(struct flow_target *target, const struct iterator *iterator, const struct slot_part *part)
{
    const struct spec *spec = iterator->dataset->spec;
    for (int c = 0; c < spec->column_count; c++)
        target->column[c] = (uint8_t *)part->slot->batch.column[c] + (uint64_t)part->row * spec->column[c].bytes;
}

/* The first of all that failed, by place, is the one to tell. */
static void note_failure(struct iterator *iterator, plim_status status, const struct slot_part *part,
                         const plim_error *error)
{
    struct failure *failure = &iterator->failure;
    if (failure->status != PLIM_OK &&
        (failure->slot < part->number || (failure->slot == part->number && failure->row <= part->row)))
        return;
    *failure = (struct failure){.status = status, .slot = part->number, .row = part->row, .error = *error};
}

static void begin_slot(struct iterator *iterator, struct slot *slot)
{
    slot->batch.count = 0;
    slot->batch.epoch = iterator->reading.epoch;
    slot->batch.step = iterator->reading.step;
    slot->charged = 0;
    value_buffer_empty(&slot->values);
}

static void seal_slot(struct iterator *iterator)
{
    iterator->building++;
    iterator->row = 0;
    iterator->reading.step++;
    if (!iterator->head && is_last(iterator, iterator->reading))
        iterator->reading = (struct cursor_position){.epoch = iterator->reading.epoch + 1};
}

static void move_ready(struct iterator *iterator)
{
    while (iterator->ready < iterator->building && slot_at(iterator, iterator->ready)->parts == 0 &&
           !(iterator->failure.status != PLIM_OK && iterator->ready == iterator->failure.slot))
        iterator->ready++;
}

/* Positions: under the lock, nothing to wait for. */
static void place_part(struct slot_part *part, struct iterator *iterator, int64_t most)
{
    int64_t all = samples_at(iterator, iterator->reading);
    part->rows = all - iterator->row < most ? all - iterator->row : most;
    part->first =
        origin_of(iterator, iterator->reading.epoch) + iterator->reading.step * iterator->rows + iterator->row;
    part->slot->batch.count = iterator->row + part->rows;
    iterator->row += part->rows;
    if (iterator->row == all)
        seal_slot(iterator);
}

/* To the batch that is to be read next: from the beginning of its epoch. */
static plim_status find_place(struct iterator *iterator, const struct worker *worker, const struct slot_part *part,
                              bool *over, plim_error *error)
{
    struct flow_target target;
    int64_t before = origin_of(iterator, iterator->reading.epoch) + iterator->reading.step * iterator->rows, passed = 0;
    TRY(stream_rewind(iterator->head, (uint64_t)iterator->reading.epoch, error));
    aim(&target, iterator, part);
    if (before)
        TRY(flow_skip(&passed, worker->flow, iterator->head, &target, iterator->rows - part->row, before, error));
    *over = passed < before;
    return PLIM_OK;
}

/* What was pulled belongs to the slot now; nothing: the epoch is over. */
static void settle_pull(struct iterator *iterator, const struct slot_part *part)
{
    struct batch *batch = &part->slot->batch;
    iterator->rewind = false;
    iterator->row += part->rows;
    batch->count = iterator->row;
    if (iterator->row == iterator->rows) {
        seal_slot(iterator);
    } else if (!part->rows) {
        iterator->ended = true;
        if (batch->count && !iterator->drops)
            seal_slot(iterator);
    }
}

/* Rows of the slot may refer to the flow's value buffers: to the slot's own, before the flow goes on. */
static plim_status own_values(struct iterator *iterator, const struct slot_part *part, plim_error *error)
{
    const struct spec *spec = iterator->dataset->spec;
    plim_status status = PLIM_OK;
    lock(iterator);
    for (int c = 0; c < spec->column_count && status == PLIM_OK; c++) {
        const struct column *column = &spec->column[c];
        for (int64_t i = part->row; column_has_values(column) && i < part->row + part->rows; i++) {
            struct slot *slot = part->slot;
            uint8_t *row = (uint8_t *)slot->batch.column[c] + (uint64_t)i * column->bytes;
            slot->charged += value_bytes(column, row); /* with the largest gap: the order of rows must not matter */
            if (slot->charged > slot->values.capacity || !value_own(&slot->values, column, row))
                status = stream_too_large(iterator->dataset, slot->charged, slot->values.capacity, error);
        }
    }
    unlock(iterator);
    return status;
}

/* On failure part->row is the row that failed, as far as it is known. */
static plim_status finish_part(struct iterator *iterator, struct worker *worker, struct slot_part *part,
                               plim_error *error)
{
    struct slot_part piece = *part;
    int64_t end = part->row + part->rows, most = part->rows;
    while (piece.row < end && !atomic_load_explicit(&iterator->cancel, memory_order_relaxed)) {
        struct flow_target target;
        piece.rows = end - piece.row < most ? end - piece.row : most;
        aim(&target, iterator, &piece);
        if (!iterator->head)
            flow_place(worker->flow, piece.epoch, piece.first + piece.row - part->row, piece.rows);
        plim_status status = flow_finish(&piece.rows, worker->flow, &target, piece.rows, error);
        if (status == PLIM_BAD_DATA && iterator->single && !iterator->head && most > 1) {
            most = 1; /* elements one by one: which of them is it? */
            continue;
        }
        if (status == PLIM_OK && iterator->has_values)
            status = own_values(iterator, &piece, error);
        if (status != PLIM_OK) {
            part->row = piece.row;
            return status;
        }
        piece.row += piece.rows;
    }
    return PLIM_OK;
}

/* From the head, with the lock let go. Without workers what rows refer to is used up before the next pull. */
static plim_status pull_part(struct slot_part *part, struct iterator *iterator, struct worker *worker, int64_t most,
                             plim_error *error)
{
    struct flow_target target;
    bool over = false, kept = true;
    int64_t got = 0;
    if (iterator->rewind)
        TRY(find_place(iterator, worker, part, &over, error));
    aim(&target, iterator, part);
    if (!over)
        TRY(flow_take(&got, &kept, worker->flow, iterator->head, &target, most, iterator->worker_count > 1, error));
    part->rows = got;
    part->finished = got && !kept;
    return part->finished ? finish_part(iterator, worker, part, error) : PLIM_OK;
}

/* Another worker is of use when rows are left to hand out. */
static void wake_next(struct iterator *iterator)
{
    if (iterator->sleeping && may_pull(iterator) && iterator->heavy)
        pthread_cond_signal(&iterator->workers_wake);
}

static plim_status hand_out(struct slot_part *part, struct iterator *iterator, struct worker *worker, plim_error *error)
{
    int64_t most = flow_rows(worker->flow);
    *part = (struct slot_part){.slot = slot_at(iterator, iterator->building),
                               .number = iterator->building,
                               .row = iterator->row,
                               .epoch = (uint64_t)iterator->reading.epoch};
    if (!part->row)
        begin_slot(iterator, part->slot);
    if (!iterator->head) {
        place_part(part, iterator, most);
        return PLIM_OK;
    }
    most = most < iterator->rows - part->row ? most : iterator->rows - part->row;
    if (iterator->single && flow_has_maps(worker->flow)) /* those before a bad one are given */
        most = 1;
    iterator->pulling = true;
    unlock(iterator);
    plim_status status = pull_part(part, iterator, worker, most, error);
    lock(iterator);
    iterator->pulling = false;
    if (status == PLIM_OK)
        settle_pull(iterator, part);
    return status;
}

/* Called and left with the lock held; let go in between. may_pull was true. */
void run_part(struct iterator *iterator, struct worker *worker)
{
    struct slot_part part;
    plim_error error = {0};
    iterator->active++;
    plim_status status = hand_out(&part, iterator, worker, &error);
    if (status == PLIM_OK && part.rows && !part.finished) {
        part.slot->parts++;
        wake_next(iterator);
        unlock(iterator);
        status = finish_part(iterator, worker, &part, &error);
        lock(iterator);
        part.slot->parts--;
    }
    if (status != PLIM_OK && !iterator->seeking)
        note_failure(iterator, status, &part, &error);
    iterator->active--;
    move_ready(iterator);
    if (iterator->caller_sleeps)
        pthread_cond_signal(&iterator->caller_wakes);
}

void worker_run(void *context)
{
    struct worker *worker = context;
    struct iterator *iterator = worker->iterator;
    pthread_mutex_lock(&iterator->lock);
    while (!iterator->stop) {
        if (may_pull(iterator) && iterator->active < iterator->wanted) {
            run_part(iterator, worker);
            continue;
        }
        iterator->sleeping++;
        pthread_cond_wait(&iterator->workers_wake, &iterator->lock);
        iterator->sleeping--;
    }
    pthread_mutex_unlock(&iterator->lock);
}

/* Of `batches` so many were ready when they were asked for: one thread less will do, or one more might help. */
int threads_wanted(int now, int most, uint64_t ready, uint64_t batches)
{
    if (ready == batches && now > 2)
        return now - 1;
    if (ready * 4 < batches * 3 && now < most)
        return now + 1;
    return now;
}

#define TUNE_BATCHES 64

void tune(struct iterator *iterator)
{
    uint64_t batches = iterator->figures.batches - iterator->tuned_batches;
    if (batches < TUNE_BATCHES || iterator->worker_count <= 2)
        return;
    uint64_t ready = iterator->figures.ready - iterator->tuned_ready;
    iterator->wanted = threads_wanted(iterator->wanted, iterator->worker_count, ready, batches);
    iterator->tuned_batches = iterator->figures.batches;
    iterator->tuned_ready = iterator->figures.ready;
}

/* Waking a thread costs more than a small batch: in a deep ring it is left asleep until half of it is free. */
void wake_worker(struct iterator *iterator)
{
    uint64_t free_slots = (uint64_t)iterator->slot_count - (iterator->building - iterator->released);
    if (!iterator->sleeping || !may_pull(iterator))
        return;
    if (iterator->heavy || free_slots * 2 >= (uint64_t)iterator->slot_count - 1)
        pthread_cond_signal(&iterator->workers_wake);
}
