/* test_npy.c - npy files: good ones, damaged ones, lying ones. */
#include "format_files.h"

#include <errno.h>

#include "base/numbers/count.h"
#include "formats/source.h"

/* A file of version major.0 with this dict, padded as numpy does, and its data. Returns its size. */
static size_t make_npy(uint8_t *out, int major, const char *dict, const void *data, size_t data_bytes)
{
    size_t prefix = major == 1 ? 10 : 12, length = strlen(dict);
    size_t padded = (prefix + length + 1 + 63) / 64 * 64 - prefix;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)major;
    out[7] = 0;
    for (size_t i = 0; i < prefix - 8; i++)
        out[8 + i] = (uint8_t)(padded >> 8 * i);
    memset(out + prefix, ' ', padded);
    memcpy(out + prefix, dict, length);
    out[prefix + padded - 1] = '\n';
    if (data_bytes)
        memcpy(out + prefix + padded, data, data_bytes);
    return prefix + padded + data_bytes;
}

static plim_status try_npy(struct budget *budget, const char *path, plim_error *error)
{
    struct source *source;
    uint64_t out[1024];
    TRY(npy_open(&source, budget, &path, 1, NULL, error));
    uint64_t stride = source->spec.column[0].bytes;
    plim_status status = PLIM_OK;
    if (stride <= sizeof out)
        status = source->type->read(source, (int64_t[]){source->count - 1}, 1, (void *[]){out}, &stride, error);
    source_close(source);
    return status;
}

static void reads_each_type(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        enum type type;
        int major;
    } rows[] = {{"<f4", TYPE_F32, 1},  {"<f8", TYPE_F64, 2}, {"<f2", TYPE_F16, 3}, {"|u1", TYPE_U8, 1},
                {"|i1", TYPE_I8, 1},   {"<i2", TYPE_I16, 1}, {"<i4", TYPE_I32, 2}, {"<i8", TYPE_I64, 3},
                {"|b1", TYPE_BOOL, 1}, {">f4", TYPE_F32, 1}, {">f8", TYPE_F64, 1}, {">f2", TYPE_F16, 1},
                {">i2", TYPE_I16, 1},  {">i4", TYPE_I32, 1}, {">i8", TYPE_I64, 1}};
    for (size_t r = 0; r < COUNT(rows); r++) {
        uint8_t file[512], data[64], out[64];
        char dict[128];
        size_t size = type_bytes(rows[r].type);
        for (int i = 0; i < 6; i++) {
            element_set(data, rows[r].type, i, i % 2);
            for (size_t b = 0; rows[r].descr[0] == '>' && b < size / 2; b++) {
                uint8_t *element = data + (size_t)i * size, swapped = element[b];
                element[b] = element[size - 1 - b];
                element[size - 1 - b] = swapped;
            }
        }
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }", rows[r].descr);
        const char *path = write_file("a.npy", file, make_npy(file, rows[r].major, dict, data, 6 * size));
        struct budget *budget = new_budget();
        struct source *source;
        assert_int_equal(npy_open(&source, budget, &path, 1, NULL, NULL), PLIM_OK);
        assert_int_equal(source->count, 2);
        assert_int_equal(source->spec.column[0].type, rows[r].type);
        assert_int_equal(source->spec.column[0].shape.rank, 1);
        assert_int_equal(source->spec.column[0].bytes, 3 * size);
        uint64_t stride = 3 * size;
        assert_int_equal(source->type->read(source, (int64_t[]){1, 0}, 2, (void *[]){out}, &stride, NULL), PLIM_OK);
        for (int i = 0; i < 6; i++)
            assert_true(element_get(out, rows[r].type, i) == (i + 3) % 6 % 2);
        source_close(source);
        end_budget(budget);
        unlink(path);
    }
}

