/* key_concatenate.c - one data set after the other: concatenate: [{tfrecord: a}, {tfrecord: b}]. */
#include "pipeline/keys/source_key.h"

static plim_status open_concatenate(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                                    plim_error *error)
{
    struct dataset *all[MOST_FILES];
    int count;
    TRY(reader_inputs(all, &count, MOST_FILES, reader, yaml, error));
    *out = dataset_concatenate(all, count);
    return PLIM_OK;
}

const struct source_key source_key_concatenate = {
    .word = "concatenate", .open = open_concatenate, .origin = OF_SOURCES};
