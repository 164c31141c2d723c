/* mappings.h - the process's own bytes, as an upper bound that does not
   wobble.

   The system maps code pages in groups around each fault, and where the groups
   begin depends on where the library was loaded: the same run shows other figures
   each time. So small files (program, libc, our libraries) count whole: they can
   never take more. Large ones (oneDNN) count what is resident. Heap and main stack count with their mappings' size, as
   far as little of it is untouched: which of their pages are resident depends on where the system put them. */
#ifndef BASE_MEMORY_MAPPINGS_H
#define BASE_MEMORY_MAPPINGS_H

#include "base/memory/budget.h"

#define MAPPINGS_LARGE_FILE ((uint64_t)8 * 1024 * 1024)

struct mappings {
    uint64_t anonymous;   /* heap, stacks, written data pages: resident now, the untouched rest of heap and stack too */
    uint64_t small_files; /* whole size of mapped files up to MAPPINGS_LARGE_FILE */
    uint64_t large_files; /* resident pages of larger ones */
};

/* Code that this process will never run: kernels for other processors. */
struct code_range {
    uintptr_t begin, end;
};

/* Small files less the code that is never run. */
plim_status mappings_read(struct mappings *out, struct budget *budget, const struct code_range *unused, int count,
                          plim_error *error);
/* The same from any file in the form of /proc/PID/smaps. */
plim_status mappings_read_from(struct mappings *out, struct budget *budget, const char *path,
                               const struct code_range *unused, int count, plim_error *error);

#endif
