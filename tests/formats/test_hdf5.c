/* test_hdf5.c - HDF5 files that h5py wrote (tests/golden/hdf5): contiguous, chunked and packed data sets; what is not
   read, by name; files cut short at every byte and with every bit flipped. */
#include "source_text.h"

#include "base/numbers/count.h"
#include "formats/containers/hdf5.h"

/* ---- values ---- */

/* A batch of all 10 rows: the values of the column are 0, 1, 2, ... */
static void expect_counting(const char *file, const char *path, enum type type, int64_t row)
{
    char text[512];
    struct budget *budget = open_budget();
    struct batch *batch;
    struct iterator *iterator;
    plim_error error = {0};
    uint64_t cost[TAG_COUNT] = {0}, disk = 0;
    snprintf(text, sizeof text, "{hdf5: {file: '@/hdf5/%s', x: '%s'}, pipeline: [batch: 10]}", file, path);
    asked = text;
    struct dataset *dataset = make(budget);
    if (dataset_error(dataset, &error) != PLIM_OK)
        fail_msg("%s: %s: %s", path, error.where, error.message);
    dataset_cost(cost, &disk, dataset, GRANT(1));
    struct scratch_disk scratch = {.folder = ".", .limit_bytes = disk};
    uint64_t before = budget_usage(budget).now_by_tag[TAG_FORMATS];
    if (iterator_open(&iterator, dataset, &(struct data_run){budget, &scratch, SEED}, GRANT(1), NULL, &error) !=
        PLIM_OK)
        fail_msg("%s: %s: %s", path, error.where, error.message);
    assert_true(budget_usage(budget).peak_by_tag[TAG_FORMATS] - before <= cost[TAG_FORMATS]);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(batch->count, 10);
    for (int64_t i = 0; i < 10 * row; i++)
        if (element_get(batch->column[0], type, i) != (double)i)
            fail_msg("%s: %s: value %lld is %g", file, path, (long long)i, element_get(batch->column[0], type, i));
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

static void data_sets(void **state)
{
    static const struct {
        const char *name;
        enum type type;
    } kinds[] = {{"li1", TYPE_I8},  {"li2", TYPE_I16}, {"li4", TYPE_I32}, {"li8", TYPE_I64}, {"lu1", TYPE_U8},
                 {"bi2", TYPE_I16}, {"bi4", TYPE_I32}, {"bi8", TYPE_I64}, {"lf2", TYPE_F16}, {"lf4", TYPE_F32},
                 {"lf8", TYPE_F64}, {"bf4", TYPE_F32}, {"bf8", TYPE_F64}};
    (void)state;
    expect_counting("old.h5", "plain", TYPE_F32, 3);
    expect_counting("old.h5", "/gzip", TYPE_I32, 5);
    expect_counting("old.h5", "/blocks", TYPE_F64, 12);
    expect_counting("old.h5", "bare", TYPE_I16, 1);
    expect_counting("old.h5", "/train//deep/labels", TYPE_I64, 1);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char path[32];
        snprintf(path, sizeof path, "kinds/%s", kinds[i].name);
        expect_counting("old.h5", path, kinds[i].type, 1);
    }
    expect_counting("new.h5", "plain", TYPE_F32, 3);
    expect_counting("new.h5", "one", TYPE_I32, 5);
}

static void side_by_side(void **state)
{
    (void)state;
    expect("{hdf5: {file: '@/hdf5/old.h5', x: /plain, y: /train/deep/labels, z: flags}, pipeline: [skip: 7]}",
           "[([21, 22, 23], 7, 0), ([24, 25, 26], 8, 1), ([27, 28, 29], 9, 0)]");
}

/* What was never written is zero; a chunk that is there is not. */
static void holes(void **state)
{
    struct budget *budget = open_budget();
    struct iterator *iterator;
    struct batch *batch;
    plim_error error = {0};
    struct scratch_disk scratch = {.folder = ".", .limit_bytes = 1 << 20};
    (void)state;
    asked = "{hdf5: {file: '@/hdf5/old.h5', x: /odd/hole}, pipeline: [batch: 10]}";
    struct dataset *dataset = make(budget);
    if (iterator_open(&iterator, dataset, &(struct data_run){budget, &scratch, SEED}, GRANT(1), NULL, &error) !=
        PLIM_OK)
        fail_msg("%s", error.message);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    for (int i = 0; i < 20; i++)
        assert_true(((float *)batch->column[0])[i] == (i >= 8 && i < 12 ? (float)(i - 8) : 0));
    iterator_close(iterator);
    dataset_unref(dataset);
    asked = "{hdf5: {file: '@/hdf5/old.h5', x: /odd/filled}}";
    dataset = make(budget);
    assert_int_equal(
        iterator_open(&iterator, dataset, &(struct data_run){budget, &scratch, SEED}, GRANT(1), NULL, &error),
        PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "fill value"));
    dataset_unref(dataset);
    close_budget(budget);
}

