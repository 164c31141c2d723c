/* key_tar.c - tar files in WebDataset's convention: a column for each extension.

   tar: "shards/train-{000000..000146}.tar"                      columns by the extensions of the first sample
   tar: {files: ..., columns: {jpg;jpeg: image, cls: label, npy: {name: x, dtype: float32, shape: [10]}}} */
#include <string.h>

#include "formats/sources/tar_source.h"
#include "pipeline/keys/files/file_keys.h"

struct tar_keys {
    struct file_keys files;
    const struct yaml *columns;
};

static const struct setting tar_settings[] = {
    FILE_SETTINGS(struct tar_keys, files),
    {"columns", SETTING_NODE, offsetof(struct tar_keys, columns), 0},
};

struct column_keys {
    const char *name, *dtype;
    const struct yaml *shape, *fallback;
};

static const struct setting column_settings[] = {
    {"name", SETTING_WORD, offsetof(struct column_keys, name), 0},
    {"dtype", SETTING_WORD, offsetof(struct column_keys, dtype), 0},
    {"shape", SETTING_NODE, offsetof(struct column_keys, shape), 0},
    {"default", SETTING_NODE, offsetof(struct column_keys, fallback), 0},
};

/* What WebDataset decodes into whole numbers. */
static enum tar_content content_of(const char *extensions)
{
    static const char *const classes[] = {"cls", "cls2", "class", "count", "index", "inx", "id"};
    for (int i = 0; i < COUNT(classes); i++)
        if (strcmp(extensions, classes[i]) == 0)
            return TAR_CLASS;
    return TAR_BYTES;
}

static plim_status read_default(struct tar_column *column, struct data_reader *reader, const struct yaml *value,
                                plim_error *error)
{
    column->optional = true;
    if (value->kind != YAML_SCALAR)
        return reader_bad(reader, value, "default: expected one value", error);
    if (column->content == TAR_BYTES)
        column->text = value->text;
    else if (!setting_whole(&column->whole, value->text) || (column->content == TAR_ARRAY && column->whole))
        return reader_bad(
            reader, value,
            column->content == TAR_ARRAY ? "default: of an array it is 0" : "default: expected a whole number", error);
    return PLIM_OK;
}

/* {name: x, dtype: float32, shape: [10], default: 0} */
static plim_status read_long(struct tar_column *column, struct data_reader *reader, const struct yaml *yaml,
                             plim_error *error)
{
    struct column_keys keys = {0};
    TRY(settings_read(&keys, column_settings, COUNT(column_settings), reader->path, yaml, error));
    column->name = keys.name ? keys.name : yaml->key;
    if (keys.dtype && strcmp(keys.dtype, "string") == 0)
        column->content = TAR_BYTES;
    else if (keys.dtype && strcmp(keys.dtype, "int64") == 0 && !keys.shape)
        column->content = TAR_CLASS;
    else if (keys.dtype) {
        TRY(reader_type(&column->type, reader, yaml, keys.dtype, true, error));
        column->content = TAR_ARRAY;
    }
    if (keys.shape)
        TRY(reader_shape(&column->shape, reader, keys.shape, error));
    if ((column->content == TAR_ARRAY) != (column->shape.rank > 0))
        return hint(error, reader_bad(reader, yaml, "an npy member has a type and a shape", error),
                    "npy: {name: x, dtype: float32, shape: [10]}");
    return keys.fallback ? read_default(column, reader, keys.fallback, error) : PLIM_OK;
}

static plim_status read_columns(struct tar_column *columns, int *count, struct data_reader *reader,
                                const struct yaml *yaml, plim_error *error)
{
    if (yaml->kind != YAML_MAP || !yaml->first)
        return hint(error, reader_bad(reader, yaml, "columns: expected {extension: name}", error),
                    "{jpg: image, cls: label}");
    for (const struct yaml *entry = yaml->first; entry; entry = entry->next) {
        if (*count == MOST_COLUMNS)
            return reader_bad(reader, entry, "too many columns", error);
        struct tar_column *column = &columns[(*count)++];
        *column = (struct tar_column){.extensions = entry->key, .content = content_of(entry->key)};
        if (entry->kind == YAML_MAP)
            TRY(read_long(column, reader, entry, error));
        else if (entry->kind != YAML_SCALAR || !*entry->text)
            return reader_bad(reader, entry, "expected the name of a column", error);
        else
            column->name = entry->text;
    }
    return PLIM_OK;
}

/* By the first sample. The names lie in the arena. */
static plim_status find_columns(struct tar_column *columns, int *count, struct data_reader *reader,
                                const struct file_choice *choice, plim_error *error)
{
    struct string names[MOST_COLUMNS];
    struct value_buffer values;
    void *bytes = arena_take(reader->arena, MOST_COLUMNS * WDS_EXTENSION_BYTES);
    if (!bytes)
        return arena_refused(reader->arena, error);
    value_buffer_init(&values, bytes, MOST_COLUMNS * WDS_EXTENSION_BYTES);
    TRY(tar_first_extensions(names, count, reader->budget, choice, &values, error));
    for (int i = 0; i < *count; i++) {
        const char *name = (const char *)names[i].data;
        columns[i] = (struct tar_column){.extensions = name, .name = name, .content = content_of(name)};
    }
    return PLIM_OK;
}

static plim_status open_tar(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                            plim_error *error)
{
    struct tar_keys keys = {.files = {.files = yaml}};
    struct tar_column columns[MOST_COLUMNS];
    struct file_choice choice;
    struct source *source;
    int count = 0;
    if (yaml->kind == YAML_MAP) {
        keys.files.files = NULL;
        TRY(settings_read(&keys, tar_settings, COUNT(tar_settings), reader->path, yaml, error));
    }
    if (keys.columns)
        TRY(read_columns(columns, &count, reader, keys.columns, error));
    TRY(file_keys_read(&choice, reader, yaml, "tar", &keys.files, error));
    plim_status status = keys.columns ? PLIM_OK : find_columns(columns, &count, reader, &choice, error);
    if (status != PLIM_OK) {
        file_list_free(choice.files);
        return status;
    }
    return key_opened(out, &source, tar_source_open(&source, reader->budget, &choice, columns, count, error));
}

static bool is_tar(const struct file_head *head)
{
    return head->count >= 262 && memcmp(head->bytes + 257, "ustar", 5) == 0;
}

const struct source_key source_key_tar = {
    .word = "tar", .open = open_tar, .origin = OF_FILES, .is_file = is_tar, .suffixes = {".tar", ".tar.gz", ".tgz"}};
