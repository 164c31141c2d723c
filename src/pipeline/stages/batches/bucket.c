/* bucket.c - elements of like length together, padded: bucket_by_sequence_length. */
#include <string.h>

#include "pipeline/stages/batches/group.h"

/* The length of an element: the first extent of its column, the bytes of a string, or the number itself. */
static int64_t length_of(const struct chunk *chunk, int64_t row, int c)
{
    const struct column *column = &chunk->spec->column[c];
    const uint8_t *at = chunk_row(chunk, c, row);
    if (column->shape.rank)
        return value_shape(column, at).dim[0];
    if (column->type != TYPE_STRING)
        return whole_get(at, column->type);
    struct string text;
    memcpy(&text, at, sizeof text);
    return (int64_t)text.bytes;
}

static plim_status bucket_key(int64_t *key, const struct chunk *chunk, int64_t row, const struct group_options *options,
                              plim_error *error)
{
    int64_t length = length_of(chunk, row, options->column);
    int low = 0, high = options->bucket_count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (length < options->boundary[middle])
            high = middle;
        else
            low = middle + 1;
    }
    *key = low;
    if (options->pad_to_boundary && low == options->bucket_count - 1)
        return fail(error, PLIM_BAD_DATA,
                    "bucket_by_sequence_length: element %lld has length %lld; with pad_to_bucket_boundary all must be "
                    "shorter than the last boundary, %lld",
                    (long long)chunk->index[row], (long long)length, (long long)options->boundary[low - 1]);
    return PLIM_OK;
}

static plim_status fill_options(struct group_options *options, const struct spec *spec,
                                const struct bucket_options *said, plim_error *error)
{
    if (said->boundary_count < 1 || said->boundary_count >= MOST_BUCKETS)
        return fail(error, PLIM_BAD_JOB, "bucket_by_sequence_length: 1 to %d boundaries are possible, not %d",
                    MOST_BUCKETS - 1, said->boundary_count);
    options->key = bucket_key;
    options->column = spec_find(spec, said->column ? said->column : spec->column[0].name);
    if (options->column < 0)
        return fail(error, PLIM_BAD_JOB, "bucket_by_sequence_length: there is no column '%s'", said->column);
    const struct column *column = &spec->column[options->column];
    if (!column->shape.rank && type_is_float(column->type))
        return fail(error, PLIM_BAD_JOB, "bucket_by_sequence_length: column '%s' has no length", column->name);
    options->bucket_count = said->boundary_count + 1;
    options->pad_to_boundary = said->pad_to_bucket_boundary;
    memcpy(options->boundary, said->boundaries, (size_t)said->boundary_count * sizeof options->boundary[0]);
    for (int i = 0; i < options->bucket_count; i++) {
        options->window[i] = options->batch[i] = said->batch_sizes[i];
        if (said->batch_sizes[i] < 1 || said->batch_sizes[i] > INT32_MAX)
            return fail(error, PLIM_BAD_JOB, "bucket_by_sequence_length: a batch of %lld elements is not possible",
                        (long long)said->batch_sizes[i]);
        options->rows += said->batch_sizes[i];
    }
    return padding_resolve(options->stacking.padding, spec, said->padding, said->padding_count, error);
}

struct dataset *dataset_bucket_by_sequence_length(struct dataset *dataset, const struct bucket_options *said)
{
    struct group_options *options;
    plim_error error = {0};
    struct dataset *node = group_node(&dataset, &stage_bucket_by_sequence_length, &options);
    if (!node)
        return dataset;
    options->stacking.value_bytes = said->value_bytes;
    options->stacking.drop_remainder = said->drop_remainder;
    return dataset_finish(node, fill_options(options, node->spec, said, &error), &error);
}

/* ---- job files ---- */

struct bucket_keys {
    struct bucket_options options;
    const struct yaml *boundaries, *batch_sizes;
    struct padding_keys padding;
};

static plim_status read_list(int64_t *out, int *count, int most, const char *word, const struct stage_entry *entry,
                             const struct yaml *list, plim_error *error)
{
    const struct setting each = {word, SETTING_WHOLE, 0, 1};
    *count = 0;
    if (!list || list->kind != YAML_LIST || !list->count || list->count > most) {
        yaml_fail(error, PLIM_BAD_JOB, entry->job, list ? list : entry->value,
                  "bucket_by_sequence_length: '%s' must be a list of 1 to %d numbers", word, most);
        return hint(error, PLIM_BAD_JOB,
                    "bucket_by_sequence_length: {boundaries: [10, 20], batch_sizes: [64, 32, 16]}");
    }
    for (const struct yaml *item = list->first; item; item = item->next)
        TRY(setting_value(&out[(*count)++], &each, entry->job, item, error));
    return PLIM_OK;
}

static plim_status bucket_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    static const struct setting settings[] = {
        {"boundaries", SETTING_NODE, offsetof(struct bucket_keys, boundaries), 0},
        {"batch_sizes", SETTING_NODE, offsetof(struct bucket_keys, batch_sizes), 0},
        {"length", SETTING_WORD, offsetof(struct bucket_keys, options.column), 0},
        {"drop_remainder", SETTING_BOOL, offsetof(struct bucket_keys, options.drop_remainder), 0},
        {"pad_to_bucket_boundary", SETTING_BOOL, offsetof(struct bucket_keys, options.pad_to_bucket_boundary), 0},
        PADDING_SETTINGS(struct bucket_keys, padding),
    };
    struct padding padding[MOST_COLUMNS + 1];
    int64_t boundary[MOST_BUCKETS], batch[MOST_BUCKETS];
    struct bucket_keys keys = {.options = {.boundaries = boundary, .batch_sizes = batch, .padding = padding}};
    struct bucket_options *options = &keys.options;
    int sizes;
    char where[256];
    TRY(settings_read(&keys, settings, COUNT(settings), entry->job, entry->value, error));
    TRY(read_list(boundary, &options->boundary_count, MOST_BUCKETS - 1, "boundaries", entry, keys.boundaries, error));
    TRY(read_list(batch, &sizes, MOST_BUCKETS, "batch_sizes", entry, keys.batch_sizes, error));
    if (sizes != options->boundary_count + 1) {
        yaml_place(where, entry->job, keys.batch_sizes);
        return fail_at(error, PLIM_BAD_JOB, where,
                       "bucket_by_sequence_length: %d boundaries need %d batch_sizes, not %d", options->boundary_count,
                       options->boundary_count + 1, sizes);
    }
    TRY(padding_read(padding, &options->padding_count, &options->value_bytes, &keys.padding, entry, error));
    *dataset = dataset_bucket_by_sequence_length(*dataset, options);
    return PLIM_OK;
}

const struct stage stage_bucket_by_sequence_length = {
    .name = "bucket_by_sequence_length",
    .build = group_build,
    .stream = &group_stream,
    .sequential = true,
    .changes_spec = true,
    .read = bucket_read,
};
