/* process.h - another program, whose standard output we read. No other file starts programs.

   It runs in a process group of its own, with nothing to read and our error output; it ends with us: closing kills
   what still runs of it and waits for it, so that none stays behind. One thread at a time. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

#define PROCESS_NAME_BYTES 121

struct process {
    int descriptor;                /* of its output */
    pid_t id;                      /* 0: not running, or waited for */
    char name[PROCESS_NAME_BYTES]; /* the beginning of its command: the place of errors */
};

/* `command` as a shell reads it, in a folder (NULL: ours); $1 is `argument`. On failure there is nothing to close. */
plim_status process_open(struct process *process, const char *command, const char *folder, const char *argument,
                         plim_error *error);
/* What there is, up to `bytes`, waiting for at least one; *got == 0: it has closed its output. */
plim_status process_read(size_t *got, struct process *process, void *to, size_t bytes, plim_error *error);
/* Waits for its end; PLIM_IO when it did not end with 0. */
plim_status process_wait(struct process *process, plim_error *error);
void process_close(struct process *process);

#endif
