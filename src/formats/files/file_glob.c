/* file_glob.c - patterns against the file system, folder by folder. */
#include <string.h>

#include "base/files/file.h"
#include "base/files/folder.h"
#include "formats/files/file_list_inside.h"

#define DEPTH_MOST 32

/* ---- one name ------------------------------------------------------------------- */

/* A set at pattern[at] == '[': *in tells whether c is in it. Returns the byte behind its ']', or 0 when it has none. */
static size_t match_set(bool *in, const char *pattern, size_t at, size_t bytes, unsigned char c)
{
    bool negated = at + 1 < bytes && (pattern[at + 1] == '!' || pattern[at + 1] == '^'), found = false;
    size_t i = at + 1 + negated, first = i;
    for (; i < bytes && (pattern[i] != ']' || i == first); i++) {
        i += pattern[i] == '\\' && i + 1 < bytes;
        unsigned char low = (unsigned char)pattern[i], high = low;
        if (i + 2 < bytes && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
            i += 2;
            i += pattern[i] == '\\' && i + 1 < bytes;
            high = (unsigned char)pattern[i];
        }
        found = found || (c >= low && c <= high);
    }
    *in = found != negated;
    return i < bytes ? i + 1 : 0;
}

/* One element of the pattern that is no star against one byte: the element behind it, or 0. */
static size_t match_one(const char *pattern, size_t at, size_t bytes, unsigned char c)
{
    if (pattern[at] == '?')
        return at + 1;
    if (pattern[at] == '[') {
        bool in;
        size_t behind = match_set(&in, pattern, at, bytes, c);
        if (behind)
            return in ? behind : 0;
    }
    at += pattern[at] == '\\' && at + 1 < bytes;
    return (unsigned char)pattern[at] == c ? at + 1 : 0;
}

