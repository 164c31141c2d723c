/* word_snapshot.c - a folder that a pipeline was saved to: read by index, as any data with one. */
#include "formats/records/snapshot.h"
#include "job/source_word.h"

static plim_status open_snapshot(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    const char *paths[MOST_FILES];
    struct source *source;
    int count;
    TRY(job_paths(paths, &count, job, yaml, error));
    if (count != 1)
        return job_bad(job, yaml, "snapshot: expected one folder", error);
    TRY(snapshot_source_open(&source, job->budget, paths[0], error));
    *out = dataset_from_source(source);
    return PLIM_OK;
}

const struct source_word source_word_snapshot = {"snapshot", open_snapshot, OF_FILES};
