/* iterator_own.h - what the files of the iterator share; iterator.c tells how it works. */
#ifndef PIPELINE_CORE_ITERATOR_OWN_H
#define PIPELINE_CORE_ITERATOR_OWN_H

#include <pthread.h>

#include "pipeline/core/flow.h"

#define MOST_SLOTS    1025
#define MOST_WORKERS  256
#define MOST_POSITION ((int64_t)1 << 61) /* in data without end: leaves room for skips */

struct cursor_position {
    int64_t epoch, step;
};

struct slot {
    struct batch batch;
    struct batch opened;        /* what the caller gets where elements are batches */
    struct value_buffer values; /* of columns that have values */
    uint64_t charged;           /* what its values take at most */
    int parts;                  /* being finished */
};

struct worker {
    struct iterator *iterator;
    struct thread *thread; /* NULL: the caller's own */
    struct flow *flow;
};

struct slot_part {
    struct slot *slot;
    uint64_t number; /* of the slot */
    int64_t row, rows;
    bool finished; /* by who pulled it: what it refers to does not outlive the head's next pull */
    uint64_t epoch;
    int64_t first; /* position of its first element, where the data has an index */
};

struct failure {
    plim_status status; /* PLIM_OK: none */
    uint64_t slot;
    int64_t row;
    plim_error error;
};

struct iterator {
    struct dataset *dataset;
    struct budget *budget;
    size_t bytes;  /* of this block: workers, slots and flows included */
    int64_t rows;  /* of a slot */
    int64_t steps; /* of an epoch, or CARDINALITY_... */
    int64_t last_batch;
    struct held_blocks *held;
    struct stream *head; /* NULL: the data has an index */
    bool has_values, heavy;
    bool drops;                   /* a batch that is not whole; elements one by one are never dropped */
    int slot_count, worker_count; /* worker 0 is the caller */
    uint8_t *ring;
    size_t ring_bytes;
    uint64_t column_at[MOST_COLUMNS], slot_bytes, value_bytes;
    bool has_lock;
    pthread_mutex_t lock;
    pthread_cond_t workers_wake, caller_wakes;

    uint64_t building, ready, taken, released;
    int64_t row;
    struct cursor_position reading, giving; /* the next batch to be handed out; to be given */
    int64_t origin_epoch, origin;           /* batches of this epoch begin behind so many elements; of others at 0 */
    bool rewind;                            /* the head is not at `reading` yet */
    bool ended;                             /* the head's epoch is over, and the caller does not know it yet */
    bool stop, seeking, pulling, caller_sleeps;
    bool paused; /* somebody looks at the clocks */
    bool parked; /* a stream's epoch was reported as over: the next one begins when the caller asks for it */
    int sleeping, active;
    int wanted;                          /* threads at work at once, the caller among them: tuned while it runs */
    uint64_t tuned_batches, tuned_ready; /* the figures then */
    atomic_bool cancel;                  /* parts are left as they are: nobody will see them */
    struct failure failure;
    struct iterator_figures figures;
    uint64_t bytes_read_before;

    /* Elements one by one: the slot that they are given from. */
    bool single;
    struct batch *source;
    struct batch element;
    int64_t failure_given; /* rows of the failed slot that were given */
    int64_t in_slot;       /* the next row of it */
    int64_t first_rows;    /* rows of the first slot that lie before the place sought */

    struct worker *worker;
    struct slot *slot;
};

static inline void lock(struct iterator *iterator)
{
    if (iterator->has_lock)
        pthread_mutex_lock(&iterator->lock);
}

static inline void unlock(struct iterator *iterator)
{
    if (iterator->has_lock)
        pthread_mutex_unlock(&iterator->lock);
}

static inline int64_t origin_of(const struct iterator *iterator, int64_t epoch)
{
    return epoch == iterator->origin_epoch ? iterator->origin : 0;
}

static inline struct slot *slot_at(const struct iterator *iterator, uint64_t number)
{
    return &iterator->slot[number % (uint64_t)iterator->slot_count];
}

/* ---- iterator_cost.c: what it takes, and where things lie in its block ---- */

/* Elements are given one by one. They still come in slots of many, or every one would cost a lock. */
bool is_single(const struct dataset *dataset);
int64_t slot_rows(const struct dataset *dataset);
/* Slots an epoch and elements of the last one, as dataset_steps counts batches. */
int64_t slot_steps(int64_t *last, const struct dataset *dataset);
/* Rows of all columns, then the value buffer of what they refer to; bytes of a slot. */
uint64_t lay_out_slot(uint64_t column_at[MOST_COLUMNS], uint64_t *value_bytes, const struct dataset *dataset);
uint64_t ring_bytes(const struct dataset *dataset, int slots);
uint64_t workers_at(void);
uint64_t slots_at(int workers);
uint64_t flows_at(struct grant grant);
uint64_t iterator_bytes(const struct dataset *dataset, struct grant grant);
struct dataset *first_node(const struct dataset *dataset);

/* ---- iterator_fill.c: parts, and who does them ---- */

/* Batches of an epoch, and samples of its last one. */
int64_t steps_of(const struct iterator *iterator, int64_t epoch, int64_t *last);
bool is_last(const struct iterator *iterator, struct cursor_position at);
bool may_pull(const struct iterator *iterator);
/* Called and left with the lock held; let go in between. may_pull was true. */
void run_part(struct iterator *iterator, struct worker *worker);
/* A worker's thread. */
void worker_run(void *context);
void wake_worker(struct iterator *iterator);
/* Looks now and then whether batches were ready when they were asked for, and sets `wanted`. */
void tune(struct iterator *iterator);

/* ---- iterator.c: giving and seeking ---- */

plim_status check_position(const struct iterator *iterator, int64_t epoch, int64_t step, plim_error *error);
void set_position(struct iterator *iterator, int64_t epoch, int64_t step);

/* Of all sources of the pipeline, so far. */
uint64_t bytes_read(const struct dataset *dataset);

#endif
