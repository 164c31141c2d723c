/* test_held_blocks.c - rows of files that are not in memory: the same as ever, whether blocks of them are held, however
   many fit and however they are read, or rows from anywhere are asked for beforehand. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "await.h"
#include "base/files/read_queue.h"
#include "base/numbers/hash.h"
#include "format_files.h"
#include "formats/source.h"
#include "pipeline/core/dataset.h"
#include "pipeline/stages/keep/held_blocks.h"

#define ROWS  3001
#define WIDTH 37

/* An npy file of ROWS x width elements of 4 bytes, gone from the page cache. */
static const char *make_cold(const char *name, const char *type, int width, bool turned)
{
    static uint8_t file[128 + ROWS * WIDTH * 4];
    char head[128];
    size_t bytes = 128 + (size_t)ROWS * (size_t)width * 4;
    int length =
        snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", type, ROWS, width);
    memset(file, ' ', 128);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(file + 10, head, (size_t)length);
    file[127] = '\n';
    for (uint32_t i = 0; i < (uint32_t)(ROWS * width); i++) {
        uint32_t value = turned ? __builtin_bswap32(i) : i;
        memcpy(file + 128 + 4 * (size_t)i, &value, 4);
    }
    const char *path = write_file(name, file, bytes);
    int descriptor = open(path, O_RDWR);
    assert_true(descriptor >= 0 && fsync(descriptor) == 0);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
    return path;
}

static struct dataset *shuffled(struct source *source, int64_t block, int64_t group)
{
    struct shuffle_options options = {.kind = SHUFFLE_BLOCKS, .block_size = block, .group = group, .seed = 3};
    struct dataset *dataset = dataset_batch(dataset_shuffle_with(dataset_from_source(source), &options), 8, false);
    return dataset_prefetch(dataset, 4);
}

/* A digest of what comes, in its order: from a batch of an epoch on, `batches` of them. */
static uint64_t digest_of(struct iterator *iterator, const struct dataset *dataset, int batches)
{
    struct batch *batch;
    plim_error error = {0};
    uint64_t digest = FNV1A_START;
    for (int b = 0; b < batches; b++) {
        assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
        for (int c = 0; batch && c < dataset_spec(dataset)->column_count; c++) {
            uint64_t bytes = (uint64_t)batch->count * dataset_spec(dataset)->column[c].bytes;
            digest = fnv1a(digest, batch->column[c], bytes);
        }
    }
    return digest;
}

/* Two epochs and a bit, then from another place on. */
static void run(uint64_t out[2], uint64_t *direct, struct dataset *dataset, struct budget *budget, struct grant grant)
{
    struct iterator *iterator;
    struct iterator_figures figures;
    uint64_t cost[TAG_COUNT] = {0};
    uint64_t before = budget_usage(budget).now_by_tag[TAG_PIPELINE];
    dataset_cost(cost, NULL, dataset, grant);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, 1}, grant, NULL, NULL),
                     PLIM_OK);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_PIPELINE] - before, cost[TAG_PIPELINE]);
    uint64_t takes = budget_usage(budget).takes;
    out[0] = digest_of(iterator, dataset, 2 * (ROWS / 8 + 2) + 30);
    assert_int_equal(iterator_seek(iterator, 0, 77, NULL), PLIM_OK);
    out[1] = digest_of(iterator, dataset, 150);
    assert_int_equal(budget_usage(budget).takes, takes);
    iterator_figures(&figures, iterator);
    *direct = figures.direct_bytes;
    iterator_close(iterator);
}

static void make_kind(int kind)
{
    make_cold("a.npy", kind == 2 ? ">i4" : "<i4", WIDTH, kind == 2);
    make_cold("b.npy", "<f4", 1, false);
}

static struct source *open_made(struct budget *budget, int kind)
{
    static const struct npy_range ranges[] = {{"x", 0, WIDTH - 1, false}, {"y", WIDTH - 1, WIDTH, true}};
    static const struct npy_range few[] = {{"x", 3, 5, false}};
    struct source *source;
    const char *paths[2] = {path_of("a.npy"), path_of("b.npy")};
    int count = kind == 1 ? 2 : 1;
    const struct npy_cut *cut = kind == 0   ? &(struct npy_cut){ranges, COUNT(ranges)}
                                : kind == 3 ? &(struct npy_cut){few, COUNT(few)}
                                            : NULL;
    assert_int_equal(npy_open(&source, budget, paths, count, cut, NULL), PLIM_OK);
    return source;
}

static struct source *open_kind(struct budget *budget, int kind)
{
    make_kind(kind);
    return open_made(budget, kind);
}

