/* source_key.c - what the keys of sources share: finding one, reading paths and shapes. */
#include "pipeline/keys/source_key.h"

#include <string.h>

#include "base/text/text.h"

const struct source_key *const all_sources[] = {
#define SOURCE(name) &source_key_##name,
#include "pipeline/keys/sources.def"
#undef SOURCE
};
const int all_sources_count = COUNT(all_sources);

const char *reader_path(struct data_reader *reader, const char *path)
{
    if (path[0] == '/' || strcmp(reader->folder, ".") == 0)
        return path;
    return arena_format(reader->arena, "%s/%s", reader->folder, path);
}

plim_status reader_bad(struct data_reader *reader, const struct yaml *at, const char *what, plim_error *error)
{
    return yaml_fail(error, PLIM_BAD_JOB, reader->path, at, "%s", what);
}

plim_status key_opened(struct dataset **out, struct source **source, plim_status status)
{
    if (status == PLIM_OK)
        *out = dataset_from_source(*source);
    return status;
}

const struct source_key *source_key_find(const char *key)
{
    for (int i = 0; i < COUNT(all_sources); i++)
        if (strcmp(all_sources[i]->word, key) == 0)
            return all_sources[i];
    return NULL;
}

/* Known to others, or to come: refused by name. */
static const char *const later[] = {"sql"};

plim_status source_key_unknown(struct data_reader *reader, const struct yaml *entry, plim_error *error)
{
    char where[256];
    const char *words[COUNT(all_sources) + 2] = {"pipeline", "largest_element"};
    for (int i = 0; i < COUNT(all_sources); i++)
        words[i + 2] = all_sources[i]->word;
    yaml_key_place(where, reader->path, entry);
    for (int i = 0; i < COUNT(later); i++)
        if (strcmp(later[i], entry->key) == 0)
            return fail_at(error, PLIM_UNSUPPORTED, where, "the source '%s' is not offered yet", entry->key);
    const char *near = text_nearest(entry->key, words, COUNT(words));
    plim_status status = fail_at(error, PLIM_BAD_JOB, where, "unknown key '%s'", entry->key);
    return near ? hint(error, status, "did you mean '%s'?", near) : status;
}

/* A file that is not there is a mistake in the job file: it is reported with its line. */
static plim_status check_exists(struct data_reader *reader, const struct yaml *item, const char *path,
                                plim_error *error)
{
    bool exists;
    TRY(file_exists(&exists, path, error));
    if (exists)
        return PLIM_OK;
    plim_status status = yaml_fail(error, PLIM_BAD_DATA, reader->path, item, "there is no file '%s'", path);
    return hint(error, status, "paths are relative to the job file");
}

plim_status reader_paths(const char **paths, int *count, struct data_reader *reader, const struct yaml *yaml,
                         plim_error *error)
{
    *count = 0;
    if (yaml->kind == YAML_MAP)
        return reader_bad(reader, yaml, "expected a file name or a list of them", error);
    for (const struct yaml *item = yaml->kind == YAML_SCALAR ? yaml : yaml->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || item->is_null || !*item->text)
            return reader_bad(reader, item, "expected a file name", error);
        if (*count == MOST_FILES)
            return reader_bad(reader, item, "too many files", error);
        paths[*count] = reader_path(reader, item->text);
        if (!paths[*count])
            return arena_refused(reader->arena, error);
        TRY(check_exists(reader, item, paths[(*count)++], error));
        if (item == yaml)
            break;
    }
    return *count ? PLIM_OK : reader_bad(reader, yaml, "expected a file name or a list of them", error);
}

plim_status reader_shape(struct shape *shape, struct data_reader *reader, const struct yaml *list, plim_error *error)
{
    const struct setting extent = {"shape", SETTING_WHOLE, 0, 1};
    uint64_t bytes;
    if (list->kind != YAML_LIST || list->count > MOST_AXES - 1)
        return reader_bad(reader, list, "shape: expected a list of at most 5 whole numbers", error);
    for (const struct yaml *item = list->first; item; item = item->next)
        TRY(setting_value(&shape->dim[shape->rank++], &extent, reader->path, item, error));
    if (!shape_bytes(&bytes, shape, TYPE_F32))
        return reader_bad(reader, list, "shape: too large", error);
    return PLIM_OK;
}

static plim_status add_pattern(struct file_list *list, struct data_reader *reader, const struct yaml *item,
                               plim_error *error)
{
    char where[256];
    if (item->kind != YAML_SCALAR || item->is_null || !*item->text)
        return reader_bad(reader, item, "expected a file name or a pattern", error);
    const char *path = reader_path(reader, item->text);
    if (!path)
        return arena_refused(reader->arena, error);
    yaml_place(where, reader->path, item);
    if (!strpbrk(item->text, "*?[{")) {
        TRY(check_exists(reader, item, path, error));
        return file_list_add(list, path, error);
    }
    plim_status status =
        strchr(item->text, '{') ? file_list_braces(list, path, error) : file_list_glob(list, &path, 1, error);
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, where);
}

plim_status reader_file_list(struct file_list **out, struct data_reader *reader, const struct yaml *yaml,
                             plim_error *error)
{
    struct file_list *list;
    plim_status status = PLIM_OK;
    if (yaml->kind == YAML_MAP)
        return reader_bad(reader, yaml, "expected a file name, a pattern, or a list of them", error);
    TRY(file_list_make(&list, reader->budget, error));
    if (yaml->kind == YAML_SCALAR)
        status = add_pattern(list, reader, yaml, error);
    for (const struct yaml *item = yaml->first; yaml->kind == YAML_LIST && item && status == PLIM_OK; item = item->next)
        status = add_pattern(list, reader, item, error);
    if (status == PLIM_OK && file_list_count(list) == 0)
        status = reader_bad(reader, yaml, "expected a file name, a pattern, or a list of them", error);
    return OPENED(out, list, file_list_free, status);
}
