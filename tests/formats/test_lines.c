/* test_lines.c - lines of text and records of one size, against TensorFlow's. */
#include "golden_files.h"

#include <errno.h>
#include <zlib.h>

#include "base/numbers/count.h"
#include "formats/tables/lines.h"

enum { ROOM_BYTES = 4096 };

/* All lines of a file, asked for `most` at a time, as "61;62;-"; "none" without any. */
static plim_status all_lines(char *out, size_t capacity, struct budget *budget, const char *path, size_t buffer,
                             int64_t most, uint64_t value_bytes, plim_error *error)
{
    static uint8_t bytes[ROOM_BYTES];
    struct lines *lines;
    struct string found[8];
    struct value_buffer values;
    int64_t got = 0;
    value_buffer_init(&values, bytes, value_bytes);
    TRY(lines_open(&lines, budget, path, COMPRESSION_AUTO, buffer, error));
    uint64_t takes = budget_usage(budget).takes;
    plim_status status;
    snprintf(out, capacity, "none");
    while (!(status = lines_read(&got, lines, found, most, value_bytes ? &values : NULL, error)) &&
           (got || (value_bytes && values.wanted))) {
        assert_true(got || values.used); /* every line of these tests fits an empty value buffer */
        for (int64_t i = 0; i < got; i++) {
            if (strcmp(out, "none") == 0)
                out[0] = 0;
            else
                snprintf(out + strlen(out), capacity - strlen(out), ";");
            add_hex(out, capacity, found[i].data, found[i].bytes);
        }
        value_buffer_empty(&values);
    }
    assert_true(budget_usage(budget).takes <= takes + 1); /* zlib takes its window with the first byte */
    lines_close(lines);
    return status;
}

/* As it is, as gzip, as zlib. */
static size_t packed(uint8_t *out, const uint8_t *data, size_t bytes, int how)
{
    if (how == 0) {
        memcpy(out, data, bytes);
        return bytes;
    }
    z_stream stream = {.next_in = (uint8_t *)data, .avail_in = (unsigned)bytes, .next_out = out, .avail_out = 4096};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, how == 1 ? 31 : 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return 4096 - stream.avail_out;
}

static void lines_as_tensorflow_reads_them(void **state)
{
    (void)state;
    size_t bytes;
    char *text = load_golden("lines.txt", &bytes), *line, *rest = text;
    int cases = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        char *hex = strsep(&line, " "), got[1024];
        uint8_t data[1024], file[4096];
        size_t length = unhex(data, hex);
        for (int variant = 0; variant < 12; variant++, cases++) {
            struct budget *budget = new_budget();
            size_t packed_bytes = packed(file, data, length, variant % 3);
            const char *path = write_file("lines", file, packed_bytes);
            size_t buffer = variant < 6 ? 0 : 51;
            assert_int_equal(all_lines(got, sizeof got, budget, path, buffer, variant % 2 ? 1 : 8,
                                       variant >= 9 ? 0 : (variant >= 3 ? 60 : ROOM_BYTES), NULL),
                             PLIM_OK);
            assert_string_equal(got, line);
            end_budget(budget);
            unlink(path);
        }
    }
    assert_true(cases > 100);
    free(text);
}

/* Text may look like zlib for two bytes. */
static void text_that_begins_like_zlib(void **state)
{
    (void)state;
    static const char *const texts[] = {"x^2 + y^2\n", "x\x01", "x^",
                                        "x\xda\x80 and more text than a stream would be\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct budget *budget = new_budget();
        char got[256], want[256] = "";
        const char *path = write_file("lines", texts[i], strlen(texts[i]));
        assert_int_equal(all_lines(got, sizeof got, budget, path, 0, 8, ROOM_BYTES, NULL), PLIM_OK);
        add_hex(want, sizeof want, texts[i], strcspn(texts[i], "\n"));
        assert_string_equal(got, want);
        end_budget(budget);
        unlink(path);
    }
}

