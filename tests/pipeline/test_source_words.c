/* test_source_words.c - sources of many files, by their words: lines, records of one size, CSV, tar, npz. What they
   give is what tf.data gave for the same files (tests/golden/sources/order.txt), from whichever element on. */
#include "source_text.h"

/* ---- lines ---- */

static void lines_in_order(void **state)
{
    (void)state;
    expect_golden("{text: '@/sources/lines-*.txt'}", "text");
    expect_golden("{text: {files: '@/sources/lines-{0..4}.txt', compression: none}}", "text");
    expect_golden("{text: {files: '@/sources/lines-*.txt', interleave: {cycle_length: 2}}}", "text-2-1");
    expect_golden("{text: {files: '@/sources/lines-*.txt', interleave: {cycle_length: 3, block_length: 2}}}",
                  "text-3-2");
    expect_golden("{text: {files: '@/sources/lines-*.txt', interleave: {cycle_length: 9, block_length: 4}}}",
                  "text-5-4");
    expect_golden("{text: {files: '@/sources/lines-*.txt', interleave: {cycle_length: 9, block_length: 4}, "
                  "buffer_size: 256}}",
                  "text-5-4");
}

/* Another order of files each epoch, the same each time it is asked for, and every line once. */
static void files_shuffled(void **state)
{
    static struct paper first, again, other;
    struct budget *budget = open_budget();
    struct runner runner;
    (void)state;
    asked = "{text: {files: '@/sources/lines-*.txt', shuffle_files: true}}";
    struct dataset *dataset = make(budget);
    run_open(&runner, dataset, budget, 16);
    int differ = 0;
    for (uint64_t epoch = 0; epoch < 6; epoch++) {
        run_epoch(&first, &runner, epoch, 0);
        run_epoch(&again, &runner, epoch, 0);
        run_epoch(&other, &runner, epoch + 1, 0);
        assert_string_equal(first.text, again.text);
        assert_int_equal(first.length, other.length);
        differ += strcmp(first.text, other.text) != 0;
    }
    assert_true(differ > 3);
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
}

static void lines_that_are_wrong(void **state)
{
    static struct paper paper;
    plim_error error;
    char text[8192];
    (void)state;
    char long_line[700];
    memset(long_line, 'x', sizeof long_line);
    memcpy(long_line, "a\nb\n", 4);
    memcpy(long_line + 600, "\nlast", 5);
    const char *path = write_bytes("long.txt", long_line, 605);
    snprintf(text, sizeof text, "{text: {files: '%s', buffer_size: 256}}", path);
    run_to_error(&paper, &error, text);
    assert_string_equal(paper.text, " 'a' 'b'");
    assert_non_null(strstr(error.message, "line 2 is 597 bytes long"));
    snprintf(text, sizeof text, "{text: {files: '%s', buffer_size: 256}, pipeline: [ignore_errors]}", path);
    run_to_error(&paper, &error, text);
    assert_string_equal(paper.text, " 'a' 'b' 'last'");
    unlink(path);
    refused("{text: {}}", PLIM_BAD_JOB, "'files:' is missing");
    refused("{text: {files: '@/sources/lines-*.txt', compression: lz4}}", PLIM_BAD_JOB, "gzip or zlib");
    refused("{text: {files: '@/sources/lines-*.txt', buffer_size: 3}}", PLIM_BAD_JOB, "buffer_size");
    refused("{text: {files: '@/sources/lines-*.txt', interleave: {cycle_length: 65}}}", PLIM_BAD_JOB, "1 to 64");
    refused("{text: '@/sources/nothing*'}", PLIM_BAD_DATA, "");
    refused("{text: {files: '@/sources/lines-0.txt', cycle: 3}}", PLIM_BAD_JOB, "cycle");
}

