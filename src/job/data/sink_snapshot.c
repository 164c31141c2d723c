/* sink_snapshot.c - elements into a folder, as they are: a snapshot, which is read by index again. */
#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "formats/records/snapshot.h"
#include "job/data/data_sink.h"

struct sink {
    struct budget *budget;
    struct snapshot *snapshot;
    bool finished;
    char folder[4096];
};

static uint64_t snapshot_cost(const struct sink_plan *plan)
{
    char longest[4096];
    (void)plan;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    return snapshot_bytes(longest) + sizeof(struct sink) + 8192;
}

static void snapshot_sink_close(struct sink *sink)
{
    snapshot_close(sink->snapshot);
    if (!sink->finished)
        file_remove_folder(sink->folder);
    budget_give(sink->budget, TAG_FORMATS, sink, sizeof *sink);
}

static plim_status snapshot_sink_open(struct sink **out, struct budget *budget, const char *path,
                                      const struct sink_plan *plan, plim_error *error)
{
    char file[4096];
    struct sink *sink;
    TRY(budget_alloc(&sink, budget, TAG_FORMATS, sizeof *sink, error));
    sink->budget = budget;
    int length = snprintf(file, sizeof file, "%s/%s", path, SNAPSHOT_NAME);
    plim_status status =
        length >= (int)sizeof file ? fail_at(error, PLIM_USAGE, path, "the name is too long") : PLIM_OK;
    if (status == PLIM_OK) {
        memcpy(sink->folder, path, strlen(path) + 1);
        status = file_make_folder(path, error);
    }
    if (status == PLIM_OK)
        status = snapshot_create(&sink->snapshot, budget, file, plan->spec, "", error);
    return OPENED(out, sink, snapshot_sink_close, status);
}

static plim_status snapshot_sink_add(struct sink *sink, void *const *row, plim_error *error)
{
    static const uint64_t stride[MOST_COLUMNS]; /* one row: it does not matter */
    return snapshot_add(sink->snapshot, (const void *const *)row, stride, 1, error);
}

static plim_status snapshot_sink_finish(struct sink *sink, plim_error *error)
{
    TRY(snapshot_finish(sink->snapshot, error));
    sink->finished = true;
    return PLIM_OK;
}

const struct sink_type sink_snapshot = {
    .suffixes = {"/"},
    .cost = snapshot_cost,
    .open = snapshot_sink_open,
    .add = snapshot_sink_add,
    .finish = snapshot_sink_finish,
    .close = snapshot_sink_close,
};
