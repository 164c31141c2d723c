/* test_transfer_file.c - bytes that wait on the disk: round trips, overlapping transfers, refusals, faults. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/files/file_own.h"
#include "base/files/transfer_file.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/count.h"
#include "base/threads/stop.h"
#include "format_files.h"

#define KIB       ((uint64_t)1024)
#define MIB       ((uint64_t)1024 * 1024)
#define TRANSFERS 8
#define IN_MEMORY "/dev/shm"

static struct budget *budget;
static uint64_t own_bytes;

static int begin(void **state)
{
    budget = new_budget();
    own_bytes = budget_usage(budget).now;
    (void)state;
    return 0;
}

/* Nothing is held and nothing is left in the folder. */
static int end(void **state)
{
    (void)state;
    assert_int_equal(budget_usage(budget).now, own_bytes);
    end_budget(budget);
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return count == 2 ? 0 : -1;
}

static struct transfer_file *open_in(const char *where, uint64_t bytes)
{
    struct transfer_file *file = NULL;
    plim_error error = {0};
    uint64_t before = budget_usage(budget).now;
    if (transfer_file_open(&file, budget, where, bytes, TRANSFERS, &error))
        fail_msg("%s: %s", error.where, error.message);
    assert_int_equal(budget_usage(budget).now - before, transfer_file_cost(where, TRANSFERS));
    return file;
}

static uint64_t *take_memory(uint64_t bytes)
{
    uint64_t *memory = aligned_alloc(TRANSFER_ALIGNMENT, bytes);
    assert_non_null(memory);
    return memory;
}

/* Every word tells its place and whose it is. */
static void fill(uint64_t *memory, uint64_t bytes, uint64_t seed)
{
    for (uint64_t i = 0; i < bytes / sizeof *memory; i++)
        memory[i] = (i + 1) * 0x9e3779b97f4a7c15u ^ seed << 40;
}

static bool is_filled(const uint64_t *memory, uint64_t bytes, uint64_t seed)
{
    for (uint64_t i = 0; i < bytes / sizeof *memory; i++)
        if (memory[i] != ((i + 1) * 0x9e3779b97f4a7c15u ^ seed << 40))
            return false;
    return true;
}

static const uint64_t sizes[TRANSFERS] = {4 * KIB, 40 * MIB, 4 * MIB - 4 * KIB, 12 * KIB,
                                          4 * MIB, 33 * MIB, 4 * MIB + 4 * KIB, 40 * MIB + 8 * KIB};

/* All of them at once; then in turns, each in while the one before it goes out again with other bytes. */
static void round_trips_in(const char *where)
{
    uint64_t *memory[TRANSFERS], offset[TRANSFERS], total = 0;
    for (int i = 0; i < TRANSFERS; i++) {
        memory[i] = take_memory(sizes[i]);
        fill(memory[i], sizes[i], (uint64_t)i);
        offset[i] = total;
        total += sizes[i];
    }
    struct transfer_file *file = open_in(where, total);
    for (int i = 0; i < TRANSFERS; i++)
        assert_int_equal(transfer_out(file, i, offset[i], memory[i], sizes[i], NULL), PLIM_OK);
    for (int i = TRANSFERS - 1; i >= 0; i--) {
        assert_int_equal(transfer_wait(file, i, NULL), PLIM_OK);
        memset(memory[i], 0, sizes[i]);
    }
    assert_int_equal(transfer_file_written(file), total);
    for (int i = 0; i <= TRANSFERS; i++) {
        if (i < TRANSFERS)
            assert_int_equal(transfer_in(file, i, offset[i], memory[i], sizes[i], NULL), PLIM_OK);
        if (i == 0)
            continue;
        assert_int_equal(transfer_wait(file, i - 1, NULL), PLIM_OK);
        assert_true(is_filled(memory[i - 1], sizes[i - 1], (uint64_t)i - 1));
        fill(memory[i - 1], sizes[i - 1], (uint64_t)i + 99);
        assert_int_equal(transfer_out(file, i - 1, offset[i - 1], memory[i - 1], sizes[i - 1], NULL), PLIM_OK);
    }
    assert_int_equal(transfer_file_read(file), total);
    for (int i = 0; i < TRANSFERS; i++) {
        assert_int_equal(transfer_wait(file, i, NULL), PLIM_OK);
        memset(memory[i], 0, sizes[i]);
        assert_int_equal(transfer_in(file, i, offset[i], memory[i], sizes[i], NULL), PLIM_OK);
    }
    for (int i = 0; i < TRANSFERS; i++) {
        assert_int_equal(transfer_wait(file, i, NULL), PLIM_OK);
        assert_true(is_filled(memory[i], sizes[i], (uint64_t)i + 100));
        free(memory[i]);
    }
    assert_int_equal(transfer_file_written(file), 2 * total);
    transfer_file_close(file);
}

