/* workers.h - the only place that starts threads.

   A thread is for long work of its own (reading ahead). A team runs the
   slices of an instruction: the caller is worker 0 and always works too; the
   others spin a little after a run, then sleep, so that a step with many small
   instructions does not pay for a wake-up each time. Stacks come from the
   budget (tag stacks). */
#ifndef BASE_THREADS_WORKERS_H
#define BASE_THREADS_WORKERS_H

#include <pthread.h>

#include "base/memory/budget.h"

/* Kernels keep their buffers in the plan: what oneDNN and libc need is little.
   Sanitizers want room of their own. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PLIM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define PLIM_SANITIZED 1
#endif
#endif
#ifdef PLIM_SANITIZED
#define THREAD_STACK_BYTES ((size_t)2 * 1024 * 1024)
#else
#define THREAD_STACK_BYTES ((size_t)256 * 1024)
#endif

struct thread;
plim_status thread_start(struct thread **out, struct budget *budget, void (*run)(void *context), void *context,
                         plim_error *error);
/* What a started thread takes from the budget (tag stacks). */
uint64_t thread_cost(void);
/* Whether the caller is this thread. */
bool thread_is_self(const struct thread *thread);
/* Waits for its end and frees it. */
void thread_join(struct thread *thread);

struct team;
/* `workers` counts the caller; at_start (may be NULL) runs once in each
   started thread. */
plim_status team_make(struct team **out, struct budget *budget, int workers, void (*at_start)(void), plim_error *error);
void team_free(struct team *team);
/* What a team takes from the budget (tag stacks). */
uint64_t team_cost(int workers);

/* unit in [0, units): which worker runs which unit is not determined. */
typedef void team_task(void *context, int unit, int worker);
/* Returns when all units have been run. units == 1 runs in the caller and
   wakes nobody. Not re-entrant; one caller at a time. */
void team_run(struct team *team, int units, team_task *task, void *context);

/* For locks that are held for less than a thread takes to fall asleep: who finds it taken looks again for a moment. */
bool lock_init(pthread_mutex_t *lock);

/* Processors this process may run on (affinity mask). */
int cpu_count(void);

#endif
