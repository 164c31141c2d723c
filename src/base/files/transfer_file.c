/* transfer_file.c - transfers that bypass the page cache (O_DIRECT) through Linux AIO, without threads.

   1. A transfer is cut into pieces; each piece in flight occupies one request, and in_flight counts these.
   2. The system may access the memory of a piece until its event has come, so transfer_wait returns only after the
      events of all pieces, whatever failed. io_destroy waits for everything in flight: closing relies on that, and so
      does abandon(), for events that do not come.
   3. A piece that the system does not take, or transfers only in part, is finished by pread or pwrite. The system keeps
      these and O_DIRECT coherent. The pages of every piece are dropped so that the page cache does not grow. Only an
      error of the disk is an error of the transfer, and a piece that failed stops no other.
   4. The file has its final size before the first transfer, because writes that extend a file are not asynchronous. */
#include "base/files/transfer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/files/file_own.h"
#include "base/memory/budget_alloc.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"

#define REQUESTS 64 /* in flight. A fast disk is busy with fewer; with more, a large transfer starts without waiting */

struct piece {
    int id;             /* of the transfer */
    uint64_t at, bytes; /* of the transfer's bytes */
};

struct request {
    bool used;
    struct piece piece;
};

enum transfer_state { NEVER_STARTED, UNDER_WAY, WAITED_FOR };

struct transfer {
    enum transfer_state state;
    bool out;
    uint64_t offset;
    char *memory;
    int pieces;       /* in flight */
    int error_number; /* of the first piece that failed; 0: none did */
};

struct transfer_file {
    struct budget *budget;
    size_t struct_bytes;
    struct file *file;
    uint64_t bytes;
    unsigned long context; /* of Linux AIO; 0: there is none */
    int descriptor;        /* the file once more, opened with O_DIRECT; -1: that is refused */
    bool in_memory, direct;
    uint64_t written, read;
    int in_flight;
    struct request request[REQUESTS];
    int most;
    struct transfer transfer[];
};

/* ---- opening and closing ---- */

static size_t struct_bytes_of(int most)
{
    return sizeof(struct transfer_file) + (size_t)most * sizeof(struct transfer);
}

uint64_t transfer_file_cost(const char *folder, int most)
{
    return budget_charge(struct_bytes_of(most)) + budget_charge(file_struct_bytes(folder));
}

/* Through its descriptor, because the file has no name. Whatever is refused here leaves the plain way. */
static void open_direct(struct transfer_file *file)
{
    char path[64];
    aio_context_t context = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file_descriptor(file->file));
    file->descriptor = file_open_path(path, O_RDWR | O_DIRECT, 0);
    if (file->descriptor < 0 || file_faulted(FAULT_OPEN) || syscall(SYS_io_setup, (long)REQUESTS, &context) != 0)
        return;
    file->context = context;
    file->direct = true;
}

static plim_status open_in(struct transfer_file *file, const char *folder, plim_error *error)
{
    TRY(file_open(&file->file, file->budget, folder, FILE_SCRATCH, error));
    file->in_memory = file_in_memory(file->file);
    TRY(file_allocate(file->file, file->bytes, error));
    file_expect_random(file->file); /* reading ahead would leave in the page cache what nobody drops */
    if (!file->in_memory)           /* newer kernels open files of tmpfs with O_DIRECT, to no avail */
        open_direct(file);
    return PLIM_OK;
}

plim_status transfer_file_open(struct transfer_file **out, struct budget *budget, const char *folder, uint64_t bytes,
                               int most, plim_error *error)
{
    struct transfer_file *file;
    if (most < 1)
        return fail(error, PLIM_INTERNAL, "transfers: %d at a time", most);
    TRY(budget_alloc(&file, budget, FILE_TAG, struct_bytes_of(most), error));
    file->budget = budget;
    file->struct_bytes = struct_bytes_of(most);
    file->bytes = bytes;
    file->descriptor = -1;
    file->most = most;
    return OPENED(out, file, transfer_file_close, open_in(file, folder, error));
}

void transfer_file_close(struct transfer_file *file)
{
    if (!file)
        return;
    if (file->context)
        syscall(SYS_io_destroy, file->context);
    if (file->descriptor >= 0)
        close(file->descriptor);
    file_close(file->file);
    budget_give(file->budget, FILE_TAG, file, file->struct_bytes);
}

/* ---- pieces ---- */

static int move_step(struct transfer_file *file, const struct transfer *transfer, uint64_t at, uint64_t bytes)
{
    uint64_t offset = transfer->offset + at;
    char *memory = transfer->memory + at;
    return (int)(transfer->out ? file_write_once(file->file, offset, memory, (size_t)bytes)
                               : file_read_once(file->file, offset, memory, (size_t)bytes));
}

