/* file.c - system calls on files, with faults, retries and readable errors.

   1. Every call asks fault_at() first; an injected error takes the same way
      as a real one.
   2. A write-back error is remembered: once the system has said that data was
      lost, no later file_sync of this file succeeds.
   3. A failed file_open leaves no file behind (but for a lock file: it locks nobody out).
   4. No file of ours has a descriptor below 3: where a host has closed one of
      its standard streams, its lines must not end up in our files.
   5. No write ends the host with a signal. */
#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/files/file_own.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "base/text/text.h"
#include "base/threads/stop.h"

#define WILL_NEED_BYTES ((uint64_t)128 * 1024)     /* of one advice the system may forget what is more */
#define READ_BYTES      ((size_t)32 * 1024 * 1024) /* between two looks at the stop flag */

struct file {
    struct budget *budget;
    size_t struct_bytes;
    int descriptor;
    bool writable, lock;
    atomic_int owed;          /* an injected fault that a read which cannot fail has met */
    atomic_bool always_waits; /* the file system cannot tell what is in memory */
    atomic_bool random;       /* the system has this advice */
    atomic_int late;          /* reads to come before it is forgotten that one would have had to wait */
    atomic_int lost;          /* the error number of a failed write-back, or 0 */
    atomic_ullong bytes_read;
    char path[];
};

/* ---- errors ---------------------------------------------------------- */

plim_status file_io_error(plim_error *error, const char *path, const char *verb, int error_number)
{
    char buffer[128];
    fail_at(error, PLIM_IO, path, "cannot %s: %s", verb, strerror_r(error_number, buffer, sizeof buffer));
    if (error_number == ENOSPC || error_number == EDQUOT)
        return hint(error, PLIM_IO, "free some space there, or name a folder on another disk");
    if (error_number == EMFILE)
        return hint(error, PLIM_IO, "raise the limit on open files (ulimit -n)");
    return PLIM_IO;
}

bool file_faulted(enum fault_site site)
{
    int error_number = fault_at(site);
    if (error_number <= 0)
        return false;
    errno = error_number;
    return true;
}

bool file_interrupted(int *times)
{
    return errno == EINTR && ++*times < INTERRUPTS_MOST;
}

/* ---- signals of writing ------------------------------------------------ */

/* Writing to a pipe that nobody reads raises SIGPIPE, writing beyond the limit
   on the size of files SIGXFSZ: either would end the host. They come to the
   thread that writes, so they are blocked there, and one that came is taken away. */
void file_quiet_begin(struct file_quiet *quiet)
{
    static const int raised[] = {SIGPIPE, SIGXFSZ};
    sigset_t waiting;
    sigpending(&waiting);
    sigemptyset(&quiet->mine);
    for (size_t i = 0; i < COUNT(raised); i++)
        if (!sigismember(&waiting, raised[i])) /* one that waits already is the host's */
            sigaddset(&quiet->mine, raised[i]);
    pthread_sigmask(SIG_BLOCK, &quiet->mine, &quiet->before);
}

void file_quiet_end(const struct file_quiet *quiet, bool raised)
{
    int error_number = errno, times = 0;
    if (raised)
        while (sigtimedwait(&quiet->mine, NULL, &(struct timespec){0}) < 0 && file_interrupted(&times))
            continue;
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = error_number;
}

static void quiet_end(const struct file_quiet *quiet, bool failed)
{
    file_quiet_end(quiet, failed && (errno == EPIPE || errno == EFBIG));
}

/* ---- opening --------------------------------------------------------- */

static void close_keeping_errno(int descriptor)
{
    int error_number = errno;
    close(descriptor);
    errno = error_number;
}

int file_lift(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    int lifted = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close_keeping_errno(descriptor);
    return lifted;
}

