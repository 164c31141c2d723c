/* read_queue.h - reads past the page cache, many at a time, that nobody has to wait for meanwhile.

   Filling the page cache costs more than a fast disk takes to read: allocating its pages, copying out of them. What is
   read once, a block at a time, into memory that is there already, does not need it. Every read is one that may be
   declined: then the caller reads as ever. It is declined where the bytes are in the page cache already, where the
   system or the file system cannot do it, and where the disk is so slow that its bytes had better stay in the cache. */
#ifndef BASE_FILES_READ_QUEUE_H
#define BASE_FILES_READ_QUEUE_H

#include <stdatomic.h>

#include "base/files/file.h"

#define READ_QUEUE_ALIGNMENT ((uint64_t)4096) /* of memory, and of what is read around a range */
#define READ_QUEUE_DEPTH     64
#define READ_QUEUE_FILES     64

struct read_queue {
    unsigned long context; /* the kernel's; 0: there is none */
    int file_count;
    struct {
        const struct file *file;
        int descriptor; /* past the page cache; -1: the file system will not */
        atomic_bool refused;
    } file[READ_QUEUE_FILES];
    struct {
        atomic_bool used;
        atomic_bool told; /* the rest of it is written: who waits may be another thread than who asked */
        int file;
        uint64_t tag, needed; /* bytes from the beginning of the aligned range on */
    } slot[READ_QUEUE_DEPTH];
    atomic_int in_flight;
    atomic_ullong busy_since; /* when the queue was empty last */
    atomic_ullong done_bytes; /* since then */
    atomic_ullong bytes;      /* all that was read */
    atomic_int slow;
    atomic_bool gone; /* the kernel does not know it: this process was forked */
};

enum read_queue_answer {
    READ_TAKEN,
    READ_CACHED,   /* it is in the page cache: file_read is a copy */
    READ_DECLINED, /* file_read, by the page cache */
};

struct read_done {
    uint64_t tag;
    bool whole; /* false: it failed or was short. file_read says why */
};

/* Never fails: a queue that cannot be had declines all reads. */
void read_queue_init(struct read_queue *queue);
/* Waits for what is in flight. The files may be closed only afterwards. */
void read_queue_release(struct read_queue *queue);
/* Reads of this file may be asked for; before the first, from one thread. */
void read_queue_admit(struct read_queue *queue, struct file *file);
/* The most bytes that are written for a range of so many. */
uint64_t read_queue_room(uint64_t bytes);
/* Reads the aligned range around [offset, offset + bytes) to `to`, which is aligned: byte `offset` of the file lies at
   to + offset % READ_QUEUE_ALIGNMENT. Thread-safe. */
enum read_queue_answer read_queue_add(struct read_queue *queue, struct file *file, uint64_t offset, void *to,
                                      uint64_t bytes, uint64_t tag);
/* Waits for the next that are done; how many. Only where reads are in flight; one thread at a time. Below 0: none will
   come, and all that is added is declined from now on. */
int read_queue_wait(struct read_done done[READ_QUEUE_DEPTH], struct read_queue *queue);
/* Bytes that were read past the page cache so far. */
uint64_t read_queue_bytes(const struct read_queue *queue);

/* Somebody waited until `bytes` had come within `ns`: how slow the disk seems now, from how slow it seemed. From
   READ_QUEUE_SLOW on it is. */
#define READ_QUEUE_SLOW 32
int read_queue_judge(int slow, uint64_t bytes, uint64_t ns);

#endif
