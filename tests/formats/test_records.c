/* test_records.c - TFRecord files: TensorFlow's own, good ones, damaged ones, lying ones; their writer and index. */
#include "format_files.h"

#include <errno.h>
#include <zlib.h>

#include "base/numbers/count.h"
#include "base/threads/workers.h"
#include "formats/records/record_frame.h"
#include "formats/records/record_index.h"
#include "formats/records/record_writer.h"
#include "formats/records/tfrecord_reader.h"
#include "formats/sources/record_source.h"

#define MOST ((int64_t)1 << 40)

static const char *golden(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/%s", name);
    return path;
}

static uint32_t next_random(uint32_t *seed)
{
    return (*seed = *seed * 1664525 + 1013904223) >> 8;
}

/* ---- files of known records ------------------------------------------------- */

/* Record i of a made file: its bytes are a function of i. */
static size_t made_size(int64_t i, size_t spread)
{
    uint32_t seed = (uint32_t)i * 2654435761u + 7;
    return spread ? next_random(&seed) % spread : 20;
}

static void made_bytes(uint8_t *out, int64_t i, size_t bytes)
{
    uint32_t seed = (uint32_t)i + 1;
    for (size_t b = 0; b < bytes; b++)
        out[b] = (uint8_t)next_random(&seed);
}

static bool is_made(const struct string *record, int64_t i, size_t spread)
{
    static uint8_t expected[1 << 20];
    size_t bytes = made_size(i, spread);
    made_bytes(expected, i, bytes);
    return record->bytes == bytes && memcmp(record->data, expected, bytes) == 0;
}

static const char *make_records(const char *name, int64_t count, size_t spread, enum record_packing packing)
{
    static uint8_t data[1 << 20];
    const char *path = path_of(name);
    struct budget *budget = new_budget();
    struct record_writer *writer;
    plim_error error;
    assert_int_equal(record_writer_open(&writer, budget, path, packing, &error), PLIM_OK);
    for (int64_t i = 0; i < count; i++) {
        size_t bytes = made_size(i, spread);
        made_bytes(data, i, bytes);
        assert_int_equal(record_writer_add(writer, data, bytes, &error), PLIM_OK);
    }
    assert_int_equal(record_writer_count(writer), count);
    assert_int_equal(record_writer_finish(writer, &error), PLIM_OK);
    assert_true(budget_usage(budget).peak_by_tag[TAG_FORMATS] <= record_writer_cost(packing));
    record_writer_close(writer);
    end_budget(budget);
    return path;
}

static size_t load(uint8_t *out, size_t most, const char *path)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    size_t bytes = fread(out, 1, most, in);
    assert_true(bytes < most);
    fclose(in);
    return bytes;
}

/* ---- reading ------------------------------------------------------------------ */

/* The three files of TensorFlow hold the same records. */
static void reads_golden(void **state)
{
    (void)state;
    static const char *const names[] = {"records.tfrecord", "records_gzip.tfrecord", "records_zlib.tfrecord"};
    static uint8_t raw[4096];
    size_t raw_bytes = load(raw, sizeof raw, golden(names[0]));
    for (int f = 0; f < 3; f++) {
        struct budget *budget = new_budget();
        struct tfrecord_reader *reader;
        struct string records[16];
        int64_t count;
        plim_error error;
        assert_int_equal(tfrecord_reader_open(&reader, budget, golden(names[f]), 0, &error), PLIM_OK);
        assert_int_equal(tfrecord_reader_is_packed(reader), f > 0);
        assert_int_equal(tfrecord_reader_read(&count, records, reader, 16, NULL, &error), PLIM_OK);
        assert_int_equal(count, 6);
        size_t at = 0;
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(records[i].bytes, record_length(raw + at));
            assert_memory_equal(records[i].data, raw + at + RECORD_HEAD_BYTES, records[i].bytes);
            at += RECORD_FRAME_BYTES + records[i].bytes;
        }
        assert_int_equal(at, raw_bytes);
        assert_int_equal(tfrecord_reader_tell(reader).byte, raw_bytes);
        assert_int_equal(tfrecord_reader_read(&count, records, reader, 16, NULL, &error), PLIM_OK);
        assert_int_equal(count, 0);
        tfrecord_reader_close(reader);
        end_budget(budget);
    }
}

