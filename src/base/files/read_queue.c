/* read_queue.c - reads that bypass the page cache (O_DIRECT) through Linux AIO, without threads or memory of its own.

   1. A file is opened a second time through its descriptor, so it is the same file even if its path has been reused.
   2. Linux AIO is used and not io_uring because containers allow it, and one system call per block costs next to
      nothing.
   3. A failure declines one read, all reads of a file or all reads. If the file has an error of its own, the file_read
      that follows reports it. */
#include "base/files/read_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/files/file_own.h"
#include "base/numbers/checked.h"
#include "base/threads/clock.h"

#define SLOW_BYTES_PER_S ((uint64_t)300 * 1000 * 1000) /* slow below this: the page cache fills four times as fast */

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

void read_queue_init(struct read_queue *queue)
{
    aio_context_t context = 0;
    *queue = (struct read_queue){0};
    if (!file_faulted(FAULT_OPEN) && syscall(SYS_io_setup, (long)READ_QUEUE_DEPTH, &context) == 0)
        queue->context = context;
}

void read_queue_release(struct read_queue *queue)
{
    struct read_done done[READ_QUEUE_DEPTH];
    while (atomic_load(&queue->in_flight) > 0 && read_queue_wait(done, queue) > 0)
        continue;
    if (queue->context)
        syscall(SYS_io_destroy, queue->context); /* waits for reads in flight, too */
    for (int f = 0; f < queue->file_count; f++)
        if (queue->file[f].descriptor >= 0)
            close(queue->file[f].descriptor);
}

void read_queue_admit(struct read_queue *queue, struct file *file)
{
    char path[64];
    if (!queue->context || queue->file_count == READ_QUEUE_FILES || file_in_memory(file))
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file_descriptor(file));
    int f = queue->file_count++;
    queue->file[f].file = file;
    queue->file[f].descriptor = file_open_path(path, O_RDONLY | O_DIRECT, 0);
}

uint64_t read_queue_room(uint64_t bytes)
{
    return add_most(round_up(bytes, READ_QUEUE_ALIGNMENT), READ_QUEUE_ALIGNMENT);
}

/* ---- whether a range is in the page cache ---- */

/* The fallback where cachestat fails (kernels before 6.5, files of other users): the range counts as cached if its
   first and its last page are. */
static bool ends_are_cached(struct file *file, uint64_t offset, uint64_t bytes)
{
    char byte;
    return file_read_ready(file, offset, &byte, 1) && file_read_ready(file, offset + bytes - 1, &byte, 1);
}

static bool is_cached(struct file *file, uint64_t offset, uint64_t bytes)
{
    struct {
        uint64_t offset, bytes;
    } range = {offset, bytes};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } pages;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), wanted = (offset + bytes - 1) / page - offset / page + 1;
    if (syscall(SYS_cachestat, (long)file_descriptor(file), &range, &pages, 0L) != 0)
        return ends_are_cached(file, offset, bytes);
    return pages.cached >= wanted;
}

/* ---- submitting reads ---- */

static int find_file(const struct read_queue *queue, const struct file *file)
{
    for (int f = 0; f < queue->file_count; f++)
        if (queue->file[f].file == file)
            return queue->file[f].descriptor >= 0 && !atomic_load(&queue->file[f].refused) ? f : -1;
    return -1;
}

static int take_request(struct read_queue *queue)
{
    for (int s = 0; s < READ_QUEUE_DEPTH; s++)
        if (!atomic_load(&queue->request[s].used) && !atomic_exchange(&queue->request[s].used, true))
            return s;
    return -1;
}

static void count_in(struct read_queue *queue)
{
    if (atomic_fetch_add(&queue->in_flight, 1) == 0) {
        atomic_store(&queue->busy_since, clock_ns());
        atomic_store(&queue->done_bytes, 0);
    }
}

