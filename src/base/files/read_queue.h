/* read_queue.h - asynchronous reads that bypass the page cache (O_DIRECT), many at a time.

   Reading through the page cache costs more time than a fast disk needs to read, because the system allocates pages and
   copies out of them. Data that is read once, one block at a time, into memory that is allocated already does not need
   the page cache. Any read may be declined; the caller then calls file_read. A read is declined where the bytes are in
   the page cache already, where the system or the file system cannot do it, where all READ_QUEUE_DEPTH requests are in
   use, and where the disk is so slow that its bytes had better stay in the page cache. */
#ifndef BASE_FILES_READ_QUEUE_H
#define BASE_FILES_READ_QUEUE_H

#include <stdatomic.h>

#include "base/files/file.h"

#define READ_QUEUE_ALIGNMENT ((uint64_t)4096) /* of the buffer, and of the file range that is read */
#define READ_QUEUE_DEPTH     64
#define READ_QUEUE_FILES     64

struct read_queue {
    unsigned long context; /* of Linux AIO; 0: there is none */
    int file_count;
    struct {
        const struct file *file;
        int descriptor; /* opened with O_DIRECT; -1: the file system refuses that */
        atomic_bool refused;
    } file[READ_QUEUE_FILES];
    struct {
        atomic_bool used;
        atomic_bool published; /* the fields below are written: who waits may not be the thread that submitted */
        int file;
        uint64_t tag, needed; /* needed: bytes from the start of the aligned range to the end of the request */
    } request[READ_QUEUE_DEPTH];
    atomic_int in_flight;
    atomic_ullong busy_since; /* clock_ns() when the queue was last empty */
    atomic_ullong done_bytes; /* bytes read since then */
    atomic_ullong bytes;      /* bytes read in total */
    atomic_int slow;
    atomic_bool gone; /* the system does not know the context, because this process was forked */
};

enum read_queue_answer {
    READ_TAKEN,
    READ_CACHED,   /* the range is in the page cache: file_read only copies */
    READ_DECLINED, /* the caller uses file_read, through the page cache */
};

struct read_done {
    uint64_t tag;
    bool whole; /* false: the read failed or was short; file_read reports why */
};

/* Never fails: if the system provides no AIO context, the queue declines all reads. */
void read_queue_init(struct read_queue *queue);
/* Waits for the reads in flight. The files may be closed only afterwards. */
void read_queue_release(struct read_queue *queue);
/* Allows reads of this file. Call it before the first read, from one thread. */
void read_queue_admit(struct read_queue *queue, struct file *file);
/* The maximum number of bytes that a read of a range of `bytes` bytes writes: the size of its buffer. */
uint64_t read_queue_room(uint64_t bytes);
/* Submits a read of the aligned range around [offset, offset + bytes) into `to`, which is aligned: byte `offset` of the
   file lies at to + offset % READ_QUEUE_ALIGNMENT. Thread-safe. */
enum read_queue_answer read_queue_add(struct read_queue *queue, struct file *file, uint64_t offset, void *to,
                                      uint64_t bytes, uint64_t tag);
/* Waits until reads complete and returns how many did. Call it only while reads are in flight, from one thread at a
   time. Below 0: no read will complete, and every read that is added from now on is declined. */
int read_queue_wait(struct read_done done[READ_QUEUE_DEPTH], struct read_queue *queue);
/* Bytes that were read without the page cache so far. */
uint64_t read_queue_bytes(const struct read_queue *queue);

/* Returns the new count of slow waits from the old one (`slow`), after a caller waited until `bytes` had been read
   within `ns`. From READ_QUEUE_SLOW on the disk counts as slow. */
#define READ_QUEUE_SLOW 32
int read_queue_judge(int slow, uint64_t bytes, uint64_t ns);

#endif
