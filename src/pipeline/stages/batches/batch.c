/* batch.c - elements into batches. The iterator reads rows straight into a batch slot: this is the fact only. */
#include "base/numbers/checked.h"
#include "pipeline/core/stage.h"

/* A buffer that is small holds one small element, of windows or short lists; a batch has many of them. Large ones are
   chosen with many elements in mind. */
#define SMALL_ROOM ((uint64_t)256 * 1024)

static uint64_t batch_value_bytes(const struct dataset *dataset)
{
    uint64_t room = dataset->value_bytes, all;
    if (dataset->value_bytes_stated || room >= SMALL_ROOM)
        return room;
    return mul_u64(&all, room, (uint64_t)dataset->number) && all < SMALL_ROOM ? all : SMALL_ROOM;
}

static plim_status batch_build(struct dataset *dataset, plim_error *error)
{
    uint64_t bytes;
    if (dataset->number < 1)
        return fail(error, PLIM_BAD_JOB, "batch: must be at least 1, got %lld", (long long)dataset->number);
    if (dataset->input->batch_size || dataset->input->stacked)
        return hint(error, fail(error, PLIM_UNSUPPORTED, "batch: batches of batches are not offered"),
                    "leave one of the two batch stages out");
    if (!mul_u64(&bytes, (uint64_t)dataset->number, dataset->spec->element_bytes) || bytes > INT64_MAX / 4)
        return fail(error, PLIM_BAD_JOB, "batch: %lld elements of %llu bytes are more than an address can say",
                    (long long)dataset->number, (unsigned long long)dataset->spec->element_bytes);
    dataset->batch_size = dataset->number;
    if (spec_has_values(dataset->spec))
        dataset->value_bytes = batch_value_bytes(dataset);
    return PLIM_OK;
}

struct dataset *dataset_batch(struct dataset *dataset, int64_t size, bool drop_remainder)
{
    struct dataset *node = dataset_stage(&dataset, &stage_batch, 0, NULL);
    if (!node)
        return dataset;
    node->number = size;
    node->drop_remainder = drop_remainder;
    return dataset_built(node);
}

static plim_status batch_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    struct keys {
        int64_t size;
        bool drop_remainder;
    } keys = {0};
    static const struct setting settings[] = {
        {"size", SETTING_WHOLE, offsetof(struct keys, size), 1},
        {"drop_remainder", SETTING_BOOL, offsetof(struct keys, drop_remainder), 0},
    };
    TRY(stage_settings(&keys, settings, 2, "batch", entry, error));
    if (!keys.size)
        return stage_bad(entry, "'size' is missing", "{size: 32}", error);
    *dataset = dataset_batch(*dataset, keys.size, keys.drop_remainder);
    return PLIM_OK;
}

const struct stage stage_batch = {
    .name = "batch",
    .after_batch = true, /* so that a second one gets the message above */
    .build = batch_build,
    .read = batch_read,
};