static void round_trips(void **state)
{
    (void)state;
    struct transfer_file *file = open_in(folder, 4 * KIB);
    assert_true(transfer_file_is_direct(file) && !transfer_file_in_memory(file)); /* the tests run on a disk */
    transfer_file_close(file);
    round_trips_in(folder);
}

static void round_trips_in_memory(void **state)
{
    (void)state;
    struct transfer_file *file = open_in(IN_MEMORY, 4 * KIB);
    assert_true(!transfer_file_is_direct(file) && transfer_file_in_memory(file));
    transfer_file_close(file);
    round_trips_in(IN_MEMORY);
}

/* More pieces than the system is asked for at a time. */
static void many(void **state)
{
    enum { MANY = 300 };
    uint64_t *memory = take_memory(MANY * 4 * KIB);
    struct transfer_file *file;
    (void)state;
    assert_int_equal(transfer_file_open(&file, budget, folder, MANY * 4 * KIB, MANY, NULL), PLIM_OK);
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < MANY; i++) {
            uint64_t offset = (uint64_t)i * 4 * KIB, *place = memory + offset / sizeof *memory;
            fill(place, 4 * KIB, way ? 999 : (uint64_t)i);
            assert_int_equal(way ? transfer_in(file, i, offset, place, 4 * KIB, NULL)
                                 : transfer_out(file, i, offset, place, 4 * KIB, NULL),
                             PLIM_OK);
        }
        for (int i = MANY - 1; i >= 0; i--)
            assert_int_equal(transfer_wait(file, i, NULL), PLIM_OK);
    }
    for (int i = 0; i < MANY; i++)
        assert_true(is_filled(memory + (uint64_t)i * 4 * KIB / sizeof *memory, 4 * KIB, (uint64_t)i));
    transfer_file_close(file);
    free(memory);
}

/* The other descriptor of the scratch file is opened with O_DIRECT, where there is one. */
static int find_descriptor(void)
{
    char path[64], target[4096];
    for (int descriptor = 3; descriptor < 64; descriptor++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        if (strstr(target, folder))
            return descriptor;
    }
    return -1;
}

/* Asks without reading: a read that may not wait makes the system read ahead. */
static bool is_cached(uint64_t offset)
{
    unsigned char cached = 0;
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, find_descriptor(), (off_t)offset);
    assert_true(page != MAP_FAILED && mincore(page, 4096, &cached) == 0);
    munmap(page, 4096);
    return cached & 1;
}

/* A file that cannot be opened twice, a system without AIO: the same bytes, and the page cache keeps none of them, nor
   what follows them. */
static void what_is_refused(void **state)
{
    uint64_t *memory = take_memory(9 * MIB);
    (void)state;
    for (int nth = 2; nth <= 3; nth++) {
        fault_arm(FAULT_OPEN, nth, false, nth == 2 ? EINVAL : EAGAIN);
        struct transfer_file *file = open_in(folder, 12 * MIB);
        assert_true(fault_disarm());
        assert_false(transfer_file_is_direct(file));
        fill(memory, 9 * MIB, 5);
        assert_int_equal(transfer_out(file, 1, MIB, memory, 9 * MIB, NULL), PLIM_OK);
        assert_int_equal(transfer_wait(file, 1, NULL), PLIM_OK);
        assert_false(is_cached(MIB) || is_cached(10 * MIB - 4 * KIB));
        memset(memory, 0, 9 * MIB);
        assert_int_equal(transfer_in(file, 1, MIB, memory, 9 * MIB, NULL), PLIM_OK);
        assert_int_equal(transfer_wait(file, 1, NULL), PLIM_OK);
        assert_false(is_cached(MIB) || is_cached(10 * MIB - 4 * KIB) || is_cached(10 * MIB));
        assert_true(is_filled(memory, 9 * MIB, 5));
        transfer_file_close(file);
    }
    free(memory);
}

