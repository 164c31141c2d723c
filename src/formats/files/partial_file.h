/* partial_file.h - a file that is written from beginning to end under PATH.partial and then renamed to PATH.

   PATH itself is touched by one rename only. Whoever owns it calls partial_commit or partial_abandon; after a failure
   it is partial_abandon, and nothing is left. */
#ifndef FORMATS_FILES_PARTIAL_FILE_H
#define FORMATS_FILES_PARTIAL_FILE_H

#include "formats/files/write_buffer.h"

#define PARTIAL_BUFFER_BYTES ((size_t)64 * 1024)
/* What one takes from the budget at most (tag formats), both paths and the open file included. */
#define PARTIAL_FILE_BYTES ((uint64_t)PARTIAL_BUFFER_BYTES + 20 * 1024)

/* One block: PATH, NUL, PATH.partial, NUL. */
struct partial_paths {
    char *path, *partial;
    size_t block_bytes;
};

struct partial_file {
    struct budget *budget;
    struct write_buffer out;
    struct partial_paths names;
};

plim_status partial_names(struct partial_paths *out, struct budget *budget, enum tag tag, const char *path,
                          plim_error *error);
/* The entries of the folder that the path lies in are on the disk: after a rename. The path is as it was afterwards. */
plim_status partial_sync_folder(char *path, plim_error *error);
/* On failure there is nothing to abandon. */
plim_status partial_open(struct partial_file *out, struct budget *budget, const char *path, plim_error *error);
plim_status partial_put(struct partial_file *partial, const void *data, uint64_t bytes, plim_error *error);
/* Bytes put so far. */
uint64_t partial_bytes(const struct partial_file *partial);
/* Over what was put before. */
plim_status partial_patch(struct partial_file *partial, uint64_t at, const void *data, size_t bytes, plim_error *error);
/* On the disk under its name. Everything is given back, on failure too. */
plim_status partial_commit(struct partial_file *partial, plim_error *error);
void partial_abandon(struct partial_file *partial);

#endif
