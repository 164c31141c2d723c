/* busy.h - at most one call at a time works on an object that the caller holds.

   A second call, from another thread or from a function that the first one calls, finds it taken and is refused. An
   object that is given up meanwhile is not freed under the running call: that call frees it when it ends. */
#ifndef BASE_THREADS_BUSY_H
#define BASE_THREADS_BUSY_H

#include <stdatomic.h>
#include <stdbool.h>

enum { BUSY_FREE, BUSY_TAKEN, BUSY_GIVEN_UP };

struct busy {
    atomic_int state;
};

/* false: somebody else works on it. */
static inline bool busy_enter(struct busy *busy)
{
    int expected = BUSY_FREE;
    return atomic_compare_exchange_strong(&busy->state, &expected, BUSY_TAKEN);
}

/* false: it was given up meanwhile, and is now the caller's to free. */
static inline bool busy_leave(struct busy *busy)
{
    int expected = BUSY_TAKEN;
    return atomic_compare_exchange_strong(&busy->state, &expected, BUSY_FREE);
}

/* true: nobody works on it, and nobody can any more: the caller frees it. false: the running call will. */
static inline bool busy_give_up(struct busy *busy)
{
    for (;;) {
        int state = atomic_load(&busy->state);
        if (state == BUSY_GIVEN_UP)
            return false;
        if (atomic_compare_exchange_weak(&busy->state, &state, BUSY_GIVEN_UP))
            return state == BUSY_FREE;
    }
}

#endif
