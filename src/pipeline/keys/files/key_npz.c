/* key_npz.c - arrays of an npz file side by side.

   npz: mnist.npz                                          all arrays, under their names
   npz: {file: mnist.npz, columns: [x_train, y_train]}     those
   npz: {file: mnist.npz, columns: {x: x_train, y: y_train}} */
#include "formats/source.h"
#include "pipeline/keys/source_key.h"

static plim_status read_columns(struct array_column *columns, int *count, struct data_reader *reader,
                                const struct yaml *yaml, plim_error *error)
{
    if (yaml->kind == YAML_SCALAR || !yaml->first)
        return reader_bad(reader, yaml, "columns: expected a list of arrays, or {x: array, y: array}", error);
    for (const struct yaml *entry = yaml->first; entry; entry = entry->next) {
        if (*count == MOST_COLUMNS)
            return reader_bad(reader, entry, "columns: too many", error);
        if (entry->kind != YAML_SCALAR || !*entry->text)
            return reader_bad(reader, entry, "expected the name of an array", error);
        columns[(*count)++] =
            (struct array_column){.array = entry->text, .name = yaml->kind == YAML_MAP ? entry->key : NULL};
    }
    return PLIM_OK;
}

static plim_status open_npz(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                            plim_error *error)
{
    const struct yaml *keys[2] = {yaml, NULL};
    const struct setting settings[] = {
        {"file", SETTING_NODE, 0, 0}, {"files", SETTING_NODE, 0, 0}, {"columns", SETTING_NODE, sizeof keys[0], 0}};
    const char *paths[MOST_FILES];
    struct array_column columns[MOST_COLUMNS];
    int path_count, count = 0;
    struct source *source;
    if (yaml->kind == YAML_MAP)
        TRY(settings_read(keys, settings, COUNT(settings), reader->path, yaml, error));
    if (keys[0] == yaml && yaml->kind == YAML_MAP)
        return reader_bad(reader, yaml, "npz: 'file:' is missing", error);
    TRY(reader_paths(paths, &path_count, reader, keys[0], error));
    if (path_count != 1)
        return hint(error, reader_bad(reader, keys[0], "npz: one file", error), "zip: and concatenate: join several");
    if (keys[1])
        TRY(read_columns(columns, &count, reader, keys[1], error));
    return key_opened(out, &source, npz_open(&source, reader->budget, paths[0], columns, count, error));
}

/* A zip file: npz is the only source that is one. */
static bool is_npz(const struct file_head *head)
{
    return file_head_starts(head, "PK\x03\x04", 4);
}

const struct source_key source_key_npz = {
    .word = "npz", .open = open_npz, .origin = OF_FILES, .is_file = is_npz, .suffixes = {".npz"}};