/* One file in parts, two files, big-endian, a few columns of many: by any number of places and threads. */
static void rows_are_the_same(void **state)
{
    struct budget *budget = new_budget();
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int threads = 0; threads < 3; threads++)
            for (int held = 1; held <= 11; held += 1 + 2 * (held > 1)) {
                uint64_t plain[2], mine[2], direct;
                struct dataset *dataset = shuffled(open_kind(budget, kind), 170, 5);
                struct grant grant = {.slots = 4, .workers = threads};
                assert_int_equal(held_most(dataset), 11);
                grant.held = held;
                run(mine, &direct, dataset, budget, grant);
                assert_int_equal(direct > 0, kind != 3); /* whole rows would be ten times the columns */
                grant.held = 0;
                run(plain, &direct, dataset, budget, grant);
                assert_int_equal(direct, 0);
                assert_memory_equal(plain, mine, sizeof plain);
                dataset_unref(dataset);
            }
    unlink(path_of("a.npy"));
    unlink(path_of("b.npy"));
    end_budget(budget);
}

/* Any read, open or cut of one that fails: the same rows, or an error. */
static void faults(void **state)
{
    static const struct {
        unsigned site;
        int error_number;
    } kinds[] = {{FAULT_READ, EIO}, {FAULT_READ, 0}, {FAULT_OPEN, EMFILE}};
    struct budget *budget = new_budget();
    uint64_t plain[2], mine[2], direct;
    (void)state;
    struct dataset *dataset = shuffled(open_kind(budget, 0), 170, 5);
    struct grant grant = {.slots = 4, .workers = 1, .held = 11};
    run(plain, &direct, dataset, budget, grant);
    for (int kind = 0; kind < 3; kind++)
        for (int nth = 1; nth < 40; nth += 1 + nth / 8) {
            make_cold("a.npy", "<i4", WIDTH, false);
            fault_arm(kinds[kind].site, nth, false, kinds[kind].error_number);
            run(mine, &direct, dataset, budget, grant); /* one fault is made good by the row's own read */
            fault_disarm();
            assert_memory_equal(plain, mine, sizeof plain);
        }
    dataset_unref(dataset);
    unlink(path_of("a.npy"));
    unlink(path_of("b.npy"));
    end_budget(budget);
}

/* A file that is cut while it is read is an error that names it, after the batches that were good. */
static void a_file_that_is_cut(void **state)
{
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        struct budget *budget = new_budget();
        struct dataset *dataset = shuffled(open_kind(budget, 0), 170, 5);
        struct grant grant = {.slots = 4, .workers = threads, .held = 11};
        struct iterator *iterator;
        struct batch *batch;
        plim_error error = {0};
        plim_status status;
        assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, 1}, grant, NULL, NULL),
                         PLIM_OK);
        assert_int_equal(iterator_next(&batch, iterator, &error), PLIM_OK);
        assert_int_equal(truncate(path_of("a.npy"), 128 + ROWS * WIDTH * 4 / 2), 0);
        while ((status = iterator_next(&batch, iterator, &error)) == PLIM_OK && batch)
            continue;
        assert_int_equal(status, PLIM_BAD_DATA);
        assert_non_null(strstr(error.where, "a.npy"));
        assert_non_null(strstr(error.message, "ends at byte"));
        iterator_close(iterator);
        dataset_unref(dataset);
        unlink(path_of("a.npy"));
        unlink(path_of("b.npy"));
        end_budget(budget);
    }
}

/* Some epochs; returns whether rows had to be waited for at their end still. */
static bool run_exact(uint64_t *out, struct source *source, struct budget *budget, int threads)
{
    struct iterator *iterator;
    const struct grant grant = {.slots = 4, .workers = threads};
    struct dataset *dataset = dataset_batch(dataset_shuffle(dataset_from_source(source), 3), 8, false);
    dataset = dataset_prefetch(dataset, 4);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, 1}, grant, NULL, NULL),
                     PLIM_OK);
    *out = digest_of(iterator, dataset, 8 * (ROWS / 8 + 2)); /* threads forget slowly: they count beside each other */
    bool waits = source->type->waits(source);
    iterator_close(iterator);
    dataset_unref(dataset);
    return waits;
}

/* Rows from anywhere are asked for beforehand while the file is not in memory, and no longer. */
static void exact_from_a_cold_file(void **state)
{
    struct budget *budget = new_budget();
    (void)state;
    for (int kind = 0; kind < 3; kind++)
        for (int threads = 0; threads < 3; threads++) {
            uint64_t cold, warm;
            assert_false(run_exact(&cold, open_kind(budget, kind), budget, threads));
            assert_false(run_exact(&warm, open_made(budget, kind), budget, threads));
            assert_true(cold == warm);
        }
    unlink(path_of("a.npy"));
    unlink(path_of("b.npy"));
    end_budget(budget);
}

