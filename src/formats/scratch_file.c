/* scratch_file.c - data that is unpacked once, into an unlinked file on a disk. */
#include "formats/scratch_file.h"

/* Unpacked pages are flushed and dropped in steps of this: they never pile up. */
#define DROP_BYTES ((uint64_t)1024 * 1024)

static plim_status check_limit(const struct scratch *scratch, uint64_t bytes, const char *path, plim_error *error)
{
    uint64_t used = scratch ? scratch->used_bytes : 0, limit = scratch ? scratch->limit_bytes : 0;
    if (used <= limit && bytes <= limit - used)
        return PLIM_OK;
    fail_at(error, PLIM_OVER_DISK, path, "unpacking takes %llu bytes of disk; %llu of %llu are left",
            (unsigned long long)bytes, (unsigned long long)(used < limit ? limit - used : 0),
            (unsigned long long)limit);
    return hint(error, PLIM_OVER_DISK, "--disk allows more, or unpack the file beforehand");
}

plim_status scratch_open(struct file **out, struct budget *budget, struct scratch *scratch, uint64_t bytes,
                         const char *path, plim_error *error)
{
    struct file *file;
    TRY(check_limit(scratch, bytes, path, error));
    TRY(file_open(&file, budget, scratch->folder, FILE_SCRATCH, error));
    if (file_in_memory(file)) {
        file_close(file);
        fail_at(error, PLIM_OVER_DISK, scratch->folder,
                "the scratch folder is in memory, which the plan does not hold");
        return hint(error, PLIM_OVER_DISK, "name a folder on a disk with --scratch");
    }
    scratch->used_bytes += bytes;
    *out = file;
    return PLIM_OK;
}

static plim_status copy(uint64_t *written, struct file *to, uint64_t at, char *buffer, scratch_read *more,
                        void *context, plim_error *error)
{
    uint64_t next = at, dropped = at;
    size_t got = SCRATCH_BUFFER_BYTES;
    while (got == SCRATCH_BUFFER_BYTES) {
        TRY(more(&got, context, buffer, SCRATCH_BUFFER_BYTES, error));
        if (got)
            TRY(file_write(to, next, buffer, got, error));
        next += got;
        if (next - dropped >= DROP_BYTES || got < SCRATCH_BUFFER_BYTES) {
            file_drop(to, dropped, next - dropped);
            dropped = next;
        }
    }
    *written = next - at;
    return PLIM_OK;
}

plim_status scratch_fill(uint64_t *written, struct file *to, uint64_t at, struct budget *budget, scratch_read *more,
                         void *context, plim_error *error)
{
    char *buffer = budget_take(budget, TAG_FORMATS, SCRATCH_BUFFER_BYTES);
    if (!buffer)
        return budget_refused(budget, TAG_FORMATS, SCRATCH_BUFFER_BYTES, error);
    plim_status status = copy(written, to, at, buffer, more, context, error);
    budget_give(budget, TAG_FORMATS, buffer, SCRATCH_BUFFER_BYTES);
    return status;
}
