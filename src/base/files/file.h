/* file.h - all I/O of the library. No other file calls open, read, write,
   fsync, rename, unlink, mkdir or stat. Retries EINTR and short transfers.
   No file takes a descriptor below 3, and no write raises a signal.
   Error places are file names; errors are PLIM_IO unless said. Where a stop refuses transfers
   (budget_stop.h), reading, writing and opening are PLIM_INTERRUPTED. */
#ifndef BASE_FILES_FILE_H
#define BASE_FILES_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/budget.h"

struct file;
struct stop;

enum file_mode {
    FILE_READ,
    FILE_CREATE,  /* truncates; for a temporary name that will be renamed */
    FILE_SCRATCH, /* path is a folder: an unlinked file in it, read and write */
    FILE_LOCK,    /* nobody else holds the lock of this path: PLIM_IO when somebody does. Closing removes the file;
                     one that a killed process left behind locks nobody out */
};

plim_status file_open(struct file **out, struct budget *budget, const char *path, enum file_mode mode,
                      plim_error *error);
/* Closing never fails for reading; after writing use file_sync first. */
void file_close(struct file *file);

const char *file_path(const struct file *file);
plim_status file_size(uint64_t *bytes, struct file *file, plim_error *error);
/* All `bytes` at `offset`, or an error; the end of the file inside the range
   is PLIM_BAD_DATA and says at which byte the file ended. Thread-safe. */
plim_status file_read(struct file *file, uint64_t offset, void *to, size_t bytes, plim_error *error);
/* A whole file into memory of the caller's, of which nothing is kept open or taken. *bytes is its size: when that is
   more than `capacity` nothing is read. Thread-safe. */
plim_status file_fetch(uint64_t *bytes, const char *path, void *to, uint64_t capacity, plim_error *error);
/* Up to `bytes`; *got < bytes only at the end of the file. */
plim_status file_read_some(size_t *got, struct file *file, uint64_t offset, void *to, size_t bytes, plim_error *error);
plim_status file_write(struct file *file, uint64_t offset, const void *from, size_t bytes, plim_error *error);
/* All bytes to a descriptor that the host owns (a terminal, a pipe, a log); false, and errno, when its reader went away
   or it broke. Once a stop is asked for (NULL: never) it waits for a reader that does not read no longer than
   FILE_LAST_WAIT_MS, and is false with EAGAIN then. */
#define FILE_LAST_WAIT_MS 100
bool file_send_until(const struct stop *stop, int descriptor, const void *from, size_t bytes);
/* How wide the terminal behind a descriptor is; 80 when it does not tell. */
int file_columns(int descriptor);
/* Data on the disk, or an error that is never retried. */
plim_status file_sync(struct file *file, plim_error *error);
/* The range is no longer needed in the page cache (written ranges are
   flushed first). Advice: never fails. */
void file_drop(struct file *file, uint64_t offset, uint64_t bytes);
/* file_read where no disk has to be waited for; false: it would have to be, or it failed (file_read says how). Not
   counted by file_bytes_read: threads that read small rows would wait for each other's counting. */
bool file_read_ready(struct file *file, uint64_t offset, void *to, size_t bytes);
/* Lately some of these would have had to wait: what comes next is worth asking for beforehand. */
bool file_waits(const struct file *file);
/* This range will be read soon: the disk may begin. Advice: never fails, never waits for the data. */
void file_will_need(struct file *file, uint64_t offset, uint64_t bytes);
/* Reads will jump about: reading ahead is of no use. Advice: never fails; said again it costs nothing. */
void file_expect_random(struct file *file);
/* Reads will go from the beginning to the end: the system reads further ahead. Advice: never fails. */
void file_expect_sequential(struct file *file);
/* Total bytes read through this file so far. */
uint64_t file_bytes_read(const struct file *file);
/* True when the file lives in memory (tmpfs, ramfs): its bytes count as memory. */
bool file_in_memory(struct file *file);
bool file_folder_in_memory(const char *folder);
/* How many more bytes a file in this folder may have, as far as the system tells: the disk's free bytes, and the limit
   of the process on the size of files. UINT64_MAX where it does not tell. */
uint64_t file_room(const char *folder);
/* *why: what stands against a scratch file in this folder; NULL: nothing does. A folder in memory is no gain. */
plim_status file_probe_scratch(const char **why, struct budget *budget, const char *folder, plim_error *error);
/* Takes so many bytes of the disk under this folder for a moment: what is
   missing later is reported now. Where the file system cannot tell, it is PLIM_OK. */
plim_status file_prove_room(struct budget *budget, const char *folder, uint64_t bytes, plim_error *error);

plim_status file_exists(bool *out, const char *path, plim_error *error);
/* For searches: false also where the folder it would be in may not be searched: *refused, and error has why. */
plim_status file_try_exists(bool *out, bool *refused, const char *path, plim_error *error);
/* 0 when there is no such file. */
plim_status file_size_at(uint64_t *bytes, const char *path, plim_error *error);
/* Whether both name one file; false when either is not there. */
plim_status file_same(bool *out, const char *a, const char *b, plim_error *error);
/* An error when no file should be renamed to this: a folder has the name, or a device or pipe, which would go. */
plim_status file_check_target(const char *path, plim_error *error);
plim_status file_rename(const char *from, const char *to, plim_error *error);
/* A missing file is not an error. */
plim_status file_remove(const char *path, plim_error *error);
/* Makes the folder and its parents. */
plim_status file_make_folder(const char *path, plim_error *error);
/* If there is nothing in it. Tidying up: never fails. */
void file_remove_folder(const char *path);
/* The folder's entries on the disk (after a rename). */
plim_status file_sync_folder(const char *path, plim_error *error);
/* The content of a file in memory, with a closing NUL that is not counted. */
struct file_content {
    char *text;
    size_t bytes;
};
/* A whole small file; refused with PLIM_BAD_DATA above `most` bytes. For /proc and /sys too (unknown size).
   To give it back: bytes + 1 under the same tag. */
plim_status file_load(struct file_content *out, struct budget *budget, enum tag tag, const char *path, size_t most,
                      plim_error *error);

#endif