static void what_is_not_read(void **state)
{
    (void)state;
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /odd/empty}}", PLIM_BAD_DATA, "no elements");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /odd/never}}", PLIM_BAD_DATA, "ever written");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /odd/scalar}}", PLIM_BAD_DATA, "single value");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /odd/text}}", PLIM_BAD_DATA, "any length");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /odd/u4}}", PLIM_BAD_DATA, "whole numbers of 4 bytes");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /odd/lzf}}", PLIM_BAD_DATA, "lzf");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /odd/pair}}", PLIM_BAD_DATA, "compounds");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /odd/soft}}", PLIM_BAD_DATA, "no '/odd/soft'");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /nothing}}", PLIM_BAD_DATA, "no '/nothing'");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /train}}", PLIM_BAD_DATA, "a group");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /plain/x}}", PLIM_BAD_DATA, "not a group");
    refused("{hdf5: {file: '@/hdf5/new.h5', x: /newer}}", PLIM_BAD_DATA, "newer index");
    refused("{hdf5: {file: '@/hdf5/old.h5', x: /plain, y: [3]}}", PLIM_BAD_JOB, "path of a data set");
    refused("{hdf5: {x: /plain}}", PLIM_BAD_JOB, "'file:' is missing");
    refused("{hdf5: '@/hdf5/old.h5'}", PLIM_BAD_DATA, "group");
    refused("{hdf5: '@/sources/plain.csv'}", PLIM_BAD_DATA, "not an HDF5 file");
}

/* ---- damage ---- */

/* Files in memory: tens of thousands of them are written and unpacked. */
static const char *fast_folder(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".";
}

/* Everything that a reader of the file would do; right or PLIM_BAD_DATA. */
static plim_status use_file(const char *path, struct file *to, const char *name)
{
    struct budget *budget;
    struct hdf5 *hdf5;
    struct hdf5_dataset dataset;
    plim_error error = {0};
    assert_int_equal(budget_make(&budget, (uint64_t)16 << 20, NULL), PLIM_OK);
    plim_status status = hdf5_open(&hdf5, budget, path, &error);
    if (status == PLIM_OK) {
        status = hdf5_find(&dataset, hdf5, name, &error);
        if (status == PLIM_OK && dataset.layout == HDF5_CHUNKED && dataset.bytes < (uint64_t)1 << 20 &&
            hdf5_unpack_cost(&dataset) < (uint64_t)8 << 20)
            status = hdf5_unpack(hdf5, &dataset, to, 0, &error);
        hdf5_close(hdf5);
    }
    if (status != PLIM_OK && (status != PLIM_BAD_DATA || !error.where[0]))
        fail_msg("%s: %s", error.where, error.message);
    close_budget(budget);
    return status;
}

static void write_at(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
}

static void damage(const char *name, const char *dataset, size_t most)
{
    static uint8_t whole[65536];
    char from[4096], path[4096];
    snprintf(from, sizeof from, "%s/hdf5/%s", folder(), name);
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    size_t bytes = fread(whole, 1, sizeof whole, file);
    fclose(file);
    struct budget *budget = open_budget();
    struct file *to;
    assert_int_equal(file_open(&to, budget, fast_folder(), FILE_SCRATCH, NULL), PLIM_OK);
    size_t step = bytes > most ? bytes / most : 1;
    int good = 0;
    snprintf(path, sizeof path, "%s/plim_cut_%ld.h5", fast_folder(), (long)getpid());
    for (size_t i = 0; i < bytes; i += step) {
        write_at(path, whole, i);
        use_file(path, to, dataset);
        for (int bit = 0; bit < 8; bit++) {
            whole[i] ^= (uint8_t)(1 << bit);
            write_at(path, whole, bytes);
            good += use_file(path, to, dataset) == PLIM_OK;
            whole[i] ^= (uint8_t)(1 << bit);
        }
    }
    assert_true(good > 0); /* most of the bits are of no meaning to us */
    write_at(path, whole, bytes);
    assert_int_equal(use_file(path, to, dataset), PLIM_OK);
    unlink(path);
    file_close(to);
    close_budget(budget);
}

static void damaged_files(void **state)
{
    (void)state;
    damage("small.h5", "x", 4096);
    damage("old.h5", "train/deep/labels", 400);
    damage("new.h5", "one", 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_sets),        cmocka_unit_test(side_by_side),  cmocka_unit_test(holes),
        cmocka_unit_test(what_is_not_read), cmocka_unit_test(damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
