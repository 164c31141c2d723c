/* work.h - how many steps planning takes: nodes, names, readers, blocks that were looked at, counted by the budget that
   the planners share. Tests compare them with the size of the model; nothing else hangs on them. */
#ifndef BASE_MEMORY_WORK_H
#define BASE_MEMORY_WORK_H

#include "base/memory/budget.h"

void work_count(struct budget *budget, uint64_t steps);
/* All that were counted so far. */
uint64_t work_counted(struct budget *budget);

#endif