/* ---- who waits for whom ---- */

#define BLOCK 170

/* The linker puts this in the place of read_queue_add (tests/meson.build): who asks for bytes from `from` on comes back
   late, when the block has long been on its way. */
static struct {
    atomic_ullong from;
    atomic_bool asking;
    sem_t asked;
} late = {.from = UINT64_MAX};

enum read_queue_answer __real_read_queue_add(struct read_queue *queue, struct file *file, uint64_t offset, void *to,
                                             uint64_t bytes, uint64_t tag);
enum read_queue_answer __wrap_read_queue_add(struct read_queue *queue, struct file *file, uint64_t offset, void *to,
                                             uint64_t bytes, uint64_t tag);

enum read_queue_answer __wrap_read_queue_add(struct read_queue *queue, struct file *file, uint64_t offset, void *to,
                                             uint64_t bytes, uint64_t tag)
{
    enum read_queue_answer answer = __real_read_queue_add(queue, file, offset, to, bytes, tag);
    if (answer == READ_TAKEN && offset >= atomic_load(&late.from)) {
        atomic_store(&late.asking, true);
        sem_post(&late.asked);
        await(others_sleep, NULL); /* the one that wants the row waits for the block now */
    }
    return answer;
}

static void read_row(struct held_blocks *held, int64_t row)
{
    int32_t x[WIDTH];
    void *to[] = {x, &x[WIDTH - 1]};
    const uint64_t stride[] = {(WIDTH - 1) * 4, 4};
    if (held_read(held, &row, 1, to, stride, NULL) != PLIM_OK || x[0] != (int32_t)row * WIDTH ||
        x[WIDTH - 1] != (int32_t)(row + 1) * WIDTH - 1)
        abort();
}

/* A thread that wants a row of the block while another asks the disk for it. */
static void *want_row(void *held)
{
    while (sem_wait(&late.asked) != 0)
        continue;
    read_row(held, BLOCK + 1);
    return NULL;
}

/* The one that asked wants other rows and goes away; the one that waits has to fetch the block then. */
static void who_waits_is_woken(void **state)
{
    struct budget *budget = new_budget();
    struct dataset *dataset = shuffled(open_kind(budget, 0), BLOCK, 5);
    struct held_blocks *held;
    pthread_t other;
    struct timespec end;
    (void)state;
    assert_int_equal(held_open(&held, dataset, 11, 0, budget, NULL), PLIM_OK);
    atomic_store(&late.asking, false);
    assert_int_equal(sem_init(&late.asked, 0, 0), 0);
    atomic_store(&late.from, 128 + BLOCK * WIDTH * 4);
    assert_int_equal(pthread_create(&other, NULL, want_row, held), 0);
    held_expect(held, 0, 1);
    held_expect(held, BLOCK, 2);
    read_row(held, 3);
    atomic_store(&late.from, UINT64_MAX);
    assert_true(atomic_load(&late.asking));
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    if (pthread_timedjoin_np(other, NULL, &end) != 0)
        fail_msg("the thread that wants a block which another asked for waits for ever");
    held_close(held);
    dataset_unref(dataset);
    unlink(path_of("a.npy"));
    unlink(path_of("b.npy"));
    end_budget(budget);
}

/* Blocks that were on their way when a process was forked never come to the child: it reads them itself. */
static void a_forked_child_reads_by_itself(void **state)
{
    struct budget *budget = new_budget();
    const struct grant grant = {.slots = 4, .held = 11};
    struct iterator *iterator;
    int status = 0;
    (void)state;
    struct dataset *dataset = shuffled(open_kind(budget, 0), BLOCK, 5);
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, NULL, 1}, grant, NULL, NULL),
                     PLIM_OK);
    digest_of(iterator, dataset, 3);
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        uint64_t digest = digest_of(iterator, dataset, ROWS / 8 + 40);
        _exit(write(pipe_ends[1], &digest, sizeof digest) == sizeof digest ? 0 : 1);
    }
    uint64_t mine = digest_of(iterator, dataset, ROWS / 8 + 40), childs = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("the child did not end by itself: status %d", status);
    assert_int_equal(read(pipe_ends[0], &childs, sizeof childs), sizeof childs);
    assert_true(mine == childs);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    iterator_close(iterator);
    dataset_unref(dataset);
    unlink(path_of("a.npy"));
    unlink(path_of("b.npy"));
    end_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_same),
        cmocka_unit_test(who_waits_is_woken),
        cmocka_unit_test(a_forked_child_reads_by_itself),
        cmocka_unit_test(exact_from_a_cold_file),
        cmocka_unit_test(faults),
        cmocka_unit_test(a_file_that_is_cut),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