/* What our writer makes of TensorFlow's records is TensorFlow's file. */
static void writes_golden(void **state)
{
    (void)state;
    static uint8_t expected[4096], written[4096];
    size_t bytes = load(expected, sizeof expected, golden("records.tfrecord"));
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct record_writer *writer;
    struct string record;
    int64_t count;
    plim_error error;
    const char *path = path_of("again.tfrecord");
    assert_int_equal(tfrecord_reader_open(&reader, budget, golden("records.tfrecord"), 0, &error), PLIM_OK);
    assert_int_equal(record_writer_open(&writer, budget, path, RECORDS_RAW, &error), PLIM_OK);
    while (tfrecord_reader_read(&count, &record, reader, 1, NULL, &error) == PLIM_OK && count)
        assert_int_equal(record_writer_add(writer, record.data, record.bytes, &error), PLIM_OK);
    assert_int_equal(record_writer_finish(writer, &error), PLIM_OK);
    assert_int_equal(record_writer_add(writer, "", 0, &error), PLIM_INTERNAL);
    record_writer_close(writer);
    tfrecord_reader_close(reader);
    assert_int_equal(load(written, sizeof written, path), bytes);
    assert_memory_equal(written, expected, bytes);
    end_budget(budget);
    unlink(path);
}

/* All records of a made file: in place, copied, copied one by one; larger ones than the buffer among them. Nothing is
   taken in the second half. */
static void read_all_ways(const char *path, int64_t count, size_t spread)
{
    static uint8_t bytes[1 << 18];
    struct budget *budget = new_budget();
    struct string records[7];
    struct value_buffer values;
    plim_error error;
    value_buffer_init(&values, bytes, sizeof bytes);
    for (int way = 0; way < 3; way++) {
        struct tfrecord_reader *reader;
        int64_t i = 0, got, most = way < 2 ? 7 : 1;
        uint64_t at = 0, takes = 0;
        assert_int_equal(tfrecord_reader_open(&reader, budget, path, 4096, &error), PLIM_OK);
        while (i < count) {
            value_buffer_empty(&values);
            assert_int_equal(way == 0 ? tfrecord_reader_read(&got, records, reader, most, &values, &error)
                                      : tfrecord_reader_copy(&got, records, reader, most, &values, &error),
                             PLIM_OK);
            assert_true(got >= 1 && got <= most);
            for (int64_t r = 0; r < got; r++) {
                at += RECORD_FRAME_BYTES + records[r].bytes;
                assert_true(is_made(&records[r], i++, spread));
            }
            assert_int_equal(tfrecord_reader_tell(reader).byte, at);
            assert_int_equal(tfrecord_reader_tell(reader).record, i);
            if (i >= count / 2 && !takes) /* zlib takes its window when it needs one */
                takes = budget_usage(budget).takes;
        }
        assert_int_equal(tfrecord_reader_read(&got, records, reader, 7, &values, &error), PLIM_OK);
        assert_int_equal(got, 0);
        assert_int_equal(budget_usage(budget).takes, takes);
        tfrecord_reader_close(reader);
    }
    assert_true(budget_usage(budget).peak_by_tag[TAG_FORMATS] <= tfrecord_reader_cost(4096));
    end_budget(budget);
}

static void reads_what_was_written(void **state)
{
    (void)state;
    for (int packing = RECORDS_RAW; packing <= RECORDS_ZLIB; packing++)
        for (int large = 0; large < 2; large++) {
            const char *path =
                make_records("made", large ? 40 : 500, large ? 40000 : 100, (enum record_packing)packing);
            read_all_ways(path, large ? 40 : 500, large ? 40000 : 100);
            unlink(path);
        }
}

static void passes_over_records(void **state)
{
    (void)state;
    for (int packing = RECORDS_RAW; packing <= RECORDS_ZLIB; packing++) {
        const char *path = make_records("made", 300, 20000, (enum record_packing)packing);
        static uint8_t bytes[1 << 16];
        struct budget *budget = new_budget();
        struct tfrecord_reader *reader;
        struct string record;
        struct value_buffer values;
        int64_t skipped, got, i = 0;
        plim_error error;
        value_buffer_init(&values, bytes, sizeof bytes);
        assert_int_equal(tfrecord_reader_open(&reader, budget, path, 8192, &error), PLIM_OK);
        for (int64_t step = 0; i + step < 300; i += step++ + 1) {
            assert_int_equal(tfrecord_reader_skip(&skipped, reader, step, &error), PLIM_OK);
            assert_int_equal(skipped, step);
            value_buffer_empty(&values);
            assert_int_equal(tfrecord_reader_copy(&got, &record, reader, 1, &values, &error), PLIM_OK);
            assert_true(is_made(&record, i + step, 20000));
        }
        assert_int_equal(tfrecord_reader_skip(&skipped, reader, MOST, &error), PLIM_OK);
        assert_int_equal(skipped, 300 - i);
        tfrecord_reader_close(reader);
        end_budget(budget);
        unlink(path);
    }
}