/* The bytes of a piece from `done` on, through the page cache. An error number, or 0. */
static int move_rest(struct transfer_file *file, const struct piece *piece, uint64_t done)
{
    const struct transfer *transfer = &file->transfer[piece->id];
    int times = 0;
    while (done < piece->bytes) {
        int step = move_step(file, transfer, piece->at + done, piece->bytes - done);
        if (step < 0 && file_interrupted(&times))
            continue;
        if (step <= 0) /* the file cannot end here, unless somebody else has cut it */
            return step < 0 ? errno : EIO;
        done += (uint64_t)step;
        times = 0;
    }
    return 0;
}

/* The system or the file system does not know how: it would refuse the next piece, too. */
static bool is_refusal(int error_number)
{
    return error_number == EINVAL || error_number == EOPNOTSUPP || error_number == ENOSYS;
}

/* It says nothing about the disk. */
static bool is_passing(int error_number)
{
    return error_number == EINTR || error_number == EAGAIN || error_number == ENOMEM;
}

/* Some file systems do a transfer with O_DIRECT through the page cache without a word (journalled data, encryption).
   What they left there would count as memory, and only who asks is told of a failed write-back. An error number, or
   0. */
static int sweep(struct transfer_file *file, const struct piece *piece)
{
    const struct transfer *transfer = &file->transfer[piece->id];
    if (file->in_memory)
        return 0;
    file_drop(file->file, transfer->offset + piece->at, piece->bytes);
    if (!transfer->out)
        return 0;
    int lost = file_faulted(FAULT_SYNC) ? errno : file_lost(file->file);
    return is_passing(lost) ? 0 : lost;
}

/* The end of a piece. `result`: how many of its bytes the system has transferred, or an error number below 0. */
static void settle(struct transfer_file *file, const struct piece *piece, int64_t result)
{
    struct transfer *transfer = &file->transfer[piece->id];
    int error_number = result < 0 ? (int)-result : 0;
    uint64_t done = result > 0 ? (uint64_t)result : 0;
    if (is_refusal(error_number))
        file->direct = false;
    if (is_refusal(error_number) || is_passing(error_number) || (!error_number && done < piece->bytes))
        error_number = move_rest(file, piece, done);
    if (!error_number)
        error_number = sweep(file, piece);
    if (error_number && !transfer->error_number)
        transfer->error_number = error_number;
    if (!error_number)
        *(transfer->out ? &file->written : &file->read) += piece->bytes;
}

/* ---- requests ---- */

static void land(struct transfer_file *file, struct request *request, int64_t result)
{
    request->used = false;
    file->in_flight--;
    file->transfer[request->piece.id].pieces--;
    settle(file, &request->piece, result);
}

/* No event will come (a forked process does not have its parent's context): what was in flight is done once more. */
static void abandon(struct transfer_file *file)
{
    syscall(SYS_io_destroy, file->context);
    file->context = 0;
    file->direct = false;
    for (int r = 0; r < REQUESTS; r++)
        if (file->request[r].used)
            land(file, &file->request[r], -EINTR);
}

/* Waits until pieces have landed; false: none is in flight. */
static bool reap(struct transfer_file *file)
{
    struct io_event events[REQUESTS];
    long count;
    int times = 0;
    bool fault;
    if (!file->in_flight)
        return false;
    do { /* of the system's own interruptions there may be any number while a disk stalls */
        fault = file_faulted(FAULT_SYNC);
        count = fault ? -1 : syscall(SYS_io_getevents, file->context, 1L, (long)REQUESTS, events, NULL);
    } while (count < 0 && (fault ? file_interrupted(&times) : errno == EINTR));
    if (count <= 0)
        abandon(file);
    for (long e = 0; e < count; e++)
        land(file, &file->request[events[e].data], events[e].res);
    return true;
}

static struct request *free_request(struct transfer_file *file)
{
    for (;;) {
        for (int r = 0; r < REQUESTS; r++)
            if (!file->request[r].used)
                return &file->request[r];
        reap(file);
    }
}

/* One system call: 0 where the system has taken the piece, or the error number. */
static int submit(struct transfer_file *file, const struct request *request)
{
    const struct transfer *transfer = &file->transfer[request->piece.id];
    struct iocb call = {
        .aio_data = (uint64_t)(request - file->request),
        .aio_lio_opcode = transfer->out ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
        .aio_fildes = (uint32_t)file->descriptor,
        .aio_buf = (uint64_t)(uintptr_t)(transfer->memory + request->piece.at),
        .aio_nbytes = request->piece.bytes,
        .aio_offset = (int64_t)(transfer->offset + request->piece.at),
    };
    struct iocb *calls[] = {&call};
    struct file_quiet quiet;
    int fault = fault_at(transfer->out ? FAULT_WRITE : FAULT_READ);
    if (fault > 0)
        return fault;
    if (fault == FAULT_SHORT)
        call.aio_nbytes = round_up(call.aio_nbytes / 2, TRANSFER_ALIGNMENT);
    file_quiet_begin(&quiet); /* the result of a write that raises a signal comes later, the signal comes here */
    long count = syscall(SYS_io_submit, file->context, 1L, calls);
    file_quiet_end(&quiet, true);
    return count == 1 ? 0 : count < 0 ? errno : EAGAIN;
}

