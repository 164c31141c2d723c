/* api_iterator.c - iterators for C programs: what fits the budget is chosen, and the place is reported across shards.

   A place is a number of elements of the whole data set: with n shards that have each given p elements, the first
   n * p. Shard k of m goes on with the first of its elements that lies behind them, so that together they give what is
   left and nothing twice, whatever m is. */
#include "api/api.h"
#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "base/numbers/hash.h"
#include "base/text/text.h"
#include "base/threads/busy.h"
#include "pipeline/core/stage_table.h"

#include <stdio.h>
#include <string.h>

struct plim_iterator {
    struct busy busy; /* a public call works on it */
    struct budget *budget;
    struct dataset *dataset;
    struct iterator *inner;
    const struct batch *given; /* the last one, while it is valid */
    struct scratch_disk scratch;
    int64_t shards, shard;
    uint64_t pipeline;
    int64_t epoch, global, local; /* restored here: elements of all, and ours */
    char folder[];
};

/* ---- which pipeline ---- */

/* Stages that leave elements where they are lie between us and shard; else places are our own. */
static void find_shards(int64_t *count, int64_t *index, const struct dataset *dataset)
{
    *count = 1;
    *index = 0;
    while (dataset->stage && dataset->stage->after_batch)
        dataset = dataset->input;
    if (dataset->stage && dataset->stage->shards)
        dataset->stage->shards(count, index, dataset);
}

/* What a place means depends on source, seed and stages; not on batch, prefetch, maps and the shards we can see
 * through. */
static uint64_t identify(const struct dataset *dataset, uint64_t seed)
{
    uint64_t hash = fnv1a(FNV1A_START, &seed, sizeof seed);
    while (dataset->stage && (dataset->stage->after_batch || dataset->stage->shards))
        dataset = dataset->input;
    for (; dataset; dataset = dataset->input) {
        const char *name = dataset->stage ? dataset->stage->name : dataset->source->type->name;
        hash = fnv1a(hash, name, strlen(name) + 1);
        hash = fnv1a(hash, &dataset->number, sizeof dataset->number);
        hash = fnv1a(hash, &dataset->cardinality, sizeof dataset->cardinality);
        hash = fnv1a(hash, &dataset->seed, sizeof dataset->seed);
        if (dataset->stage && dataset->stage->shards) {
            int64_t shards[2];
            dataset->stage->shards(&shards[0], &shards[1], dataset);
            hash = fnv1a(hash, shards, sizeof shards);
        }
    }
    return hash;
}

/* ---- what it works with ---- */

static uint64_t cost_of(const struct dataset *dataset, struct grant grant)
{
    uint64_t by_tag[TAG_COUNT] = {0}, bytes = 0;
    dataset_cost(by_tag, NULL, dataset, grant);
    for (int tag = 0; tag < TAG_COUNT; tag++)
        bytes = add_most(bytes, by_tag[tag]);
    return bytes;
}

static plim_status refuse(struct budget *budget, const struct dataset *dataset, uint64_t needed, uint64_t left,
                          plim_error *error)
{
    char need[16], have[16], stages[360] = "";
    size_t bytes = sizeof(struct stage_table);
    text_size(need, needed);
    text_size(have, left);
    struct stage_table *table = budget_take(budget, TAG_PLANNER, bytes);
    if (table) {
        stage_table_fill(table, dataset, dataset_least_grant(dataset));
        stage_table_bytes(stages, sizeof stages, table);
        budget_give(budget, TAG_PLANNER, table, bytes);
    }
    fail(error, PLIM_OVER_BUDGET, "the pipeline needs >= %s, given %s%s%s", need, have, *stages ? ": " : "", stages);
    return hint(error, PLIM_OVER_BUDGET, "a budget of %lluKiB more, or a smaller batch",
                (unsigned long long)((needed - left) / 1024 + 1));
}

struct wish {
    const struct dataset *dataset;
    uint64_t left;
    int slots; /* 0: as many as fit */
};

static struct grant with_slots(const struct wish *wish, struct grant grant)
{
    grant.slots = wish->slots > 0 ? wish->slots : grant.slots;
    return grant;
}

static bool fits(void *context, struct grant grant)
{
    const struct wish *wish = context;
    return cost_of(wish->dataset, with_slots(wish, grant)) <= wish->left;
}

