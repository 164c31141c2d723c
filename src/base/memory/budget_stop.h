/* budget_stop.h - a budget carries the stop flag of its job.

   A budget is the one thing that every part of a job holds. Long loops ask budget_go_on; what waits for somebody else
   (a command, a pipe) asks it at least every BUDGET_ASK_MS. Asking never changes the answer: once a stop is asked for,
   everything that asks ends with PLIM_INTERRUPTED. */
#ifndef BASE_MEMORY_BUDGET_STOP_H
#define BASE_MEMORY_BUDGET_STOP_H

#include "base/memory/budget.h"

#define BUDGET_ASK_MS 50

struct stop;
/* Whose stop ends the work that this budget pays for; NULL: nobody's. Before other threads use the budget. */
void budget_watch_stop(struct budget *budget, const struct stop *stop);
/* PLIM_INTERRUPTED when a stop was asked for. One atomic load: cheap enough for every element. */
plim_status budget_go_on(const struct budget *budget, plim_error *error);
/* While it is set (a job is opened, planned or begun: nothing of it has to be kept yet), a stop also refuses every
   block, and every read and write of files, so that all loops which take, read or write end by themselves;
   budget_refused says PLIM_INTERRUPTED then. Not while training: a checkpoint has to be written still. Returns what it
   was before. */
bool budget_stop_refuses(struct budget *budget, bool refuses);
/* budget_go_on where a stop refuses, else PLIM_OK. */
plim_status budget_may_transfer(const struct budget *budget, plim_error *error);

#endif