static void mistakes(void **state)
{
    uint64_t *memory = take_memory(12 * KIB);
    char *bytes = (char *)memory;
    struct transfer_file *file = NULL;
    (void)state;
    assert_int_equal(transfer_file_open(&file, budget, folder, MIB, 0, NULL), PLIM_INTERNAL);
    file = open_in(folder, 16 * KIB);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_out(file, 0, 8 * KIB, memory, 12 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_out(file, 0, 20 * KIB, memory, 4 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_out(file, 0, UINT64_MAX - 4 * KIB + 1, memory, 8 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_in(file, 0, 4 * KIB, memory, UINT64_MAX - 4 * KIB + 1, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_in(file, 0, 512, memory, 4 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_in(file, 0, 0, memory, 512, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_in(file, 0, 0, bytes + 512, 4 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_out(file, -1, 0, memory, 4 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_out(file, TRANSFERS, 0, memory, 4 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_wait(file, -1, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_wait(file, TRANSFERS, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_INTERNAL);
    fill(memory, 12 * KIB, 1);
    assert_int_equal(transfer_out(file, 0, 4 * KIB, memory, 12 * KIB, NULL), PLIM_OK);
    assert_int_equal(transfer_out(file, 0, 4 * KIB, memory, 12 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_in(file, 0, 4 * KIB, memory, 12 * KIB, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    assert_int_equal(transfer_in(file, 0, 0, memory, 0, NULL), PLIM_OK);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    assert_true(is_filled(memory, 12 * KIB, 1));
    transfer_file_close(file);
    transfer_file_close(NULL);
    free(memory);
}

/* What the disk has no room for is reported when the file is opened. */
static void no_room(void **state)
{
    static const uint64_t too_many[] = {(uint64_t)1 << 50, (uint64_t)1 << 63, UINT64_MAX};
    struct transfer_file *file = NULL;
    plim_error error = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(too_many); i++)
        assert_int_equal(transfer_file_open(&file, budget, folder, too_many[i], 1, NULL), PLIM_IO);
    fault_arm(FAULT_WRITE, 1, false, ENOSPC);
    assert_int_equal(transfer_file_open(&file, budget, folder, 3 * MIB, 1, &error), PLIM_IO);
    assert_true(fault_disarm());
    assert_string_equal(error.where, folder);
    assert_string_equal(error.message, "cannot keep 3.0 MiB more here: No space left on device");
    assert_non_null(strstr(error.hint, "another disk"));
    fault_arm(FAULT_WRITE | FAULT_RENAME, 1, true, EOPNOTSUPP); /* no blocks beforehand, and not so long either */
    assert_int_equal(transfer_file_open(&file, budget, folder, 3 * MIB, 1, &error), PLIM_IO);
    assert_true(fault_disarm());
    assert_int_equal(transfer_file_open(&file, budget, "none", MIB, 1, &error), PLIM_IO);
    assert_string_equal(error.where, "none");
    assert_null(file);
}

/* An error of one piece is that of its transfer, however often it is waited for, and of no other. */
static void errors_stay(void **state)
{
    static const int numbers[] = {ENOSPC, EIO};
    static const char *const messages[] = {"cannot write scratch: No space left on device",
                                           "cannot write scratch: Input/output error"};
    uint64_t *memory = take_memory(20 * MIB);
    (void)state;
    for (size_t n = 0; n < COUNT(numbers); n++) {
        struct transfer_file *file = open_in(folder, 20 * MIB);
        plim_error error = {0};
        fill(memory, 20 * MIB, n);
        fault_arm(FAULT_WRITE, 2, false, numbers[n]);
        assert_int_equal(transfer_out(file, 0, 0, memory, 12 * MIB, NULL), PLIM_OK);
        assert_int_equal(transfer_out(file, 1, 12 * MIB, memory + 12 * MIB / 8, 8 * MIB, NULL), PLIM_OK);
        assert_true(fault_disarm());
        for (int times = 0; times < 3; times++) {
            memset(&error, 0, sizeof error);
            assert_int_equal(transfer_wait(file, 0, &error), PLIM_IO);
            assert_string_equal(error.where, folder);
            assert_string_equal(error.message, messages[n]);
            assert_non_null(strstr(error.hint, "another disk"));
            assert_int_equal(transfer_wait(file, 1, NULL), PLIM_OK);
        }
        assert_int_equal(transfer_file_written(file), 16 * MIB);
        assert_int_equal(transfer_out(file, 0, 0, memory, 12 * MIB, NULL), PLIM_OK);
        assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
        memset(memory, 0, 20 * MIB);
        assert_int_equal(transfer_in(file, 1, 0, memory, 20 * MIB, NULL), PLIM_OK);
        assert_int_equal(transfer_wait(file, 1, NULL), PLIM_OK);
        assert_true(is_filled(memory, 20 * MIB, n) && transfer_file_is_direct(file));
        transfer_file_close(file);
    }
    free(memory);
}

/* All of an opening, two transfers out, two in. The first error, and the bytes are right without one. */
static plim_status scenario(uint64_t *memory, plim_error *error)
{
    static const uint64_t bytes[] = {4 * MIB + 8 * KIB, 4 * KIB}, offset[] = {4 * KIB, 5 * MIB};
    struct transfer_file *file = NULL;
    plim_status status = transfer_file_open(&file, budget, folder, 6 * MIB, 2, error);
    if (status != PLIM_OK)
        return status;
    for (int way = 0; way < 2 && status == PLIM_OK; way++) {
        for (int i = 0; i < 2; i++)
            fill(memory + offset[i] / sizeof *memory, bytes[i], way ? 77 : (uint64_t)i);
        for (int i = 0; i < 2; i++) {
            void *place = (char *)memory + offset[i];
            assert_int_equal(way ? transfer_in(file, i, offset[i], place, bytes[i], NULL)
                                 : transfer_out(file, i, offset[i], place, bytes[i], NULL),
                             PLIM_OK);
        }
        for (int i = 0; i < 2; i++) {
            plim_status waited = transfer_wait(file, i, error);
            status = status == PLIM_OK ? waited : status;
            if (waited == PLIM_OK)
                assert_true(is_filled(memory + offset[i] / sizeof *memory, bytes[i], (uint64_t)i));
        }
    }
    transfer_file_close(file);
    return status;
}

/* Errors of the disk come back, what only says "not now" and "not so" does not, and after neither is anything held. */
static void faults(void **state)
{
    static const int numbers[] = {0, EIO, EINTR, EAGAIN, EINVAL};
    uint64_t *memory = take_memory(6 * MIB);
    int reached = 0, failed = 0;
    (void)state;
    for (unsigned site = 1; site < FAULT_ANY; site <<= 1)
        for (size_t n = 0; n < COUNT(numbers); n++)
            for (int forever = 0; forever < 2; forever++)
                for (int64_t nth = 1;; nth++) {
                    plim_error error = {0};
                    fault_arm(site, nth, forever, numbers[n]);
                    plim_status status = scenario(memory, &error);
                    if (!fault_disarm())
                        break;
                    reached++;
                    failed += status != PLIM_OK;
                    bool disk = numbers[n] == EIO;
                    if (numbers[n] == 0 || (numbers[n] == EINTR && !forever && site != FAULT_ALLOCATE))
                        assert_int_equal(status, PLIM_OK);
                    if (disk && (site == FAULT_READ || site == FAULT_WRITE))
                        assert_int_equal(status, PLIM_IO);
                    if (status != PLIM_OK)
                        assert_true(error.code == status && error.message[0]);
                    assert_int_equal(budget_usage(budget).now, own_bytes);
                }
    assert_true(reached > 100 && failed > 20 && failed < reached);
    free(memory);
}

/* The same where the first transfer finds out that the file system refuses O_DIRECT. */
static void faults_without_direct(void **state)
{
    uint64_t *memory = take_memory(6 * MIB);
    (void)state;
    for (int short_ones = 0; short_ones < 2; short_ones++) {
        struct transfer_file *file = open_in(folder, 6 * MIB);
        fill(memory, 6 * MIB, 3);
        fault_arm(FAULT_WRITE, 1, false, EOPNOTSUPP);
        assert_int_equal(transfer_out(file, 0, 0, memory, 6 * MIB, NULL), PLIM_OK);
        assert_true(fault_disarm());
        assert_false(transfer_file_is_direct(file));
        assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
        memset(memory, 0, 6 * MIB);
        fault_arm(FAULT_READ, 2, short_ones, short_ones ? 0 : EIO);
        assert_int_equal(transfer_in(file, 0, 0, memory, 6 * MIB, NULL), PLIM_OK);
        assert_true(fault_disarm());
        assert_int_equal(transfer_wait(file, 0, NULL), short_ones ? PLIM_OK : PLIM_IO);
        assert_true(is_filled(memory, short_ones ? 6 * MIB : 4 * MIB, 3));
        transfer_file_close(file);
    }
    free(memory);
}

/* The system does a part of each: the rest follows. */
static void short_transfers(void **state)
{
    uint64_t *memory = take_memory(9 * MIB);
    struct transfer_file *file = open_in(folder, 9 * MIB);
    (void)state;
    fill(memory, 9 * MIB, 4);
    fault_arm(FAULT_WRITE, 1, true, 0);
    assert_int_equal(transfer_out(file, 0, 0, memory, 9 * MIB, NULL), PLIM_OK);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    assert_true(fault_disarm());
    memset(memory, 0, 9 * MIB);
    fault_arm(FAULT_READ, 1, true, 0);
    assert_int_equal(transfer_in(file, 0, 0, memory, 9 * MIB, NULL), PLIM_OK);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    assert_true(fault_disarm());
    assert_true(is_filled(memory, 9 * MIB, 4) && transfer_file_is_direct(file));
    transfer_file_close(file);
    free(memory);
}

/* Somebody has cut the file: a read of fewer bytes is an error, not the bytes that were there. */
static void a_file_that_was_cut(void **state)
{
    uint64_t *memory = take_memory(8 * MIB);
    struct transfer_file *file = open_in(folder, 8 * MIB);
    plim_error error = {0};
    (void)state;
    assert_int_equal(ftruncate(find_descriptor(), 6 * MIB + 100), 0);
    assert_int_equal(transfer_in(file, 0, 0, memory, 8 * MIB, NULL), PLIM_OK);
    assert_int_equal(transfer_wait(file, 0, &error), PLIM_IO);
    assert_string_equal(error.message, "cannot read scratch: Input/output error");
    assert_non_null(strstr(error.hint, "--scratch"));
    transfer_file_close(file);
    free(memory);
}

/* A write beyond the limit on the size of files raises a signal, of which the host hears nothing. */
static void limited_size(void **state)
{
    uint64_t *memory = take_memory(8 * MIB);
    struct transfer_file *file = open_in(folder, 8 * MIB);
    struct rlimit before, small;
    sigset_t waiting;
    plim_error error = {0};
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = MIB;
    fill(memory, 8 * MIB, 6);
    uint64_t free_bytes = file_room(folder);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    uint64_t room = file_room(folder);
    plim_status status = transfer_out(file, 0, 0, memory, 8 * MIB, NULL);
    plim_status waited = transfer_wait(file, 0, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(free_bytes > MIB && free_bytes < UINT64_MAX && room == MIB);
    assert_int_equal(status, PLIM_OK);
    assert_int_equal(waited, PLIM_IO);
    assert_string_equal(error.message, "cannot write scratch: File too large");
    assert_true(sigpending(&waiting) == 0 && !sigismember(&waiting, SIGXFSZ));
    transfer_file_close(file);
    free(memory);
}

/* Where a stop refuses transfers none is started; one that was is waited for. */
static void stopped(void **state)
{
    uint64_t *memory = take_memory(8 * KIB);
    struct transfer_file *file = open_in(folder, 8 * KIB);
    struct stop stop = {0};
    (void)state;
    fill(memory, 8 * KIB, 1);
    budget_watch_stop(budget, &stop);
    assert_int_equal(transfer_out(file, 0, 0, memory, 4 * KIB, NULL), PLIM_OK);
    stop_ask(&stop);
    assert_int_equal(transfer_out(file, 1, 4 * KIB, memory + 4 * KIB / sizeof *memory, 4 * KIB, NULL), PLIM_OK);
    budget_stop_refuses(budget, true);
    assert_int_equal(transfer_out(file, 2, 0, memory, 8 * KIB, NULL), PLIM_INTERRUPTED);
    assert_int_equal(transfer_wait(file, 2, NULL), PLIM_INTERNAL);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    assert_int_equal(transfer_wait(file, 1, NULL), PLIM_OK);
    budget_watch_stop(budget, NULL);
    budget_stop_refuses(budget, false);
    transfer_file_close(file);
    free(memory);
}

/* Closing waits: the memory is the caller's again. */
static void closed_in_flight(void **state)
{
    uint64_t *memory = take_memory(40 * MIB);
    struct transfer_file *file = open_in(folder, 40 * MIB);
    (void)state;
    fill(memory, 40 * MIB, 8);
    assert_int_equal(transfer_out(file, 0, 0, memory, 40 * MIB, NULL), PLIM_OK);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    assert_int_equal(transfer_in(file, 1, 0, memory, 40 * MIB, NULL), PLIM_OK);
    transfer_file_close(file);
    fill(memory, 40 * MIB, 9);
    usleep(50000);
    assert_true(is_filled(memory, 40 * MIB, 9));
    free(memory);
}

/* A child does not have what its parent has asked the system for; it does it itself. */
static void forked(void **state)
{
    uint64_t *memory = take_memory(9 * MIB);
    struct transfer_file *file = open_in(folder, 9 * MIB);
    (void)state;
    fill(memory, 9 * MIB, 2);
    assert_int_equal(transfer_out(file, 0, 0, memory, 9 * MIB, NULL), PLIM_OK);
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    memset(memory, 0, 9 * MIB);
    assert_int_equal(transfer_in(file, 0, 0, memory, 9 * MIB, NULL), PLIM_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool right = transfer_wait(file, 0, NULL) == PLIM_OK && is_filled(memory, 9 * MIB, 2);
        memset(memory, 0, 9 * MIB);
        right = right && !transfer_file_is_direct(file) && transfer_in(file, 1, 0, memory, 9 * MIB, NULL) == PLIM_OK &&
                transfer_wait(file, 1, NULL) == PLIM_OK && is_filled(memory, 9 * MIB, 2);
        transfer_file_close(file);
        _exit(right ? 0 : 1);
    }
    int how = -1;
    assert_int_equal(transfer_wait(file, 0, NULL), PLIM_OK);
    assert_true(waitpid(child, &how, 0) == child && how == 0);
    assert_true(is_filled(memory, 9 * MIB, 2) && transfer_file_is_direct(file));
    transfer_file_close(file);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(round_trips, begin, end),
        cmocka_unit_test_setup_teardown(round_trips_in_memory, begin, end),
        cmocka_unit_test_setup_teardown(many, begin, end),
        cmocka_unit_test_setup_teardown(what_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(mistakes, begin, end),
        cmocka_unit_test_setup_teardown(no_room, begin, end),
        cmocka_unit_test_setup_teardown(errors_stay, begin, end),
        cmocka_unit_test_setup_teardown(faults, begin, end),
        cmocka_unit_test_setup_teardown(faults_without_direct, begin, end),
        cmocka_unit_test_setup_teardown(short_transfers, begin, end),
        cmocka_unit_test_setup_teardown(a_file_that_was_cut, begin, end),
        cmocka_unit_test_setup_teardown(limited_size, begin, end),
        cmocka_unit_test_setup_teardown(stopped, begin, end),
        cmocka_unit_test_setup_teardown(closed_in_flight, begin, end),
        cmocka_unit_test_setup_teardown(forked, begin, end),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
