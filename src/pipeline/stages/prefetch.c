/* prefetch.c - how many batches are read ahead of the one in use; elements, where it stands before batch. Never changes
   what is read. */
#include <stdint.h>
#include <string.h>

#include "pipeline/core/iterator_own.h"
#include "pipeline/core/stage.h"
#include "pipeline/stages/keep/held_blocks.h"

#define MOST_DEPTH 1024
#define AUTO_SLOTS 3                      /* one in use, one ready, one being read */
#define FAST_BYTES ((uint64_t)256 * 1024) /* rows of held blocks come faster than a thread is woken: more, if small */
#define FAST_SLOTS 17

static plim_status prefetch_build(struct dataset *dataset, plim_error *error)
{
    if (dataset->number < PREFETCH_AUTO || (!is_single(dataset) && dataset->number > MOST_DEPTH))
        return fail(error, PLIM_BAD_JOB, "prefetch: must be auto or 0 to %d batches, got %lld", MOST_DEPTH,
                    (long long)dataset->number);
    dataset->prefetched = true;
    dataset->depth = dataset->number;
    return PLIM_OK;
}

struct dataset *dataset_prefetch(struct dataset *dataset, int64_t depth)
{
    return dataset_add(dataset, &stage_prefetch, (struct stage_arguments){.number = depth});
}

struct grant dataset_least_grant(const struct dataset *dataset)
{
    (void)dataset;
    return (struct grant){.slots = 1};
}

bool dataset_is_heavy(const struct dataset *dataset)
{
    for (; dataset; dataset = dataset->input)
        if (dataset->function && dataset->function->heavy)
            return true;
    return false;
}

static int auto_slots(const struct dataset *dataset)
{
    uint64_t each = ring_bytes(dataset, 1), fast = each ? FAST_BYTES / each : FAST_SLOTS;
    if (!held_most(dataset) || fast < AUTO_SLOTS)
        return AUTO_SLOTS;
    return fast < FAST_SLOTS ? (int)fast : FAST_SLOTS;
}

/* Slots ahead of the one in use. Elements are read in slots of many: as many slots as hold those that are asked for. */
static int slots_ahead(const struct dataset *dataset)
{
    const struct dataset *prefetch = dataset;
    while (prefetch && prefetch->stage != &stage_prefetch)
        prefetch = prefetch->input;
    int64_t each = !prefetch || !is_single(prefetch) ? 1 : dataset->stacked ? dataset->stacked : slot_rows(dataset);
    int64_t slots = dataset->depth / each + (dataset->depth % each != 0);
    return (int)(slots < MOST_DEPTH ? slots : MOST_DEPTH);
}

/* NEEDSWORK: of two optional caches in one chain the last would do; both are kept or none. */
static bool has_optional_cache(const struct dataset *dataset)
{
    for (; dataset; dataset = dataset->input) {
        for (int i = 0; i < dataset->other_count; i++)
            if (has_optional_cache(dataset->others[i]))
                return true;
        if (dataset->stage && dataset->stage->may_spare && dataset->stage->may_spare(dataset))
            return true;
    }
    return false;
}

/* Light work is done by one thread ahead of the caller; heavy work by all, even with one slot to fill. */
struct grant dataset_wanted_grant(const struct dataset *dataset, int data_threads)
{
    struct grant grant = {.slots = 1, .held = held_most(dataset), .caches = has_optional_cache(dataset)};
    if (dataset->prefetched && data_threads > 0)
        grant.slots = dataset->depth == PREFETCH_AUTO ? auto_slots(dataset) : slots_ahead(dataset) + 1;
    if (dataset_is_heavy(dataset))
        grant.workers = data_threads;
    else
        grant.workers = grant.slots > 1 && data_threads > 0;
    return grant;
}

/* Held blocks of the next group go first, slots next, the last held block after them: the order is what counts. */
bool grant_shrink(struct grant *grant, struct grant least)
{
    if (grant->held > least.held && grant->held > 1)
        grant->held--; /* NOLINT(bugprone-branch-clone) */
    else if (grant->slots > (grant->held ? least.slots + 1 : least.slots))
        grant->slots--;
    else if (grant->held > least.held)
        grant->held--;
    else if (grant->workers > least.workers)
        grant->workers--;
    else
        return false;
    if (grant->slots == 1 && grant->workers == 1) /* nothing is read ahead: nothing for a thread to do */
        grant->workers = least.workers;
    return true;
}

struct grant grant_choose(const struct dataset *dataset, int data_threads, grant_fits *fits, void *context)
{
    struct grant least = dataset_least_grant(dataset), wanted = dataset_wanted_grant(dataset, data_threads);
    struct grant grant = wanted;
    while (!fits(context, grant)) {
        if (grant_shrink(&grant, least))
            continue;
        if (!grant.caches)
            break;
        grant = wanted;
        grant.caches = false;
    }
    return grant;
}

static plim_status prefetch_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    const struct yaml *value = entry->value;
    int64_t depth = PREFETCH_AUTO;
    const struct setting setting = {"prefetch", SETTING_WHOLE, 0, INT64_MIN};
    bool automatic = !value || value->is_null || (value->kind == YAML_SCALAR && strcmp(value->text, "auto") == 0);
    if (!automatic)
        TRY(setting_value(&depth, &setting, entry->job, value, error));
    if (depth < PREFETCH_AUTO) /* where it stands; dataset_prefetch could not say */
        return fail_at(error, PLIM_BAD_JOB, entry->where, "prefetch: must be auto, or 0 and more, got %lld",
                       (long long)depth);
    *dataset = dataset_prefetch(*dataset, depth);
    return PLIM_OK;
}

const struct stage stage_prefetch = {
    .name = "prefetch",
    .after_batch = true,
    .bare = true,
    .build = prefetch_build,
    .read = prefetch_read,
};