/* As many slots and threads as are of use and fit. */
static plim_status choose(struct grant *out, struct budget *budget, struct dataset *dataset,
                          const plim_iterator_options *options, plim_error *error)
{
    struct budget_usage usage = budget_usage(budget);
    uint64_t left = usage.limit > usage.now ? usage.limit - usage.now : 0;
    struct wish wish = {.dataset = dataset, .left = left, .slots = options->slots};
    *out = with_slots(&wish, grant_choose(dataset, options->threads, fits, &wish));
    uint64_t cost = cost_of(dataset, *out);
    return cost <= left ? PLIM_OK : refuse(budget, dataset, cost, left, error);
}

/* ---- places ---- */

static plim_status restore(plim_iterator *iterator, const plim_iterator_state *state, plim_error *error)
{
    if (state->pipeline != iterator->pipeline)
        return fail(error, PLIM_BAD_DATA, "this state was taken of another pipeline, or with another seed");
    if (state->samples < 0 || state->epoch < 0)
        return fail(error, PLIM_BAD_DATA, "this state was not taken of an iterator");
    int64_t cardinality = dataset_cardinality(iterator->dataset);
    int64_t before = state->samples - iterator->shard;
    int64_t local = before > 0 ? before / iterator->shards + (before % iterator->shards != 0) : 0;
    if (cardinality >= 0 && local > cardinality) /* behind a last batch that was not whole */
        local = cardinality;
    TRY(iterator_seek_element(iterator->inner, state->epoch, local, error));
    iterator->given = NULL;
    iterator->epoch = state->epoch;
    iterator->global = state->samples;
    iterator->local = local;
    return PLIM_OK;
}

/* ---- opening and closing ---- */

static size_t block_bytes(const char *folder)
{
    return sizeof(struct plim_iterator) + strlen(folder) + 1;
}

static plim_status open_inner(plim_iterator *iterator, const plim_iterator_options *options, plim_error *error)
{
    struct grant grant;
    uint64_t unused[TAG_COUNT] = {0}, disk = 0;
    struct dataset *dataset = iterator->dataset;
    TRY(choose(&grant, iterator->budget, dataset, options, error));
    dataset_cost(unused, &disk, dataset, grant);
    if (disk > iterator->scratch.limit_bytes)
        return hint(error,
                    fail(error, PLIM_OVER_DISK,
                         "unpacked sources and caches take %llu bytes of disk, the limit is %llu",
                         (unsigned long long)disk, (unsigned long long)iterator->scratch.limit_bytes),
                    "disk_bytes = %llu", (unsigned long long)disk);
    const struct data_run run = {.budget = iterator->budget, .scratch = &iterator->scratch, .seed = options->seed};
    TRY(iterator_open(&iterator->inner, dataset, &run, grant, NULL, error));
    return options->state ? restore(iterator, options->state, error) : PLIM_OK;
}

static void release(plim_iterator *iterator)
{
    iterator_close(iterator->inner);
    dataset_unref(iterator->dataset);
    budget_give(iterator->budget, TAG_PIPELINE, iterator, block_bytes(iterator->folder));
}

plim_status plim_iterator_open(plim_iterator **out, plim_dataset *dataset, plim_budget *budget,
                               const plim_iterator_options *options, plim_error *error)
{
    static const plim_iterator_options defaults;
    HOST_FLOATS;
    options = options ? options : &defaults;
    const char *folder = options->scratch ? options->scratch : API_SCRATCH;
    size_t bytes = block_bytes(folder);
    TRY(need_argument(out, "where the iterator is to go", error));
    TRY(need_argument(dataset, "the data set", error));
    TRY(need_argument(budget, "the budget", error));
    TRY(dataset_runs(inside(dataset), error));
    if (options->threads < 0)
        return fail(error, PLIM_USAGE, "threads: %d", options->threads);
    plim_iterator *iterator;
    TRY(budget_alloc(&iterator, budget->inner, TAG_PIPELINE, bytes, error));
    memcpy(iterator->folder, folder, strlen(folder) + 1);
    iterator->budget = budget->inner;
    iterator->dataset = dataset_ref(inside(dataset));
    iterator->scratch.folder = iterator->folder;
    iterator->scratch.limit_bytes = options->disk_bytes ? options->disk_bytes : API_DISK;
    iterator->pipeline = identify(inside(dataset), options->seed);
    find_shards(&iterator->shards, &iterator->shard, inside(dataset));
    return OPENED(out, iterator, release, open_inner(iterator, options, error));
}

