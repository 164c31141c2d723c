/* iterator.c - batches in order: a fixed ring of slots, filled by workers and by the caller.

   1. released <= taken <= ready <= building < released + slots. [released, taken) is the one the caller holds,
      [taken, ready) are whole, [ready, building) have all their rows handed out, and `building` is being handed out
      from row `row` on.
   2. A unit is a run of rows of one slot. Who sets `pulling` hands them out: gets them from the head, one at a time
      and in order. Then it finishes them beside others. Slots and rows are settled when a unit is handed out,
      so neither the number of workers nor their speed can change what a batch holds.
   3. A caller that finds nothing ready does units itself; it sleeps only when all that is left to do is being done.
   4. Positions are all there is to know: seeking throws away what is there and sets two cursors; over data without an
      index the head is rewound and passes over what was given. Nothing is taken after opening.
   5. An error stops the handing out. The caller meets the first one by place, after the good batches before
      it, and again until it seeks.
   6. Of data with an index the next epoch is read ahead. A stream waits at its end for the caller: its next
      epoch may cost a program run or a file fetched. */
#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/floats.h"
#include "base/workers.h"
#include "pipeline/flow.h"

#define MOST_SLOTS    1025
#define MOST_WORKERS  256
#define MOST_POSITION ((int64_t)1 << 61) /* in data without end: leaves room for skips */

struct cursor_position {
    int64_t epoch, step;
};

struct slot {
    struct batch batch;
    struct batch opened; /* what the caller gets where elements are batches */
    struct room room; /* of columns that have values */
    uint64_t charged; /* what its values take at most */
    int units;        /* being finished */
};

struct worker {
    struct iterator *iterator;
    struct thread *thread; /* NULL: the caller's own */
    struct flow *flow;
};

struct unit {
    struct slot *slot;
    uint64_t number; /* of the slot */
    int64_t row, rows;
    bool finished; /* by who pulled it: what it refers to does not outlive the head's next pull */
    uint64_t epoch;
    int64_t first; /* position of its first element, where the data has an index */
};

struct failure {
    plim_status status; /* PLIM_OK: none */
    uint64_t slot;
    int64_t row;
    plim_error error;
};

struct iterator {
    struct dataset *dataset;
    struct budget *budget;
    size_t bytes;      /* of this block: workers, slots and flows included */
    int64_t rows;      /* of a slot */
    int64_t steps;     /* of an epoch, or CARDINALITY_... */
    int64_t last_batch;
    struct stream *head; /* NULL: the data has an index */
    bool has_values, heavy;
    bool drops; /* a batch that is not whole; elements one by one are never dropped */
    int slot_count, worker_count; /* worker 0 is the caller */
    uint8_t *ring;
    size_t ring_bytes;
    uint64_t column_at[MOST_COLUMNS], slot_bytes, room_bytes;
    bool has_lock;
    pthread_mutex_t lock;
    pthread_cond_t workers_wake, caller_wakes;

    uint64_t building, ready, taken, released;
    int64_t row;
    struct cursor_position reading, giving; /* the next batch to be handed out; to be given */
    int64_t origin_epoch, origin;           /* batches of this epoch begin behind so many elements; of others at 0 */
    bool rewind;                            /* the head is not at `reading` yet */
    bool ended;                             /* the head's epoch is over, and the caller was not told yet */
    bool stop, seeking, pulling, caller_sleeps;
    bool paused; /* somebody looks at the clocks */
    bool parked; /* a stream's epoch was told to be over: the next one begins when the caller asks for it */
    int sleeping, active;
    atomic_bool cancel; /* units are left as they are: nobody will see them */
    struct failure failure;
    struct iterator_figures figures;
    uint64_t bytes_read_before;

    /* Elements one by one: the slot that they are given from. */
    bool single;
    struct batch *source;
    struct batch element;
    int64_t failure_given; /* rows of the failed slot that were given */
    int64_t in_slot;    /* the next row of it */
    int64_t first_rows; /* rows of the first slot that lie before the place sought */

    struct worker *worker;
    struct slot *slot;
};

/* ---- costs ---- */

/* Elements that are given one by one still come in slots of many, or every one would cost a lock. */
static bool is_single(const struct dataset *dataset)
{
    return !dataset->batch_size && !dataset->stacked;
}