/* A line that is too long is named, with its size, and passed over. */
static void long_lines(void **state)
{
    (void)state;
    char file[300];
    memset(file, 'x', sizeof file);
    memcpy(file, "one\n", 4);
    memcpy(file + 200, "\ntwo\n", 5);
    for (int how = 0; how < 3; how++) {
        uint8_t data[4096];
        struct budget *budget = new_budget();
        struct lines *lines;
        struct string out[4];
        int64_t got;
        plim_error error = {0};
        const char *path = write_file("long", data, packed(data, (uint8_t *)file, sizeof file, how));
        assert_int_equal(lines_open(&lines, budget, path, COMPRESSION_AUTO, 64, NULL), PLIM_OK);
        assert_int_equal(lines_read(&got, lines, out, 4, NULL, NULL), PLIM_OK);
        assert_int_equal(got, 1);
        assert_int_equal(lines_read(&got, lines, out, 4, NULL, &error), PLIM_BAD_DATA);
        assert_non_null(strstr(error.where, "long: byte 4"));
        assert_non_null(strstr(error.message, "line 1 is 197 bytes long"));
        assert_int_equal(lines_read(&got, lines, out, 4, NULL, NULL), PLIM_OK);
        assert_int_equal(got, 1);
        assert_memory_equal(out[0].data, "two", 3);
        assert_int_equal(lines_read(&got, lines, out, 4, NULL, &error), PLIM_BAD_DATA);
        assert_non_null(strstr(error.where, "long: byte 205"));
        assert_non_null(strstr(error.message, "line 3 is"));
        assert_int_equal(lines_read(&got, lines, out, 4, NULL, NULL), PLIM_OK);
        assert_int_equal(got, 0);
        lines_close(lines);
        end_budget(budget);
        unlink(path);
    }
}

/* A gzip file that is cut: what there is, an error, the end. */
static void packed_and_cut(void **state)
{
    (void)state;
    char text[3001];
    uint8_t data[4096];
    for (int i = 0; i < 300; i++)
        snprintf(text + i * 10, 11, "%09d\n", i * 7919);
    size_t bytes = packed(data, (uint8_t *)text, 3000, 1);
    struct budget *budget = new_budget();
    struct lines *lines;
    struct string out[400];
    int64_t got;
    plim_error error = {0};
    const char *path = write_file("cut.gz", data, bytes - bytes / 3);
    assert_int_equal(lines_open(&lines, budget, path, COMPRESSION_AUTO, 0, NULL), PLIM_OK);
    assert_int_equal(lines_read(&got, lines, out, 400, NULL, NULL), PLIM_OK);
    assert_true(got > 100 && got < 300);
    assert_memory_equal(out[100].data, "000791900", 9);
    assert_int_equal(lines_read(&got, lines, out, 400, NULL, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.where, "cut.gz: byte"));
    assert_int_equal(lines_read(&got, lines, out, 400, NULL, NULL), PLIM_OK);
    assert_int_equal(got, 0);
    lines_close(lines);
    end_budget(budget);
    unlink(path);
}

/* What does not fit the value buffer comes again; one line larger than the value buffer is the caller's to name. */
static void full_rooms(void **state)
{
    (void)state;
    uint8_t bytes[8];
    struct value_buffer values;
    struct budget *budget = new_budget();
    struct lines *lines;
    struct string out[8];
    int64_t got;
    const char *path = write_file("l", "abc\ndef\nghi\n123456789\nx\n", 24);
    value_buffer_init(&values, bytes, sizeof bytes);
    assert_int_equal(lines_open(&lines, budget, path, COMPRESSION_NONE, 0, NULL), PLIM_OK);
    assert_int_equal(lines_read(&got, lines, out, 8, &values, NULL), PLIM_OK);
    assert_int_equal(got, 2);
    assert_int_equal(values.wanted, 9);
    value_buffer_empty(&values);
    assert_int_equal(lines_read(&got, lines, out, 8, &values, NULL), PLIM_OK);
    assert_int_equal(got, 1);
    assert_memory_equal(out[0].data, "ghi", 3);
    value_buffer_empty(&values);
    assert_int_equal(lines_read(&got, lines, out, 8, &values, NULL), PLIM_OK);
    assert_int_equal(got, 0);
    assert_int_equal(values.wanted, 9);
    lines_close(lines);
    end_budget(budget);
    unlink(path);
}