/* Files side by side, and what numpy may write differently. */
static void reads_side_by_side(void **state)
{
    (void)state;
    uint8_t file[512];
    float x[4] = {1, 2, 3, 4}, out_x[2];
    int64_t y[2] = {7, 9}, out_y;
    size_t bytes = make_npy(file, 1, "{\"shape\": (2L,1L,2L), 'descr': '<f4','fortran_order' :False}", x, sizeof x);
    const char *paths[2] = {write_file("x.npy", file, bytes)};
    bytes = make_npy(file, 1, "{'descr': '<i8', 'fortran_order': True, 'shape': (2,), }", y, sizeof y);
    paths[1] = write_file("y.npy", file, bytes);
    struct budget *budget = new_budget();
    struct source *source;
    assert_int_equal(npy_open(&source, budget, paths, 2, NULL, NULL), PLIM_OK);
    assert_string_equal(source->spec.column[1].name, "y");
    assert_int_equal(source->spec.column[0].shape.rank, 2);
    assert_int_equal(source->spec.column[1].shape.rank, 0);
    assert_null(source->type->start);
    assert_int_equal(source->type->read(source, (int64_t[]){1}, 1, (void *[]){out_x, &out_y}, (uint64_t[]){8, 8}, NULL),
                     PLIM_OK);
    assert_true(out_x[0] == 3 && out_x[1] == 4 && out_y == 9);
    source_close(source);
    /* Read errors come through. */
    assert_int_equal(npy_open(&source, budget, paths, 2, NULL, NULL), PLIM_OK);
    fault_arm(FAULT_READ, 2, false, EIO);
    plim_error error;
    assert_int_equal(
        source->type->read(source, (int64_t[]){1}, 1, (void *[]){out_x, &out_y}, (uint64_t[]){8, 8}, &error), PLIM_IO);
    assert_true(fault_disarm());
    assert_non_null(strstr(error.where, "y.npy"));
    source_close(source);
    end_budget(budget);
    unlink(paths[0]);
    unlink(paths[1]);
}

/* rows x width floats, element (r, c) = 1000 r + c. */
static const char *numbered(int rows, int width)
{
    float *data = malloc((size_t)(rows * width) * sizeof *data);
    uint8_t *file = malloc((size_t)(rows * width) * sizeof *data + 256);
    char dict[128];
    for (int i = 0; i < rows * width; i++)
        data[i] = (float)(i / width * 1000 + i % width);
    snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, width);
    const char *path =
        write_file("wide.npy", file, make_npy(file, 1, dict, data, (size_t)(rows * width) * sizeof *data));
    free(data);
    free(file);
    return path;
}

/* A small row goes through the buffer, many at once; a large one is read part by part. */
static void cuts_columns(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        int width = large ? 5000 : 5;
        const char *path = numbered(4, width);
        struct npy_range ranges[] = {{.name = "features", .first = 1, .end = 4},
                                     {.name = "target", .first = width - 1, .end = width, .scalar = true}};
        struct budget *budget = new_budget();
        struct source *source;
        float x[3][3], y[3];
        assert_int_equal(npy_open(&source, budget, &path, 1, &(struct npy_cut){ranges, 2}, NULL), PLIM_OK);
        assert_string_equal(source->spec.column[0].name, "features");
        assert_int_equal(source->spec.column[0].shape.dim[0], 3);
        assert_int_equal(source->spec.column[1].shape.rank, 0);
        uint64_t takes = budget_usage(budget).takes;
        fault_arm(FAULT_READ, 1000, false, EIO);
        assert_int_equal(
            source->type->read(source, (int64_t[]){2, 3, 0}, 3, (void *[]){x, y}, (uint64_t[]){12, 4}, NULL), PLIM_OK);
        assert_int_equal(fault_calls(), large ? 6 : 2);
        fault_disarm();
        assert_int_equal(budget_usage(budget).takes, takes);
        for (int i = 0; i < 3; i++) {
            int row = (int[]){2, 3, 0}[i];
            assert_true(x[i][0] == row * 1000 + 1 && x[i][2] == row * 1000 + 3 && y[i] == row * 1000 + width - 1);
        }
        source_close(source);
        end_budget(budget);
        unlink(path);
    }
}