static int64_t slot_rows(const struct dataset *dataset)
{
    if (!is_single(dataset))
        return dataset->batch_size ? dataset->batch_size : 1;
    uint64_t bytes = dataset->spec->element_bytes;
    if (spec_has_values(dataset->spec) || bytes > FLOW_BYTES)
        return 1;
    return bytes * FLOW_ROWS > FLOW_BYTES ? (int64_t)(FLOW_BYTES / bytes) : FLOW_ROWS;
}

static int64_t slot_steps(int64_t *last, const struct dataset *dataset)
{
    int64_t rows = slot_rows(dataset), count = dataset->cardinality;
    if (!is_single(dataset) || count < 0)
        return dataset_steps(dataset, last);
    *last = count % rows ? count % rows : rows;
    return (count + rows - 1) / rows;
}

/* Rows of all columns, then the room of what they refer to. */
static uint64_t lay_out_slot(uint64_t column_at[MOST_COLUMNS], uint64_t *room_bytes, const struct dataset *dataset)
{
    const struct spec *spec = dataset->spec;
    uint64_t total = 0;
    for (int c = 0; c < spec->column_count; c++) {
        column_at[c] = total;
        total = add_most(total, rows_area(slot_rows(dataset), spec->column[c].bytes));
    }
    *room_bytes = spec_has_values(spec) ? round_up(dataset->room_bytes, ROOM_ALIGNMENT) : 0;
    for (int c = 0; c < spec->column_count; c++) /* rows come in any order: room for every gap */
        if (column_is_variable(&spec->column[c]))
            *room_bytes = add_most(*room_bytes, (uint64_t)slot_rows(dataset) * ROOM_ALIGNMENT);
    return add_most(total, *room_bytes);
}

static uint64_t ring_bytes(const struct dataset *dataset, int slots)
{
    uint64_t column_at[MOST_COLUMNS], room, bytes;
    return mul_u64(&bytes, lay_out_slot(column_at, &room, dataset), (uint64_t)slots) ? bytes : UINT64_MAX;
}

static uint64_t workers_at(void)
{
    return round_up(sizeof(struct iterator), 64);
}

static uint64_t slots_at(int workers)
{
    return workers_at() + round_up((uint64_t)(workers + 1) * sizeof(struct worker), 64);
}

static uint64_t flows_at(struct grant grant)
{
    return slots_at(grant.workers) + round_up((uint64_t)grant.slots * sizeof(struct slot), 64);
}

static uint64_t iterator_bytes(const struct dataset *dataset, struct grant grant)
{
    uint64_t flows, each = flow_bytes(dataset);
    each = each > UINT64_MAX - 64 ? UINT64_MAX : round_up(each, 64);
    return mul_u64(&flows, each, (uint64_t)grant.workers + 1) ? add_most(flows, flows_at(grant)) : UINT64_MAX;
}

static struct dataset *first_node(const struct dataset *dataset)
{
    while (dataset->input)
        dataset = dataset->input;
    return (struct dataset *)(uintptr_t)dataset;
}

static void add(uint64_t *total, uint64_t bytes)
{
    *total = add_most(*total, bytes);
}

#define MOST_SOURCES 256

/* Sources that were counted: one that several branches read is started once. */
struct counted {
    int count;
    const struct source *source[MOST_SOURCES];
};

static bool count_once(struct counted *counted, const struct source *source)
{
    for (int i = 0; i < counted->count; i++)
        if (counted->source[i] == source)
            return false;
    if (counted->count < MOST_SOURCES)
        counted->source[counted->count++] = source;
    return true;
}

/* What the sources take when they are started: that of this chain, and of those that join it. */
static void add_sources(uint64_t by_tag[TAG_COUNT], uint64_t *scratch_bytes, const struct dataset *dataset,
                        struct counted *counted)
{
    for (const struct dataset *node = dataset; node; node = node->input)
        for (int i = 0; i < node->other_count; i++)
            add_sources(by_tag, scratch_bytes, node->others[i], counted);
    if (first_node(dataset)->started || !count_once(counted, dataset->source))
        return;
    add(&by_tag[TAG_FORMATS], dataset->source->start_bytes);
    if (scratch_bytes)
        add(scratch_bytes, dataset->source->scratch_bytes);
}

