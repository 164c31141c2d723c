/* split.h - a split of a job file's data (`train:`, or one inside another): a source, then the stages of
   `pipeline:`. */
#ifndef PIPELINE_KEYS_SPLIT_H
#define PIPELINE_KEYS_SPLIT_H

#include "pipeline/keys/source_key.h"

struct split {
    const struct yaml *source, *pipeline; /* pipeline: NULL where there is none, else a list */
    uint64_t largest_element;             /* 0: not stated */
};

/* Checks every key before anything is opened. */
plim_status split_read(struct split *out, struct data_reader *reader, const struct yaml *yaml, plim_error *error);
/* *out is NULL at first; what was made of it so far is yours to unref, also on failure. */
plim_status split_open(struct dataset **out, struct data_reader *reader, const struct split *split, plim_error *error);
/* A data set inside another: read and opened. Yours to unref; untouched on failure. */
plim_status split_open_nested(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                              plim_error *error);

#endif
