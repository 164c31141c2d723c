/* save.c - a pipeline run to its end into a snapshot. */
#include <stdio.h>

#include "formats/records/snapshot.h"
#include "pipeline/core/pipeline_digest.h"

static plim_status save_batch(void *state, const struct batch *batch, const struct spec *spec, plim_error *error)
{
    uint64_t stride[MOST_COLUMNS];
    for (int c = 0; c < spec->column_count; c++)
        stride[c] = spec->column[c].bytes;
    return snapshot_add(state, (const void *const *)batch->column, stride, batch->count, error);
}

static plim_status save_all(struct dataset *dataset, const char *path, const struct data_run *run, plim_error *error)
{
    char digest[65];
    struct snapshot *snapshot;
    pipeline_digest(digest, dataset, run->seed);
    TRY(snapshot_create(&snapshot, run->budget, path, dataset->spec, digest, error));
    plim_status status = dataset_reduce(snapshot, dataset, run, save_batch, error);
    if (status == PLIM_OK)
        status = snapshot_finish(snapshot, error);
    snapshot_close(snapshot);
    return status;
}

plim_status dataset_save(struct dataset *dataset, const char *folder, const struct data_run *run, plim_error *error)
{
    char path[4096];
    TRY(dataset_error(dataset, error));
    if (dataset->batch_size || dataset->stacked)
        return hint(error, fail(error, PLIM_UNSUPPORTED, "save: batches are not saved as elements"),
                    "save before batch");
    if (snprintf(path, sizeof path, "%s/%s", folder, SNAPSHOT_NAME) >= (int)sizeof path)
        return fail_at(error, PLIM_USAGE, folder, "the name is too long");
    TRY(file_make_folder(folder, error));
    return save_all(dataset, path, run, error);
}
