/* job_files.c - a job over files alone: what they are is found out, and said in the words of a job file.

   A file is known by its first bytes where its format has some, else by the end of its name. */
#include "base/files/folder.h"
#include "base/numbers/crc32c.h"
#include "formats/records/snapshot.h"
#include "job/job.h"
#include "job/source_word.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HEAD_BYTES   512

struct head {
    uint8_t bytes[HEAD_BYTES];
    size_t count;
};

static bool starts(const struct head *head, const char *magic, size_t bytes)
{
    return head->count >= bytes && memcmp(head->bytes, magic, bytes) == 0;
}

static bool ends(const char *path, const char *suffix)
{
    size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcasecmp(path + length - end, suffix) == 0;
}

static bool is_npy(const struct head *head)
{
    return starts(head, "\x93NUMPY", 6);
}

/* Two zeros, a type, a number of axes. */
static bool is_idx(const struct head *head)
{
    const uint8_t *b = head->bytes;
    bool type = b[2] == 8 || b[2] == 9 || (b[2] >= 11 && b[2] <= 14);
    return head->count >= 8 && b[0] == 0 && b[1] == 0 && type && b[3] >= 1 && b[3] <= 8;
}

static bool is_tar(const struct head *head)
{
    return head->count >= 262 && memcmp(head->bytes + 257, "ustar", 5) == 0;
}

static bool is_hdf5(const struct head *head)
{
    return starts(head, "\x89HDF\r\n\x1a\n", 8);
}

/* A length, and its checksum. */
static bool is_records(const struct head *head)
{
    const uint8_t *b = head->bytes + 8;
    uint32_t stored = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return head->count >= 12 && crc32c_mask(crc32c(0, head->bytes, 8)) == stored;
}

static bool is_zip(const struct head *head)
{
    return starts(head, "PK\x03\x04", 4);
}

/* The word of a job file for each; `known` may be NULL: by name only. */
static const struct file_kind {
    const char *word;
    bool (*known)(const struct head *head);
    const char *suffixes[6];
} kinds[] = {
    {"npy", is_npy, {".npy", ".npy.gz"}},
    {"npz", is_zip, {".npz"}},
    {"hdf5", is_hdf5, {".h5", ".hdf5"}},
    {"tar", is_tar, {".tar", ".tar.gz", ".tgz"}},
    {"idx", is_idx, {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}},
    {"tfrecord", is_records, {".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"}},
    {"csv", NULL, {".csv", ".csv.gz"}},
    {"text", NULL, {".txt", ".txt.gz"}},
};

static bool has_suffix(const char *path, const struct file_kind *kind)
{
    for (size_t i = 0; i < COUNT(kind->suffixes) && kind->suffixes[i]; i++)
        if (ends(path, kind->suffixes[i]))
            return true;
    return false;
}

/* "set.tfrecord-00001-of-00008": what the name says without the number of the shard. */
static bool is_named(const char *path, const struct file_kind *kind)
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
    return has_suffix(path, kind) || has_suffix(stem, kind);
}

static plim_status read_head(struct head *out, struct plim_job *job, const char *path, plim_error *error)
{
    struct file *file;
    TRY(file_open(&file, job->budget, path, FILE_READ, error));
    plim_status status = file_read_some(&out->count, file, 0, out->bytes, sizeof out->bytes, error);
    file_close(file);
    return status;
}

static bool is_folder(struct plim_job *job, const char *path)
{
    struct folder *folder;
    if (folder_open(&folder, job->budget, path, NULL) != PLIM_OK)
        return false;
    folder_close(folder);
    return true;
}

/* Of classes, unless it is one that a pipeline was saved to. */
static const char *kind_of_folder(const char *path)
{
    char file[4096];
    bool saved = false;
    if (snprintf(file, sizeof file, "%s/%s", path, SNAPSHOT_NAME) < (int)sizeof file)
        file_exists(&saved, file, NULL);
    return saved ? "snapshot" : "images";
}

static plim_status find_kind(const char **word, struct plim_job *job, const char *path, plim_error *error)
{
    struct head head;
    *word = kind_of_folder(path);
    if (is_folder(job, path))
        return PLIM_OK;
    TRY(read_head(&head, job, path, error));
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].known && kinds[i].known(&head)) {
            *word = kinds[i].word;
            return PLIM_OK;
        }
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (is_named(path, &kinds[i])) {
            *word = kinds[i].word;
            return PLIM_OK;
        }
    plim_status status =
        fail_at(error, PLIM_BAD_DATA, path, "no known format: neither its first bytes nor its name tell");
    return hint(error, status, "name it in a job file, as in data: {train: {text: FILE}}");
}

/* A double-quoted scalar. */
static void add_quoted(struct text *out, const char *word)
{
    text_add(out, "\"");
    for (const char *c = word; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\')
            text_add(out, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            text_add(out, "\\x%02x", byte);
        else
            text_add_bytes(out, c, 1);
    }
    text_add(out, "\"");
}

static plim_status find_word(const char **word, struct plim_job *job, plim_error *error)
{
    for (int i = 0; i < job->file_count; i++) {
        const char *kind;
        TRY(find_kind(&kind, job, job->files[i], error));
        if (i && strcmp(kind, *word) != 0)
            return fail_at(error, PLIM_USAGE, job->files[i], "is %s, but %s is %s", kind, job->files[0], *word);
        *word = kind;
    }
    if (!source_word_find(*word))
        return fail_at(error, PLIM_UNSUPPORTED, job->files[0], "the source '%s' is not offered yet", *word);
    return PLIM_OK;
}

plim_status job_files_text(const char **out, struct plim_job *job, plim_error *error)
{
    const char *word = NULL;
    struct text text;
    TRY(find_word(&word, job, error));
    text_init(&text, job->budget, TAG_PLANNER);
    const char *open = job->file_count > 1 ? "[" : "", *close = job->file_count > 1 ? "]" : "";
    text_add(&text, "data: {train: {%s: %s", word, open);
    for (int i = 0; i < job->file_count; i++) {
        text_add(&text, i ? ", " : "");
        add_quoted(&text, job->files[i]);
    }
    text_add(&text, "%s}}\n", close);
    *out = text.failed ? NULL : arena_string(&job->arena, text.data);
    text_release(&text);
    return *out ? PLIM_OK : arena_refused(&job->arena, error);
}