static void faults_come_through(void **state)
{
    (void)state;
    static const unsigned sites[] = {FAULT_OPEN, FAULT_READ, FAULT_STAT, FAULT_ALLOCATE};
    uint8_t data[4096];
    for (int how = 0; how < 2; how++)
        for (size_t s = 0; s < COUNT(sites); s++)
            for (int nth = 1;; nth++) {
                struct budget *budget = new_budget();
                char got[256];
                const char *path = write_file("l", data, packed(data, (const uint8_t *)"a\nb\n", 4, how));
                fault_arm(sites[s], nth, true, sites[s] == FAULT_ALLOCATE ? ENOMEM : EIO);
                plim_status status = all_lines(got, sizeof got, budget, path, 0, 8, ROOM_BYTES, NULL);
                bool reached = fault_disarm();
                assert_int_equal(status, !reached ? PLIM_OK : sites[s] == FAULT_ALLOCATE ? PLIM_NO_MEMORY : PLIM_IO);
                end_budget(budget);
                unlink(path);
                if (!reached)
                    break;
            }
}

/* "aa;bb" in hexadecimal, or what is wrong. */
static plim_status all_records(char *out, size_t capacity, const uint8_t *data, size_t bytes, int how,
                               struct fixed_layout layout, plim_error *error)
{
    uint8_t file[4096], rows[3 * 16];
    int64_t got = 0;
    struct fixed_records *records;
    struct budget *budget = new_budget();
    const char *path = write_file("fixed", file, packed(file, data, bytes, how));
    out[0] = 0;
    plim_status status = fixed_records_open(&records, budget, path, &layout, COMPRESSION_AUTO, error);
    if (status == PLIM_OK) {
        assert_true((fixed_records_count(records) < 0) == (how > 0));
        while (!(status = fixed_records_next(&got, records, rows, 3, error)) && got)
            for (int64_t i = 0; i < got; i++) {
                snprintf(out + strlen(out), capacity - strlen(out), "%s", out[0] ? ";" : "");
                add_hex(out, capacity, rows + (uint64_t)i * layout.record_bytes, layout.record_bytes);
            }
        fixed_records_close(records);
    }
    end_budget(budget);
    unlink(path);
    return status;
}

static void records_of_one_size(void **state)
{
    (void)state;
    char out[256];
    plim_error error = {0};
    for (int how = 0; how < 3; how++) {
        struct fixed_layout layout = {.record_bytes = 2, .header_bytes = 2, .footer_bytes = 1};
        assert_int_equal(all_records(out, sizeof out, (const uint8_t *)"HHaabbccddF", 11, how, layout, NULL), PLIM_OK);
        assert_string_equal(out, "6161;6262;6363;6464");
        assert_int_equal(all_records(out, sizeof out, (const uint8_t *)"HHF", 3, how, layout, NULL), PLIM_OK);
        assert_string_equal(out, "");
        assert_int_equal(all_records(out, sizeof out, (const uint8_t *)"HHaabF", 6, how, layout, &error),
                         PLIM_BAD_DATA);
        assert_non_null(strstr(error.where, "fixed: byte 6"));
        assert_int_equal(all_records(out, sizeof out, (const uint8_t *)"H", 1, how, layout, NULL), PLIM_BAD_DATA);
        /* A footer longer than a record. */
        layout.footer_bytes = 5;
        assert_int_equal(all_records(out, sizeof out, (const uint8_t *)"HHaabbccFOOTR", 13, how, layout, NULL),
                         PLIM_OK);
        assert_string_equal(out, "6161;6262;6363");
        assert_int_equal(all_records(out, sizeof out, (const uint8_t *)"HHaabbcFOOTR", 12, how, layout, NULL),
                         PLIM_BAD_DATA);
        layout.footer_bytes = 0;
        assert_int_equal(all_records(out, sizeof out, (const uint8_t *)"HHaabb", 6, how, layout, NULL), PLIM_OK);
        assert_string_equal(out, "6161;6262");
        layout.record_bytes = 0;
        assert_int_equal(all_records(out, sizeof out, (const uint8_t *)"HHaabb", 6, how, layout, NULL), PLIM_BAD_JOB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_as_tensorflow_reads_them),
        cmocka_unit_test(text_that_begins_like_zlib),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(full_rooms),
        cmocka_unit_test(packed_and_cut),
        cmocka_unit_test(faults_come_through),
        cmocka_unit_test(records_of_one_size),
    };
    return cmocka_run_group_tests_name("lines", tests, make_folder, remove_folder);
}
