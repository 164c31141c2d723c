/* probe.c - which source reads a file that is named without a job file.

   A file is known by its first bytes where its format has some, else by the end of its name. */
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/folder.h"
#include "formats/records/snapshot.h"
#include "pipeline/keys/source_key.h"

bool file_head_starts(const struct file_head *head, const char *magic, size_t bytes)
{
    return head->count >= bytes && memcmp(head->bytes, magic, bytes) == 0;
}

static bool ends(const char *path, const char *suffix)
{
    size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcasecmp(path + length - end, suffix) == 0;
}

static bool has_suffix(const char *path, const struct source_key *key)
{
    for (size_t i = 0; i < MOST_SUFFIXES && key->suffixes[i]; i++)
        if (ends(path, key->suffixes[i]))
            return true;
    return false;
}

/* "set.tfrecord-00001-of-00008": what the name says without the number of the shard. */
static bool is_named(const char *path, const struct source_key *key)
{
    char stem[4096];
    const char *shard = strstr(path, "-of-");
    size_t length = shard ? (size_t)(shard - path) : 0;
    while (length && strchr("0123456789-", path[length - 1]))
        length--;
    if (length >= sizeof stem)
        return false;
    memcpy(stem, path, length);
    stem[length] = 0;
    return has_suffix(path, key) || has_suffix(stem, key);
}

static plim_status read_head(struct file_head *out, struct budget *budget, const char *path, plim_error *error)
{
    struct file *file;
    TRY(file_open(&file, budget, path, FILE_READ, error));
    plim_status status = file_read_some(&out->count, file, 0, out->bytes, sizeof out->bytes, error);
    file_close(file);
    return status;
}

static bool is_folder(struct budget *budget, const char *path)
{
    struct folder *folder;
    if (folder_open(&folder, budget, path, NULL) != PLIM_OK)
        return false;
    folder_close(folder);
    return true;
}

/* Of classes, unless it is one that a pipeline was saved to. */
static const struct source_key *source_of_folder(const char *path)
{
    char file[4096];
    bool saved = false;
    if (snprintf(file, sizeof file, "%s/%s", path, SNAPSHOT_NAME) < (int)sizeof file)
        file_exists(&saved, file, NULL);
    return saved ? &source_key_snapshot : &source_key_images;
}

plim_status source_key_probe(const struct source_key **out, struct budget *budget, const char *path, plim_error *error)
{
    struct file_head head;
    const struct source_key *found = NULL;
    if (is_folder(budget, path)) {
        *out = source_of_folder(path);
        return PLIM_OK;
    }
    TRY(read_head(&head, budget, path, error));
    for (int i = 0; i < all_sources_count && !found; i++)
        if (all_sources[i]->is_file && all_sources[i]->is_file(&head))
            found = all_sources[i];
    for (int i = 0; i < all_sources_count && !found; i++)
        if (is_named(path, all_sources[i]))
            found = all_sources[i];
    if (!found) {
        plim_status status =
            fail_at(error, PLIM_BAD_DATA, path, "no known format: neither its first bytes nor its name tell");
        return hint(error, status, "name it in a job file, as in data: {train: {text: FILE}}");
    }
    *out = found;
    return PLIM_OK;
}
