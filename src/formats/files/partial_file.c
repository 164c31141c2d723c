/* partial_file.c - a file that has its name only when it is whole. */
#include "formats/files/partial_file.h"

#include "base/memory/budget_alloc.h"

#include <string.h>

#define TAG TAG_FORMATS

plim_status partial_names(struct partial_paths *out, struct budget *budget, enum tag tag, const char *path,
                          plim_error *error)
{
    static const char suffix[] = ".partial";
    size_t length = strlen(path);
    size_t bytes = 2 * length + 1 + sizeof suffix;
    char *names;
    TRY(budget_alloc(&names, budget, tag, bytes, error));
    memcpy(names, path, length);
    memcpy(names + length + 1, path, length);
    memcpy(names + 2 * length + 1, suffix, sizeof suffix);
    *out = (struct partial_paths){.path = names, .partial = names + length + 1, .block_bytes = bytes};
    return PLIM_OK;
}

static plim_status start(struct partial_file *partial, const char *path, plim_error *error)
{
    struct write_buffer *out = &partial->out;
    TRY(partial_names(&partial->names, partial->budget, TAG, path, error));
    TRY(budget_alloc(&out->bytes, partial->budget, TAG, PARTIAL_BUFFER_BYTES, error));
    out->capacity = PARTIAL_BUFFER_BYTES;
    TRY(file_check_target(path, error));
    return file_open(&out->file, partial->budget, partial->names.partial, FILE_CREATE, error);
}

static void give_back(struct partial_file *partial)
{
    file_close(partial->out.file);
    budget_give(partial->budget, TAG, partial->out.bytes, PARTIAL_BUFFER_BYTES);
    budget_give(partial->budget, TAG, partial->names.path, partial->names.block_bytes);
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
    if (!partial->out.file)
        return;
    file_remove(partial->names.partial, NULL);
    give_back(partial);
}

plim_status partial_put(struct partial_file *partial, const void *data, uint64_t bytes, plim_error *error)
{
    return write_buffer_put(&partial->out, data, bytes, error);
}

uint64_t partial_bytes(const struct partial_file *partial)
{
    return partial->out.at + partial->out.held;
}

plim_status partial_patch(struct partial_file *partial, uint64_t at, const void *data, size_t bytes, plim_error *error)
{
    TRY(write_buffer_flush(&partial->out, error));
    return file_write(partial->out.file, at, data, bytes, error);
}

plim_status partial_sync_folder(char *path, plim_error *error)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return file_sync_folder(slash ? "/" : ".", error);
    *slash = 0;
    plim_status status = file_sync_folder(path, error);
    *slash = '/';
    return status;
}

static plim_status finish(struct partial_file *partial, plim_error *error)
{
    TRY(write_buffer_flush(&partial->out, error));
    TRY(file_sync(partial->out.file, error));
    return file_rename(partial->names.partial, partial->names.path, error);
}

plim_status partial_commit(struct partial_file *partial, plim_error *error)
{
    plim_status status = finish(partial, error);
    if (status == PLIM_OK)
        status = partial_sync_folder(partial->names.path, error);
    else
        file_remove(partial->names.partial, NULL);
    give_back(partial);
    return status;
}
