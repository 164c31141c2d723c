/* held_own.h - what the files of the held blocks share; held_blocks.c tells how they work. */
#ifndef PIPELINE_STAGES_KEEP_HELD_OWN_H
#define PIPELINE_STAGES_KEEP_HELD_OWN_H

#include <pthread.h>

#include "base/files/read_queue.h"
#include "pipeline/core/flow.h"
#include "pipeline/stages/keep/held_blocks.h"

#define MOST_FRAMES  1024
#define MOST_PENDING 256
#define BUCKETS      256
#define NOWHERE      (-1)

enum frame_state {
    FRAME_NEW,     /* nobody has asked the disk yet */
    FRAME_LATER,   /* nobody reads it: who needs it does */
    FRAME_READING, /* somebody does, and has it pinned */
    FRAME_FLIGHT,  /* in the queue, which has it pinned */
    FRAME_READY,
};

struct frame {
    int64_t block;   /* NOWHERE: none */
    int next;        /* of the same bucket */
    atomic_int pins; /* more of them with the lock held only */
    enum frame_state state;
    int parts_left; /* of those that are in the queue, and one for who puts them there */
    bool tried;     /* the queue had it, or declined: it is read by the page cache */
    bool failed;    /* a part of it did not come by the queue */
    uint64_t turn;  /* when it is needed; 0: nobody said */
    uint64_t used;  /* when it was, in calls */
    uint8_t *rows;
};

struct held_blocks {
    struct budget *budget;
    uint64_t bytes;
    struct source *source;
    int64_t block_rows;
    bool plain; /* frames hold rows as they lie in files; else column after column */
    struct row_layout layout;
    uint64_t room_at[MOST_COLUMNS]; /* of each part, in a frame */
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct read_queue queue;
    bool reaping; /* somebody waits for the queue */
    uint64_t calls;
    uint64_t turn;      /* row blocks of earlier ones may go */
    uint64_t next_turn; /* rows are given of this one, but some may be missing of the one before it still */
    int64_t next_rows;  /* of it, so far */
    int64_t late_rows;  /* so many of it at most are given before the last of an earlier one */
    int64_t rows_given; /* since a row block was read that nobody needed yet */
    int new_count;      /* frames in that state */
    int later_count;
    struct pending {
        int64_t block;
        uint64_t turn;
    } pending[MOST_PENDING]; /* announced, in order, and without a frame so far */
    int pending_count;
    int bucket[BUCKETS];
    int frame_count;
    struct frame frame[];
};

/* What one call found: the frame of each row, each frame once among those that it pinned. */
struct found {
    int row[FLOW_ROWS];
    int pinned[FLOW_ROWS];
    int pinned_count;
};

/* ---- held_fill.c ---- */

/* Rows as they lie in files take no more than this makes of them: else columns are read. */
bool held_plain(struct row_layout *layout, const struct source *source);
/* Where row 0 of the row block is, of a part. */
uint8_t *held_part(const struct held_blocks *held, const struct frame *frame, int part);
/* Until all that was pinned is there or given up. With the lock held; let go in between. */
void held_fill(struct held_blocks *held, const struct found *found);

/* ---- held_blocks.c ---- */

void held_give_up(struct held_blocks *held, int p);
void held_state(struct held_blocks *held, struct frame *frame, enum frame_state state);

#endif