int file_open_path(const char *path, int flags, mode_t mode)
{
    int descriptor, times = 0;
    do
        descriptor = file_faulted(FAULT_OPEN) ? -1 : file_lift(open(path, flags | O_CLOEXEC, mode));
    while (descriptor < 0 && file_interrupted(&times));
    return descriptor;
}

/* Where there is no O_TMPFILE: a name that is removed at once. */
static int open_named_scratch(const char *folder)
{
    char name[PATH_MAX];
    int length = snprintf(name, sizeof name, "%s/.plimsoll-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int descriptor = file_faulted(FAULT_OPEN) ? -1 : mkostemp(name, O_CLOEXEC);
    if (descriptor >= 0 && unlink(name) != 0) {
        close_keeping_errno(descriptor);
        return -1;
    }
    return file_lift(descriptor);
}

static int open_scratch(const char *folder)
{
    int descriptor = file_open_path(folder, O_TMPFILE | O_RDWR | O_EXCL, 0600);
    if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        descriptor = open_named_scratch(folder);
    return descriptor;
}

/* Where the file system has no locks, everybody gets one. */
static bool lock_descriptor(int descriptor)
{
    int times = 0;
    do
        if (!file_faulted(FAULT_OPEN) && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            return true;
    while (file_interrupted(&times));
    return errno == EOPNOTSUPP || errno == ENOSYS || errno == ENOLCK || errno == EINVAL;
}

/* Whether the path still names the open file: -1 when nobody knows. */
static int still_named(int descriptor, const char *path)
{
    struct stat opened, named;
    if (file_faulted(FAULT_STAT) || fstat(descriptor, &opened) != 0)
        return -1;
    if (lstat(path, &named) != 0)
        return errno == ENOENT ? 0 : -1;
    return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Whoever held the lock removes the file: a lock on a file that has lost its
   name keeps nobody out, so the next one is tried. A link is not followed: what it leads to is not ours, and closing
   would remove the link. */
static int open_lock(const char *path)
{
    for (int times = 0; times < INTERRUPTS_MOST; times++) {
        int descriptor = file_open_path(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (descriptor < 0)
            return -1;
        int named = lock_descriptor(descriptor) ? still_named(descriptor, path) : -1;
        if (named > 0)
            return descriptor;
        close_keeping_errno(descriptor);
        if (named < 0)
            return -1;
    }
    errno = EWOULDBLOCK;
    return -1;
}

static int open_mode(const char *path, enum file_mode mode)
{
    if (mode == FILE_LOCK)
        return open_lock(path);
    if (mode == FILE_SCRATCH)
        return open_scratch(path);
    if (mode == FILE_CREATE) {
        unlink(path); /* what stands there may be a link to something that is not ours */
        return file_open_path(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    }
    return file_open_path(path, O_RDONLY | O_NONBLOCK, 0); /* opening a pipe must not wait for its writer */
}

static bool get_status(struct stat *out, const struct file *file)
{
    return !file_faulted(FAULT_STAT) && fstat(file->descriptor, out) == 0;
}

/* Folders and pipes open for reading, but cannot be read at an offset. */
static plim_status check_readable(const struct file *file, plim_error *error)
{
    struct stat status;
    if (!get_status(&status, file))
        return file_io_error(error, file->path, "look at it", errno);
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) || S_ISCHR(status.st_mode))
        return PLIM_OK;
    return fail_at(error, PLIM_IO, file->path, "cannot read: %s",
                   S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a file");
}

static plim_status is_link(const char *path, plim_error *error)
{
    fail_at(error, PLIM_IO, path, "cannot lock: it is a symbolic link");
    return hint(error, PLIM_IO, "remove it, or name another folder");
}

static plim_status in_use(const char *path, plim_error *error)
{
    fail_at(error, PLIM_IO, path, "it is locked: in use by another run");
    return hint(error, PLIM_IO, "wait for that one, or name another folder");
}

size_t file_struct_bytes(const char *path)
{
    return sizeof(struct file) + strlen(path) + 1;
}

plim_status file_open(struct file **out, struct budget *budget, const char *path, enum file_mode mode,
                      plim_error *error)
{
    static const char *const verbs[] = {
        [FILE_READ] = "open",
        [FILE_CREATE] = "create",
        [FILE_SCRATCH] = "make a scratch file here",
        [FILE_LOCK] = "lock",
    };
    size_t path_bytes = strlen(path) + 1, struct_bytes = file_struct_bytes(path);
    struct file *file = budget_take(budget, FILE_TAG, struct_bytes);
    if (!file)
        return budget_refused(budget, FILE_TAG, struct_bytes, error);
    file->budget = budget;
    file->struct_bytes = struct_bytes;
    file->writable = mode != FILE_READ;
    file->lock = mode == FILE_LOCK;
    memcpy(file->path, path, path_bytes);
    file->descriptor = open_mode(path, mode);
    plim_status status = PLIM_OK;
    if (file->descriptor < 0 && mode == FILE_LOCK && errno == EWOULDBLOCK)
        status = in_use(path, error);
    else if (file->descriptor < 0 && mode == FILE_LOCK && errno == ELOOP)
        status = is_link(path, error);
    else if (file->descriptor < 0)
        status = file_io_error(error, path, verbs[mode], errno);
    else if (mode == FILE_READ)
        status = check_readable(file, error);
    if (status == PLIM_OK)
        *out = file;
    else
        file_close(file);
    return status;
}

void file_close(struct file *file)
{
    if (!file)
        return;
    if (file->descriptor >= 0 && file->lock)
        (void)file_remove(file->path, NULL); /* while it is locked still. A lock file that stays locks nobody out */
    if (file->descriptor >= 0)
        close(file->descriptor);
    budget_give(file->budget, FILE_TAG, file, file->struct_bytes);
}

const char *file_path(const struct file *file)
{
    return file->path;
}

int file_descriptor(const struct file *file)
{
    return file->descriptor;
}

plim_status file_size(uint64_t *bytes, struct file *file, plim_error *error)
{
    struct stat status;
    if (!get_status(&status, file))
        return file_io_error(error, file->path, "ask for its size", errno);
    *bytes = (uint64_t)status.st_size;
    return PLIM_OK;
}

/* ---- reading and writing --------------------------------------------- */

/* How much of a transfer to ask for: all, or half when a fault cuts it. */
static size_t cut(int fault, size_t bytes)
{
    return fault == FAULT_SHORT ? (bytes + 1) / 2 : bytes;
}

ssize_t file_read_once(struct file *file, uint64_t offset, char *to, size_t bytes)
{
    int fault = atomic_exchange_explicit(&file->owed, 0, memory_order_relaxed);
    if (!fault)
        fault = fault_at(FAULT_READ);
    if (fault > 0) {
        errno = fault;
        return -1;
    }
    return pread(file->descriptor, to, cut(fault, bytes), (off_t)offset);
}

ssize_t file_write_once(struct file *file, uint64_t offset, const char *from, size_t bytes)
{
    int fault = fault_at(FAULT_WRITE);
    if (fault > 0) {
        errno = fault;
        return -1;
    }
    struct file_quiet quiet;
    file_quiet_begin(&quiet);
    ssize_t step = pwrite(file->descriptor, from, cut(fault, bytes), (off_t)offset);
    quiet_end(&quiet, step < 0);
    return step;
}

plim_status file_read_some(size_t *got, struct file *file, uint64_t offset, void *to, size_t bytes, plim_error *error)
{
    uint64_t most = offset < INT64_MAX ? INT64_MAX - offset : 0; /* no file goes on longer */
    size_t done = 0, wanted = bytes < most ? bytes : (size_t)most;
    int times = 0;
    while (done < wanted) {
        size_t part = wanted - done < READ_BYTES ? wanted - done : READ_BYTES;
        if (file->budget) /* file_fetch's has none */
            TRY(budget_may_transfer(file->budget, error));
        ssize_t step = file_read_once(file, offset + done, (char *)to + done, part);
        if (step < 0 && file_interrupted(&times))
            continue;
        if (step < 0)
            return file_io_error(error, file->path, "read", errno);
        if (step == 0)
            break;
        done += (size_t)step;
        times = 0;
    }
    atomic_fetch_add_explicit(&file->bytes_read, done, memory_order_relaxed);
    *got = done;
    return PLIM_OK;
}

/* Where the file really ends, for the message; `at_most` when nobody knows. */
static uint64_t end_of(struct file *file, uint64_t at_most)
{
    struct stat status;
    bool known = fstat(file->descriptor, &status) == 0 && (uint64_t)status.st_size < at_most;
    return known ? (uint64_t)status.st_size : at_most;
}

plim_status file_read(struct file *file, uint64_t offset, void *to, size_t bytes, plim_error *error)
{
    size_t got = 0;
    TRY(file_read_some(&got, file, offset, to, bytes, error));
    if (got == bytes)
        return PLIM_OK;
    char end[32], from[32], count[32];
    text_count(end, (int64_t)(end_of(file, offset + got) & INT64_MAX));
    text_count(from, (int64_t)(offset & INT64_MAX));
    text_count(count, (int64_t)(bytes & INT64_MAX));
    return fail_at(error, PLIM_BAD_DATA, file->path, "ends at byte %s, but %s bytes are needed from byte %s on", end,
                   count, from);
}

static plim_status fetch(uint64_t *bytes, struct file *file, void *to, uint64_t capacity, plim_error *error)
{
    uint64_t size = 0;
    TRY(check_readable(file, error));
    TRY(file_size(&size, file, error));
    if (size <= capacity)
        TRY(file_read(file, 0, to, (size_t)size, error));
    *bytes = size;
    return PLIM_OK;
}

plim_status file_fetch(uint64_t *bytes, const char *path, void *to, uint64_t capacity, plim_error *error)
{
    union {
        struct file file;
        char bytes[sizeof(struct file) + PATH_MAX];
    } space;
    size_t path_bytes = strlen(path) + 1;
    if (path_bytes > PATH_MAX)
        return file_io_error(error, path, "open", ENAMETOOLONG);
    memset(&space.file, 0, sizeof space.file);
    memcpy(space.bytes + offsetof(struct file, path), path, path_bytes);
    space.file.descriptor = file_open_path(path, O_RDONLY | O_NONBLOCK, 0);
    if (space.file.descriptor < 0)
        return file_io_error(error, path, "open", errno);
    plim_status status = fetch(bytes, &space.file, to, capacity, error);
    close(space.file.descriptor);
    return status;
}

plim_status file_write(struct file *file, uint64_t offset, const void *from, size_t bytes, plim_error *error)
{
    size_t done = 0;
    int times = 0;
    if (offset > INT64_MAX || bytes > INT64_MAX - offset)
        return file_io_error(error, file->path, "write", EFBIG);
    while (done < bytes) {
        TRY(budget_may_transfer(file->budget, error));
        ssize_t step = file_write_once(file, offset + done, (const char *)from + done, bytes - done);
        if (step < 0 && file_interrupted(&times))
            continue;
        if (step <= 0)
            return file_io_error(error, file->path, "write", step < 0 ? errno : EIO);
        done += (size_t)step;
        times = 0;
    }
    return PLIM_OK;
}

/* A descriptor of the host's may be one that waits, and its flags are not ours to change: we write only when there is
   room, and then no more than a pipe with room takes without waiting. */
static bool wait_for_room(const struct stop *stop, int descriptor)
{
    int waited_ms = 0, times = 0;
    for (;;) {
        int ready = poll(&(struct pollfd){.fd = descriptor, .events = POLLOUT}, 1, BUDGET_ASK_MS);
        if (ready > 0)
            return true;
        if (ready < 0 && !file_interrupted(&times))
            return false;
        waited_ms += stop && stop_asked(stop) ? BUDGET_ASK_MS : 0;
        if (waited_ms >= FILE_LAST_WAIT_MS) {
            errno = EAGAIN;
            return false;
        }
    }
}

static bool send_all(const struct stop *stop, int descriptor, const char *from, size_t bytes)
{
    size_t done = 0;
    int times = 0;
    if (descriptor < 0) { /* poll would wait for it for ever */
        errno = EBADF;
        return false;
    }
    while (done < bytes) {
        if (!wait_for_room(stop, descriptor))
            return false;
        size_t part = bytes - done < PIPE_BUF ? bytes - done : PIPE_BUF;
        ssize_t step = file_faulted(FAULT_WRITE) ? -1 : write(descriptor, from + done, part);
        if (step < 0 && (file_interrupted(&times) || errno == EAGAIN))
            continue;
        if (step <= 0)
            return false;
        done += (size_t)step;
    }
    return true;
}

int file_columns(int descriptor)
{
    struct winsize size;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool file_send_until(const struct stop *stop, int descriptor, const void *from, size_t bytes)
{
    struct file_quiet quiet;
    file_quiet_begin(&quiet);
    bool sent = send_all(stop, descriptor, from, bytes);
    quiet_end(&quiet, !sent);
    return sent;
}

plim_status file_sync(struct file *file, plim_error *error)
{
    int lost = atomic_load(&file->lost);
    if (lost == 0 && (file_faulted(FAULT_SYNC) || fsync(file->descriptor) != 0)) {
        lost = errno;
        atomic_store(&file->lost, lost);
    }
    return lost ? file_io_error(error, file->path, "write to the disk", lost) : PLIM_OK;
}

void file_drop(struct file *file, uint64_t offset, uint64_t bytes)
{
    if (offset > INT64_MAX || bytes > INT64_MAX - offset)
        return;
    unsigned flags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    /* This may be the only time the system tells of a failed write-back. */
    if (file->writable && sync_file_range(file->descriptor, (off_t)offset, (off_t)bytes, flags) != 0 &&
        (errno == EIO || errno == ENOSPC || errno == EDQUOT))
        atomic_store(&file->lost, errno);
    posix_fadvise(file->descriptor, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

int file_lost(const struct file *file)
{
    return atomic_load(&file->lost);
}

#define LATE_READS 4096 /* what is read ahead is there in time: that must not look as if nothing needed to be */

static void note_late(struct file *file, bool late)
{
    int before = atomic_load_explicit(&file->late, memory_order_relaxed);
    if (late)
        atomic_store_explicit(&file->late, LATE_READS, memory_order_relaxed);
    else if (before > 0)
        atomic_store_explicit(&file->late, before - 1, memory_order_relaxed);
}

bool file_read_ready(struct file *file, uint64_t offset, void *to, size_t bytes)
{
    struct iovec part = {.iov_base = to, .iov_len = bytes};
    int fault = fault_at(FAULT_READ);
    if (fault) /* a read that nobody waits for cannot fail: the one that follows does */
        atomic_store_explicit(&file->owed, fault, memory_order_relaxed);
    if (fault || atomic_load_explicit(&file->always_waits, memory_order_relaxed) || offset > INT64_MAX - bytes)
        return false;
    /* The library's own preadv2 turns cancellation on and off: a tenth of the time of a small row. */
    ssize_t got = syscall(SYS_preadv2, file->descriptor, &part, 1L, (long)offset, (long)(offset >> 32), RWF_NOWAIT);
    if (got < 0 && errno != EAGAIN && errno != EINTR) /* a file system that does not know the question */
        atomic_store_explicit(&file->always_waits, true, memory_order_relaxed);
    note_late(file, got != (ssize_t)bytes);
    return got == (ssize_t)bytes;
}

bool file_waits(const struct file *file)
{
    return atomic_load_explicit(&file->late, memory_order_relaxed) > 0;
}

void file_will_need(struct file *file, uint64_t offset, uint64_t bytes)
{
    if (offset > INT64_MAX || bytes > INT64_MAX - offset)
        return;
    for (uint64_t done = 0; done < bytes; done += WILL_NEED_BYTES) {
        uint64_t part = bytes - done < WILL_NEED_BYTES ? bytes - done : WILL_NEED_BYTES;
        posix_fadvise(file->descriptor, (off_t)(offset + done), (off_t)part, POSIX_FADV_WILLNEED);
    }
}

void file_expect_random(struct file *file)
{
    if (!atomic_load_explicit(&file->random, memory_order_relaxed))
        posix_fadvise(file->descriptor, 0, 0, POSIX_FADV_RANDOM);
    atomic_store_explicit(&file->random, true, memory_order_relaxed);
}

void file_expect_sequential(struct file *file)
{
    posix_fadvise(file->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
}

uint64_t file_bytes_read(const struct file *file)
{
    return atomic_load_explicit(&file->bytes_read, memory_order_relaxed);
}

bool file_in_memory(struct file *file)
{
    struct statfs system;
    return fstatfs(file->descriptor, &system) == 0 && file_system_in_memory(&system);
}

/* ---- room on the disk -------------------------------------------------- */

/* The blocks of the first `bytes` bytes. Modes are those of fallocate. */
static bool allocate(int descriptor, int mode, uint64_t bytes)
{
    int times = 0;
    bool done;
    do {
        struct file_quiet quiet;
        file_quiet_begin(&quiet);
        done = !file_faulted(FAULT_WRITE) && fallocate(descriptor, mode, 0, (off_t)bytes) == 0;
        quiet_end(&quiet, !done);
    } while (!done && file_interrupted(&times));
    return done;
}

/* The file system promises nothing. */
static bool cannot_allocate(int error_number)
{
    return error_number == EOPNOTSUPP || error_number == ENOSYS || error_number == EINVAL;
}

static bool resize(int descriptor, uint64_t bytes)
{
    int times = 0;
    bool done;
    do {
        struct file_quiet quiet;
        file_quiet_begin(&quiet);
        done = !file_faulted(FAULT_RENAME) && ftruncate(descriptor, (off_t)bytes) == 0;
        quiet_end(&quiet, !done);
    } while (!done && file_interrupted(&times));
    return done;
}

static plim_status no_room(const char *folder, uint64_t bytes, int error_number, plim_error *error)
{
    char size[16], verb[64];
    text_size(size, bytes);
    snprintf(verb, sizeof verb, "keep %s more here", size);
    return file_io_error(error, folder, verb, error_number);
}

plim_status file_allocate(struct file *file, uint64_t bytes, plim_error *error)
{
    if (bytes == 0)
        return PLIM_OK;
    if (bytes > INT64_MAX)
        return no_room(file->path, bytes, EFBIG, error);
    if (allocate(file->descriptor, 0, bytes) || (cannot_allocate(errno) && resize(file->descriptor, bytes)))
        return PLIM_OK;
    return no_room(file->path, bytes, errno, error);
}

plim_status file_prove_room(struct budget *budget, const char *folder, uint64_t bytes, plim_error *error)
{
    struct file *file = NULL;
    if (bytes == 0)
        return PLIM_OK;
    TRY(file_open(&file, budget, folder, FILE_SCRATCH, error));
    plim_status status = PLIM_OK;
    if (bytes > INT64_MAX)
        status = no_room(folder, bytes, EFBIG, error);
    else if (!allocate(file->descriptor, FALLOC_FL_KEEP_SIZE, bytes) && !cannot_allocate(errno))
        status = no_room(folder, bytes, errno, error);
    file_close(file); /* and what was allocated is free again */
    return status;
}