/* A star first stands for nothing; where that leads nowhere, the last star takes a byte more. Earlier ones need not. */
bool file_matches(const char *pattern, size_t pattern_bytes, const char *text)
{
    size_t at = 0, star = SIZE_MAX;
    const char *star_text = NULL;
    while (*text) {
        size_t next = 0;
        if (at < pattern_bytes && pattern[at] == '*') {
            star = ++at;
            star_text = text;
            continue;
        }
        if (at < pattern_bytes)
            next = match_one(pattern, at, pattern_bytes, (unsigned char)*text);
        if (next) {
            at = next;
            text++;
        } else if (star != SIZE_MAX) {
            at = star;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (at < pattern_bytes && pattern[at] == '*')
        at++;
    return at == pattern_bytes;
}

static bool part_has_wildcards(const char *part, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (strchr("*?[\\", part[i]))
            return true;
    return false;
}

bool has_wildcards(const char *pattern)
{
    return part_has_wildcards(pattern, strlen(pattern));
}

/* ---- the tree ----------------------------------------------------------------------- */

/* Folders that may not be read are passed over, as a shell and tf.io.gfile.glob do. The first of them is kept: it is
   reported where nothing matches at all. */
struct search {
    struct file_list *list;
    plim_error *unread;
    char path[FILE_PATH_MOST + 1]; /* the folder we are in, with its slash */
};

static void pass_over(struct search *search, bool refused, const plim_error *why)
{
    if (refused && search->unread->code == PLIM_OK)
        *search->unread = *why;
}

static plim_status search_from(struct search *search, size_t length, const char *pattern, int depth, plim_error *error);

bool path_append(char path[FILE_PATH_MOST + 1], size_t *length, const char *text, size_t bytes)
{
    if (bytes > FILE_PATH_MOST - *length)
        return false;
    memcpy(path + *length, text, bytes);
    *length += bytes;
    path[*length] = 0;
    return true;
}

bool path_enter(char path[FILE_PATH_MOST + 1], size_t *length, const char *name, size_t bytes)
{
    return path_append(path, length, name, bytes) && path_append(path, length, "/", 1);
}

/* An entry that matched its part of the pattern; `rest` is what follows it. */
static plim_status enter_match(struct search *search, size_t length, const struct folder_entry *entry, const char *rest,
                               int depth, plim_error *error)
{
    size_t longer = length;
    if (!*rest)
        return list_add(search->list, search->path, length, entry->name, -1, error);
    if (entry->kind != FOLDER_FOLDER)
        return PLIM_OK;
    if (!path_enter(search->path, &longer, entry->name, strlen(entry->name)))
        return PLIM_OK; /* a path that cannot be */
    plim_status status = search_from(search, longer, rest, depth + 1, error);
    search->path[length] = 0;
    return status;
}

static plim_status search_folder(struct search *search, size_t length, const char *part, size_t part_bytes,
                                 const char *rest, int depth, plim_error *error)
{
    struct folder *folder;
    struct folder_entry entry;
    bool more = true, refused;
    plim_error why = {0};
    if (depth == DEPTH_MOST)
        return fail(error, PLIM_BAD_JOB, "a pattern with wildcards in more than %d folders", DEPTH_MOST);
    plim_status status = folder_try_open(&folder, &refused, search->list->budget, length ? search->path : ".", &why);
    pass_over(search, refused, &why);
    if (status != PLIM_OK && error)
        *error = why;
    if (status != PLIM_OK || !folder)
        return status;
    while (status == PLIM_OK) {
        status = folder_next(&more, &entry, folder, error);
        if (status != PLIM_OK || !more)
            break;
        if (file_matches(part, part_bytes, entry.name))
            status = enter_match(search, length, &entry, rest, depth, error);
    }
    folder_close(folder);
    return status;
}

/* Whether there is what search->path names. */
static plim_status look_for(bool *there, struct search *search, plim_error *error)
{
    bool refused = false;
    plim_error why = {0};
    plim_status status = file_try_exists(there, &refused, search->path, &why);
    pass_over(search, refused, &why);
    if (status != PLIM_OK && error)
        *error = why;
    return status;
}

/* Parts without wildcards are taken as they are. */
static plim_status search_from(struct search *search, size_t length, const char *pattern, int depth, plim_error *error)
{
    bool there;
    for (;;) {
        size_t bytes = strcspn(pattern, "/"), slashes = strspn(pattern + bytes, "/");
        const char *rest = pattern + bytes + slashes;
        if (part_has_wildcards(pattern, bytes))
            return search_folder(search, length, pattern, bytes, rest, depth, error);
        if (!*rest) {
            size_t longer = length;
            if (!path_append(search->path, &longer, pattern, bytes))
                return PLIM_OK;
            TRY(look_for(&there, search, error));
            search->path[length] = 0;
            /* The name from the pattern: the path's own bytes are about to be cut. */
            char name[256];
            if (!there || bytes >= sizeof name)
                return PLIM_OK;
            memcpy(name, pattern, bytes);
            name[bytes] = 0;
            return list_add(search->list, search->path, length, name, -1, error);
        }
        if (!path_enter(search->path, &length, pattern, bytes))
            return PLIM_OK;
        pattern = rest;
    }
}

plim_status list_glob_one(struct file_list *list, const char *pattern, plim_error *unread, plim_error *error)
{
    uint64_t first = list->files.count;
    struct search search = {.list = list, .unread = unread};
    if (!*pattern)
        return PLIM_OK;
    TRY(search_from(&search, 0, pattern, 0, error));
    return list_sort(list, first, error);
}

plim_status list_no_match(const char *pattern, int count, const plim_error *unread, plim_error *error)
{
    char where[200];
    size_t bytes = strnlen(pattern, sizeof where - 1);
    memcpy(where, pattern, bytes);
    where[bytes] = 0;
    if (unread->code != PLIM_OK)
        return fail_at(error, unread->code, unread->where, "%.100s, and no files match %s elsewhere", unread->message,
                       where);
    return fail_at(error, PLIM_BAD_DATA, where, "no files match%s",
                   count > 1 ? " this or any of the other patterns" : "");
}

plim_status file_list_glob(struct file_list *list, const char *const *patterns, int count, plim_error *error)
{
    uint64_t first = list->files.count;
    plim_error unread = {0};
    for (int i = 0; i < count; i++)
        TRY(list_glob_one(list, patterns[i], &unread, error));
    if (list->files.count == first && !list->full)
        return list_no_match(count ? patterns[0] : "", count, &unread, error);
    if (count > 1)
        TRY(list_sort(list, first, error));
    return list_finish(list, count ? patterns[0] : "", error);
}
