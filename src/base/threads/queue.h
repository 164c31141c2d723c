/* queue.h - a bounded queue of pointers between threads, fixed in size when
   it is made. Closing wakes everybody. */
#ifndef BASE_THREADS_QUEUE_H
#define BASE_THREADS_QUEUE_H

#include "base/memory/budget.h"

struct queue;
plim_status queue_make(struct queue **out, struct budget *budget, size_t capacity, plim_error *error);
void queue_free(struct queue *queue);
/* Waits for room; false when the queue was closed. */
bool queue_put(struct queue *queue, void *item);
/* Waits for an item; NULL when the queue was closed and is empty. */
void *queue_get(struct queue *queue);
/* Does not wait: NULL when there is none now. */
void *queue_try_get(struct queue *queue);
void queue_close(struct queue *queue);

#endif
