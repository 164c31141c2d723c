/* test_stage_sources.c - data sets without a file format: arrays, counters, lists of files, a program's output. */
#include "stream_text.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/records/record_frame.h"

/* ---- arrays and numbers ---- */

static struct dataset *slices(struct budget *budget)
{
    static const float x[] = {1, 2, 3, 4, 5, 6};
    static const int64_t y[] = {7, 8, 9};
    const struct spec spec = {.column_count = 2,
                              .column = {{"a", TYPE_F32, {1, {2}}, 8, 0}, {"b", TYPE_I64, {0, {0}}, 8, 0}}};
    return dataset_from_tensor_slices(budget, &spec, (const void *[]){x, y}, 3);
}

static struct dataset *whole(struct budget *budget)
{
    static const float x[] = {1, 2, 3, 4, 5, 6};
    const struct spec spec = {.column_count = 1, .column = {{"a", TYPE_F32, {2, {3, 2}}, 24, 0}}};
    return dataset_from_tensors(budget, &spec, (const void *[]){x});
}

static struct dataset *countdown(struct budget *budget)
{
    return dataset_counter(budget, 3, -2, 4);
}

static struct dataset *endless(struct budget *budget)
{
    return dataset_take(dataset_skip(dataset_counter(budget, 3, -2, CARDINALITY_INFINITE), 1), 3);
}

static void arrays_and_numbers(void **state)
{
    struct budget *budget = open_budget();
    (void)state;
    expect_elements(slices, "[([1, 2], 7), ([3, 4], 8), ([5, 6], 9)]", 3);
    expect_elements(whole, "[[[1, 2], [3, 4], [5, 6]]]", 1);
    expect_elements(countdown, "[3, 1, -1, -3]", 4);
    expect_elements(endless, "[1, -1, -3]", 3);
    struct dataset *dataset = dataset_counter(budget, 0, 1, CARDINALITY_INFINITE);
    assert_int_equal(dataset_cardinality(dataset), CARDINALITY_INFINITE);
    dataset_unref(dataset);
    expect_refused(dataset_counter(budget, 0, 1, 0), PLIM_BAD_JOB, "at least 1");
    close_budget(budget);
}

/* ---- a function ---- */

static plim_status three_times(bool *more, void *context, void *const *row, plim_error *error)
{
    int64_t *at = context;
    (void)error;
    *more = *at < 3;
    if (*more)
        memcpy(row[0], at, sizeof *at);
    ++*at;
    return PLIM_OK;
}

static plim_status to_start(void *context, int64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    *(int64_t *)context = 0;
    return PLIM_OK;
}

static struct dataset *generated(struct budget *budget)
{
    static int64_t at;
    const struct generator generator = {.next = three_times, .rewind = to_start, .context = &at};
    const struct spec spec = {.column_count = 1, .column = {{"i", TYPE_I64, {0, {0}}, 8, 0}}};
    return dataset_from_generator(budget, &spec, &generator);
}

static void functions(void **state)
{
    (void)state;
    expect_elements(generated, "[0, 1, 2]", 3);
}

/* ---- files ---- */

static char folder[] = "sources-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails when a test left a file behind */
}