/* Until the system has taken the piece, or has a reason not to. */
static int submit_patiently(struct transfer_file *file, const struct request *request)
{
    int error_number, times = 0;
    do
        error_number = submit(file, request);
    while ((error_number == EINTR && ++times < INTERRUPTS_MOST) || (error_number == EAGAIN && reap(file)));
    return error_number;
}

static void start_piece(struct transfer_file *file, const struct piece *piece)
{
    struct request *request = file->direct ? free_request(file) : NULL;
    if (!file->direct) { /* or no longer, since others have landed */
        settle(file, piece, 0);
        return;
    }
    request->piece = *piece;
    int error_number = submit_patiently(file, request);
    if (error_number) {
        settle(file, piece, -error_number);
        return;
    }
    request->used = true;
    file->in_flight++;
    file->transfer[piece->id].pieces++;
}

/* ---- transfers ---- */

static plim_status check(const struct transfer_file *file, int id, const struct transfer *transfer, uint64_t bytes,
                         plim_error *error)
{
    uint64_t end, bits = transfer->offset | (uint64_t)(uintptr_t)transfer->memory | bytes;
    if (id < 0 || id >= file->most)
        return fail(error, PLIM_INTERNAL, "transfer %d: there are %d", id, file->most);
    if (file->transfer[id].state == UNDER_WAY)
        return fail(error, PLIM_INTERNAL, "transfer %d: it was not waited for", id);
    if (!add_u64(&end, transfer->offset, bytes) || end > file->bytes || bits % TRANSFER_ALIGNMENT)
        return fail(error, PLIM_INTERNAL, "transfer %d: %llu bytes from byte %llu on, of a file of %llu", id,
                    (unsigned long long)bytes, (unsigned long long)transfer->offset, (unsigned long long)file->bytes);
    return budget_may_transfer(file->budget, error);
}

static plim_status start(struct transfer_file *file, int id, const struct transfer *transfer, uint64_t bytes,
                         plim_error *error)
{
    TRY(check(file, id, transfer, bytes, error));
    file->transfer[id] = *transfer;
    for (uint64_t at = 0; at < bytes; at += TRANSFER_PIECE) {
        uint64_t left = bytes - at;
        start_piece(file, &(struct piece){.id = id, .at = at, .bytes = left < TRANSFER_PIECE ? left : TRANSFER_PIECE});
    }
    return PLIM_OK;
}

plim_status transfer_out(struct transfer_file *file, int id, uint64_t offset, const void *from, uint64_t bytes,
                         plim_error *error)
{
    struct transfer out = {.state = UNDER_WAY, .out = true, .offset = offset, .memory = (char *)(uintptr_t)from};
    return start(file, id, &out, bytes, error);
}

plim_status transfer_in(struct transfer_file *file, int id, uint64_t offset, void *to, uint64_t bytes,
                        plim_error *error)
{
    struct transfer in = {.state = UNDER_WAY, .out = false, .offset = offset, .memory = to};
    return start(file, id, &in, bytes, error);
}

static plim_status transfer_failed(const struct transfer_file *file, const struct transfer *transfer, plim_error *error)
{
    plim_status status = file_io_error(error, file_path(file->file), transfer->out ? "write scratch" : "read scratch",
                                       transfer->error_number);
    if (error && !error->hint[0])
        return hint(error, status, "name a folder on another disk with --scratch");
    return status;
}

plim_status transfer_wait(struct transfer_file *file, int id, plim_error *error)
{
    if (id < 0 || id >= file->most || file->transfer[id].state == NEVER_STARTED)
        return fail(error, PLIM_INTERNAL, "transfer %d: it was never started", id);
    struct transfer *transfer = &file->transfer[id];
    while (transfer->pieces > 0)
        reap(file);
    transfer->state = WAITED_FOR;
    return transfer->error_number ? transfer_failed(file, transfer, error) : PLIM_OK;
}

/* ---- facts ---- */

bool transfer_file_in_memory(const struct transfer_file *file)
{
    return file->in_memory;
}

bool transfer_file_is_direct(const struct transfer_file *file)
{
    return file->direct;
}

uint64_t transfer_file_written(const struct transfer_file *file)
{
    return file->written;
}

uint64_t transfer_file_read(const struct transfer_file *file)
{
    return file->read;
}