/* ---- one call at a time ---- */

/* Functions of the caller's run inside plim_iterator_next, and on threads of the iterator's: what waits for a batch
   there would wait for itself. */
static plim_status begin_call(plim_iterator *iterator, plim_error *error)
{
    TRY(need_argument(iterator, "the iterator", error));
    if (!iterator_is_worker(iterator->inner) && busy_enter(&iterator->busy))
        return PLIM_OK;
    return hint(error, fail(error, PLIM_USAGE, "the iterator is at work already, for another call"),
                "an iterator serves one thread at a time, and no function that its own data set calls");
}

/* false: it was closed meanwhile, by a function that its data set called, and is gone now. */
static bool end_call(plim_iterator *iterator)
{
    bool stays = busy_leave(&iterator->busy);
    if (!stays)
        release(iterator);
    return stays;
}

static plim_status closed_meanwhile(plim_error *error)
{
    return fail(error, PLIM_USAGE, "the iterator was closed while it was at work");
}

void plim_iterator_close(plim_iterator *iterator)
{
    if (iterator && !iterator_is_worker(iterator->inner) && busy_give_up(&iterator->busy))
        release(iterator);
}

plim_status plim_iterator_next(const plim_batch **batch, plim_iterator *iterator, plim_error *error)
{
    struct batch *inner;
    HOST_FLOATS;
    TRY(need_argument(batch, "where the batch is to go", error));
    TRY(begin_call(iterator, error));
    iterator->given = NULL;
    plim_status status = iterator_next(&inner, iterator->inner, error);
    if (status == PLIM_OK)
        iterator->given = inner;
    if (!end_call(iterator))
        return closed_meanwhile(error);
    if (status == PLIM_OK)
        *batch = (const plim_batch *)inner;
    return status;
}

plim_status plim_iterator_restore(plim_iterator *iterator, const plim_iterator_state *state, plim_error *error)
{
    HOST_FLOATS;
    TRY(need_argument(state, "the state", error));
    TRY(begin_call(iterator, error));
    plim_status status = restore(iterator, state, error);
    return end_call(iterator) ? status : closed_meanwhile(error);
}

/* ---- asking ---- */

static int shape_of_given(int64_t *shape, const plim_iterator *iterator, int column)
{
    const struct dataset *dataset = iterator->dataset;
    if (!iterator->given || column < 0 || column >= dataset->spec->column_count)
        return 0;
    struct shape rows = dataset->spec->column[column].shape;
    if (dataset->stacked) { /* an element is the batch: its first axis are the samples */
        struct shape whole = iterator_shape(iterator->inner, column);
        rows = shape_of(whole.rank - 1, whole.dim + 1);
    }
    shape[0] = iterator->given->count;
    for (int axis = 0; axis < rows.rank; axis++)
        shape[axis + 1] = rows.dim[axis];
    return rows.rank + 1;
}

/* Asking is const for the caller, and takes its turn all the same. */
static plim_iterator *turn_of(const plim_iterator *iterator)
{
    return (plim_iterator *)(uintptr_t)iterator;
}

int plim_iterator_shape(int64_t shape[PLIM_MOST_AXES + 1], const plim_iterator *iterator, int column)
{
    if (!shape || begin_call(turn_of(iterator), NULL) != PLIM_OK)
        return 0;
    int rank = shape_of_given(shape, iterator, column);
    end_call(turn_of(iterator));
    return rank;
}

static void take_state(plim_iterator_state *state, const plim_iterator *iterator)
{
    int64_t epoch, element;
    iterator_position(&epoch, &element, iterator->inner);
    bool restored = epoch == iterator->epoch;
    int64_t since = restored ? element - iterator->local : element, before = restored ? iterator->global : 0, samples;
    samples =
        mul_i64(&samples, since, iterator->shards) && samples <= INT64_MAX - before ? before + samples : INT64_MAX;
    *state = (plim_iterator_state){.epoch = epoch, .samples = samples, .pipeline = iterator->pipeline};
}

void plim_iterator_state_take(plim_iterator_state *state, const plim_iterator *iterator)
{
    if (!state)
        return;
    *state = (plim_iterator_state){.epoch = -1};
    if (begin_call(turn_of(iterator), NULL) != PLIM_OK)
        return;
    take_state(state, iterator);
    end_call(turn_of(iterator));
}
