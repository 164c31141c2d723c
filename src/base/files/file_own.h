/* file_own.h - what the files of the file layer share. */
#ifndef BASE_FILES_FILE_OWN_H
#define BASE_FILES_FILE_OWN_H

#include <sys/types.h>

#include "base/fault.h"
#include "base/files/file.h"

struct statfs;

#define INTERRUPTS_MOST 10000 /* in a row, then it is an error: a hang would be worse */

/* "PATH: cannot VERB: No space left on device", with what to try. */
plim_status file_io_error(plim_error *error, const char *path, const char *verb, int error_number);
/* True when a fault is armed for this call; errno is set. */
bool file_faulted(enum fault_site site);
/* Whether permissions are what is in the way. */
bool file_refused(int error_number);
/* Above the standard streams, closed on exec, EINTR retried; -1 and errno. */
int file_open_path(const char *path, int flags, mode_t mode);
/* Moves a descriptor above the standard streams; -1 and errno. */
int file_lift(int descriptor);
/* For as long as the file is open. */
int file_descriptor(const struct file *file);
/* tmpfs, ramfs */
bool file_system_in_memory(const struct statfs *system);

#endif
