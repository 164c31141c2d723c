/* transfer_file.h - a scratch file for bytes of memory that wait on the disk during a training step.

   A transfer copies a block of memory to the file, or back, while the caller computes: transfer_out or transfer_in
   starts it, transfer_wait ends it. Up to `most` transfers are between start and wait; each has a number. Where the
   system and the file system can do it, transfers bypass the page cache (O_DIRECT, Linux AIO) and need neither threads
   nor copies. Elsewhere transfer_out and transfer_in do all the work before they return, and drop the pages from the
   page cache: the same bytes, but slower.

   Errors of the disk are PLIM_IO, and transfer_wait returns them. transfer_out and transfer_in return PLIM_INTERNAL (a
   mistake of the caller) or PLIM_INTERRUPTED (file.h) and have then started nothing. After a PLIM_IO the memory of an
   `in`, or the range of the file of an `out`, is undefined. Other transfers are not affected, except that no later
   `out` through the page cache succeeds once the system has lost data there.

   Not thread-safe: one thread makes all calls of a file. In a forked process transfers are no longer asynchronous;
   parent and child share the file, so only one of them may write to it. */
#ifndef BASE_FILES_TRANSFER_FILE_H
#define BASE_FILES_TRANSFER_FILE_H

#include "base/files/file.h"

#define TRANSFER_ALIGNMENT ((uint64_t)4096)    /* of the memory, of the offset in the file, and of the bytes */
#define TRANSFER_PIECE     ((uint64_t)4 << 20) /* a transfer is cut into requests of this size */

struct transfer_file;

/* An unlinked file in `folder`. Its `bytes` are allocated on the disk here, so that a full disk is reported before the
   first step (unless the file system cannot allocate beforehand). Transfers are numbered from 0 to most - 1. */
plim_status transfer_file_open(struct transfer_file **out, struct budget *budget, const char *folder, uint64_t bytes,
                               int most, plim_error *error);
/* Waits for what is in flight: afterwards nothing touches the memory of a transfer. NULL: nothing. */
void transfer_file_close(struct transfer_file *file);
/* What transfer_file_open takes from the budget. No other call takes any. */
uint64_t transfer_file_cost(const char *folder, int most);

/* Starts transfer number `id` and returns. At most 64 pieces are in flight: for more it waits until some have arrived.
   Until transfer_wait(id) the memory must not be changed (out) or not be touched (in). Transfers whose ranges of the
   file overlap have no order: wait for the first before the second is started. PLIM_INTERNAL: a range that is not
   aligned or not in the file, or a transfer of this number that was not waited for. */
plim_status transfer_out(struct transfer_file *file, int id, uint64_t offset, const void *from, uint64_t bytes,
                         plim_error *error);
plim_status transfer_in(struct transfer_file *file, int id, uint64_t offset, void *to, uint64_t bytes,
                        plim_error *error);
/* Waits until all bytes of the transfer are where they belong, or returns PLIM_IO. Called again, it returns the same
   until a transfer of this number is started anew. PLIM_INTERNAL: none was ever started. */
plim_status transfer_wait(struct transfer_file *file, int id, plim_error *error);

/* tmpfs, ramfs: its bytes count as memory. */
bool transfer_file_in_memory(const struct transfer_file *file);
/* Transfers bypass the page cache and run while the caller computes. Becomes false when the system refuses one. */
bool transfer_file_is_direct(const struct transfer_file *file);
/* Bytes of the pieces that were completed so far. */
uint64_t transfer_file_written(const struct transfer_file *file);
uint64_t transfer_file_read(const struct transfer_file *file);

#endif