static const char *path_of(const char *name)
{
    static char path[4][64];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static struct dataset *listed(struct budget *budget)
{
    const char *pattern = path_of("*.txt");
    return dataset_list_files(budget, &pattern, 1, false, 0);
}

static struct dataset *listed_shuffled(struct budget *budget)
{
    const char *pattern = path_of("*.txt");
    return dataset_list_files(budget, &pattern, 1, true, SEED);
}

static void lists_of_files(void **state)
{
    char expected[256];
    static struct paper paper;
    struct runner runner;
    struct budget *budget = open_budget();
    (void)state;
    write_file(path_of("b.txt"), "", 0);
    write_file(path_of("a.txt"), "", 0);
    write_file(path_of("c.dat"), "", 0);
    snprintf(expected, sizeof expected, "['%s/a.txt', '%s/b.txt']", folder, folder);
    expect_elements(listed, expected, 2);
    struct dataset *dataset = listed_shuffled(budget);
    bool turned = false;
    run_open(&runner, dataset, budget, 4);
    for (uint64_t epoch = 0; epoch < 16; epoch++) {
        run_epoch(&paper, &runner, epoch, 0);
        turned = turned || strcmp(paper.text, expected) != 0;
        assert_int_equal(paper.length, strlen(expected));
    }
    assert_true(turned);
    run_close(&runner);
    dataset_unref(dataset);
    remove(path_of("a.txt"));
    remove(path_of("b.txt"));
    const char *pattern = path_of("*.txt");
    expect_refused(dataset_list_files(budget, &pattern, 1, false, 0), PLIM_BAD_DATA, "");
    remove(path_of("c.dat"));
    close_budget(budget);
}

/* ---- a program's output ---- */

static size_t add_record(uint8_t *to, const void *data, uint64_t bytes)
{
    record_head_write(to, bytes);
    memcpy(to + RECORD_HEAD_BYTES, data, bytes);
    uint32_t masked = crc32c_mask(crc32c(0, data, bytes));
    memcpy(to + RECORD_HEAD_BYTES + bytes, &masked, sizeof masked);
    return bytes + RECORD_FRAME_BYTES;
}

static const char *command_now;

static struct dataset *commanded(struct budget *budget)
{
    struct source *source;
    plim_error error = {0};
    if (command_open(&source, budget, command_now, folder, &error) != PLIM_OK)
        return dataset_failed(budget, &error);
    return dataset_from_source(source);
}

/* No child of ours is left. */
static void assert_no_children(void)
{
    int status;
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void commands(void **state)
{
    uint8_t file[256];
    size_t bytes = 0;
    (void)state;
    bytes += add_record(file, "one", 3);
    bytes += add_record(file + bytes, "", 0);
    bytes += add_record(file + bytes, "three", 5);
    write_file(path_of("r"), file, bytes);
    command_now = "cat r";
    expect_elements(commanded, "['one', '', 'three']", 3);
    command_now = "head -c 25 r; sleep 0.02; tail -c +26 r"; /* in pieces */
    expect_elements(commanded, "['one', '', 'three']", 3);
    command_now = "true";
    expect_elements(commanded, "[]", 0);
    assert_no_children();
    remove(path_of("r"));
}

/* What the first pulls say: the status, and the words of the error. */
static void expect_failure(const char *command, int good, plim_status status, const char *words)
{
    struct budget *budget = open_budget();
    struct runner runner;
    plim_error error = {0};
    command_now = command;
    struct dataset *dataset = commanded(budget);
    run_open(&runner, dataset, budget, 1);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    for (int i = 0; i < good; i++)
        assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, &error), status);
    if (!strstr(error.message, words))
        fail_msg("'%s' is not in '%s'", words, error.message);
    if (status == PLIM_BAD_DATA)
        assert_int_equal(stream_pull(runner.stream, &runner.chunk, 1, NULL), PLIM_OK);
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
    assert_no_children();
}

static void commands_that_fail(void **state)
{
    uint8_t file[256];
    size_t bytes = add_record(file, "one", 3);
    (void)state;
    bytes += add_record(file + bytes, "twice", 5);
    write_file(path_of("r"), file, bytes);
    expect_failure("cat r; exit 3", 2, PLIM_IO, "ended with status 3");
    expect_failure("cat r; kill -9 $$", 2, PLIM_IO, "ended by signal 9");
    expect_failure("no-such-program 2>/dev/null", 0, PLIM_IO, "ended with status 127");
    expect_failure("head -c 30 r", 1, PLIM_BAD_DATA, "the output ends inside it");
    expect_failure("head -c 22 r", 1, PLIM_BAD_DATA, "the output ends inside it");
    file[13] ^= 1;
    write_file(path_of("r"), file, bytes);
    expect_failure("cat r", 0, PLIM_BAD_DATA, "record 0: its data do not match");
    file[13] ^= 1;
    file[19] ^= 1;
    write_file(path_of("r"), file, bytes);
    expect_failure("cat r", 1, PLIM_BAD_DATA, "record 1: its length does not match");
    remove(path_of("r"));
}

/* All of it, whatever it says: good records, then an error or the end. */
static plim_status read_all(int *records)
{
    struct budget *budget = open_budget();
    struct runner runner;
    plim_status status = PLIM_OK;
    struct dataset *dataset = commanded(budget);
    run_open(&runner, dataset, budget, 8);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    for (*records = 0; *records < 9;) {
        plim_status now = stream_pull(runner.stream, &runner.chunk, 8, NULL);
        status = now == PLIM_OK ? status : now;
        if (now == PLIM_OK && !runner.chunk.count)
            break;
        *records += now == PLIM_OK ? (int)runner.chunk.count : 1;
    }
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
    return status;
}

