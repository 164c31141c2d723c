/* file_classes.c - a folder whose sub-folders are classes, as Keras lists it. */
#include <string.h>

#include "base/files/folder.h"
#include "formats/files/file_list_inside.h"

#define DEPTH_MOST 64

static const char *const image_suffixes[] = {".bmp", ".gif", ".jpeg", ".jpg", ".png", NULL};

struct folder_walk {
    struct file_list *list;
    const char *const *suffixes;
    int32_t label;
    char path[FILE_PATH_MOST + 1]; /* of the folder, with its slash */
};

static bool has_suffix(const char *name, const char *const *suffixes)
{
    size_t bytes = strlen(name);
    for (; *suffixes; suffixes++) {
        size_t length = strlen(*suffixes), i = 0;
        if (length > bytes)
            continue;
        for (const char *end = name + bytes - length; i < length; i++) {
            char c = end[i] >= 'A' && end[i] <= 'Z' ? (char)(end[i] - 'A' + 'a') : end[i];
            if (c != (*suffixes)[i])
                break;
        }
        if (i == length)
            return true;
    }
    return false;
}

static plim_status walk_folder(struct folder_walk *walk, size_t length, int depth, plim_error *error);

/* Links to folders are not followed, as os.walk does not. */
static plim_status walk_entry(struct folder_walk *walk, size_t length, const struct folder_entry *entry, int depth,
                              plim_error *error)
{
    if (entry->kind != FOLDER_FOLDER)
        return has_suffix(entry->name, walk->suffixes)
                   ? list_add(walk->list, walk->path, length, entry->name, walk->label, error)
                   : PLIM_OK;
    size_t longer = length;
    if (entry->link)
        return PLIM_OK;
    if (depth == DEPTH_MOST || !path_enter(walk->path, &longer, entry->name, strlen(entry->name)))
        return fail_at(error, PLIM_BAD_DATA, walk->path, "folders nested too deep");
    plim_status status = walk_folder(walk, longer, depth + 1, error);
    walk->path[length] = 0;
    return status;
}

static plim_status walk_folder(struct folder_walk *walk, size_t length, int depth, plim_error *error)
{
    struct folder *folder;
    struct folder_entry entry;
    bool more = true;
    TRY(folder_open(&folder, walk->list->budget, walk->path, error));
    plim_status status = PLIM_OK;
    while (status == PLIM_OK) {
        status = folder_next(&more, &entry, folder, error);
        if (status != PLIM_OK || !more)
            break;
        status = walk_entry(walk, length, &entry, depth, error);
    }
    folder_close(folder);
    return status;
}

static plim_status find_classes(struct file_list *list, const char *path, plim_error *error)
{
    struct folder *folder;
    struct folder_entry entry;
    bool more = true;
    TRY(folder_open(&folder, list->budget, path, error));
    plim_status status = PLIM_OK;
    while (status == PLIM_OK) {
        status = folder_next(&more, &entry, folder, error);
        if (status != PLIM_OK || !more)
            break;
        if (entry.kind == FOLDER_FOLDER && entry.name[0] != '.')
            status = list_add_class(list, entry.name, error);
    }
    folder_close(folder);
    return status == PLIM_OK ? list_sort_classes(list, error) : status;
}

static plim_status walk_class(struct folder_walk *walk, size_t length, int64_t label, plim_error *error)
{
    uint64_t first = walk->list->files.count;
    size_t longer = length;
    walk->label = (int32_t)label;
    const char *name = file_list_class(walk->list, label);
    if (!path_enter(walk->path, &longer, name, strlen(name)))
        return fail_at(error, PLIM_BAD_DATA, walk->path, "a path of more than %d bytes", FILE_PATH_MOST);
    plim_status status = walk_folder(walk, longer, 0, error);
    walk->path[length] = 0;
    return status == PLIM_OK ? list_sort_by_folder(walk->list, first, error) : status;
}

plim_status file_list_classes(struct file_list *list, const char *folder, const char *const *names,
                              const char *const *suffixes, plim_error *error)
{
    struct folder_walk walk = {.list = list, .suffixes = suffixes ? suffixes : image_suffixes};
    size_t length = 0, bytes = strlen(folder);
    while (bytes > 1 && folder[bytes - 1] == '/')
        bytes--;
    if (bytes == 0 || bytes > FILE_PATH_MOST - 1 || list->classes.count)
        return fail_at(error, PLIM_BAD_JOB, folder, "cannot be listed as a folder of classes");
    memcpy(walk.path, folder, bytes);
    length = bytes;
    if (walk.path[length - 1] != '/')
        walk.path[length++] = '/';
    for (; names && *names; names++)
        TRY(list_add_class(list, *names, error));
    if (list->classes.count == 0)
        TRY(find_classes(list, walk.path, error));
    for (int64_t label = 0; label < file_list_class_count(list); label++)
        TRY(walk_class(&walk, length, label, error));
    TRY(list_finish(list, folder, error));
    if (file_list_class_count(list) == 0)
        return hint(error, fail_at(error, PLIM_BAD_DATA, folder, "no sub-folders: each of them is a class"),
                    "%.60s/cat/1.jpg, %.60s/dog/2.jpg; for files without labels: {files: \"%.60s/*.jpg\"}", folder,
                    folder, folder);
    if (file_list_count(list) == 0)
        return fail_at(error, PLIM_BAD_DATA, folder, "no files of the kinds looked for in %lld sub-folders",
                       (long long)file_list_class_count(list));
    return PLIM_OK;
}
