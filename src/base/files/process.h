/* process.h - another program, whose standard output we read. No other file starts programs.

   It runs in a process group of its own, with nothing to read and our error output. It ends with us, and with all that
   it has started in its group: closing kills what still runs and waits for it; should we be killed ourselves, its guard
   kills it. A stop that is asked for ends reading and waiting with PLIM_INTERRUPTED. One thread at a time. */
#ifndef BASE_FILES_PROCESS_H
#define BASE_FILES_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/memory/budget.h"

#define PROCESS_NAME_BYTES 121

struct process {
    struct budget *budget;         /* carries the stop flag */
    int descriptor;                /* of its output */
    int lifeline;                  /* nothing is written to it: its end tells the guard that we are gone */
    pid_t guard;                   /* leads the group */
    pid_t id;                      /* 0: not running, or waited for */
    char name[PROCESS_NAME_BYTES]; /* the beginning of its command: the place of errors */
};

/* `command` as a shell reads it, in a folder (NULL: ours); $1 is `argument`. On failure there is nothing to close. */
plim_status process_open(struct process *process, struct budget *budget, const char *command, const char *folder,
                         const char *argument, plim_error *error);
/* What there is, up to `bytes`, waiting for at least one; *got == 0: it has closed its output. */
plim_status process_read(size_t *got, struct process *process, void *to, size_t bytes, plim_error *error);
/* Waits for its end, and ends what it has left behind; PLIM_IO when it did not end with 0. */
plim_status process_wait(struct process *process, plim_error *error);
void process_close(struct process *process);

#endif