/* Element (r, c) = 10 r + c of 3 x 4, the rows fastest: whole, and cut into columns. */
static void reads_fortran_order(void **state)
{
    (void)state;
    uint8_t file[512];
    int16_t data[12], whole[3][4], x[3][2], y[3];
    for (int i = 0; i < 12; i++)
        data[i] = (int16_t)(i % 3 * 10 + i / 3);
    size_t bytes = make_npy(file, 1, "{'descr': '<i2', 'fortran_order': True, 'shape': (3, 4), }", data, sizeof data);
    const char *path = write_file("fortran.npy", file, bytes);
    struct npy_range ranges[] = {{.name = "x", .first = 2, .end = 4},
                                 {.name = "y", .first = 1, .end = 2, .scalar = true}};
    struct budget *budget = new_budget();
    struct source *source;
    int64_t index[] = {1, 2, 0};
    assert_int_equal(npy_open(&source, budget, &path, 1, NULL, NULL), PLIM_OK);
    assert_int_equal(source->type->read(source, index, 3, (void *[]){whole}, (uint64_t[]){8}, NULL), PLIM_OK);
    source_close(source);
    assert_int_equal(npy_open(&source, budget, &path, 1, &(struct npy_cut){ranges, 2}, NULL), PLIM_OK);
    assert_int_equal(source->type->read(source, index, 3, (void *[]){x, y}, (uint64_t[]){4, 2}, NULL), PLIM_OK);
    source_close(source);
    for (int i = 0; i < 3; i++) {
        for (int c = 0; c < 4; c++)
            assert_int_equal(whole[i][c], 10 * index[i] + c);
        assert_true(x[i][0] == 10 * index[i] + 2 && x[i][1] == 10 * index[i] + 3 && y[i] == 10 * index[i] + 1);
    }
    end_budget(budget);
    unlink(path);
}

static void refuses_bad_ranges(void **state)
{
    (void)state;
    static const struct npy_range bad[] = {{.first = -1, .end = 2},
                                           {.first = 2, .end = 2},
                                           {.first = 3, .end = 6},
                                           {.first = 0, .end = 2, .scalar = true}};
    const char *path = numbered(2, 5), *twice[] = {path, path};
    struct budget *budget = new_budget();
    struct source *source;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(npy_open(&source, budget, &path, 1, &(struct npy_cut){&bad[i], 1}, NULL), PLIM_BAD_JOB);
    struct npy_range many[MOST_COLUMNS + 1];
    for (int i = 0; i <= MOST_COLUMNS; i++)
        many[i] = (struct npy_range){.first = 0, .end = 1};
    assert_int_equal(npy_open(&source, budget, &path, 1, &(struct npy_cut){many, MOST_COLUMNS + 1}, NULL),
                     PLIM_BAD_JOB);
    assert_int_equal(npy_open(&source, budget, twice, 2, &(struct npy_cut){many, 1}, NULL), PLIM_BAD_JOB);
    end_budget(budget);
    unlink(path);
}

static void damaged_files(void **state)
{
    (void)state;
    uint8_t file[512];
    float data[6] = {0};
    size_t bytes = make_npy(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data, sizeof data);
    assert_true(sweep(try_npy, file, bytes) > 8 * 40);
    bytes = make_npy(file, 2, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", data, 4);
    assert_true(sweep(try_npy, file, bytes) > 8 * 40);
}

static void expect(const char *dict, size_t data_bytes, plim_status status, const char *where, const char *what)
{
    uint8_t file[1024];
    static const uint8_t zeros[512];
    size_t bytes = make_npy(file, 1, dict, zeros, data_bytes);
    const char *path = write_file("odd.npy", file, bytes);
    struct budget *budget = new_budget();
    plim_error error = {0};
    plim_status got = try_npy(budget, path, &error);
    if (got != status || !strstr(error.where, where) || !strstr(error.message, what))
        print_error("%s -> %s: %s\n", dict, error.where, error.message);
    assert_int_equal(got, status);
    assert_non_null(strstr(error.where, where));
    assert_non_null(strstr(error.message, what));
    assert_true(budget_usage(budget).peak <= bytes + SLACK_BYTES);
    if (strchr(what, '\''))
        assert_true(error.hint[0] != 0);
    end_budget(budget);
    unlink(path);
}

static void lying_files(void **state)
{
    (void)state;
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11, PLIM_BAD_DATA, "odd.npy: byte 139",
           "ends here");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 13, PLIM_BAD_DATA, "odd.npy: byte 140",
           "1 bytes more");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (8589934592,), }", 0, PLIM_BAD_DATA, "byte 128",
           "(8589934592");
    expect("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0, PLIM_BAD_DATA,
           "byte 128", "ends here");
    expect("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808,), }", 0, PLIM_BAD_DATA, "byte",
           "whole numbers");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1000000), }", 0, PLIM_BAD_DATA, "byte",
           "no elements");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, PLIM_BAD_DATA, "byte", "single number");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", 12, PLIM_BAD_DATA, "byte", "tuple");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", 12, PLIM_BAD_DATA, "byte", "whole numbers");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (1 3), }", 12, PLIM_BAD_DATA, "byte", "comma");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}", 12, PLIM_BAD_DATA, "byte", "unknown key");
    expect("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 12, PLIM_BAD_DATA, "byte",
           "twice");
    expect("{'descr': '<f4', 'shape': (3,)}", 12, PLIM_BAD_DATA, "byte", "lacks fortran_order");
    expect("{'descr': '<f4', 'fortran_order': 1, 'shape': (3,)}", 12, PLIM_BAD_DATA, "byte", "True nor False");
    expect("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} + x", 12, PLIM_BAD_DATA, "byte", "follows");
    expect("__import__('os')", 12, PLIM_BAD_DATA, "byte 10", "not a dict");
    expect("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }", 6, PLIM_BAD_DATA, "byte", "'<u2'");
    expect("{'descr': '<u8', 'fortran_order': False, 'shape': (3,), }", 24, PLIM_BAD_DATA, "byte", "'<u8'");
    expect("{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }", 12, PLIM_BAD_DATA, "byte", "'<u4'");
    expect("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", 24, PLIM_BAD_DATA, "byte", "'|O'");
    expect("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", 12, PLIM_BAD_DATA, "byte",
           "structured");
    expect("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1), }", 1, PLIM_BAD_DATA, "byte",
           "axes");
}

