/* key_list_files.c - paths that match, as strings: list_files: "data/x_?.wav", shuffled anew each epoch unless
   `shuffle: false` is stated, as tf.data does it. */
#include "pipeline/keys/source_key.h"

struct list_keys {
    const struct yaml *files;
    bool shuffle;
};

static const struct setting list_settings[] = {
    {"files", SETTING_NODE, offsetof(struct list_keys, files), 0},
    {"shuffle", SETTING_BOOL, offsetof(struct list_keys, shuffle), 0},
};

static plim_status open_list(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                             plim_error *error)
{
    struct list_keys keys = {.files = yaml, .shuffle = true};
    struct file_list *files;
    struct source *source;
    if (yaml->kind == YAML_MAP) {
        keys.files = NULL;
        TRY(settings_read(&keys, list_settings, COUNT(list_settings), reader->path, yaml, error));
    }
    if (!keys.files)
        return hint(error, reader_bad(reader, yaml, "list_files: 'files:' is missing", error), "files: \"data/*.wav\"");
    TRY(reader_file_list(&files, reader, keys.files, error));
    TRY(file_names_open(&source, reader->budget, files, error));
    *out = dataset_from_source(source);
    if (keys.shuffle)
        *out = dataset_shuffle(*out, reader->seed);
    return PLIM_OK;
}

const struct source_key source_key_list_files = {.word = "list_files", .open = open_list, .origin = OF_FILES};