void dataset_cost(uint64_t by_tag[TAG_COUNT], uint64_t *scratch_bytes, const struct dataset *dataset,
                  struct grant grant)
{
    if (dataset->error || grant.slots < 1)
        return;
    add(&by_tag[TAG_BATCHES], budget_charge(ring_bytes(dataset, grant.slots)));
    add(&by_tag[TAG_PIPELINE], budget_charge(iterator_bytes(dataset, grant)));
    for (int w = 0; w <= grant.workers; w++)
        add(&by_tag[TAG_PIPELINE], flow_cost(dataset));
    for (int w = 0; w < grant.workers; w++)
        add(&by_tag[TAG_STACKS], thread_cost());
    if (flow_head(dataset))
        stream_cost(by_tag, flow_head(dataset));
    add_sources(by_tag, scratch_bytes, dataset, &(struct counted){0});
}

/* ---- handing out ---- */

static void lock(struct iterator *iterator)
{
    if (iterator->has_lock)
        pthread_mutex_lock(&iterator->lock);
}

static void unlock(struct iterator *iterator)
{
    if (iterator->has_lock)
        pthread_mutex_unlock(&iterator->lock);
}

static int64_t origin_of(const struct iterator *iterator, int64_t epoch)
{
    return epoch == iterator->origin_epoch ? iterator->origin : 0;
}

/* Batches of an epoch, and samples of its last one. */
static int64_t steps_of(const struct iterator *iterator, int64_t epoch, int64_t *last)
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

static bool is_last(const struct iterator *iterator, struct cursor_position at)
{
    int64_t last;
    return at.step == steps_of(iterator, at.epoch, &last);
}

static int64_t samples_at(const struct iterator *iterator, struct cursor_position at)
{
    int64_t last, steps = steps_of(iterator, at.epoch, &last);
    return at.step == steps - 1 ? last : iterator->rows;
}

static struct slot *slot_at(const struct iterator *iterator, uint64_t number)
{
    return &iterator->slot[number % (uint64_t)iterator->slot_count];
}

static bool may_pull(const struct iterator *iterator)
{
    return !iterator->pulling && !iterator->seeking && !iterator->paused && !iterator->parked && !iterator->stop && !iterator->ended &&
           iterator->failure.status == PLIM_OK &&
           iterator->building - iterator->released < (uint64_t)iterator->slot_count;
}

static void aim(struct flow_target *target, const struct iterator *iterator, const struct unit *unit)
{
    const struct spec *spec = iterator->dataset->spec;
    for (int c = 0; c < spec->column_count; c++)
        target->column[c] = (uint8_t *)unit->slot->batch.column[c] + (uint64_t)unit->row * spec->column[c].bytes;
}

/* The first of all that failed, by place, is the one to tell. */
static void note_failure(struct iterator *iterator, plim_status status, const struct unit *unit,
                         const plim_error *error)
{
    struct failure *failure = &iterator->failure;
    if (failure->status != PLIM_OK &&
        (failure->slot < unit->number || (failure->slot == unit->number && failure->row <= unit->row)))
        return;
    *failure = (struct failure){.status = status, .slot = unit->number, .row = unit->row, .error = *error};
}

static void begin_slot(struct iterator *iterator, struct slot *slot)
{
    slot->batch.count = 0;
    slot->batch.epoch = iterator->reading.epoch;
    slot->batch.step = iterator->reading.step;
    slot->charged = 0;
    room_empty(&slot->room);
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
    while (iterator->ready < iterator->building && slot_at(iterator, iterator->ready)->units == 0 &&
           !(iterator->failure.status != PLIM_OK && iterator->ready == iterator->failure.slot))
        iterator->ready++;
}

/* Positions: under the lock, nothing to wait for. */
static void place_unit(struct unit *unit, struct iterator *iterator, int64_t most)
{
    int64_t all = samples_at(iterator, iterator->reading);
    unit->rows = all - iterator->row < most ? all - iterator->row : most;
    unit->first = origin_of(iterator, iterator->reading.epoch) + iterator->reading.step * iterator->rows + iterator->row;
    unit->slot->batch.count = iterator->row + unit->rows;
    iterator->row += unit->rows;
    if (iterator->row == all)
        seal_slot(iterator);
}

