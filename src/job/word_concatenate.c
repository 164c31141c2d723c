/* word_concatenate.c - one data set after the other: concatenate: [{tfrecord: a}, {tfrecord: b}]. */
#include "job/source_word.h"

static plim_status open_concatenate(struct dataset **out, struct plim_job *job, const struct yaml *yaml,
                                    plim_error *error)
{
    struct dataset *all[MOST_FILES];
    int count;
    TRY(job_inputs(all, &count, MOST_FILES, job, yaml, error));
    *out = dataset_concatenate(all, count);
    return PLIM_OK;
}

const struct source_word source_word_concatenate = {"concatenate", open_concatenate, OF_SOURCES};