/* A record that fits nowhere: with a value buffer the caller is told, without one it is an error that names it. */
static void names_what_is_too_large(void **state)
{
    (void)state;
    static uint8_t data[10000];
    const char *path = path_of("large");
    struct budget *budget = new_budget();
    struct record_writer *writer;
    struct tfrecord_reader *reader;
    struct string record;
    struct value_buffer values;
    int64_t count;
    plim_error error;
    assert_int_equal(record_writer_open(&writer, budget, path, RECORDS_RAW, &error), PLIM_OK);
    assert_int_equal(record_writer_add(writer, data, 10, &error), PLIM_OK);
    assert_int_equal(record_writer_add(writer, data, sizeof data, &error), PLIM_OK);
    assert_int_equal(record_writer_finish(writer, &error), PLIM_OK);
    record_writer_close(writer);
    assert_int_equal(tfrecord_reader_open(&reader, budget, path, 4096, &error), PLIM_OK);
    assert_int_equal(tfrecord_reader_read(&count, &record, reader, 1, NULL, &error), PLIM_OK);
    value_buffer_init(&values, data, 5000);
    assert_int_equal(tfrecord_reader_read(&count, &record, reader, 1, &values, &error), PLIM_OK);
    assert_int_equal(count, 0);
    assert_int_equal(values.wanted, 10000);
    assert_int_equal(tfrecord_reader_read(&count, &record, reader, 1, NULL, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.where, "large: byte 26"));
    assert_non_null(strstr(error.message, "record 1 has 10000 bytes"));
    value_buffer_init(&values, data, sizeof data);
    assert_int_equal(tfrecord_reader_read(&count, &record, reader, 1, &values, &error), PLIM_OK);
    assert_int_equal(record.bytes, 10000);
    tfrecord_reader_close(reader);
    end_budget(budget);
    unlink(path);
}

/* ---- damage ---------------------------------------------------------------------- */

/* Reads on over damage; which records came, and how often it was found. Only made records come, in order. */
struct survey {
    int64_t came, errors, last;
    bool has[256];
};

static struct survey survey(const void *data, size_t bytes, size_t spread)
{
    static uint8_t space[1 << 16];
    const char *path = write_file("damaged", data, bytes);
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct survey survey = {.last = -1};
    struct value_buffer values;
    plim_error error = {0};
    value_buffer_init(&values, space, sizeof space);
    assert_int_equal(tfrecord_reader_open(&reader, budget, path, 4096, &error), PLIM_OK);
    for (int64_t calls = 0;; calls++) {
        struct string records[3];
        int64_t count;
        uint64_t skipped;
        assert_true(calls < 10000);
        value_buffer_empty(&values);
        plim_status status = tfrecord_reader_read(&count, records, reader, 3, &values, &error);
        if (status != PLIM_OK) {
            assert_int_equal(status, PLIM_BAD_DATA);
            assert_non_null(strstr(error.where, "damaged: byte "));
            assert_int_equal(tfrecord_reader_resync(&skipped, reader, &error), PLIM_OK);
            survey.errors++;
            continue;
        }
        if (count == 0)
            break;
        for (int64_t r = 0; r < count; r++) {
            /* A turned bit of compressed data may copy a record once more. */
            int64_t i = tfrecord_reader_is_packed(reader) ? 0 : survey.last + 1;
            while (i < 256 && !is_made(&records[r], i, spread))
                i++;
            assert_true(i < 256);
            survey.has[i] = true;
            survey.last = i;
            survey.came++;
        }
    }
    assert_true(budget_usage(budget).peak_by_tag[TAG_FORMATS] <= tfrecord_reader_cost(4096));
    tfrecord_reader_close(reader);
    end_budget(budget);
    unlink(path);
    return survey;
}

/* Cut at every byte: whole records come, and a part of one is an error. Every bit turned: that record is lost, found
   out once, and no other. */