static bool submit(struct read_queue *queue, int s, uint64_t offset, void *to, uint64_t bytes)
{
    struct iocb call = {
        .aio_data = (uint64_t)s,
        .aio_lio_opcode = IOCB_CMD_PREAD,
        .aio_fildes = (uint32_t)queue->file[queue->request[s].file].descriptor,
        .aio_buf = (uint64_t)(uintptr_t)to,
        .aio_nbytes = bytes,
        .aio_offset = (int64_t)offset,
    };
    struct iocb *calls[] = {&call};
    int fault = fault_at(FAULT_READ);
    if (fault > 0)
        return false;
    if (fault == FAULT_SHORT)
        call.aio_nbytes = round_up(bytes / 2, READ_QUEUE_ALIGNMENT);
    count_in(queue);
    if (syscall(SYS_io_submit, queue->context, 1L, calls) == 1)
        return true;
    if (errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)
        atomic_store(&queue->file[queue->request[s].file].refused, true);
    atomic_fetch_sub(&queue->in_flight, 1);
    return false;
}

enum read_queue_answer read_queue_add(struct read_queue *queue, struct file *file, uint64_t offset, void *to,
                                      uint64_t bytes, uint64_t tag)
{
    int f = find_file(queue, file);
    uint64_t first = offset & ~(READ_QUEUE_ALIGNMENT - 1), end;
    if (f < 0 || atomic_load(&queue->gone) || !bytes || !add_u64(&end, offset, bytes) ||
        end > INT64_MAX - READ_QUEUE_ALIGNMENT || atomic_load(&queue->slow) >= READ_QUEUE_SLOW)
        return READ_DECLINED;
    if (is_cached(file, offset, bytes))
        return READ_CACHED;
    int s = take_request(queue);
    if (s < 0)
        return READ_DECLINED;
    queue->request[s].file = f;
    queue->request[s].tag = tag;
    queue->request[s].needed = end - first;
    atomic_store(&queue->request[s].published, true);
    if (submit(queue, s, first, to, round_up(end, READ_QUEUE_ALIGNMENT) - first))
        return READ_TAKEN;
    atomic_store(&queue->request[s].used, false);
    return READ_DECLINED;
}

/* ---- completed reads ---- */

int read_queue_judge(int slow, uint64_t bytes, uint64_t ns)
{
    bool is_slow = bytes * 1000 < SLOW_BYTES_PER_S / 1000 * (ns / 1000);
    if (slow >= READ_QUEUE_SLOW) /* final, because the bytes are in the page cache by now and should stay there */
        return slow;
    return is_slow ? slow + 1 : slow > 0 ? slow - 1 : 0;
}

static struct read_done land(struct read_queue *queue, const struct io_event *event)
{
    int s = (int)event->data;
    atomic_exchange(&queue->request[s].published, false); /* compilers do not know that the system orders the threads */
    int f = queue->request[s].file;
    struct read_done done = {.tag = queue->request[s].tag,
                             .whole = event->res > 0 && (uint64_t)event->res >= queue->request[s].needed};
    if (event->res == -EINVAL || event->res == -EOPNOTSUPP)
        atomic_store(&queue->file[f].refused, true);
    if (done.whole) {
        atomic_fetch_add(&queue->done_bytes, queue->request[s].needed);
        atomic_fetch_add(&queue->bytes, queue->request[s].needed);
    }
    atomic_store(&queue->request[s].used, false);
    return done;
}

static int get_events(struct io_event events[READ_QUEUE_DEPTH], const struct read_queue *queue, long least,
                      struct timespec *timeout)
{
    long count;
    do
        count = syscall(SYS_io_getevents, queue->context, least, (long)READ_QUEUE_DEPTH, events, timeout);
    while (count < 0 && errno == EINTR);
    return (int)count;
}

int read_queue_wait(struct read_done done[READ_QUEUE_DEPTH], struct read_queue *queue)
{
    struct io_event events[READ_QUEUE_DEPTH];
    struct timespec now = {0};
    int count = get_events(events, queue, 0, &now);
    bool waited = count == 0;
    if (waited)
        count = get_events(events, queue, 1, NULL);
    for (int i = 0; i < count; i++)
        done[i] = land(queue, &events[i]);
    if (waited && count > 0) /* without a wait, the time of completion is unknown */
        atomic_store(&queue->slow, read_queue_judge(atomic_load(&queue->slow), atomic_load(&queue->done_bytes),
                                                    clock_ns() - atomic_load(&queue->busy_since)));
    if (count > 0)
        atomic_fetch_sub(&queue->in_flight, count);
    else if (count < 0)
        atomic_store(&queue->gone, true);
    return count;
}

uint64_t read_queue_bytes(const struct read_queue *queue)
{
    return atomic_load_explicit(&queue->bytes, memory_order_relaxed);
}
