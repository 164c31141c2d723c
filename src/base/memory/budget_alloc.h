/* budget_alloc.h - a block of the budget, or the error that says why there is none. */
#ifndef BASE_MEMORY_BUDGET_ALLOC_H
#define BASE_MEMORY_BUDGET_ALLOC_H

#include "base/memory/budget.h"

/* budget_take and budget_refused in one: *out, a pointer of any type, gets the block, or is left as it was. */
plim_status budget_alloc(void *out, struct budget *budget, enum tag tag, size_t bytes, plim_error *error);

#endif