static void sweeps(void **state)
{
    (void)state;
    uint8_t file[1024];
    const char *path = make_records("seed", 6, 30, RECORDS_RAW);
    size_t bytes = load(file, sizeof file, path), begin[8] = {0};
    unlink(path);
    for (int i = 0; i < 6; i++)
        begin[i + 1] = begin[i] + RECORD_FRAME_BYTES + made_size(i, 30);
    assert_int_equal(begin[6], bytes);
    for (size_t cut = 0; cut <= bytes; cut++) {
        int64_t whole = 0;
        while (whole < 6 && begin[whole + 1] <= cut)
            whole++;
        struct survey seen = survey(file, cut, 30);
        assert_int_equal(seen.came, whole);
        assert_int_equal(seen.errors, cut != begin[whole]);
    }
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        file[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct survey seen = survey(file, bytes, 30);
        assert_int_equal(seen.came, 5);
        assert_int_equal(seen.errors, 1);
        for (int i = 0; i < 6; i++)
            assert_int_equal(seen.has[i], bit / 8 < begin[i] || bit / 8 >= begin[i + 1]);
        file[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* Of compressed files what comes before the damage is right; a damaged record inside them costs itself only. */
static void sweeps_compressed(void **state)
{
    (void)state;
    uint8_t file[2048];
    for (int packing = RECORDS_GZIP; packing <= RECORDS_ZLIB; packing++) {
        const char *path = make_records("seed", 6, 30, (enum record_packing)packing);
        size_t bytes = load(file, sizeof file, path);
        unlink(path);
        for (size_t cut = 3; cut < bytes; cut++)
            assert_int_equal(survey(file, cut, 30).errors, 1);
        for (size_t bit = 24; bit < 8 * bytes; bit++) {
            file[bit / 8] ^= (uint8_t)(1 << bit % 8);
            survey(file, bytes, 30);
            file[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    static uint8_t raw[8192], packed[8192];
    const char *path = make_records("seed", 100, 50, RECORDS_RAW);
    size_t bytes = load(raw, sizeof raw, path);
    unlink(path);
    for (int where = 0; where < 2; where++) { /* in its length; in its data */
        raw[RECORD_FRAME_BYTES + made_size(0, 50) + (where ? 13 : 1)] ^= 4;
        uLongf packed_bytes = sizeof packed;
        assert_int_equal(compress(packed, &packed_bytes, raw, bytes), Z_OK);
        struct survey seen = survey(packed, packed_bytes, 50);
        assert_int_equal(seen.came, 99);
        assert_int_equal(seen.errors, 1);
        raw[RECORD_FRAME_BYTES + made_size(0, 50) + (where ? 13 : 1)] ^= 4;
    }
}

/* One piece of damage: bytes overwritten, lost or added. Returns the new size; [*from, *to) is what it touched. */
static size_t damage(uint8_t *file, size_t bytes, uint32_t *seed, size_t *from, size_t *to)
{
    size_t at = next_random(seed) % bytes;
    size_t most = next_random(seed) % 2 ? 4 : 200;
    size_t size = 1 + next_random(seed) % most;
    int kind = (int)(next_random(seed) % 4);
    if (size > bytes - at)
        size = bytes - at;
    *from = at;
    *to = at + size;
    if (kind == 0) {
        memmove(file + at, file + at + size, bytes - at - size);
        return bytes - size;
    }
    if (kind == 1) {
        memmove(file + at + size, file + at, bytes - at);
        bytes += size;
        *to = at;
    }
    for (size_t i = 0; i < size; i++)
        file[at + i] = kind == 2 ? 0 : (uint8_t)(file[at + i] ^ (1 + next_random(seed) % 255));
    return bytes;
}

static void survives_a_thousand_corruptions(void **state)
{
    (void)state;
    enum { COUNT = 200, SPREAD = 120 };
    static uint8_t seed_file[32768], file[65536];
    const char *path = make_records("seed", COUNT, SPREAD, RECORDS_RAW);
    size_t bytes = load(seed_file, sizeof seed_file, path), begin[COUNT + 1] = {0};
    unlink(path);
    for (int i = 0; i < COUNT; i++)
        begin[i + 1] = begin[i] + RECORD_FRAME_BYTES + made_size(i, SPREAD);
    uint32_t seed = 42;
    int64_t lost = 0, errors = 0;
    for (int round = 0; round < 1000; round++) {
        size_t from, to;
        memcpy(file, seed_file, bytes);
        size_t left = damage(file, bytes, &seed, &from, &to);
        struct survey seen = survey(file, left, SPREAD);
        for (int i = 0; i < COUNT; i++) {
            bool touched = from == to ? from > begin[i] && from < begin[i + 1] : from < begin[i + 1] && to > begin[i];
            if (!seen.has[i] && !touched)
                fail_msg("round %d: record %d of bytes %zu..%zu is lost, damage was at %zu..%zu", round, i, begin[i],
                         begin[i + 1], from, to);
            lost += !seen.has[i];
        }
        errors += seen.errors;
    }
    print_message("1000 corruptions: %lld records lost, %lld errors\n", (long long)lost, (long long)errors);
    assert_true(lost > 500 && errors > 500);
}

/* Lengths that only lie: nothing is taken for them. */
static void believes_no_length(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 3, UINT64_MAX - 16, (uint64_t)1 << 62, 1 << 20, 1};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        uint8_t head[RECORD_HEAD_BYTES];
        record_head_write(head, lengths[i]);
        struct survey seen = survey(head, sizeof head, 30);
        assert_int_equal(seen.came, 0);
        assert_int_equal(seen.errors, 1);
        const char *path = write_file("lie", head, sizeof head);
        struct budget *budget = new_budget();
        struct tfrecord_reader *reader;
        int64_t skipped;
        plim_error error;
        assert_int_equal(tfrecord_reader_open(&reader, budget, path, 0, &error), PLIM_OK);
        assert_int_equal(tfrecord_reader_skip(&skipped, reader, 1, &error), PLIM_BAD_DATA);
        assert_non_null(strstr(error.message, "record 0"));
        tfrecord_reader_close(reader);
        end_budget(budget);
        unlink(path);
    }
}

/* A length of 376 begins as zlib does; a damaged one must not make zlib of the file. */
static void tells_zlib_from_damage(void **state)
{
    (void)state;
    static uint8_t data[376], file[1024];
    const char *path = path_of("seed");
    struct budget *budget = new_budget();
    struct record_writer *writer;
    assert_int_equal(record_writer_open(&writer, budget, path, RECORDS_RAW, NULL), PLIM_OK);
    assert_int_equal(record_writer_add(writer, data, sizeof data, NULL), PLIM_OK);
    made_bytes(data, 0, made_size(0, 30));
    assert_int_equal(record_writer_add(writer, data, made_size(0, 30), NULL), PLIM_OK);
    assert_int_equal(record_writer_finish(writer, NULL), PLIM_OK);
    record_writer_close(writer);
    end_budget(budget);
    size_t bytes = load(file, sizeof file, path);
    unlink(path);
    file[9] ^= 1;
    struct survey seen = survey(file, bytes, 30);
    assert_true(seen.came == 1 && seen.errors == 1 && seen.has[0]);
}

/* Anything that fails while writing leaves nothing behind, and what stood there before as it was. */
static void leaves_nothing_half_written(void **state)
{
    (void)state;
    for (int packing = RECORDS_RAW; packing <= RECORDS_ZLIB; packing++)
        for (int64_t nth = 1;; nth++) {
            const char *path = write_file("out", "before", 6);
            char partial[160], what[16] = {0};
            struct budget *budget = new_budget();
            struct record_writer *writer = NULL;
            static const uint8_t data[100000];
            plim_error error;
            snprintf(partial, sizeof partial, "%s.partial", path);
            fault_arm(FAULT_ANY & ~FAULT_RENAME, nth, false, EIO);
            plim_status status = record_writer_open(&writer, budget, path, (enum record_packing)packing, &error);
            for (int i = 0; i < 3 && status == PLIM_OK; i++)
                status = record_writer_add(writer, data, sizeof data, &error);
            if (status == PLIM_OK)
                status = record_writer_finish(writer, &error);
            record_writer_close(writer);
            bool reached = fault_disarm();
            end_budget(budget);
            assert_int_not_equal(access(partial, F_OK), 0);
            FILE *in = fopen(path, "rb");
            assert_true(fread(what, 1, sizeof what - 1, in) > 0);
            fclose(in);
            unlink(path);
            if (!reached) {
                assert_int_equal(status, PLIM_OK);
                break;
            }
            /* The folder's sync comes after the rename. */
            if (status != PLIM_OK && strcmp(what, "before") != 0)
                assert_string_equal(error.where, folder);
            assert_true(nth < 100);
        }
}

static void passes_read_errors_on(void **state)
{
    (void)state;
    const char *path = make_records("made", 300, 100, RECORDS_RAW);
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct string record;
    int64_t count;
    plim_error error;
    for (int64_t nth = 1; nth < 4; nth++) {
        fault_arm(FAULT_READ, nth, false, EIO);
        plim_status status = tfrecord_reader_open(&reader, budget, path, 0, &error);
        bool opened = status == PLIM_OK;
        while (status == PLIM_OK &&
               (status = tfrecord_reader_read(&count, &record, reader, 1, NULL, &error)) == PLIM_OK)
            assert_true(count == 1);
        assert_true(fault_disarm());
        assert_int_equal(status, PLIM_IO);
        if (opened)
            tfrecord_reader_close(reader);
    }
    assert_int_equal(tfrecord_reader_open(&reader, budget, "formats-nowhere", 0, &error), PLIM_IO);
    end_budget(budget);
    unlink(path);
}

/* ---- the index -------------------------------------------------------------------- */

static const char *index_of(const char *path)
{
    static char index[200];
    snprintf(index, sizeof index, "%s.index", path);
    return index;
}

/* Every record is where the reader finds it, and is read there. */
static void check_index(const char *path, int64_t count, size_t spread)
{
    static uint8_t space[1 << 17];
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct record_index *index;
    struct string record;
    struct value_buffer values;
    plim_error error;
    value_buffer_init(&values, space, sizeof space);
    assert_int_equal(record_index_build(budget, path, NULL, NULL, &error), PLIM_OK);
    end_budget(budget);
    budget = new_budget();
    assert_int_equal(record_index_open(&index, budget, path, NULL, 2, &error), PLIM_OK);
    assert_true(budget_usage(budget).peak_by_tag[TAG_FORMATS] <= record_index_cost(2));
    uint64_t takes = budget_usage(budget).takes;
    assert_int_equal(record_index_count(index), count);
    uint64_t at, bytes, expected = 0;
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(record_index_find(&at, &bytes, index, i, &error), PLIM_OK);
        assert_int_equal(at, expected);
        assert_int_equal(bytes, made_size(i, spread));
        expected += RECORD_FRAME_BYTES + bytes;
    }
    for (int64_t n = 0; n < 500 && count; n++) {
        int64_t i = n * 7919 % count;
        value_buffer_empty(&values);
        struct record_place place = {.record = i};
        assert_int_equal(record_index_find(&place.byte, &bytes, index, i, &error), PLIM_OK);
        assert_int_equal(record_read_at(&record, record_index_data(index), &place, bytes, &values, &error), PLIM_OK);
        assert_true(is_made(&record, i, spread));
        value_buffer_empty(&values);
        assert_int_equal(record_read_at(&record, record_index_data(index), &place, bytes + 1, &values, &error),
                         PLIM_BAD_DATA);
    }
    assert_int_equal(record_index_find(&at, &bytes, index, count, &error), PLIM_INTERNAL);
    assert_int_equal(budget_usage(budget).takes, takes);
    record_index_close(index);
    assert_int_equal(tfrecord_reader_open(&reader, budget, path, 0, &error), PLIM_OK);
    tfrecord_reader_close(reader);
    end_budget(budget);
}

static void finds_records(void **state)
{
    (void)state;
    static const struct {
        int64_t count;
        size_t spread;
    } cases[] = {{0, 0},      {1, 0},       {1, 90000},  {1024, 0},  {1025, 50},
                 {5000, 300}, {300, 90000}, {140000, 0}, {140000, 9}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        const char *path = make_records("made", cases[c].count, cases[c].spread, RECORDS_RAW);
        check_index(path, cases[c].count, cases[c].spread);
        unlink(index_of(path));
        unlink(path);
    }
}

struct seek {
    struct record_index *index;
    _Atomic int wrong;
};

static void seek_some(void *context, int unit, int worker)
{
    struct seek *seek = context;
    uint64_t at, bytes;
    (void)worker;
    for (int64_t n = 0; n < 3000; n++) {
        int64_t i = (n * 7919 + unit * 104729) % 5000;
        if (record_index_find(&at, &bytes, seek->index, i, NULL) != PLIM_OK || bytes != made_size(i, 300))
            seek->wrong++;
    }
}

/* Few frames, many threads: everybody finds the right record. */
static void finds_from_many_threads(void **state)
{
    (void)state;
    const char *path = make_records("made", 5000, 300, RECORDS_RAW);
    struct budget *budget = new_budget();
    struct team *team;
    struct seek seek = {0};
    assert_int_equal(record_index_build(budget, path, NULL, NULL, NULL), PLIM_OK);
    assert_int_equal(record_index_open(&seek.index, budget, path, NULL, 1, NULL), PLIM_OK);
    assert_int_equal(team_make(&team, budget, 4, NULL, NULL), PLIM_OK);
    team_run(team, 8, seek_some, &seek);
    team_free(team);
    assert_int_equal(seek.wrong, 0);
    record_index_close(seek.index);
    end_budget(budget);
    unlink(index_of(path));
    unlink(path);
}

static bool stop_at_once(void *context, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    ++*(int *)context;
    return false;
}

/* Other data, missing index, compressed data, a scan that is stopped, damaged data. */
static void refuses_wrong_indexes(void **state)
{
    (void)state;
    static uint8_t file[1 << 16];
    struct budget *budget = new_budget();
    struct record_index *index;
    plim_error error;
    char path[160]; /* path_of keeps few */
    snprintf(path, sizeof path, "%s", make_records("made", 300, 100, RECORDS_RAW));
    size_t bytes = load(file, sizeof file, path);
    assert_int_equal(record_index_open(&index, budget, path, NULL, 1, &error), PLIM_IO);
    assert_int_equal(record_index_build(budget, path, NULL, NULL, &error), PLIM_OK);
    file[20] ^= 1;
    write_file("made", file, bytes);
    assert_int_equal(record_index_open(&index, budget, path, NULL, 1, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "other data"));
    file[20] ^= 1;
    write_file("made", file, bytes - 1);
    assert_int_equal(record_index_open(&index, budget, path, NULL, 1, &error), PLIM_BAD_DATA);
    assert_int_equal(record_index_build(budget, path, NULL, NULL, &error), PLIM_BAD_DATA);
    write_file("made", file, bytes);
    assert_int_equal(record_index_open(&index, budget, path, NULL, 1, &error), PLIM_OK);
    record_index_close(index);
    unlink(index_of(path));
    int told = 0;
    struct record_progress progress = {.tell = stop_at_once, .context = &told};
    assert_int_equal(record_index_build(budget, path, NULL, &progress, &error), PLIM_INTERRUPTED);
    assert_int_equal(told, 1);
    unlink(path);
    make_records("made", 300, 100, RECORDS_GZIP);
    assert_int_equal(record_index_build(budget, path, NULL, NULL, &error), PLIM_UNSUPPORTED);
    unlink(path);
    end_budget(budget);
}

static plim_status find_all(struct budget *budget, const char *path, plim_error *error)
{
    struct record_index *index;
    uint64_t at, bytes, expected = 0;
    plim_status status = PLIM_OK;
    TRY(record_index_open(&index, budget, path, NULL, 2, error));
    assert_int_equal(record_index_count(index), 40);
    for (int64_t i = 0; i < 40 && status == PLIM_OK; i++) {
        status = record_index_find(&at, &bytes, index, i, error);
        if (status == PLIM_OK) {
            assert_true(at == expected && bytes == made_size(i, 100));
            expected += RECORD_FRAME_BYTES + bytes;
        }
    }
    record_index_close(index);
    return status;
}

/* Every byte of an index is under a checksum. */
static void sweeps_an_index(void **state)
{
    (void)state;
    uint8_t file[2048];
    struct budget *budget = new_budget();
    plim_error error;
    char path[160]; /* path_of keeps few */
    snprintf(path, sizeof path, "%s", make_records("made", 40, 100, RECORDS_RAW));
    assert_int_equal(record_index_build(budget, path, NULL, NULL, &error), PLIM_OK);
    size_t bytes = load(file, sizeof file, index_of(path));
    assert_int_equal(find_all(budget, path, &error), PLIM_OK);
    for (size_t cut = 0; cut < bytes; cut++) {
        write_file("made.index", file, cut);
        assert_int_equal(find_all(budget, path, &error), PLIM_BAD_DATA);
    }
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        file[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_file("made.index", file, bytes);
        assert_int_equal(find_all(budget, path, &error), PLIM_BAD_DATA);
        assert_non_null(strstr(error.where, "made.index: byte"));
        file[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    end_budget(budget);
    unlink(index_of(path));
    unlink(path);
}

/* Everything that reads, once. */
static plim_status read_everything(struct budget *budget, const char *raw, const char *packed, plim_error *error)
{
    const char *const paths[] = {raw, packed};
    struct record_index *index;
    plim_status status = PLIM_OK;
    for (int i = 0; i < 2; i++) {
        struct tfrecord_reader *reader;
        struct string record;
        int64_t count = 1;
        TRY(tfrecord_reader_open(&reader, budget, paths[i], 0, error));
        while (count && status == PLIM_OK)
            status = tfrecord_reader_read(&count, &record, reader, 1, NULL, error);
        tfrecord_reader_close(reader);
        TRY(status);
    }
    TRY(record_index_build(budget, raw, NULL, NULL, error));
    TRY(record_index_open(&index, budget, raw, NULL, 1, error));
    uint64_t at, bytes;
    status = record_index_find(&at, &bytes, index, 77, error);
    record_index_close(index);
    return status;
}

/* The n-th call fails, whatever it is: an error, nothing kept, nothing half-written. */
static void survives_faults(void **state)
{
    (void)state;
    const char *raw = make_records("raw", 300, 100, RECORDS_RAW);
    char packed[160], partial[200];
    snprintf(packed, sizeof packed, "%s", make_records("packed", 300, 100, RECORDS_ZLIB));
    snprintf(partial, sizeof partial, "%s.index.partial", raw);
    for (int64_t nth = 1;; nth++) {
        struct budget *budget = new_budget();
        plim_error error;
        fault_arm(FAULT_ANY, nth, false, ENOSPC);
        plim_status status = read_everything(budget, raw, packed, &error);
        bool reached = fault_disarm();
        end_budget(budget);
        assert_true(reached ? status != PLIM_INTERNAL : status == PLIM_OK);
        assert_int_not_equal(access(partial, F_OK), 0);
        if (!reached)
            break;
        assert_true(nth < 1000);
    }
    unlink(index_of(raw));
    unlink(raw);
    unlink(packed);
}

/* ---- files in turns --------------------------------------------------------- */

#define TURN_ROOM 4096

/* Two files of four records of 20 bytes in turns; the second one of "b" is damaged. */
static struct source *damaged_turns(struct budget *budget, int64_t block_length)
{
    static const char *const names[] = {"turn.a", "turn.b"};
    struct record_options options = {.turns = {.cycle_length = 2, .block_length = block_length}};
    struct file_list *files;
    struct source *source;
    assert_int_equal(file_list_make(&files, budget, NULL), PLIM_OK);
    for (int f = 0; f < 2; f++) {
        const char *path = make_records(names[f], 4, 0, RECORDS_RAW);
        assert_int_equal(file_list_add(files, path, NULL), PLIM_OK);
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        if (f == 1) {
            fseek(file, 36 + 8, SEEK_SET); /* of the length's checksum: passing over a record looks at it too */
            fputc(0x5a, file);
        }
        fclose(file);
    }
    assert_int_equal(records_source_open(&source, budget, files, &options, NULL), PLIM_OK);
    return source;
}

/* Which records of a made file come: "012", until the end or what is wrong. */
static plim_status take_turns(char *out, struct source *source, struct reader *reader, int64_t most, plim_error *error)
{
    static uint8_t memory[TURN_ROOM];
    struct string records[8];
    struct value_buffer values;
    int64_t got;
    value_buffer_init(&values, memory, sizeof memory);
    *out = 0;
    plim_status status = source->type->reader_next(
        &got, reader, most, &(struct row_target){(void *[]){records}, (uint64_t[]){sizeof *records}, &values}, error);
    for (int64_t i = 0; status == PLIM_OK && i < got; i++)
        for (int64_t r = 0; r < 4; r++)
            if (is_made(&records[i], r, 0))
                *out++ = (char)('0' + r), *out = 0;
    return status;
}

/* What was found wrong behind records that were given is told by the next call, be it for records or past them; the
   bad one takes no turn; and what comes behind it is the same. */
static void skips_tell_what_was_held(void **state)
{
    struct budget *budget = new_budget();
    (void)state;
    for (int skips = 0; skips < 2; skips++) {
        plim_error error = {0};
        struct source *source = damaged_turns(budget, 1);
        struct reader *reader;
        char seen[16];
        int64_t passed = -1;
        assert_int_equal(source->type->reader_open(&reader, source, budget, &error), PLIM_OK);
        assert_int_equal(take_turns(seen, source, reader, 8, &error), PLIM_OK);
        assert_string_equal(seen, "001"); /* a, b, a; then the bad one of b */
        plim_status status =
            skips ? source->type->reader_skip(&passed, reader, 1, &error) : take_turns(seen, source, reader, 8, &error);
        assert_int_equal(status, PLIM_BAD_DATA);
        assert_non_null(strstr(error.where, "turn.b"));
        assert_int_equal(passed, skips ? 0 : -1);
        assert_int_equal(take_turns(seen, source, reader, 8, &error), PLIM_OK);
        assert_string_equal(seen, "2233");
        source->type->reader_close(reader);
        source_close(source);
    }
    unlink(path_of("turn.a"));
    unlink(path_of("turn.b"));
    end_budget(budget);
}

/* Turns of two: a0 a1 b0, and the bad one; the turn of b goes on behind it, with one more. */
static void skips_keep_the_turns(void **state)
{
    struct budget *budget = new_budget();
    (void)state;
    for (int64_t skipped = 0; skipped <= 3; skipped++) {
        plim_error error = {0};
        struct source *source = damaged_turns(budget, 2);
        struct reader *reader;
        char seen[16];
        int64_t passed = 0;
        assert_int_equal(source->type->reader_open(&reader, source, budget, &error), PLIM_OK);
        if (skipped)
            assert_int_equal(source->type->reader_skip(&passed, reader, skipped, &error), PLIM_OK);
        assert_int_equal(passed, skipped);
        plim_status status = source->type->reader_skip(&passed, reader, 5, &error);
        assert_int_equal(status, PLIM_BAD_DATA);
        assert_int_equal(passed, 3 - skipped);
        assert_int_equal(take_turns(seen, source, reader, 2, &error), PLIM_OK);
        assert_string_equal(seen, "22"); /* b's, and it is a's turn */
        assert_int_equal(source->type->reader_skip(&passed, reader, 5, &error), PLIM_OK);
        assert_int_equal(passed, 2);
        source->type->reader_close(reader);
        source_close(source);
    }
    unlink(path_of("turn.a"));
    unlink(path_of("turn.b"));
    end_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_golden),
        cmocka_unit_test(writes_golden),
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(passes_over_records),
        cmocka_unit_test(names_what_is_too_large),
        cmocka_unit_test(sweeps),
        cmocka_unit_test(sweeps_compressed),
        cmocka_unit_test(survives_a_thousand_corruptions),
        cmocka_unit_test(believes_no_length),
        cmocka_unit_test(tells_zlib_from_damage),
        cmocka_unit_test(leaves_nothing_half_written),
        cmocka_unit_test(passes_read_errors_on),
        cmocka_unit_test(finds_records),
        cmocka_unit_test(finds_from_many_threads),
        cmocka_unit_test(refuses_wrong_indexes),
        cmocka_unit_test(sweeps_an_index),
        cmocka_unit_test(survives_faults),
        cmocka_unit_test(skips_tell_what_was_held),
        cmocka_unit_test(skips_keep_the_turns),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
