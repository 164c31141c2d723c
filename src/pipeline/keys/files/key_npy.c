/* key_npy.c - npy files side by side, or one cut by columns. */
#include "pipeline/keys/source_key.h"

/* {x: [0, 100], y: 100}: a range of columns, or one. */
static plim_status read_ranges(struct npy_range *ranges, int *count, struct data_reader *reader,
                               const struct yaml *columns, plim_error *error)
{
    *count = 0;
    if (columns->kind != YAML_MAP || !columns->first)
        return reader_bad(reader, columns, "columns: expected {name: [first, end]} or {name: number}", error);
    for (const struct yaml *column = columns->first; column; column = column->next) {
        struct npy_range *range = &ranges[*count];
        if (*count == MOST_COLUMNS)
            return reader_bad(reader, columns, "columns: expected at most 8 of {name: [first, end]} or {name: number}",
                              error);
        range->name = column->key;
        range->scalar = column->kind == YAML_SCALAR;
        if (!range->scalar && (column->kind != YAML_LIST || column->count != 2))
            return reader_bad(reader, column, "expected [first, end] or a column number", error);
        const struct yaml *first = range->scalar ? column : column->first;
        const struct yaml *end = range->scalar ? column : first ? first->next : NULL;
        if (!first || !end || first->kind != YAML_SCALAR || end->kind != YAML_SCALAR ||
            !setting_whole(&range->first, first->text) || !setting_whole(&range->end, end->text) || range->first < 0 ||
            range->first == INT64_MAX)
            return reader_bad(reader, column, "expected [first, end] or a column number", error);
        if (range->scalar)
            range->end = range->first + 1;
        (*count)++;
    }
    return PLIM_OK;
}

static plim_status open_npy(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                            plim_error *error)
{
    const char *paths[MOST_FILES];
    struct npy_range ranges[MOST_COLUMNS];
    int count, range_count = 0;
    const struct yaml *keys[2] = {yaml, NULL};
    const struct setting settings[] = {{"files", SETTING_NODE, 0, 0}, {"columns", SETTING_NODE, sizeof keys[0], 0}};
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(keys, settings, COUNT(settings), reader->path, yaml, error));
    if (keys[0] == yaml && yaml->kind == YAML_MAP)
        return reader_bad(reader, yaml, "npy: 'files:' is missing", error);
    TRY(reader_paths(paths, &count, reader, keys[0], error));
    if (keys[1])
        TRY(read_ranges(ranges, &range_count, reader, keys[1], error));
    const struct npy_cut cut = {.ranges = ranges, .count = range_count};
    struct source *source;
    return key_opened(out, &source, npy_open(&source, reader->budget, paths, count, range_count ? &cut : NULL, error));
}

static bool is_npy(const struct file_head *head)
{
    return file_head_starts(head, "\x93NUMPY", 6);
}

const struct source_key source_key_npy = {
    .word = "npy", .open = open_npy, .origin = OF_FILES, .is_file = is_npy, .suffixes = {".npy"}};