/* To the batch that is to be read next: from the beginning of its epoch. */
static plim_status find_place(struct iterator *iterator, const struct worker *worker, const struct unit *unit,
                              bool *over, plim_error *error)
{
    struct flow_target target;
    int64_t before = origin_of(iterator, iterator->reading.epoch) + iterator->reading.step * iterator->rows, passed = 0;
    TRY(stream_rewind(iterator->head, (uint64_t)iterator->reading.epoch, error));
    aim(&target, iterator, unit);
    if (before)
        TRY(flow_skip(&passed, worker->flow, iterator->head, &target, iterator->rows - unit->row, before, error));
    *over = passed < before;
    return PLIM_OK;
}

/* What was pulled belongs to the slot now; nothing: the epoch is over. */
static void settle_pull(struct iterator *iterator, const struct unit *unit)
{
    struct batch *batch = &unit->slot->batch;
    iterator->rewind = false;
    iterator->row += unit->rows;
    batch->count = iterator->row;
    if (iterator->row == iterator->rows) {
        seal_slot(iterator);
    } else if (!unit->rows) {
        iterator->ended = true;
        if (batch->count && !iterator->drops)
            seal_slot(iterator);
    }
}

/* Rows of the slot may refer to the flow's rooms: to the slot's own, before the flow goes on. */
static plim_status own_values(struct iterator *iterator, const struct unit *unit, plim_error *error)
{
    const struct spec *spec = iterator->dataset->spec;
    plim_status status = PLIM_OK;
    lock(iterator);
    for (int c = 0; c < spec->column_count && status == PLIM_OK; c++) {
        const struct column *column = &spec->column[c];
        for (int64_t i = unit->row; column_has_values(column) && i < unit->row + unit->rows; i++) {
            struct slot *slot = unit->slot;
            uint8_t *row = (uint8_t *)slot->batch.column[c] + (uint64_t)i * column->bytes;
            slot->charged += value_bytes(column, row); /* with the largest gap: the order of rows must not matter */
            if (slot->charged > slot->room.capacity || !value_own(&slot->room, column, row))
                status = stream_too_large(iterator->dataset, slot->charged, slot->room.capacity, error);
        }
    }
    unlock(iterator);
    return status;
}

/* On failure unit->row is the row that failed, as far as it is known. */
static plim_status finish_unit(struct iterator *iterator, struct worker *worker, struct unit *unit, plim_error *error)
{
    struct unit part = *unit;
    int64_t end = unit->row + unit->rows, most = unit->rows;
    while (part.row < end && !atomic_load_explicit(&iterator->cancel, memory_order_relaxed)) {
        struct flow_target target;
        part.rows = end - part.row < most ? end - part.row : most;
        aim(&target, iterator, &part);
        if (!iterator->head)
            flow_place(worker->flow, part.epoch, part.first + part.row - unit->row, part.rows);
        plim_status status = flow_finish(&part.rows, worker->flow, &target, part.rows, error);
        if (status == PLIM_BAD_DATA && iterator->single && !iterator->head && most > 1) {
            most = 1; /* elements one by one: which of them is it? */
            continue;
        }
        if (status == PLIM_OK && iterator->has_values)
            status = own_values(iterator, &part, error);
        if (status != PLIM_OK) {
            unit->row = part.row;
            return status;
        }
        part.row += part.rows;
    }
    return PLIM_OK;
}

/* From the head, with the lock let go. Without workers what rows refer to is used up before the next pull. */
static plim_status pull_unit(struct unit *unit, struct iterator *iterator, struct worker *worker, int64_t most,
                             plim_error *error)
{
    struct flow_target target;
    bool over = false, kept = true;
    int64_t got = 0;
    if (iterator->rewind)
        TRY(find_place(iterator, worker, unit, &over, error));
    aim(&target, iterator, unit);
    if (!over)
        TRY(flow_take(&got, &kept, worker->flow, iterator->head, &target, most, iterator->worker_count > 1, error));
    unit->rows = got;
    unit->finished = got && !kept;
    return unit->finished ? finish_unit(iterator, worker, unit, error) : PLIM_OK;
}

/* Another worker is of use when rows are left to hand out. */
static void wake_next(struct iterator *iterator)
{
    if (iterator->sleeping && may_pull(iterator) && iterator->heavy)
        pthread_cond_signal(&iterator->workers_wake);
}

