/* scratch_file.c - data that is unpacked once, into an unlinked file on a disk. */
#include "formats/files/scratch_file.h"

#include "base/memory/budget_alloc.h"

/* Unpacked pages are flushed and dropped in steps of this: they never pile up. */
#define DROP_BYTES ((uint64_t)1024 * 1024)

uint64_t scratch_disk_left(const struct scratch_disk *scratch)
{
    uint64_t used = scratch ? __atomic_load_n(&scratch->used_bytes, __ATOMIC_RELAXED) : 0;
    return scratch && used < scratch->limit_bytes ? scratch->limit_bytes - used : 0;
}

bool scratch_disk_take(struct scratch_disk *scratch, uint64_t bytes)
{
    if (!scratch)
        return !bytes;
    uint64_t used = __atomic_load_n(&scratch->used_bytes, __ATOMIC_RELAXED);
    do {
        if (used > scratch->limit_bytes || bytes > scratch->limit_bytes - used)
            return false;
    } while (!__atomic_compare_exchange_n(&scratch->used_bytes, &used, used + bytes, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return true;
}

void scratch_disk_give(struct scratch_disk *scratch, uint64_t bytes)
{
    if (scratch)
        __atomic_fetch_sub(&scratch->used_bytes, bytes, __ATOMIC_RELAXED);
}

static plim_status refuse(const struct scratch_disk *scratch, uint64_t bytes, const char *path, plim_error *error)
{
    fail_at(error, PLIM_OVER_DISK, path, "unpacking takes %llu bytes of disk; %llu of %llu are left",
            (unsigned long long)bytes, (unsigned long long)scratch_disk_left(scratch),
            (unsigned long long)(scratch ? scratch->limit_bytes : 0));
    return hint(error, PLIM_OVER_DISK, "--disk allows more, or unpack the file beforehand");
}

static plim_status open_on_disk(struct file **out, struct budget *budget, const char *folder, plim_error *error)
{
    struct file *file;
    TRY(file_open(&file, budget, folder, FILE_SCRATCH, error));
    if (!file_in_memory(file)) {
        *out = file;
        return PLIM_OK;
    }
    file_close(file);
    fail_at(error, PLIM_OVER_DISK, folder, "the scratch folder is in memory, which the plan does not hold");
    return hint(error, PLIM_OVER_DISK, "name a folder on a disk with --scratch");
}

plim_status scratch_open(struct file **out, struct budget *budget, struct scratch_disk *scratch, uint64_t bytes,
                         const char *path, plim_error *error)
{
    if (!scratch || !scratch_disk_take(scratch, bytes))
        return refuse(scratch, bytes, path, error);
    plim_status status = open_on_disk(out, budget, scratch->folder, error);
    if (status != PLIM_OK)
        scratch_disk_give(scratch, bytes);
    return status;
}

static plim_status copy(uint64_t *written, struct file *to, uint64_t at, char *buffer,
                        const struct scratch_input *input, plim_error *error)
{
    uint64_t next = at, dropped = at;
    size_t got = SCRATCH_BUFFER_BYTES;
    while (got == SCRATCH_BUFFER_BYTES) {
        TRY(input->more(&got, input->context, buffer, SCRATCH_BUFFER_BYTES, error));
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

plim_status scratch_fill(uint64_t *written, struct file *to, uint64_t at, struct budget *budget,
                         const struct scratch_input *input, plim_error *error)
{
    char *buffer;
    TRY(budget_alloc(&buffer, budget, TAG_FORMATS, SCRATCH_BUFFER_BYTES, error));
    plim_status status = copy(written, to, at, buffer, input, error);
    budget_give(budget, TAG_FORMATS, buffer, SCRATCH_BUFFER_BYTES);
    return status;
}
