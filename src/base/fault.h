/* fault.h - makes the n-th allocation, file call or thread start fail.

   The allocator, the file layer and the thread starter ask fault_at() before
   they do their work. Nothing is armed in normal use: the cost is one relaxed
   load. The armed fault is the one piece of mutable global state of the
   library: tests arm it, nothing else does. */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_site {
    FAULT_ALLOCATE = 1 << 0, /* budget_take, budget_map */
    FAULT_OPEN = 1 << 1,
    FAULT_READ = 1 << 2,
    FAULT_WRITE = 1 << 3,
    FAULT_SYNC = 1 << 4,
    FAULT_RENAME = 1 << 5, /* rename, unlink, mkdir, truncate */
    FAULT_STAT = 1 << 6,
    FAULT_THREAD = 1 << 7,
    FAULT_ANY = (1 << 8) - 1,
    /* With an error number of 0 a read or write is cut short instead. */
};

/* Fails call number `nth` (from 1) of those in `sites` with error number
   `error_number`; `forever`: all later ones too. */
void fault_arm(unsigned sites, int64_t nth, bool forever, int error_number);
/* Stops failing; returns whether the armed fault was reached. */
bool fault_disarm(void);
/* How many calls in the armed sites there were since fault_arm. */
int64_t fault_calls(void);

/* For the layers that can fail: 0 to go on, an error number to fail with,
   or FAULT_SHORT to do a part only. */
#define FAULT_SHORT (-1)
int fault_at(enum fault_site site);

#endif
