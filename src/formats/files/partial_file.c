/* partial_file.c - a file that has its name only when it is whole. */
#include "formats/files/partial_file.h"

#include <string.h>

#define TAG TAG_FORMATS

plim_status partial_names(char **path_out, char **partial_out, size_t *bytes, struct budget *budget, enum tag tag,
                          const char *path, plim_error *error)
{
    static const char suffix[] = ".partial";
    size_t length = strlen(path);
    *bytes = 2 * length + 1 + sizeof suffix;
    char *names = budget_take(budget, tag, *bytes);
    if (!names)
        return budget_refused(budget, tag, *bytes, error);
    memcpy(names, path, length);
    memcpy(names + length + 1, path, length);
    memcpy(names + 2 * length + 1, suffix, sizeof suffix);
    *path_out = names;
    *partial_out = names + length + 1;
    return PLIM_OK;
}

static plim_status start(struct partial_file *partial, const char *path, plim_error *error)
{
    TRY(partial_names(&partial->path, &partial->partial, &partial->path_block_bytes, partial->budget, TAG, path,
                      error));
    partial->buffer = budget_take(partial->budget, TAG, PARTIAL_BUFFER_BYTES);
    if (!partial->buffer)
        return budget_refused(partial->budget, TAG, PARTIAL_BUFFER_BYTES, error);
    TRY(file_check_target(path, error));
    return file_open(&partial->file, partial->budget, partial->partial, FILE_CREATE, error);
}

static void give_back(struct partial_file *partial)
{
    file_close(partial->file);
    budget_give(partial->budget, TAG, partial->buffer, PARTIAL_BUFFER_BYTES);
    budget_give(partial->budget, TAG, partial->path, partial->path_block_bytes);
    *partial = (struct partial_file){0};
}

plim_status partial_open(struct partial_file *out, struct budget *budget, const char *path, plim_error *error)
{
    *out = (struct partial_file){.budget = budget};
    plim_status status = start(out, path, error);
    if (status != PLIM_OK)
        give_back(out);
    return status;
}

void partial_abandon(struct partial_file *partial)
{
    if (!partial->file)
        return;
    file_remove(partial->partial, NULL);
    give_back(partial);
}

static plim_status flush(struct partial_file *partial, plim_error *error)
{
    TRY(file_write(partial->file, partial->at, partial->buffer, partial->buffered, error));
    partial->at += partial->buffered;
    partial->buffered = 0;
    return PLIM_OK;
}

plim_status partial_put(struct partial_file *partial, const void *data, uint64_t bytes, plim_error *error)
{
    for (const uint8_t *p = data; bytes > 0;) {
        if (partial->buffered == PARTIAL_BUFFER_BYTES)
            TRY(flush(partial, error));
        size_t room = PARTIAL_BUFFER_BYTES - partial->buffered, step = bytes < room ? (size_t)bytes : room;
        memcpy(partial->buffer + partial->buffered, p, step);
        partial->buffered += step;
        p += step;
        bytes -= step;
    }
    return PLIM_OK;
}

uint64_t partial_bytes(const struct partial_file *partial)
{
    return partial->at + partial->buffered;
}

plim_status partial_patch(struct partial_file *partial, uint64_t at, const void *data, size_t bytes, plim_error *error)
{
    TRY(flush(partial, error));
    return file_write(partial->file, at, data, bytes, error);
}

/* The folder of the path: its entries hold the new name. */
static plim_status sync_folder_of(char *path, plim_error *error)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return file_sync_folder(".", error);
    if (slash == path)
        return file_sync_folder("/", error);
    *slash = 0;
    plim_status status = file_sync_folder(path, error);
    *slash = '/';
    return status;
}

static plim_status finish(struct partial_file *partial, plim_error *error)
{
    TRY(flush(partial, error));
    TRY(file_sync(partial->file, error));
    return file_rename(partial->partial, partial->path, error);
}

plim_status partial_commit(struct partial_file *partial, plim_error *error)
{
    plim_status status = finish(partial, error);
    if (status == PLIM_OK)
        status = sync_folder_of(partial->path, error);
    else
        file_remove(partial->partial, NULL);
    give_back(partial);
    return status;
}
