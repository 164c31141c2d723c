/* queue.c - a ring of pointers behind a lock. */
#include "base/threads/queue.h"

#include <pthread.h>

#include "base/numbers/checked.h"

#define QUEUE_TAG TAG_PIPELINE

struct queue {
    struct budget *budget;
    size_t struct_bytes;
    pthread_mutex_t lock;
    pthread_cond_t has_item, has_room;
    size_t capacity, first, count;
    bool closed;
    void *items[]; /* [capacity] */
};

static bool init_locks(struct queue *queue)
{
    if (pthread_mutex_init(&queue->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&queue->has_item, NULL) == 0) {
        if (pthread_cond_init(&queue->has_room, NULL) == 0)
            return true;
        pthread_cond_destroy(&queue->has_item);
    }
    pthread_mutex_destroy(&queue->lock);
    return false;
}

plim_status queue_make(struct queue **out, struct budget *budget, size_t capacity, plim_error *error)
{
    uint64_t bytes;
    if (capacity == 0)
        capacity = 1;
    if (!mul_u64(&bytes, capacity, sizeof(void *)) || !add_u64(&bytes, bytes, sizeof(struct queue)))
        bytes = UINT64_MAX;
    struct queue *queue = bytes < SIZE_MAX ? budget_take(budget, QUEUE_TAG, bytes) : NULL;
    if (!queue)
        return budget_refused(budget, QUEUE_TAG, bytes, error);
    queue->budget = budget;
    queue->struct_bytes = bytes;
    queue->capacity = capacity;
    if (!init_locks(queue)) {
        budget_give(budget, QUEUE_TAG, queue, bytes);
        return fail(error, PLIM_NO_MEMORY, "the system has no lock for a queue");
    }
    *out = queue;
    return PLIM_OK;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    pthread_cond_destroy(&queue->has_room);
    pthread_cond_destroy(&queue->has_item);
    pthread_mutex_destroy(&queue->lock);
    budget_give(queue->budget, QUEUE_TAG, queue, queue->struct_bytes);
}

bool queue_put(struct queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == queue->capacity && !queue->closed)
        pthread_cond_wait(&queue->has_room, &queue->lock);
    bool open = !queue->closed;
    if (open) {
        queue->items[(queue->first + queue->count) % queue->capacity] = item;
        queue->count++;
        pthread_cond_signal(&queue->has_item);
    }
    pthread_mutex_unlock(&queue->lock);
    return open;
}

/* With the lock held. */
static void *pop(struct queue *queue)
{
    if (queue->count == 0)
        return NULL;
    void *item = queue->items[queue->first];
    queue->first = (queue->first + 1) % queue->capacity;
    queue->count--;
    pthread_cond_signal(&queue->has_room);
    return item;
}

void *queue_get(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && !queue->closed)
        pthread_cond_wait(&queue->has_item, &queue->lock);
    void *item = pop(queue);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

void *queue_try_get(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    void *item = pop(queue);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->has_item);
    pthread_cond_broadcast(&queue->has_room);
    pthread_mutex_unlock(&queue->lock);
}
