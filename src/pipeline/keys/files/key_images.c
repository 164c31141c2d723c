/* key_images.c - images in files: a folder of classes, or patterns. */
#include <string.h>

#include "pipeline/keys/source_key.h"

#define LABELS_PROBLEM "labels: expected 'inferred' (the default) or 'none'"

struct images_keys {
    const struct yaml *folder, *files, *class_names;
    const char *labels;
};

static plim_status read_patterns(const char **patterns, int *count, struct data_reader *reader,
                                 const struct yaml *files, plim_error *error)
{
    const struct yaml *item = files->kind == YAML_LIST ? files->first : files;
    for (*count = 0; item; item = files->kind == YAML_LIST ? item->next : NULL) {
        if (item->kind != YAML_SCALAR || item->is_null || *count == MOST_FILES)
            return reader_bad(reader, item, "files: expected a pattern, as in \"photos/*.jpg\", or a list of them",
                              error);
        patterns[*count] = reader_path(reader, item->text);
        if (!patterns[(*count)++])
            return arena_refused(reader->arena, error);
    }
    return *count ? PLIM_OK : reader_bad(reader, files, "files: expected a pattern, or a list of them", error);
}

/* Into the job's memory, with a NULL at the end. */
static plim_status read_classes(const char *const **out, struct data_reader *reader, const struct yaml *list,
                                plim_error *error)
{
    int count = 0;
    if (list->kind != YAML_LIST || !list->count)
        return reader_bad(reader, list, "class_names: expected a list of names of sub-folders", error);
    const char **names = arena_take(reader->arena, ((size_t)list->count + 1) * sizeof *names);
    if (!names)
        return arena_refused(reader->arena, error);
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || item->is_null)
            return reader_bad(reader, item, "class_names: expected a list of names of sub-folders", error);
        names[count++] = item->text;
    }
    names[count] = NULL;
    *out = names;
    return PLIM_OK;
}

static plim_status read_folder(struct images_options *options, struct data_reader *reader, const struct yaml *folder,
                               plim_error *error)
{
    const char *path;
    int count;
    if (folder->kind != YAML_SCALAR)
        return reader_bad(reader, folder, "images: expected a folder whose sub-folders are classes", error);
    TRY(reader_paths(&path, &count, reader, folder, error));
    options->folder = path;
    return PLIM_OK;
}

static plim_status read_keys(struct images_options *options, const char **patterns, struct data_reader *reader,
                             const struct yaml *yaml, plim_error *error)
{
    static const struct setting settings[] = {
        {"folder", SETTING_NODE, offsetof(struct images_keys, folder), 0},
        {"files", SETTING_NODE, offsetof(struct images_keys, files), 0},
        {"class_names", SETTING_NODE, offsetof(struct images_keys, class_names), 0},
        {"labels", SETTING_WORD, offsetof(struct images_keys, labels), 0},
    };
    struct images_keys keys = {.labels = "inferred"};
    if (yaml->kind != YAML_MAP)
        return read_folder(options, reader, yaml, error);
    TRY(settings_read(&keys, settings, COUNT(settings), reader->path, yaml, error));
    if (!keys.folder == !keys.files)
        return reader_bad(reader, yaml, "images: one of 'folder:' and 'files:' is needed", error);
    options->no_labels = strcmp(keys.labels, "none") == 0;
    if (!options->no_labels && strcmp(keys.labels, "inferred") != 0)
        return reader_bad(reader, yaml_get(yaml, "labels"), LABELS_PROBLEM, error);
    if (keys.class_names)
        TRY(read_classes(&options->class_names, reader, keys.class_names, error));
    if (keys.folder)
        return read_folder(options, reader, keys.folder, error);
    options->patterns = patterns;
    return read_patterns(patterns, &options->pattern_count, reader, keys.files, error);
}

/* `images: photos`, `images: {folder: photos, class_names: [cat, dog]}`, `images: {files: [a.jpg, b.jpg]}` or a
   pattern. */
static plim_status open_images(struct dataset **out, struct data_reader *reader, const struct yaml *yaml,
                               plim_error *error)
{
    const char *patterns[MOST_FILES];
    struct images_options options = {0};
    struct source *source;
    TRY(read_keys(&options, patterns, reader, yaml, error));
    return key_opened(out, &source, images_open(&source, reader->budget, &options, error));
}

const struct source_key source_key_images = {.word = "images", .open = open_images, .origin = OF_FILES};
