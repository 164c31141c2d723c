/* word_zip.c - columns of several data sets side by side: zip: [{npy: x.npy}, {npy: y.npy}]. */
#include "job/source_word.h"

static plim_status open_zip(struct dataset **out, struct plim_job *job, const struct yaml *yaml, plim_error *error)
{
    struct dataset *all[MOST_FILES];
    int count;
    TRY(job_inputs(all, &count, MOST_FILES, job, yaml, error));
    *out = dataset_zip(all, count);
    return PLIM_OK;
}

const struct source_word source_word_zip = {"zip", open_zip, OF_SOURCES};