/* Cut at every byte, every bit turned: an error, or what is whole. */
static void damaged_output(void **state)
{
    uint8_t file[64];
    size_t bytes = add_record(file, "one", 3), first = bytes;
    int records;
    (void)state;
    bytes += add_record(file + bytes, "a", 1);
    command_now = "cat r";
    for (size_t cut = 0; cut <= bytes; cut++) {
        write_file(path_of("r"), file, cut);
        bool whole = cut == 0 || cut == first || cut == bytes;
        assert_int_equal(read_all(&records), whole ? PLIM_OK : PLIM_BAD_DATA);
    }
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        write_file(path_of("r"), file, bytes);
        assert_int_equal(read_all(&records), PLIM_BAD_DATA);
        assert_true(records <= 2);
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_no_children();
    remove(path_of("r"));
}

/* Closing does not wait for a program that goes on for ever, nor for what it has started. */
static void commands_are_ended(void **state)
{
    struct budget *budget = open_budget();
    uint8_t file[64];
    (void)state;
    write_file(path_of("r"), file, add_record(file, "one", 3));
    command_now = "while true; do cat r; sleep 1000 & done";
    struct dataset *dataset = dataset_batch(commanded(budget), 2, false);
    struct iterator *iterator = open_iterator(dataset, budget, 3, 0, 0);
    struct batch *batch;
    for (int i = 0; i < 3; i++)
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(batch->count, 2);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
    assert_no_children();
    remove(path_of("r"));
}

/* Larger than the reader's buffer, by way of the room; the epoch is $1. */
static void large_records(void **state)
{
    enum { LARGE = 200000 };
    static uint8_t data[LARGE], file[LARGE + 2 * RECORD_FRAME_BYTES + 8];
    struct budget *budget = open_budget();
    struct runner runner;
    plim_error error = {0};
    struct string record;
    (void)state;
    for (int i = 0; i < LARGE; i++)
        data[i] = (uint8_t)(i * 7);
    size_t bytes = add_record(file, data, LARGE);
    bytes += add_record(file + bytes, "end", 3);
    write_file(path_of("r5"), file, bytes);
    command_now = "cat r$1";
    struct dataset *dataset = commanded(budget);
    run_open(&runner, dataset, budget, 4);
    assert_int_equal(stream_rewind(runner.stream, 5, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 4, &error), PLIM_OK);
    memcpy(&record, chunk_row(&runner.chunk, 0, 0), sizeof record);
    assert_int_equal(record.bytes, LARGE);
    assert_memory_equal(record.data, data, LARGE);
    while (runner.chunk.count && record.bytes == LARGE) {
        if (runner.chunk.count == 1)
            assert_int_equal(stream_pull(runner.stream, &runner.chunk, 4, &error), PLIM_OK);
        memcpy(&record, chunk_row(&runner.chunk, 0, runner.chunk.count - 1), sizeof record);
    }
    assert_memory_equal(record.data, "end", 3);
    run_close(&runner);
    dataset_unref(dataset);
    dataset = commanded(budget);
    dataset_set_value_bytes(dataset, 100000);
    run_open(&runner, dataset, budget, 4);
    assert_int_equal(stream_rewind(runner.stream, 5, NULL), PLIM_OK);
    assert_int_equal(stream_pull(runner.stream, &runner.chunk, 4, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "needs 200000 bytes"));
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
    assert_no_children();
    remove(path_of("r5"));
}

static plim_status sweep_once(struct budget *budget)
{
    return run_once(commanded, budget);
}

static void commands_and_faults(void **state)
{
    uint8_t file[64];
    (void)state;
    write_file(path_of("r"), file, add_record(file, "one", 3));
    command_now = "cat r";
    expect_faults(commanded);
    for (unsigned site = FAULT_OPEN; site <= FAULT_THREAD; site <<= 1) {
        bool reached = true;
        for (int64_t n = 1; reached && n < 30; n++) {
            struct budget *budget = open_budget();
            fault_arm(site, n, false, EIO);
            plim_status status = sweep_once(budget);
            reached = fault_disarm();
            assert_true(status == PLIM_OK || reached);
            close_budget(budget);
        }
        fault_arm(site, 1, true, 0); /* short reads */
        struct budget *budget = open_budget();
        if (site == FAULT_READ)
            assert_int_equal(sweep_once(budget), PLIM_OK);
        fault_disarm();
        close_budget(budget);
    }
    assert_no_children();
    remove(path_of("r"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_and_numbers),  cmocka_unit_test(functions),
        cmocka_unit_test(lists_of_files),      cmocka_unit_test(commands),
        cmocka_unit_test(commands_that_fail),  cmocka_unit_test(damaged_output),
        cmocka_unit_test(commands_are_ended),  cmocka_unit_test(large_records),
        cmocka_unit_test(commands_and_faults),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
