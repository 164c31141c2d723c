/* word_range.c - the numbers 0, 1, ... n - 1. */
#include "job/source_word.h"

static plim_status open_range(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    const struct setting setting = {"range", SETTING_WHOLE, 0, 1};
    int64_t n;
    TRY(setting_value(&n, &setting, job->path, yaml, error));
    struct source *source;
    TRY(range_open(&source, job->budget, n, error));
    *out = dataset_from_source(source);
    return PLIM_OK;
}

const struct source_word source_word_range = {"range", open_range, OF_WORDS};