/* A gzip file that hides among raw ones is named, and passed over. */
static void packed_among_raw(void **state)
{
    static struct paper paper;
    plim_error error;
    (void)state;
    run_to_error(&paper, &error,
                 "{text: ['@/sources/lines-1.txt', '@/sources/records.bin.gz', '@/sources/lines-4.txt']}");
    assert_string_equal(paper.text, " '1.0'");
    assert_non_null(strstr(error.message, "gzip"));
    assert_non_null(strstr(error.where, "records.bin.gz"));
    run_to_error(&paper, &error,
                 "{text: ['@/sources/lines-1.txt', '@/sources/records.bin.gz', '@/sources/lines-4.txt'], "
                 "pipeline: [ignore_errors]}");
    assert_string_equal(paper.text, " '1.0' '4.0' '4.1' '4.2'");
}

/* A raw file behind a gzip file is named as one behind raw files is, in all sources over files that may be packed. */
static void raw_among_packed(void **state)
{
    static struct paper paper;
    static const char *const jobs[] = {
        "{text: ['@/sources/records.bin.gz', '@/sources/lines-1.txt']}",
        "{text: {files: ['@/sources/records.bin.gz', '@/sources/lines-1.txt'], interleave: {cycle_length: 2}}}",
        ("{fixed_length: {files: ['@/sources/records.bin.gz', '@/sources/lines-1.txt'], record_bytes: 4, "
         "header_bytes: 4, footer_bytes: 2}}"),
        "{tar: {files: ['@/containers/set.tar.gz', '@/sources/lines-1.txt'], columns: {cls: {name: y, default: -1}}}}",
    };
    static const struct {
        const char *job, *message;
    } stated[] = {
        {"{text: {files: '@/sources/lines-1.txt', compression: gzip}}", "not a gzip file, but compression is gzip"},
        {"{text: {files: '@/sources/lines-1.txt', compression: zlib}}", "not a zlib file, but compression is zlib"},
        {"{text: {files: '@/sources/records.bin.gz', compression: none}}", "a gzip file, but compression is none"},
    };
    plim_error error;
    (void)state;
    for (size_t i = 0; i < COUNT(jobs); i++) {
        run_to_error(&paper, &error, jobs[i]);
        assert_string_equal(error.message, "not a gzip file, among files that are");
        assert_string_equal(error.hint, "all files of a source are packed the same way");
        assert_non_null(strstr(error.where, "lines-1.txt: byte 0"));
    }
    for (size_t i = 0; i < COUNT(stated); i++) {
        run_to_error(&paper, &error, stated[i].job);
        assert_string_equal(error.message, stated[i].message);
        assert_string_equal(error.hint, "compression: auto");
    }
}

/* ---- records of one size ---- */

#define FIXED "record_bytes: 4, header_bytes: 4, footer_bytes: 2"

static void fixed_records(void **state)
{
    (void)state;
    expect_golden("{fixed_length: {files: '@/sources/records-*.bin', " FIXED "}, pipeline: [map: [decode_raw: uint8]]}",
                  "fixed-u8");
    expect_golden("{fixed_length: {files: '@/sources/records-*.bin', " FIXED "}, "
                  "pipeline: [map: [decode_raw: {out_type: uint8, shape: [4]}]]}",
                  "fixed-u8");
    expect_golden("{fixed_length: {files: '@/sources/records.bin.gz', " FIXED
                  "}, pipeline: [map: [decode_raw: uint8]]}",
                  "fixed-gzip");
    expect_golden("{fixed_length: {files: '@/sources/records-*.bin', " FIXED ", interleave: {cycle_length: 1}}, "
                  "pipeline: [map: {record: [decode_raw: {out_type: int16, little_endian: false}]}]}",
                  "fixed-i16-big");
    expect("{fixed_length: {files: '@/sources/records-*.bin', " FIXED ", interleave: {cycle_length: 2}}, "
           "pipeline: [map: [decode_raw: {out_type: uint8, offset: 3, shape: []}]]}",
           "[3, 103, 7, 107, 11, 111, 15, 19, 23]");
    refused("{fixed_length: {files: '@/sources/records-*.bin', record_bytes: 5}}", PLIM_BAD_DATA,
            "do not make its size");
    refused("{fixed_length: {files: '@/sources/records-*.bin'}}", PLIM_BAD_JOB, "record_bytes");
    refused("{fixed_length: {files: '@/sources/records-*.bin', " FIXED "}, pipeline: [map: [decode_raw: string]]}",
            PLIM_BAD_JOB, "type of numbers");
    static struct paper paper;
    plim_error error;
    run_to_error(&paper, &error,
                 "{fixed_length: {files: '@/sources/records-*.bin', " FIXED "}, "
                 "pipeline: [map: [decode_raw: {out_type: uint8, shape: [3]}]]}");
    assert_non_null(strstr(error.message, "4 bytes; the shape takes 3"));
}

