/* stop.h - a flag that any thread or a signal handler sets, and that all long work looks at (budget_stop.h). */
#ifndef BASE_THREADS_STOP_H
#define BASE_THREADS_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

/* A signal handler may only touch atomics without a lock (C17, 7.14.1.1). */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "the stop flag is set in signal handlers");

struct stop {
    atomic_int asked;
};

static inline void stop_ask(struct stop *stop)
{
    atomic_store(&stop->asked, 1);
}

static inline bool stop_asked(const struct stop *stop)
{
    return atomic_load(&stop->asked) != 0;
}

#endif
