/* padding.h - samples of different shapes into one stacked element. */
#ifndef PIPELINE_STAGES_BATCHES_PADDING_H
#define PIPELINE_STAGES_BATCHES_PADDING_H

#include "pipeline/core/stage.h"

#define PADDING_BYTES 16 /* of one element of any type, strings included */

/* What one column is padded to, and with what. */
struct column_padding {
    struct shape shape; /* of a sample; -1: as the longest one of the batch */
    uint8_t value[PADDING_BYTES];
};

/* For each column of `spec`, from `count` of the above: what is not said is the column's own shape, and zeros. */
plim_status padding_resolve(struct column_padding *out, const struct spec *spec, const struct padding *said, int count,
                            plim_error *error);
/* The spec of a stack of padded samples: `rows`, or any number of them (-1). */
plim_status padding_spec(struct spec *spec, const struct column_padding *padding, int64_t rows, plim_error *error);
/* A room for a batch of so many samples: enough when all are as large as the largest may be, but no more than a few
   MiB, unless one sample may be larger. stated: instead (0: not). */
uint64_t padding_room(const struct spec *spec, uint64_t sample_room, int64_t samples, uint64_t stated);

/* Rows rows[0..count) of `from` (NULL: 0..count) as one element behind the last of `to`. open_extent: what stands for
   -1, or -1 for the longest. Strings go on referring to what they refer to. The element's index is that of its first
   sample. */
plim_status padding_stack(struct chunk *to, const struct chunk *from, const int64_t *rows, int64_t count,
                          const struct column_padding *padding, int64_t open_extent, const struct dataset *dataset,
                          plim_error *error);

/* Of a job file: padded_shapes: {x: [5]}, padding_values: 0 or {x: -1}; either may be NULL. At most
   MOST_COLUMNS + 1. */
plim_status padding_read(struct padding *out, int *count, const struct yaml *shapes, const struct yaml *values,
                         const char *job, plim_error *error);
/* `room: 8MiB`; 0 where nothing is said. */
plim_status stage_room(uint64_t *bytes, const char *text, const char *job, const struct yaml *at, plim_error *error);

#endif
