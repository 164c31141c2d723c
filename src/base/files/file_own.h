/* file_own.h - what the files of the file layer share. */
#ifndef BASE_FILES_FILE_OWN_H
#define BASE_FILES_FILE_OWN_H

#include <signal.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/files/file.h"

struct statfs;

#define FILE_TAG        TAG_FORMATS
#define INTERRUPTS_MOST 10000 /* in a row, then it is an error: a hang would be worse */

/* "PATH: cannot VERB: No space left on device", with what to try. */
plim_status file_io_error(plim_error *error, const char *path, const char *verb, int error_number);
/* True when a fault is armed for this call; errno is set. */
bool file_faulted(enum fault_site site);
/* EINTR, and not too often in a row: `times` counts. */
bool file_interrupted(int *times);
/* Whether permissions are what is in the way. */
bool file_refused(int error_number);
/* Above the standard streams, closed on exec, EINTR retried; -1 and errno. */
int file_open_path(const char *path, int flags, mode_t mode);
/* Moves a descriptor above the standard streams; -1 and errno. */
int file_lift(int descriptor);
/* For as long as the file is open. */
int file_descriptor(const struct file *file);
/* What file_open takes from the budget for a file of this path, with FILE_TAG. */
size_t file_struct_bytes(const char *path);
/* One system call with its fault: a part of the bytes, or -1 and errno. */
ssize_t file_read_once(struct file *file, uint64_t offset, char *to, size_t bytes);
ssize_t file_write_once(struct file *file, uint64_t offset, const char *from, size_t bytes);
/* The error number of a failed write-back that the system has told of (file_drop is when it may); 0: none. */
int file_lost(const struct file *file);
/* Makes an empty file `bytes` long with all its blocks allocated on the disk, so that writing there does not fail for
   want of room. Where the file system cannot promise that, only the size is set. */
plim_status file_allocate(struct file *file, uint64_t bytes, plim_error *error);
/* Around a call that writes: a signal that it raises in this thread does not reach the host. `raised`: one may have
   come, and is taken away. Keeps errno. */
struct file_quiet {
    sigset_t mine, before; /* signals that a write of ours may raise; the host's mask */
};
void file_quiet_begin(struct file_quiet *quiet);
void file_quiet_end(const struct file_quiet *quiet, bool raised);
/* tmpfs, ramfs */
bool file_system_in_memory(const struct statfs *system);

#endif
