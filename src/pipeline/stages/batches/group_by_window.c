/* group_by_window.c - elements of one key together: by a column or a callback. */
#include "base/numbers/checked.h"
#include "pipeline/stages/batches/group.h"

#define GROUPS_EXPECTED 64
#define ROWS_BYTES      ((uint64_t)4 * 1024 * 1024)

static plim_status callback_key(int64_t *key, const struct chunk *chunk, int64_t row,
                                const struct group_options *options, plim_error *error)
{
    return options->callback(key, chunk, row, options->context, error);
}

static plim_status column_key(int64_t *key, const struct chunk *chunk, int64_t row, const struct group_options *options,
                              plim_error *error)
{
    const struct column *column = &chunk->spec->column[options->column];
    (void)error;
    *key = whole_get(chunk_row(chunk, options->column, row), column->type);
    return PLIM_OK;
}

static plim_status choose_key(struct group_options *options, const struct spec *spec,
                              const struct group_by_window_options *said, plim_error *error)
{
    options->callback = said->key;
    options->context = said->context;
    options->key = callback_key;
    if (said->key)
        return PLIM_OK;
    options->key = column_key;
    options->column = spec_find(spec, said->column ? said->column : "");
    if (options->column < 0)
        return fail(error, PLIM_BAD_JOB, "group_by_window: there is no column '%s'", said->column ? said->column : "");
    const struct column *column = &spec->column[options->column];
    if (column->shape.rank != 0 || column->type == TYPE_STRING || type_is_float(column->type))
        return fail(error, PLIM_BAD_JOB, "group_by_window: column '%s' must be a whole number", column->name);
    return PLIM_OK;
}

/* As many elements as a number of full groups has, within the bytes that are stated. */
static int64_t rows_kept(const struct spec *spec, const struct group_by_window_options *said)
{
    uint64_t bytes = said->value_bytes ? said->value_bytes : ROWS_BYTES;
    uint64_t each = spec->element_bytes + 2 * sizeof(int64_t) + sizeof(int64_t) * 4;
    int64_t fit = (int64_t)(bytes / each), window = said->window_size > 0 ? said->window_size : 1, most;
    if (!mul_i64(&most, window, GROUPS_EXPECTED))
        most = INT64_MAX;
    int64_t rows = said->value_bytes || fit < most ? fit : most;
    rows = rows > window ? rows : window;
    return rows < INT32_MAX ? rows : INT32_MAX;
}

struct dataset *dataset_group_by_window(struct dataset *dataset, const struct group_by_window_options *said)
{
    struct group_options *options;
    plim_error error = {0};
    struct dataset *node = group_node(&dataset, &stage_group_by_window, &options);
    if (!node)
        return dataset;
    options->window[0] = said->window_size;
    options->batch[0] = said->batch_size ? said->batch_size : said->window_size;
    options->rows = rows_kept(node->spec, said);
    options->stacking.value_bytes = said->value_bytes;
    options->stacking.drop_remainder = said->drop_remainder;
    plim_status status = choose_key(options, node->spec, said, &error);
    if (status == PLIM_OK)
        status = padding_resolve(options->stacking.padding, node->spec, said->padding, said->padding_count, &error);
    return dataset_finish(node, status, &error);
}

/* ---- job files ---- */

struct group_keys {
    struct group_by_window_options options;
    struct padding_keys padding;
};

static plim_status group_read(struct dataset **dataset, const struct stage_entry *entry, plim_error *error)
{
    static const struct setting settings[] = {
        {"key", SETTING_WORD, offsetof(struct group_keys, options.column), 0},
        {"window_size", SETTING_WHOLE, offsetof(struct group_keys, options.window_size), 1},
        {"batch", SETTING_WHOLE, offsetof(struct group_keys, options.batch_size), 1},
        {"drop_remainder", SETTING_BOOL, offsetof(struct group_keys, options.drop_remainder), 0},
        PADDING_SETTINGS(struct group_keys, padding),
    };
    struct padding padding[MOST_COLUMNS + 1];
    struct group_keys keys = {.options = {.padding = padding}};
    struct group_by_window_options *options = &keys.options;
    TRY(settings_read(&keys, settings, COUNT(settings), entry->job, entry->value, error));
    if (!options->column || !options->window_size)
        return stage_bad(entry, "needs 'key' and 'window_size'", "{key: y, window_size: 32}", error);
    TRY(padding_read(padding, &options->padding_count, &options->value_bytes, &keys.padding, entry, error));
    *dataset = dataset_group_by_window(*dataset, options);
    return PLIM_OK;
}

const struct stage stage_group_by_window = {
    .name = "group_by_window",
    .build = group_build,
    .stream = &group_stream,
    .sequential = true,
    .changes_spec = true,
    .read = group_read,
};
