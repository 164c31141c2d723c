/* budget_need.h - what is known to be too large is refused before anything is taken for it. */
#ifndef BASE_MEMORY_BUDGET_NEED_H
#define BASE_MEMORY_BUDGET_NEED_H

#include "base/memory/budget.h"

/* Bytes that are left under the limit; where the process is bound, of the system's figure. */
uint64_t budget_room(struct budget *budget);
/* bytes <= budget_room(), without its exact look at the process where there is far more: that one takes a tenth of a
   millisecond, and every small file is asked for. */
bool budget_has_room(struct budget *budget, uint64_t bytes);
/* Asked once it is known what a file will take, before any of it is taken: OVER_BUDGET when that is more than is left,
   "v.txt: its 8,000,000 words take 144.9 MiB, 21.4 MiB are left for it", and the budget that would do. `where` may be
   NULL: the caller's caller knows the place. */
plim_status budget_need(struct budget *budget, uint64_t bytes, const char *where, uint64_t count, const char *what,
                        plim_error *error);
/* The same for the first of several blocks, such as a text that is still to be parsed: the error names no budget,
   because the whole needs more. */
plim_status budget_need_first(struct budget *budget, uint64_t bytes, const char *where, uint64_t count,
                              const char *what, plim_error *error);

#endif
