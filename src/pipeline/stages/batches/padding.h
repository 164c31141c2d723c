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

/* What the options of stages that keep samples and stack them begin with. */
struct stacking {
    uint64_t value_bytes; /* of the samples that are kept; 0: as expected */
    bool drop_remainder;
    struct column_padding padding[MOST_COLUMNS];
};
/* The facts of a stage whose elements are stacks of at most `largest` samples (`whole`: always as many), and which
   keeps `kept` of its input's elements. Its options begin with a struct stacking. */
plim_status stacking_build(struct dataset *dataset, int64_t kept, int64_t largest, bool whole, plim_error *error);
/* Bytes of the values of what such a stage keeps. */
uint64_t stacking_value_bytes(const struct dataset *dataset);

/* For each column of `spec`, from `count` of the above: what is not said is the column's own shape, and zeros. */
plim_status padding_resolve(struct column_padding *out, const struct spec *spec, const struct padding *said, int count,
                            plim_error *error);

/* Rows rows[0..count) of `from` (NULL: 0..count) as one element behind the last of `to`. open_extent: what stands for
   -1, or -1 for the longest. Strings go on referring to what they refer to. The element's index is that of its first
   sample. */
plim_status padding_stack(struct chunk *to, const struct chunk *from, const int64_t *rows, int64_t count,
                          const struct column_padding *padding, int64_t open_extent, const struct dataset *dataset,
                          plim_error *error);

/* Of a job file: padded_shapes: {x: [5]}, padding_values: 0 or {x: -1}, room: 8MiB. */
struct padding_keys {
    const struct yaml *shapes, *values;
    const char *room;
};
/* Lines of a table of settings, for a struct with a `struct padding_keys` in it. */
#define PADDING_SETTINGS(type, member)                                                                                 \
    {"padded_shapes", SETTING_NODE, offsetof(type, member.shapes), 0},                                                 \
        {"padding_values", SETTING_NODE, offsetof(type, member.values), 0},                                            \
    {                                                                                                                  \
        "room", SETTING_WORD, offsetof(type, member.room), 0                                                           \
    }
/* At most MOST_COLUMNS + 1 entries; *value_bytes 0 where nothing is said. */
plim_status padding_read(struct padding *out, int *count, uint64_t *value_bytes, const struct padding_keys *keys,
                         const struct stage_entry *entry, plim_error *error);

#endif
