/* iterator_open.c - opening and closing: everything is taken at once, nothing afterwards. */
#include <string.h>

#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/threads/workers.h"
#include "pipeline/core/iterator_own.h"
#include "pipeline/stages/keep/held_blocks.h"

plim_status dataset_start(const struct dataset *dataset, struct scratch_disk *scratch, plim_error *error)
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

static plim_status take_ring(struct iterator *iterator, plim_error *error)
{
    uint64_t bytes = ring_bytes(iterator->dataset, iterator->slot_count);
    uint8_t *ring = bytes == UINT64_MAX ? NULL : budget_take(iterator->budget, TAG_BATCHES, bytes);
    if (!ring)
        return budget_refused(iterator->budget, TAG_BATCHES, bytes, error);
    iterator->ring = ring;
    iterator->ring_bytes = bytes;
    iterator->slot_bytes = lay_out_slot(iterator->column_at, &iterator->value_bytes, iterator->dataset);
    for (int s = 0; s < iterator->slot_count; s++) {
        uint8_t *base = ring + (uint64_t)s * iterator->slot_bytes;
        for (int c = 0; c < iterator->dataset->spec->column_count; c++)
            iterator->slot[s].batch.column[c] = base + iterator->column_at[c];
        iterator->slot[s].batch.origin = iterator;
        value_buffer_init(&iterator->slot[s].values, base + iterator->slot_bytes - iterator->value_bytes,
                          iterator->value_bytes);
    }
    return PLIM_OK;
}

static plim_status make_lock(struct iterator *iterator, plim_error *error)
{
    if (!lock_init(&iterator->lock))
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
        flow_hold(worker->flow, iterator->held);
        flow_beside(worker->flow, iterator->worker_count);
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

static plim_status open_parts(struct iterator *iterator, struct grant grant, struct scratch_disk *scratch,
                              uint64_t seed, plim_error *error)
{
    TRY(take_ring(iterator, error));
    TRY(dataset_start(iterator->dataset, scratch, error));
    iterator->bytes_read_before = bytes_read(iterator->dataset);
    if (held_bytes(iterator->dataset, grant.held))
        TRY(held_open(&iterator->held, iterator->dataset, grant.held, (int64_t)grant.slots * iterator->rows,
                      iterator->budget, error));
    TRY(start_flows(iterator, grant, seed, error));
    const struct stream_run run = {iterator->budget, scratch, seed, grant.caches};
    if (flow_head(iterator->dataset))
        TRY(stream_open(&iterator->head, flow_head(iterator->dataset), &run, error));
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

static plim_status open_iterator(struct iterator **out, struct dataset *dataset, const struct data_run *run,
                                 struct grant grant, const struct batch_place *start, plim_error *error)
{
    uint64_t bytes = iterator_bytes(dataset, grant);
    struct iterator *iterator = bytes == UINT64_MAX ? NULL : budget_take(run->budget, TAG_PIPELINE, bytes);
    if (!iterator)
        return budget_refused(run->budget, TAG_PIPELINE, bytes, error);
    iterator->bytes = bytes;
    iterator->budget = run->budget;
    iterator->dataset = dataset_ref(dataset);
    iterator->rows = slot_rows(dataset);
    iterator->slot_count = grant.slots;
    iterator->worker_count = iterator->wanted = grant.workers + 1;
    iterator->worker = (struct worker *)((uint8_t *)iterator + workers_at());
    iterator->slot = (struct slot *)((uint8_t *)iterator + slots_at(grant.workers));
    iterator->has_values = spec_has_values(dataset->spec);
    iterator->heavy = dataset_is_heavy(dataset);
    iterator->single = is_single(dataset);
    iterator->drops = dataset->batch_size && dataset->drop_remainder;
    iterator->steps = slot_steps(&iterator->last_batch, dataset);
    plim_status status = check_position(iterator, start->epoch, start->step, error);
    if (status == PLIM_OK) {
        set_position(iterator, start->epoch, start->step);
        status = open_parts(iterator, grant, run->scratch, run->seed, error);
    }
    return OPENED(out, iterator, iterator_close, status);
}

/* Opening may unpack sources: a stop ends that too. */
plim_status iterator_open(struct iterator **out, struct dataset *dataset, const struct data_run *run,
                          struct grant grant, const struct batch_place *start, plim_error *error)
{
    static const struct batch_place first = {0, 0};
    TRY(dataset_runs(dataset, error));
    TRY(check_grant(grant, error));
    bool refused = budget_stop_refuses(run->budget, true);
    plim_status status = open_iterator(out, dataset, run, grant, start ? start : &first, error);
    budget_stop_refuses(run->budget, refused);
    return status;
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
    held_close(iterator->held);
    budget_give(iterator->budget, TAG_BATCHES, iterator->ring, iterator->ring_bytes);
    dataset_unref(iterator->dataset);
    budget_give(iterator->budget, TAG_PIPELINE, iterator, iterator->bytes);
}