/* Records by number: exactly shuffled, each once. */
static void fixed_records_by_index(void **state)
{
    struct budget *budget = open_budget();
    struct batch *batch;
    bool seen[256] = {false};
    (void)state;
    asked = "{fixed_length: {files: '@/sources/records-*.bin', " FIXED "}, "
            "pipeline: [shuffle: exact, map: [decode_raw: {out_type: uint8, shape: [4]}], batch: 2]}";
    struct dataset *dataset = make(budget);
    assert_int_equal(dataset_cardinality(dataset), 9);
    struct iterator *iterator = open_iterator(dataset, budget, 2, 0, 0);
    for (int i = 0; i < 9; i += 2) {
        assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
        for (int64_t r = 0; r < batch->count; r++) {
            uint8_t first = ((uint8_t *)batch->column[0])[4 * r];
            assert_false(seen[first]);
            seen[first] = true;
            assert_int_equal(((uint8_t *)batch->column[0])[4 * r + 3], first + 3);
        }
    }
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_null(batch);
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

/* ---- CSV ---- */

static void csv_rows(void **state)
{
    (void)state;
    expect_golden("{csv: '@/sources/flowers-*.csv'}", "csv");
    expect_golden("{csv: {files: '@/sources/flowers-*.csv', na_value: NA}}", "csv-na");
    expect_golden(
        "{csv: {files: '@/sources/flowers-*.csv', select_columns: [b, label], column_defaults: [-1.5, int64]}}",
        "csv-select");
    expect_golden("{csv: {files: '@/sources/flowers-*.csv', columns: {u: b, v: label}, types: {label: int64}, "
                  "column_defaults: {b: -1.5}}}",
                  "csv-select");
    expect_golden("{csv: {files: '@/sources/plain.csv', header: false, column_names: [p, q, r], field_delim: ';'}}",
                  "csv-plain");
    expect_golden("{csv: {files: '@/sources/plain.csv', header: false, delimiter: ';'}}", "csv-plain");
    expect("{csv: {files: '@/sources/flowers-*.csv', interleave: {cycle_length: 2}, columns: [a]}}", "[1, 4, 2, 5, 3]");
    expect("{csv: {files: '@/sources/flowers-*.csv', label: a, columns: [label, a]}}",
           "[(0, 1), (1, 2), (2, 3), (1, 4), (0, 5)]");
}

static void csv_vectors(void **state)
{
    (void)state;
    expect("{csv: {files: '@/sources/flowers-*.csv', columns: {x: [a, b], y: label}}}",
           "[([1, 2.5], 0), ([2, 0], 1), ([3, -1000], 2), ([4, 0.125], 1), ([5, 7], 0)]");
    expect("{csv: {files: '@/sources/flowers-*.csv', columns: {x: [label, a..b], name: name}, interleave: auto}}",
           "[([0, 1, 2.5], 'rose'), ([1, 4, 0.125], 'tulip'), ([1, 2, 0], 'a, b'), ([0, 5, 7], ''), ([2, 3, -1000], "
           "'NA')]");
    expect(
        "{csv: {files: '@/sources/flowers-*.csv', columns: {x: '*', n: name}, label: label, column_defaults: {b: 9}}}",
        "[([1, 2.5], 'rose', 0), ([2, 9], 'a, b', 1), ([3, -1000], 'NA', 2), ([4, 0.125], 'tulip', 1), ([5, 7], '', "
        "0)]");
    refused("{csv: {files: '@/sources/flowers-*.csv', columns: {x: [a, name]}}}", PLIM_BAD_DATA, "holds text");
    refused("{csv: {files: '@/sources/flowers-*.csv', columns: {x: [a, a..b]}}}", PLIM_BAD_JOB, "taken twice");
    refused("{csv: {files: '@/sources/flowers-*.csv', columns: {x: [a], y: labl}}}", PLIM_BAD_JOB, "label");
    refused("{csv: {files: '@/sources/flowers-*.csv', columns: {x: []}}}", PLIM_BAD_JOB, "list");
    refused("{csv: {files: '@/sources/flowers-*.csv', types: {a: uint8}}}", PLIM_BAD_JOB, "casts");
    refused("{csv: {files: '@/sources/flowers-*.csv', types: [int32]}}", PLIM_BAD_JOB, "as many");
    refused("{csv: {files: '@/sources/flowers-*.csv', delimiter: ab}}", PLIM_BAD_JOB, "one character");
    refused("{csv: ['@/sources/flowers-0.csv', '@/sources/plain.csv']}", PLIM_BAD_DATA, "header");
}

/* Bad rows are named by file, record and byte; going on gives the others. */
static void csv_bad_rows(void **state)
{
    static struct paper paper;
    plim_error error;
    char text[16384];
    static const char data[] = "a,b\n1,2\nx,3\n4\n5,6\n";
    (void)state;
    const char *path = write_bytes("bad.csv", data, sizeof data - 1);
    snprintf(text, sizeof text, "{csv: {files: '%s', types: [int32, int32]}}", path);
    run_to_error(&paper, &error, text);
    assert_string_equal(paper.text, " (1, 2)");
    assert_non_null(strstr(error.message, "record 1"));
    assert_non_null(strstr(error.where, "bad.csv: byte 8"));
    for (int cycle = 1; cycle < 3; cycle++) {
        snprintf(text, sizeof text,
                 "{csv: {files: ['%s', '%s'], types: [int32, int32], interleave: {cycle_length: %d}}, "
                 "pipeline: [ignore_errors]}",
                 path, path, cycle);
        run_to_error(&paper, &error, text);
        assert_string_equal(paper.text, cycle == 1 ? " (1, 2) (5, 6) (1, 2) (5, 6)" : " (1, 2) (1, 2) (5, 6) (5, 6)");
    }
    unlink(path);
}

/* 784 pixels in a row, as people keep MNIST. */
static void csv_of_many_columns(void **state)
{
    static char data[65536];
    size_t at = 0;
    char text[8192];
    struct budget *budget = open_budget();
    struct batch *batch;
    (void)state;
    for (int row = -1; row < 5; row++) {
        at += (size_t)sprintf(data + at, row < 0 ? "label" : "%d", row);
        for (int c = 0; c < 784; c++)
            at += (size_t)sprintf(data + at, row < 0 ? ",p%d" : ",%d", row < 0 ? c : (row * 3 + c) % 256);
        at += (size_t)sprintf(data + at, "\n");
    }
    const char *path = write_bytes("wide.csv", data, at);
    snprintf(text, sizeof text, "{csv: {files: '%s', columns: {x: [p0..p783], y: label}}, pipeline: [batch: 5]}", path);
    asked = text;
    struct dataset *dataset = make(budget);
    struct iterator *iterator = open_iterator(dataset, budget, 1, 0, 0);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    assert_int_equal(batch->count, 5);
    for (int row = 0; row < 5; row++) {
        assert_int_equal(((int32_t *)batch->column[1])[row], row);
        for (int c = 0; c < 784; c++)
            assert_true(((float *)batch->column[0])[row * 784 + c] == (float)((row * 3 + c) % 256));
    }
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
    snprintf(text, sizeof text, "{csv: '%s'}", path);
    refused(text, PLIM_BAD_JOB, "gather them");
    unlink(path);
}

/* ---- tar ---- */

#define SHARDS "files: '@/sources/shard-{000000..000002}.tar'"

static void tar_samples(void **state)
{
    (void)state;
    expect("{tar: {" SHARDS ", columns: {cls: y}}}", "[0, 1, 2, 10, 11, 20]");
    expect("{tar: {" SHARDS ", columns: {cls: y}, interleave: {cycle_length: 2}}}", "[0, 10, 1, 11, 2, 20]");
    expect("{tar: {" SHARDS
           ", columns: {txt: {name: t, default: none}, vec.npy: {name: x, dtype: float32, shape: [3]}}}}",
           "[('text 0', [0, 1, 2]), ('text 1', [1, 2, 3]), ('text 2', [2, 3, 4]), ('text 0', [10, 11, 12]), "
           "('none', [11, 12, 13]), ('text 0', [20, 21, 22])]");
    expect("{tar: {" SHARDS
           ", columns: {jpg;png: image, cls: label}}, pipeline: [take: 2, map: {image: [decode_image]}]}",
           "[([[[0], [0]], [[0], [0]]], 0), ([[[10], [10]], [[10], [10]]], 1)]");
    expect("{tar: '@/sources/shard-000002.tar', pipeline: [map: {png: [decode_image], vec.npy: [decode_raw: {out_type: "
           "float32, offset: 128, shape: [3]}]}]}",
           "[([[[100], [100]], [[100], [100]]], 20, [20, 21, 22], 'text 0')]");
}

static void tar_that_is_wrong(void **state)
{
    static struct paper paper;
    plim_error error;
    (void)state;
    run_to_error(&paper, &error, "{tar: {" SHARDS ", columns: {txt: t, cls: y}}}");
    assert_string_equal(paper.text, " ('text 0', 0) ('text 1', 1) ('text 2', 2) ('text 0', 10)");
    assert_non_null(strstr(error.message, "sample '11': .txt is missing"));
    assert_non_null(strstr(error.where, "shard-000001.tar: byte"));
    run_to_error(&paper, &error, "{tar: {" SHARDS ", columns: {txt: t, cls: y}}, pipeline: [ignore_errors, skip: 3]}");
    assert_string_equal(paper.text, " ('text 0', 10) ('text 0', 20)");
    run_to_error(&paper, &error, "{tar: {" SHARDS ", columns: {vec.npy: {name: x, dtype: int32, shape: [3]}}}}");
    assert_non_null(strstr(error.message, "is float32 (3,); asked for was int32 (3,)"));
    run_to_error(&paper, &error, "{tar: {" SHARDS ", columns: {txt: {name: t, dtype: int64}}}}");
    assert_non_null(strstr(error.message, "no whole number"));
    refused("{tar: {" SHARDS ", columns: {npy: {name: x, dtype: float32}}}}", PLIM_BAD_JOB, "a type and a shape");
    refused("{tar: {" SHARDS ", columns: {cls: {default: abc}}}}", PLIM_BAD_JOB, "whole number");
    refused("{tar: {" SHARDS ", columns: {cls: y, txt: y}}}", PLIM_BAD_JOB, "second column");
}

static void tar_packed(void **state)
{
    (void)state;
    expect("{tar: {files: ['@/containers/set.tar.gz'], columns: {cls: {name: y, default: -1}}}}",
           "[-1, 0, 11, 22, -1, -1]");
    refused(
        "{tar: {files: ['@/containers/set.tar.gz', '@/sources/lines-0.txt'], columns: {jpg: x}, compression: zlib}, "
        "pipeline: [map: [decode_raw: no]]}",
        PLIM_BAD_JOB, "type");
}

/* ---- npz ---- */

static void npz_arrays(void **state)
{
    (void)state;
    expect("{npz: {file: '@/containers/arrays.npz', columns: [y, x]}}",
           "[(7, [0, 1.5, 3]), (-8, [4.5, 6, 7.5]), (9, [9, 10.5, 12]), (1.099512e+12, [13.5, 15, 16.5])]");
    expect("{npz: {file: '@/containers/arrays.npz', columns: {a: b, c: f}}, pipeline: [skip: 2]}",
           "[([4, 5], [[12, 13], [14, 15], [16, 17]]), ([6, 7], [[18, 19], [20, 21], [22, 23]])]");
    refused("{npz: {file: '@/containers/arrays.npz', columns: [z]}}", PLIM_BAD_DATA, "z.npy");
    refused("{npz: {file: '@/containers/arrays.npz', columns: [x, x]}}", PLIM_BAD_JOB, "second column");
    refused("{npz: {columns: [x, x]}}", PLIM_BAD_JOB, "'file:' is missing");
    refused("{npz: '@/sources/plain.csv'}", PLIM_BAD_DATA, "");
}

/* Deflated arrays go to the disk once; what that takes was told. */
static void npz_unpacked(void **state)
{
    struct budget *budget = open_budget();
    struct batch *batch;
    plim_error error = {0};
    uint64_t cost[TAG_COUNT] = {0}, disk = 0;
    (void)state;
    asked = "{npz: '@/containers/arrays_packed.npz', pipeline: [shuffle: exact, batch: 4]}";
    struct dataset *dataset = make(budget);
    dataset_cost(cost, &disk, dataset, GRANT(1));
    assert_true(disk >= 4 * (12 + 8 + 48) && disk < 4096);
    struct iterator *iterator;
    struct scratch_disk none = {.folder = ".", .limit_bytes = disk - 1};
    assert_int_equal(iterator_open(&iterator, dataset, &(struct data_run){budget, &none, SEED}, GRANT(1), NULL, &error),
                     PLIM_OVER_DISK);
    assert_int_equal(none.used_bytes, 0);
    struct scratch_disk scratch = {.folder = ".", .limit_bytes = disk};
    struct budget_usage before = budget_usage(budget);
    if (iterator_open(&iterator, dataset, &(struct data_run){budget, &scratch, SEED}, GRANT(1), NULL, &error) !=
        PLIM_OK)
        fail_msg("%s", error.message);
    assert_int_equal(scratch.used_bytes, disk);
    assert_true(budget_usage(budget).peak_by_tag[TAG_FORMATS] - before.now_by_tag[TAG_FORMATS] <= cost[TAG_FORMATS]);
    assert_int_equal(iterator_next(&batch, iterator, NULL), PLIM_OK);
    for (int i = 0; i < 4; i++) {
        int64_t y = ((int64_t *)batch->column[1])[i];
        int row = y == 7 ? 0 : y == -8 ? 1 : y == 9 ? 2 : 3;
        assert_true(((float *)batch->column[0])[3 * i + 1] == 1.5f * (float)(3 * row + 1));
        for (int k = 0; k < 6; k++)
            assert_true(((double *)batch->column[2])[6 * i + k] == 6 * row + k);
    }
    iterator_close(iterator);
    dataset_unref(dataset);
    close_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_in_order),
        cmocka_unit_test(files_shuffled),
        cmocka_unit_test(lines_that_are_wrong),
        cmocka_unit_test(packed_among_raw),
        cmocka_unit_test(raw_among_packed),
        cmocka_unit_test(fixed_records),
        cmocka_unit_test(fixed_records_by_index),
        cmocka_unit_test(csv_rows),
        cmocka_unit_test(csv_vectors),
        cmocka_unit_test(csv_bad_rows),
        cmocka_unit_test(csv_of_many_columns),
        cmocka_unit_test(tar_samples),
        cmocka_unit_test(tar_that_is_wrong),
        cmocka_unit_test(tar_packed),
        cmocka_unit_test(npz_arrays),
        cmocka_unit_test(npz_unpacked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
