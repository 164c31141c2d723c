/* word_idx.c - IDX files, plain or gzip, side by side. */
#include "job/source_word.h"

static plim_status open_idx(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    const char *paths[MOST_FILES];
    int count;
    TRY(job_paths(paths, &count, job, yaml, error));
    struct source *source;
    TRY(idx_open(&source, job->budget, paths, count, error));
    *out = dataset_from_source(source);
    return PLIM_OK;
}

const struct source_word source_word_idx = {"idx", open_idx, OF_FILES};
