/* test_data_faults.c - what happens to files and callbacks while a pipeline runs: cut short, replaced, gone; a full
   disk under a cache; functions that fail. An error that says where, and nothing half-written is left. */
#include "base/numbers/count.h"
#include "format_files.h"
#include "random_pipeline.h"

#include <dirent.h>

#define ROWS 4000

/* ---- helpers ---- */

static plim_budget *some_budget(void)
{
    plim_budget *budget;
    assert_int_equal(plim_budget_make(&budget, (uint64_t)64 << 20, NULL), PLIM_OK);
    return budget;
}

static void no_budget(plim_budget *budget)
{
    assert_int_equal(budget_usage(budget->inner).now, budget->own_bytes);
    plim_budget_free(budget);
}

static int entries(void)
{
    int count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static plim_iterator *open_one(plim_dataset *dataset, plim_budget *budget, int threads)
{
    plim_iterator *iterator;
    plim_error error = {0};
    const plim_iterator_options options = {.threads = threads, .slots = 1 + threads};
    if (plim_iterator_open(&iterator, dataset, budget, &options, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return iterator;
}

/* To the end of the epoch, or to an error; returns the samples that came. */
static int64_t rest_of(plim_iterator *iterator, plim_error *error)
{
    const plim_batch *batch;
    int64_t samples = 0;
    *error = (plim_error){0};
    while (plim_iterator_next(&batch, iterator, error) == PLIM_OK && batch)
        samples += batch->count;
    return samples;
}

/* ---- files that change ---- */

struct changing {
    const char *source; /* %s: the path */
    void (*write)(const char *path, int64_t first);
    bool streamed; /* opened anew each epoch */
};

/* Rows of 256 bytes, more than any reader holds at once. */
static void write_npy(const char *path, int64_t first)
{
    char head[118];
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    memset(head, ' ', sizeof head);
    int bytes = snprintf(head, sizeof head, "{'descr': '<i8', 'fortran_order': False, 'shape': (%d, 32), }", ROWS);
    head[bytes] = ' ';
    head[117] = '\n';
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, out);
    fwrite(head, 1, 118, out);
    for (int64_t i = 0; i < ROWS * 32; i++) {
        int64_t value = first + i;
        fwrite(&value, sizeof value, 1, out);
    }
    assert_int_equal(fclose(out), 0);
}

static void write_tfrecord(const char *path, int64_t first)
{
    struct budget *budget = open_budget();
    struct record_writer *writer;
    int64_t record[32] = {0};
    assert_int_equal(record_writer_open(&writer, budget, path, RECORDS_RAW, NULL), PLIM_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        record[0] = first + i;
        assert_int_equal(record_writer_add(writer, record, sizeof record, NULL), PLIM_OK);
    }
    assert_int_equal(record_writer_finish(writer, NULL), PLIM_OK);
    record_writer_close(writer);
    close_budget(budget);
}

static void write_csv(const char *path, int64_t first)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fprintf(out, "id,name\n");
    for (int64_t i = 0; i < ROWS; i++)
        fprintf(out, "%lld,%0200d\n", (long long)(first + i), (int)i);
    assert_int_equal(fclose(out), 0);
}

static const struct changing kinds[] = {
    {"{npy: '%s', pipeline: [batch: 16]}", write_npy, false},
    {"{tfrecord: '%s', pipeline: [batch: 16]}", write_tfrecord, true},
    {"{csv: {files: '%s', types: {id: int64, name: string}}, pipeline: [batch: 16]}", write_csv, true},
};

static plim_dataset *open_kind(const struct changing *kind, plim_budget *budget, const char *path)
{
    char text[256];
    plim_error error = {0};
    snprintf(text, sizeof text, kind->source, path);
    plim_dataset *dataset = plim_dataset_read(budget, text, 0);
    if (plim_dataset_check(dataset, &error) != PLIM_OK)
        fail_msg("%s: %s", error.where, error.message);
    return dataset;
}

typedef void change(const char *path, const struct changing *kind);

/* Changed after some batches: what comes before it is good; then an error that names the file, or all of it. */
static void change_while_read(change *change_it, bool must_fail, bool fails_later)
{
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (int threads = 0; threads < 3; threads++) {
            const char *path = path_of("changing");
            kinds[k].write(path, 0);
            plim_budget *budget = some_budget();
            plim_dataset *dataset = open_kind(&kinds[k], budget, path);
            plim_iterator *iterator = open_one(dataset, budget, threads);
            const plim_batch *batch;
            plim_error error = {0};
            for (int i = 0; i < 3; i++)
                assert_int_equal(plim_iterator_next(&batch, iterator, &error), PLIM_OK);
            change_it(path, &kinds[k]);
            int64_t samples = rest_of(iterator, &error);
            if (error.code == PLIM_OK && (must_fail || samples != ROWS - 48))
                fail_msg("%s: %lld samples and no error", kinds[k].source, (long long)samples);
            if (error.code != PLIM_OK)
                assert_non_null(strstr(error.where, "changing"));
            /* Again from the beginning: the file as it is now. */
            if (error.code == PLIM_OK) {
                samples = rest_of(iterator, &error);
                if (fails_later && kinds[k].streamed)
                    assert_int_equal(error.code, PLIM_IO);
                assert_true(error.code != PLIM_OK ? strstr(error.where, "changing") != NULL : samples == ROWS);
            }
            plim_iterator_close(iterator);
            plim_dataset_unref(dataset);
            no_budget(budget);
            unlink(path);
        }
}

static void cut(const char *path, const struct changing *kind)
{
    struct stat now;
    (void)kind;
    assert_int_equal(stat(path, &now), 0);
    assert_int_equal(truncate(path, now.st_size / 2 + 3), 0);
}

static void take_away(const char *path, const struct changing *kind)
{
    (void)kind;
    assert_int_equal(unlink(path), 0);
}

static void replace(const char *path, const struct changing *kind)
{
    const char *other = path_of("other");
    kind->write(other, 1000000);
    assert_int_equal(rename(other, path), 0);
}

static void overwrite(const char *path, const struct changing *kind)
{
    FILE *out = fopen(path, "r+b");
    (void)kind;
    assert_non_null(out);
    fseek(out, 600000, SEEK_SET);
    for (int i = 0; i < 300; i++)
        fputc('\n', out);
    assert_int_equal(fclose(out), 0);
}

static void files_that_are_cut(void **state)
{
    (void)state;
    change_while_read(cut, true, false);
    assert_int_equal(entries(), 0);
}

static void files_that_go_away(void **state)
{
    (void)state;
    change_while_read(take_away, false, true);
}

static void files_that_are_replaced(void **state)
{
    (void)state;
    change_while_read(replace, false, false);
}

/* Rows of numbers have no checksums; the others find it out. */
static void files_that_are_overwritten(void **state)
{
    (void)state;
    for (size_t k = 1; k < COUNT(kinds); k++) {
        const char *path = path_of("changing");
        kinds[k].write(path, 0);
        plim_budget *budget = some_budget();
        plim_dataset *dataset = open_kind(&kinds[k], budget, path);
        plim_iterator *iterator = open_one(dataset, budget, 2);
        plim_error error = {0};
        overwrite(path, &kinds[k]);
        rest_of(iterator, &error);
        assert_int_equal(error.code, PLIM_BAD_DATA);
        assert_non_null(strstr(error.where, "changing: byte "));
        plim_iterator_close(iterator);
        plim_dataset_unref(dataset);
        no_budget(budget);
        unlink(path);
    }
}

/* ---- a disk that is full, or broken, while a cache is written ---- */

static plim_status cached_run(plim_error *error, int threads)
{
    char text[160];
    plim_budget *budget = some_budget();
    plim_iterator *iterator;
    snprintf(text, sizeof text, "cache: {file: %s}", path_of("kept"));
    plim_dataset *dataset = outside(texts_open(budget->inner, &texts_stream, 3000, -1));
    dataset = plim_dataset_batch(plim_dataset_stage(dataset, text, 0), 10, false);
    const plim_iterator_options options = {.threads = threads, .slots = 1 + threads};
    plim_status status = plim_iterator_open(&iterator, dataset, budget, &options, error);
    if (status == PLIM_OK) {
        int64_t samples = rest_of(iterator, error);
        status = error->code;
        assert_true(status != PLIM_OK || samples == 3000);
        plim_iterator_close(iterator);
    }
    plim_dataset_unref(dataset);
    no_budget(budget);
    return status;
}

static void forget_cache(void)
{
    unlink(path_of("kept"));
    unlink(path_of("kept.values"));
}

static int64_t sweep_cache(unsigned sites, int error_number, int threads, bool forever)
{
    bool reached = true;
    int64_t n = 1;
    for (; reached; n++) {
        plim_error error = {0};
        fault_arm(sites, n, forever, error_number);
        plim_status status = cached_run(&error, threads);
        reached = fault_disarm();
        if (status == PLIM_OK && reached && (sites == FAULT_RENAME || sites == FAULT_SYNC))
            status = PLIM_IO; /* tidying up, which may fail */
        assert_int_equal(status, reached ? PLIM_IO : PLIM_OK);
        if (reached && error.code != PLIM_OK) {
            if (!strstr(error.where, "kept") && !strstr(error.where, folder))
                fail_msg("%u, call %lld: %s: %s", sites, (long long)n, error.where, error.message);
            if (sites == FAULT_OPEN)
                unlink(path_of("kept.lock")); /* may stay: it locks nobody out */
            /* Neither a cache nor a part of one; or a whole one whose folder could not be written to the disk. */
            bool whole = access(path_of("kept"), F_OK) == 0 && access(path_of("kept.values"), F_OK) == 0;
            assert_int_equal(entries(), whole && sites != FAULT_WRITE ? 2 : 0);
            assert_int_equal(cached_run(&error, threads), PLIM_OK);
        }
        forget_cache();
        assert_true(n < 100);
    }
    return n;
}

static void full_disks(void **state)
{
    (void)state;
    for (int threads = 0; threads < 2; threads++)
        for (int forever = 0; forever < 2; forever++)
            assert_true(sweep_cache(FAULT_WRITE, ENOSPC, threads, forever) > 5);
}

static void broken_disks(void **state)
{
    (void)state;
    assert_true(sweep_cache(FAULT_SYNC, EIO, 1, false) > 2);
    assert_true(sweep_cache(FAULT_RENAME, EIO, 1, false) > 2);
    assert_true(sweep_cache(FAULT_OPEN, EIO, 1, false) > 2);
}

/* ---- callbacks that fail ---- */

#define FAILING 37 /* this element, or call */

static plim_status failing_next(bool *more, void *context, void *const *row, plim_error *error)
{
    int64_t *at = context;
    if (*at == FAILING) {
        if (error)
            *error = (plim_error){.code = PLIM_IO, .message = "the ship has sunk", .where = "sea"};
        return PLIM_IO;
    }
    *more = *at < 100;
    if (*more)
        memcpy(row[0], at, sizeof *at);
    ++*at;
    return PLIM_OK;
}

static plim_status failing_rewind(void *context, int64_t epoch, plim_error *error)
{
    (void)epoch, (void)error;
    *(int64_t *)context = 0;
    return PLIM_OK;
}

static plim_status failing_element(void *context, void *const *from, void *const *to, int64_t index, plim_error *error)
{
    (void)context, (void)from, (void)to, (void)error;
    return index == FAILING ? PLIM_IO : PLIM_OK; /* says nothing: the library must */
}

static plim_status failing_test(bool *keep, void *context, const plim_chunk *chunk, plim_error *error)
{
    (void)context;
    for (int64_t i = 0; i < chunk->count; i++) {
        keep[i] = true;
        if (*(const int64_t *)((const char *)chunk->from[0] + (uint64_t)i * chunk->from_stride[0]) != FAILING)
            continue;
        if (error)
            *error = (plim_error){.code = PLIM_IO, .message = "the ship has sunk"};
        return PLIM_IO;
    }
    return PLIM_OK;
}

static plim_status failing_scan(void *context, void *state, void *const *from, void *const *to, plim_error *error)
{
    (void)context, (void)state, (void)error;
    memcpy(to[0], from[0], sizeof(int64_t));
    return *(const int64_t *)from[0] == FAILING ? PLIM_IO : PLIM_OK;
}

static plim_dataset *make_failing(plim_budget *budget, int kind, int64_t *context)
{
    static const plim_column column = {.name = "x", .type = PLIM_INT64};
    static const int64_t zero;
    const plim_generator generator = {.next = failing_next, .rewind = failing_rewind, .context = context};
    const plim_map map = {.name = "sail", .element = failing_element};
    const plim_scan scan = {.state = &zero, .state_bytes = sizeof zero, .run = failing_scan};
    if (kind == 0)
        return plim_dataset_from_generator(budget, &column, 1, &generator);
    plim_dataset *dataset = plim_dataset_range(budget, 100);
    if (kind == 1)
        return plim_dataset_map(dataset, &map);
    return kind == 2 ? plim_dataset_filter(dataset, failing_test, NULL) : plim_dataset_scan(dataset, &scan);
}

/* Whole batches before it come; then the error, each time it is asked for; of the cache behind it nothing is left. */
static void failing_run(int kind, int threads, bool cached)
{
    static const int64_t batches = FAILING / 5;
    char text[160];
    int64_t context = 0;
    plim_budget *budget = some_budget();
    const plim_batch *batch;
    plim_error error = {0};
    plim_dataset *dataset = make_failing(budget, kind, &context);
    snprintf(text, sizeof text, "cache: {file: %s}", path_of("kept"));
    if (cached)
        dataset = plim_dataset_stage(dataset, text, 0);
    dataset = plim_dataset_batch(dataset, 5, false);
    plim_iterator *iterator = open_one(dataset, budget, threads);
    int64_t came = rest_of(iterator, &error);
    if (error.code != PLIM_IO || !error.message[0] || (kind != 1 && came != batches * 5 && !cached))
        fail_msg("callback %d, %d threads: %lld samples, then %d '%s'", kind, threads, (long long)came, error.code,
                 error.message);
    if (kind == 0 || kind == 2)
        assert_string_equal(error.message, "the ship has sunk");
    assert_int_equal(plim_iterator_next(&batch, iterator, &error), PLIM_IO);
    plim_iterator_close(iterator);
    plim_dataset_unref(dataset);
    no_budget(budget);
    assert_int_equal(entries(), 0);
}

static void functions_that_fail(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int threads = 0; threads < 3; threads++)
            for (int cached = 0; cached < 2; cached++)
                failing_run(kind, threads, cached);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_are_cut),
        cmocka_unit_test(files_that_go_away),
        cmocka_unit_test(files_that_are_replaced),
        cmocka_unit_test(files_that_are_overwritten),
        cmocka_unit_test(full_disks),
        cmocka_unit_test(broken_disks),
        cmocka_unit_test(functions_that_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