/* A header that is longer than the file, or than any that numpy writes for what we read: nothing is taken for it. */
static void long_headers(void **state)
{
    (void)state;
    static uint8_t file[100000] = "\x93NUMPY\2\0\377\377\1\0{";
    static const size_t sizes[] = {13, sizeof file - 1, sizeof file};
    for (int i = 0; i < 3; i++) {
        struct budget *budget = new_budget();
        plim_error error = {0};
        file[8] = (uint8_t)(i == 2 ? 0 : 255); /* 131,071 bytes; in the last one 65,536 */
        file[9] = (uint8_t)(i == 2 ? 0 : 255);
        const char *path = write_file("long.npy", file, sizes[i]);
        assert_int_equal(try_npy(budget, path, &error), PLIM_BAD_DATA);
        assert_non_null(strstr(error.message, i == 2 ? "at most 65535" : "ends inside its header of 131071"));
        assert_true(budget_usage(budget).peak < 40000); /* the source itself; of 65,536 no half */
        end_budget(budget);
        unlink(path);
    }
}

static void counts_must_agree(void **state)
{
    (void)state;
    uint8_t file[512];
    const char *paths[2];
    size_t bytes = make_npy(file, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "ab", 2);
    paths[0] = write_file("two.npy", file, bytes);
    bytes = make_npy(file, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "abc", 3);
    paths[1] = write_file("three.npy", file, bytes);
    struct budget *budget = new_budget();
    struct source *source;
    plim_error error;
    assert_int_equal(npy_open(&source, budget, paths, 2, NULL, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.where, "three.npy"));
    assert_non_null(strstr(error.message, "two.npy"));
    end_budget(budget);
    unlink(paths[0]);
    unlink(paths[1]);
}

/* A file that shrinks after it was opened: an error, not a crash. */
static void file_that_shrinks(void **state)
{
    (void)state;
    const char *path = numbered(4, 5);
    struct budget *budget = new_budget();
    struct source *source;
    float out[20];
    assert_int_equal(npy_open(&source, budget, &path, 1, NULL, NULL), PLIM_OK);
    assert_int_equal(truncate(path, 150), 0);
    assert_int_equal(source->type->read(source, (int64_t[]){0, 1, 2, 3}, 4, (void *[]){out}, (uint64_t[]){20}, NULL),
                     PLIM_BAD_DATA);
    source_close(source);
    end_budget(budget);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_type),     cmocka_unit_test(reads_side_by_side), cmocka_unit_test(cuts_columns),
        cmocka_unit_test(refuses_bad_ranges),  cmocka_unit_test(damaged_files),      cmocka_unit_test(lying_files),
        cmocka_unit_test(counts_must_agree),   cmocka_unit_test(file_that_shrinks),  cmocka_unit_test(long_headers),
        cmocka_unit_test(reads_fortran_order),
    };
    return cmocka_run_group_tests_name("npy", tests, make_folder, remove_folder);
}