static plim_status hand_out(struct unit *unit, struct iterator *iterator, struct worker *worker, plim_error *error)
{
    int64_t most = flow_rows(worker->flow);
    *unit = (struct unit){.slot = slot_at(iterator, iterator->building),
                          .number = iterator->building,
                          .row = iterator->row,
                          .epoch = (uint64_t)iterator->reading.epoch};
    if (!unit->row)
        begin_slot(iterator, unit->slot);
    if (!iterator->head) {
        place_unit(unit, iterator, most);
        return PLIM_OK;
    }
    most = most < iterator->rows - unit->row ? most : iterator->rows - unit->row;
    if (iterator->single && flow_has_maps(worker->flow)) /* those before a bad one are given */
        most = 1;
    iterator->pulling = true;
    unlock(iterator);
    plim_status status = pull_unit(unit, iterator, worker, most, error);
    lock(iterator);
    iterator->pulling = false;
    if (status == PLIM_OK)
        settle_pull(iterator, unit);
    return status;
}

/* Called and left with the lock held; let go in between. may_pull was true. */
static void run_unit(struct iterator *iterator, struct worker *worker)
{
    struct unit unit;
    plim_error error = {0};
    iterator->active++;
    plim_status status = hand_out(&unit, iterator, worker, &error);
    if (status == PLIM_OK && unit.rows && !unit.finished) {
        unit.slot->units++;
        wake_next(iterator);
        unlock(iterator);
        status = finish_unit(iterator, worker, &unit, &error);
        lock(iterator);
        unit.slot->units--;
    }
    if (status != PLIM_OK && !iterator->seeking)
        note_failure(iterator, status, &unit, &error);
    iterator->active--;
    move_ready(iterator);
    if (iterator->caller_sleeps)
        pthread_cond_signal(&iterator->caller_wakes);
}

static void worker_run(void *context)
{
    struct worker *worker = context;
    struct iterator *iterator = worker->iterator;
    pthread_mutex_lock(&iterator->lock);
    while (!iterator->stop) {
        if (may_pull(iterator)) {
            run_unit(iterator, worker);
            continue;
        }
        iterator->sleeping++;
        pthread_cond_wait(&iterator->workers_wake, &iterator->lock);
        iterator->sleeping--;
    }
    pthread_mutex_unlock(&iterator->lock);
}

/* Waking a thread costs more than a small batch: in a deep ring it is left asleep until half of it is free. */
static void wake_worker(struct iterator *iterator)
{
    uint64_t free_slots = (uint64_t)iterator->slot_count - (iterator->building - iterator->released);
    if (!iterator->sleeping || !may_pull(iterator))
        return;
    if (iterator->heavy || free_slots * 2 >= (uint64_t)iterator->slot_count - 1)
        pthread_cond_signal(&iterator->workers_wake);
}

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
           slot_at(iterator, iterator->building)->units == 0; /* rows of a batch that is dropped may be bad */
}

/* The failed slot is the next one, and no unit can fail before the place that is known. */
static bool has_failed(const struct iterator *iterator)
{
    return iterator->failure.status != PLIM_OK && iterator->ready == iterator->failure.slot &&
           slot_at(iterator, iterator->ready)->units == 0;
}

/* Until the next batch is there, or the end or an error in its place. Never hangs: what nobody does, we do. */
static void await_batch(struct iterator *iterator)
{
    uint64_t start = clock_ns();
    unsigned mode = floats_enter(); /* our arithmetic, on the caller's thread */
    while (iterator->ready == iterator->taken && !is_over(iterator) && !has_failed(iterator)) {
        if (may_pull(iterator))
            run_unit(iterator, &iterator->worker[0]);
        else
            sleep_caller(iterator);
    }
    floats_restore(mode);
    iterator->figures.wait_ns += clock_ns() - start;
}

