/* group.h - elements by key: what group_by_window and bucket_by_sequence_length share. */
#ifndef PIPELINE_STAGES_BATCHES_GROUP_H
#define PIPELINE_STAGES_BATCHES_GROUP_H

#include <string.h>

#include "pipeline/stages/batches/padding.h"

#define MOST_BUCKETS 256

struct group_options {
    struct stacking stacking;
    /* Which group row `row` belongs to. */
    plim_status (*key)(int64_t *key, const struct chunk *chunk, int64_t row, const struct group_options *options,
                       plim_error *error);
    group_key_function *callback; /* group_by_window's, or NULL: `column` is the key */
    void *context;
    int column;
    bool pad_to_boundary;
    int bucket_count;               /* 0: all groups have window[0] and batch[0] */
    int64_t boundary[MOST_BUCKETS]; /* bucket_count - 1 of them */
    int64_t window[MOST_BUCKETS];   /* a group that has so many elements is given */
    int64_t batch[MOST_BUCKETS];    /* in batches of so many */
    int64_t largest;                /* batch */
    int64_t rows;                   /* elements that are kept at most */
};

/* A node of `stage` over *dataset with zeroed options; NULL: *dataset is a failed one. */
struct dataset *group_node(struct dataset **dataset, const struct stage *stage, struct group_options **options);
/* stage->build for both. */
plim_status group_build(struct dataset *dataset, plim_error *error);
extern const struct stream_type group_stream;

/* A whole number of any of the types that are. */
static inline int64_t whole_get(const void *at, enum type type)
{
    int64_t value;
    if (type != TYPE_I64)
        return (int64_t)element_get(at, type, 0);
    memcpy(&value, at, sizeof value);
    return value;
}

#endif
