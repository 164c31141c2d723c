/* scratch_file.h - what has to be unpacked before it can be read by number: once, into an unlinked file on a disk. */
#ifndef FORMATS_FILES_SCRATCH_FILE_H
#define FORMATS_FILES_SCRATCH_FILE_H

#include "formats/source.h"

#define SCRATCH_BUFFER_BYTES ((size_t)64 * 1024)
/* The file's own struct, with room to spare. */
#define SCRATCH_FILE_BYTES ((uint64_t)4096)

/* What is unpacked: more() gives its next bytes, fewer than asked for only at the end. */
struct scratch_input {
    plim_status (*more)(size_t *got, void *context, void *to, size_t bytes, plim_error *error);
    void *context;
};

/* Counts bytes of disk as used, or not: false where the limit would be passed. NULL has none to give. */
bool scratch_disk_take(struct scratch_disk *scratch, uint64_t bytes);
void scratch_disk_give(struct scratch_disk *scratch, uint64_t bytes);
uint64_t scratch_disk_left(const struct scratch_disk *scratch);
/* A scratch file for `bytes`, which are counted as used; `path` is what is unpacked. PLIM_OVER_DISK where the limit is
   passed, or the folder is in memory. */
plim_status scratch_open(struct file **out, struct budget *budget, struct scratch_disk *scratch, uint64_t bytes,
                         const char *path, plim_error *error);
/* Writes all that the input gives, from `at` on, through a buffer that is taken meanwhile; what was written is dropped
   from the page cache. */
plim_status scratch_fill(uint64_t *written, struct file *to, uint64_t at, struct budget *budget,
                         const struct scratch_input *input, plim_error *error);

#endif