static void set_position(struct iterator *iterator, int64_t epoch, int64_t step)
{
    iterator->source = NULL;
    iterator->first_rows = iterator->single ? step % iterator->rows : 0;
    step = iterator->single ? step / iterator->rows : step;
    iterator->giving = (struct cursor_position){.epoch = epoch, .step = step};
    iterator->reading = iterator->giving;
    if (!iterator->head && is_last(iterator, iterator->reading)) /* the end of an epoch: the caller is told, reading goes on */
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
    iterator->first_rows = iterator->failure_given > iterator->first_rows ? iterator->failure_given : iterator->first_rows;
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

struct shape iterator_shape(const struct iterator *iterator, int column)
{
    const struct dataset *dataset = iterator->dataset;
    const struct column *rows = &dataset->spec->column[column];
    if (dataset->stacked)
        return value_shape(rows, slot_at(iterator, iterator->taken - 1)->batch.column[column]);
    struct shape shape = {.rank = 1, .dim = {iterator->source ? 1 : slot_at(iterator, iterator->taken - 1)->batch.count}};
    for (int d = 0; d < rows->shape.rank && shape.rank < MOST_AXES; d++)
        shape.dim[shape.rank++] = rows->shape.dim[d];
    return shape;
}

/* ---- seeking ---- */

static plim_status check_position(const struct iterator *iterator, int64_t epoch, int64_t step, plim_error *error)
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

/* ---- opening and closing ---- */

plim_status dataset_start(const struct dataset *dataset, struct scratch *scratch, plim_error *error)
{
    for (const struct dataset *node = dataset; node; node = node->input)
        for (int i = 0; i < node->other_count; i++)
            TRY(dataset_start(node->others[i], scratch, error));
    struct dataset *first = first_node(dataset);
    struct source *source = first->source;
    if (!first->started && source->type->start)
        TRY(source->type->start(source, scratch, error));
    first->started = true;
    return PLIM_OK;
}

static uint64_t bytes_read(const struct dataset *dataset)
{
    uint64_t bytes = __atomic_load_n(&dataset->source->bytes_read, __ATOMIC_RELAXED);
    for (const struct dataset *node = dataset; node; node = node->input)
        for (int i = 0; i < node->other_count; i++)
            bytes += bytes_read(node->others[i]);
    return bytes;
}

static plim_status take_ring(struct iterator *iterator, plim_error *error)
{
    uint64_t bytes = ring_bytes(iterator->dataset, iterator->slot_count);
    uint8_t *ring = bytes == UINT64_MAX ? NULL : budget_take(iterator->budget, TAG_BATCHES, bytes);
    if (!ring)
        return budget_refused(iterator->budget, TAG_BATCHES, bytes, error);
    iterator->ring = ring;
    iterator->ring_bytes = bytes;
    iterator->slot_bytes = lay_out_slot(iterator->column_at, &iterator->room_bytes, iterator->dataset);
    for (int s = 0; s < iterator->slot_count; s++) {
        uint8_t *base = ring + (uint64_t)s * iterator->slot_bytes;
        for (int c = 0; c < iterator->dataset->spec->column_count; c++)
            iterator->slot[s].batch.column[c] = base + iterator->column_at[c];
        room_init(&iterator->slot[s].room, base + iterator->slot_bytes - iterator->room_bytes, iterator->room_bytes);
    }
    return PLIM_OK;
}

static plim_status make_lock(struct iterator *iterator, plim_error *error)
{
    if (pthread_mutex_init(&iterator->lock, NULL) != 0)
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
    if (pthread_cond_init(&iterator->workers_wake, NULL) != 0) {
        pthread_mutex_destroy(&iterator->lock);
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
    }
    if (pthread_cond_init(&iterator->caller_wakes, NULL) != 0) {
        pthread_cond_destroy(&iterator->workers_wake);
        pthread_mutex_destroy(&iterator->lock);
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for the pipeline");
    }
    iterator->has_lock = true;
    return PLIM_OK;
}

static plim_status start_flows(struct iterator *iterator, struct grant grant, uint64_t seed, plim_error *error)
{
    uint64_t each = round_up(flow_bytes(iterator->dataset), 64);
    for (int w = 0; w < iterator->worker_count; w++) {
        struct worker *worker = &iterator->worker[w];
        worker->iterator = iterator;
        worker->flow = (struct flow *)((uint8_t *)iterator + flows_at(grant) + (uint64_t)w * each);
        TRY(flow_start(worker->flow, iterator->dataset, iterator->budget, seed, error));
    }
    return PLIM_OK;
}

static void time_parts(struct iterator *iterator)
{
    for (int w = 0; w < iterator->worker_count; w++)
        flow_time(iterator->worker[w].flow);
    if (iterator->head)
        stream_time(iterator->head);
}

static plim_status open_parts(struct iterator *iterator, struct grant grant, struct scratch *scratch, uint64_t seed,
                              plim_error *error)
{
    TRY(take_ring(iterator, error));
    TRY(dataset_start(iterator->dataset, scratch, error));
    iterator->bytes_read_before = bytes_read(iterator->dataset);
    TRY(start_flows(iterator, grant, seed, error));
    if (flow_head(iterator->dataset))
        TRY(stream_open(&iterator->head, flow_head(iterator->dataset), iterator->budget, seed, error));
    if (grant.timed)
        time_parts(iterator);
    if (iterator->worker_count == 1)
        return PLIM_OK;
    TRY(make_lock(iterator, error));
    for (int w = 1; w < iterator->worker_count; w++)
        TRY(thread_start(&iterator->worker[w].thread, iterator->budget, worker_run, &iterator->worker[w], error));
    return PLIM_OK;
}

static plim_status check_grant(struct grant grant, plim_error *error)
{
    if (grant.slots < 1 || grant.slots > MOST_SLOTS)
        return fail(error, PLIM_USAGE, "a pipeline works with 1 to %d batch slots, not %d", MOST_SLOTS, grant.slots);
    if (grant.workers < 0 || grant.workers > MOST_WORKERS)
        return fail(error, PLIM_USAGE, "a pipeline works with 0 to %d threads, not %d", MOST_WORKERS, grant.workers);
    return PLIM_OK;
}

plim_status iterator_open(struct iterator **out, struct dataset *dataset, struct budget *budget,
                          struct scratch *scratch, struct grant grant, uint64_t seed, int64_t epoch, int64_t step,
                          plim_error *error)
{
    TRY(dataset_runs(dataset, error));
    TRY(check_grant(grant, error));
    uint64_t bytes = iterator_bytes(dataset, grant);
    struct iterator *iterator = bytes == UINT64_MAX ? NULL : budget_take(budget, TAG_PIPELINE, bytes);
    if (!iterator)
        return budget_refused(budget, TAG_PIPELINE, bytes, error);
    iterator->bytes = bytes;
    iterator->budget = budget;
    iterator->dataset = dataset_ref(dataset);
    iterator->rows = slot_rows(dataset);
    iterator->slot_count = grant.slots;
    iterator->worker_count = grant.workers + 1;
    iterator->worker = (struct worker *)((uint8_t *)iterator + workers_at());
    iterator->slot = (struct slot *)((uint8_t *)iterator + slots_at(grant.workers));
    iterator->has_values = spec_has_values(dataset->spec);
    iterator->heavy = dataset_is_heavy(dataset);
    iterator->single = is_single(dataset);
    iterator->drops = dataset->batch_size && dataset->drop_remainder;
    iterator->steps = slot_steps(&iterator->last_batch, dataset);
    plim_status status = check_position(iterator, epoch, step, error);
    if (status == PLIM_OK) {
        set_position(iterator, epoch, step);
        status = open_parts(iterator, grant, scratch, seed, error);
    }
    if (status != PLIM_OK) {
        iterator_close(iterator);
        return status;
    }
    *out = iterator;
    return PLIM_OK;
}

static void stop_workers(struct iterator *iterator)
{
    pthread_mutex_lock(&iterator->lock);
    iterator->stop = true;
    atomic_store(&iterator->cancel, true);
    pthread_cond_broadcast(&iterator->workers_wake);
    pthread_mutex_unlock(&iterator->lock);
    for (int w = 1; w < iterator->worker_count; w++)
        if (iterator->worker[w].thread)
            thread_join(iterator->worker[w].thread);
}

void iterator_close(struct iterator *iterator)
{
    if (!iterator)
        return;
    if (iterator->has_lock) {
        stop_workers(iterator);
        pthread_cond_destroy(&iterator->caller_wakes);
        pthread_cond_destroy(&iterator->workers_wake);
        pthread_mutex_destroy(&iterator->lock);
    }
    stream_close(iterator->head);
    for (int w = 0; w < iterator->worker_count; w++)
        if (iterator->worker[w].flow)
            flow_stop(iterator->worker[w].flow);
    budget_give(iterator->budget, TAG_BATCHES, iterator->ring, iterator->ring_bytes);
    dataset_unref(iterator->dataset);
    budget_give(iterator->budget, TAG_PIPELINE, iterator, iterator->bytes);
}

void iterator_figures(struct iterator_figures *out, const struct iterator *iterator)
{
    *out = iterator->figures; /* written by the caller's thread only */
    out->bytes_read = bytes_read(iterator->dataset) - iterator->bytes_read_before;
    out->skipped = stream_skipped(iterator->head);
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
