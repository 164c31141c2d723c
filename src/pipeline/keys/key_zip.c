/* key_zip.c - columns of several data sets side by side: zip: [{npy: x.npy}, {npy: y.npy}]. */
#include "pipeline/keys/source_key.h"

static plim_status open_zip(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                            plim_error *error)
{
    struct dataset *all[MOST_FILES];
    int count;
    TRY(reader_inputs(all, &count, MOST_FILES, reader, yaml, error));
    *out = dataset_zip(all, count);
    return PLIM_OK;
}

const struct source_key source_key_zip = {.word = "zip", .open = open_zip, .origin = OF_SOURCES};
