/* test_safetensors.c - reading and writing safetensors: good, damaged, lying, and with faults. */
#include "format_files.h"

#include <errno.h>

#include "base/numbers/count.h"
#include "base/numbers/digest.h"
#include "base/text/text.h"
#include "formats/weights/safetensors.h"

/* A file of a header and data. Returns its size. */
static size_t make_file(uint8_t *out, const char *header, const void *data, size_t data_bytes)
{
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)((uint64_t)length >> 8 * i);
    memcpy(out + 8, header, length);
    if (data_bytes)
        memcpy(out + 8 + length, data, data_bytes);
    return 8 + length + data_bytes;
}

static plim_status try_open(struct budget *budget, const char *path, plim_error *error)
{
    struct safetensors *file;
    uint8_t byte;
    TRY(safetensors_open(&file, budget, path, error));
    for (int i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_entry *entry = safetensors_at(file, i);
        assert_ptr_equal(safetensors_find(file, entry->name), entry);
        if (entry->bytes)
            assert_int_equal(safetensors_read(file, entry, entry->bytes - 1, &byte, 1, error), PLIM_OK);
    }
    safetensors_close(file);
    return PLIM_OK;
}

#define ENTRY(name, type, shape, begin, end)                                                                           \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void reads(void **state)
{
    (void)state;
    uint8_t file[1024], data[19], out[4];
    for (int i = 0; i < 19; i++)
        data[i] = (uint8_t)i;
    const char *header = "{\"__metadata__\":{\"format\":\"pt\",\"a\\n\\u00e9\":\"q\\\"\\ud83d\\ude00\"}," ENTRY(
        "b", "U8", "[3]", 16, 19) "," ENTRY("w\\u0041", "F32", "[2, 2]", 0, 16) "," ENTRY("none", "I64", "[0, 5]", 16,
                                                                                          16) "}   ";
    const char *path = write_file("good", file, make_file(file, header, data, sizeof data));
    struct budget *budget = new_budget();
    struct safetensors *tensors;
    assert_int_equal(safetensors_open(&tensors, budget, path, NULL), PLIM_OK);
    assert_int_equal(safetensors_count(tensors), 3);
    assert_string_equal(safetensors_at(tensors, 0)->name, "b");
    assert_null(safetensors_at(tensors, 3));
    assert_null(safetensors_at(tensors, -1));
    const struct safetensors_entry *entry = safetensors_find(tensors, "wA");
    assert_non_null(entry);
    assert_true(entry->type == TYPE_F32 && entry->shape.rank == 2 && entry->shape.dim[1] == 2 && entry->bytes == 16);
    assert_int_equal(safetensors_read(tensors, entry, 12, out, 4, NULL), PLIM_OK);
    assert_memory_equal(out, data + 12, 4);
    assert_int_equal(safetensors_read(tensors, entry, 13, out, 4, NULL), PLIM_INTERNAL);
    assert_int_equal(safetensors_read(tensors, entry, UINT64_MAX, out, 4, NULL), PLIM_INTERNAL);
    assert_int_equal(safetensors_find(tensors, "none")->bytes, 0);
    assert_null(safetensors_find(tensors, "w"));
    assert_string_equal(safetensors_metadata(tensors, "format"), "pt");
    assert_string_equal(safetensors_metadata(tensors, "a\n\xc3\xa9"), "q\"\xf0\x9f\x98\x80");
    assert_null(safetensors_metadata(tensors, "b"));
    fault_arm(FAULT_READ, 1, false, EIO);
    assert_int_equal(safetensors_read(tensors, entry, 0, out, 4, NULL), PLIM_IO);
    fault_disarm();
    safetensors_close(tensors);
    safetensors_close(NULL);
    end_budget(budget);
    unlink(path);
}

static void damaged_files(void **state)
{
    (void)state;
    uint8_t file[1024];
    const char *header =
        "{\"__metadata__\":{\"a\":\"b\"}," ENTRY("w", "F32", "[2,2]", 0, 16) "," ENTRY("b", "U8", "[3]", 16, 19) "}";
    size_t bytes = make_file(file, header, "0123456789abcdefghi", 19);
    assert_true(sweep(try_open, file, bytes) > 8 * 60);
}

static void expect(const char *header, size_t data_bytes, plim_status status, const char *where, const char *what)
{
    static uint8_t file[4096];
    static const uint8_t zeros[256];
    size_t bytes = make_file(file, header, zeros, data_bytes);
    const char *path = write_file("odd", file, bytes);
    struct budget *budget = new_budget();
    plim_error error = {0};
    plim_status got = try_open(budget, path, &error);
    if (got != status || !strstr(error.where, where) || !strstr(error.message, what))
        print_error("%s -> %s: %s\n", header, error.where, error.message);
    assert_int_equal(got, status);
    assert_non_null(strstr(error.where, where));
    assert_non_null(strstr(error.message, what));
    assert_true(budget_usage(budget).peak <= bytes + SLACK_BYTES);
    end_budget(budget);
    unlink(path);
}

static void lying_files(void **state)
{
    (void)state;
    const plim_status bad = PLIM_BAD_DATA;
    expect("{}", 0, PLIM_OK, "", "");
    expect("", 0, bad, "byte 8", "'{'");
    expect(" {}", 0, bad, "byte 8", "'{'");
    expect("{} x", 0, bad, "byte 11", "JSON");
    expect("{\"a\":1}", 0, bad, "byte 13", "not an object");
    expect("{" ENTRY("a", "U8", "[4]", 0, 4) "," ENTRY("b", "U8", "[4]", 5, 9) "}", 9, bad, "byte 117",
           "a hole before tensor 'b'");
    expect("{" ENTRY("a", "U8", "[4]", 0, 4) "," ENTRY("b", "U8", "[4]", 3, 7) "}", 7, bad, "byte 117", "overlaps");
    expect("{" ENTRY("a", "U8", "[4]", 1, 5) "}", 5, bad, "byte", "a hole");
    expect("{" ENTRY("a", "U8", "[4]", 0, 4) "}", 5, bad, "byte", "1 bytes belong to no tensor");
    expect("{" ENTRY("a", "U8", "[4]", 0, 4) "}", 3, bad, "byte", "bytes 0 to 4 of 3");
    expect("{" ENTRY("a", "F32", "[4]", 0, 4) "}", 4, bad, "byte", "do not give");
    expect("{" ENTRY("a", "U8", "[4]", 4, 0) "}", 4, bad, "byte", "4 to 0");
    expect("{" ENTRY("a", "U8", "[-4]", 0, 4) "}", 4, bad, "byte", "whole number");
    expect("{" ENTRY("a", "F64", "[4294967296,4294967296]", 0, 0) "}", 0, bad, "byte", "do not give");
    expect("{" ENTRY("a", "F64", "[2305843009213693952]", 0, 0) "}", 0, bad, "byte", "do not give");
    expect("{" ENTRY("a", "U8", "[1]", 0, 1) "," ENTRY("\\u0061", "U8", "[1]", 1, 2) "}", 2, bad, "byte",
           "the name 'a'");
    expect("{" ENTRY("\\u0000", "U8", "[1]", 0, 1) "}", 1, bad, "byte", "bad escape");
    expect("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, bad, "byte", "lacks data_offsets");
    expect("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 1, bad, "byte", "twice");
    expect("{\"a\":{\"dtype\":\"U8\",\"x\":1}}", 1, bad, "byte", "'x'");
    expect("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, bad, "byte", "end of data_offsets");
    expect("{\"__metadata__\":{\"a\":1}}", 0, bad, "byte", "not a string");
    expect("{\"__metadata__\":{},\"__metadata__\":{}}", 0, bad, "byte", "twice");
    expect("{" ENTRY("a", "F8_E4M3", "[1]", 0, 1) "}", 1, PLIM_BAD_DATA, "byte", "F8_E4M3");
    expect("{" ENTRY("a", "U16", "[1]", 0, 2) "}", 2, PLIM_BAD_DATA, "byte", "U16");
    expect("{" ENTRY("a", "float32", "[1]", 0, 4) "}", 4, PLIM_BAD_DATA, "byte", "float32");
    expect("{" ENTRY("a", "U8", "[1,1,1,1,1,1,1]", 0, 1) "}", 1, PLIM_BAD_DATA, "byte", "axes");
}

static void bombs(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {UINT64_MAX, (uint64_t)1 << 63, 100000001, 100000000, 3};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        uint8_t file[10];
        memcpy(file, &lengths[i], 8);
        memcpy(file + 8, "{}", 2);
        assert_int_equal(try_damaged(try_open, file, sizeof file), PLIM_BAD_DATA);
    }
    /* A sparse file that really has so long a header. */
    const uint64_t long_header = SAFETENSORS_HEADER_MOST + 1;
    const char *path = write_file("sparse", &long_header, 8);
    struct budget *budget = new_budget();
    plim_error error = {0};
    assert_int_equal(truncate(path, SAFETENSORS_HEADER_MOST + 1000), 0);
    assert_int_equal(try_open(budget, path, &error), PLIM_BAD_DATA);
    assert_non_null(strstr(error.message, "at most 100000000"));
    assert_true(budget_usage(budget).peak < 65536);
    end_budget(budget);
    unlink(path);
}

/* A header of notes and of `many` entries alike but for their names. */
static const char *write_entries(size_t *bytes, const char *first, const char *entry, int many)
{
    size_t room = strlen(first) + (size_t)many * (strlen(entry) + 16) + 16;
    char *header = malloc(room), *at = header;
    uint8_t *file = malloc(room + 8);
    assert_true(header && file);
    at += sprintf(at, "{%s", first);
    for (int i = 0; i < many; i++)
        at += sprintf(at, "%s\"%d\":%s", i || *first ? "," : "", i, entry);
    sprintf(at, "}");
    *bytes = make_file(file, header, NULL, 0);
    const char *path = write_file("many", file, *bytes);
    free(header);
    free(file);
    return path;
}

static plim_status open_within(uint64_t limit, const char *path, uint64_t *peak, plim_error *error)
{
    struct budget *budget;
    *error = (plim_error){0};
    assert_int_equal(budget_make(&budget, limit, NULL), PLIM_OK);
    plim_status status = try_open(budget, path, error);
    *peak = budget_usage(budget).peak;
    end_budget(budget);
    return status;
}

#define EMPTY "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}"

/* Many tensors of no bytes are a good file: the header pays for them. The budget that is asked for does. */
static void many_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *first, *entry, *words;
        int many;
    } files[] = {
        {"", EMPTY, "its 100,000 tensors take", 100000},
        {"\"__metadata__\":{\"a\":\"b\"}", EMPTY, "its 2,000 tensors take", 2000},
        {"\"\\u005f_metadata__\":{\"a\":\"b\",\"c\":\"d\"}", EMPTY, "its 400 tensors take", 400},
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        size_t bytes;
        const char *path = write_entries(&bytes, files[i].first, files[i].entry, files[i].many);
        uint64_t peak, asked;
        plim_error error;
        char number[8], unit[4], figure[16];
        assert_int_equal(open_within(10000, path, &peak, &error), PLIM_OVER_BUDGET);
        assert_non_null(strstr(error.message, files[i].words));
        assert_int_equal(sscanf(error.hint, "it needs a budget of %7s %3s", number, unit), 2);
        snprintf(figure, sizeof figure, "%s%s", number, unit);
        assert_true(text_parse_size(&asked, figure));
        assert_int_equal(open_within(asked, path, &peak, &error), PLIM_OK);
        assert_true(peak <= 4 * bytes + SLACK_BYTES);
        unlink(path);
    }
}

/* Entries that lack what an entry has take no more than the bytes present pay for, and the verdict is the same at every
   budget. */
static void tiny_entries(void **state)
{
    (void)state;
    size_t bytes;
    const char *path = write_entries(&bytes, "", "{}", 200000);
    for (uint64_t limit = (uint64_t)64 << 10; limit <= (uint64_t)256 << 20; limit *= 4) {
        uint64_t peak;
        plim_error error;
        assert_int_equal(open_within(limit, path, &peak, &error), PLIM_BAD_DATA);
        assert_non_null(strstr(error.message, "200000 tensors and 0 notes cannot be described in a header of"));
        assert_true(peak <= SLACK_BYTES);
    }
    unlink(path);
}

/* ---- writing -------------------------------------------------------------- */

static const float numbers[1500] = {1, 2, 3, [1499] = 4};

/* Two tensors and a note through the smallest buffer; data in uneven pieces. */
static plim_status write_model(struct budget *budget, const char *path, bool seal, plim_error *error)
{
    struct safetensors_writer *writer;
    struct shape matrix = {.rank = 2, .dim = {500, 3}}, row = {.rank = 1, .dim = {5}};
    TRY(safetensors_create(&writer, budget, path, NULL, 0, error));
    if (seal)
        safetensors_seal(writer);
    plim_status status = safetensors_declare(writer, "dense/\"kernel\"\n", TYPE_F32, &matrix, error);
    if (!status)
        status = safetensors_note(writer, "step", "12 \"x\"", error);
    if (!status)
        status = safetensors_declare(writer, "b", TYPE_U8, &row, error);
    if (!status)
        status = safetensors_write(writer, numbers, 100, error);
    if (!status)
        status = safetensors_write(writer, (const char *)numbers + 100, sizeof numbers - 100, error);
    if (!status)
        status = safetensors_write(writer, "12345", 5, error);
    if (!status)
        status = safetensors_commit(writer, error);
    safetensors_abandon(writer);
    return status;
}

static void round_trip(void **state)
{
    (void)state;
    for (int seal = 0; seal < 2; seal++) {
        struct budget *budget = new_budget();
        struct safetensors *file;
        plim_error error = {0};
        static float out[1500];
        uint8_t five[5], digest[32], sealed[32];
        const char *path = path_of("model.safetensors");
        fault_arm(FAULT_SYNC, 1000, false, EIO);
        assert_int_equal(write_model(budget, path, seal, &error), PLIM_OK);
        assert_int_equal(fault_calls(), 2); /* the file, then its folder */
        fault_disarm();
        assert_int_not_equal(access(path_of("model.safetensors.partial"), F_OK), 0);
        assert_true(budget_usage(budget).peak_by_tag[TAG_CHECKPOINT] < 16384);
        assert_int_equal(safetensors_open(&file, budget, path, &error), PLIM_OK);
        assert_int_equal(safetensors_count(file), 2 + seal);
        const struct safetensors_entry *kernel = safetensors_at(file, 0), *b = safetensors_at(file, 1);
        assert_string_equal(kernel->name, "dense/\"kernel\"\n");
        assert_int_equal(kernel->offset, 4096);
        assert_int_equal(safetensors_read(file, kernel, 0, out, sizeof out, &error), PLIM_OK);
        assert_memory_equal(out, numbers, sizeof out);
        assert_int_equal(safetensors_read(file, b, 0, five, 5, &error), PLIM_OK);
        assert_memory_equal(five, "12345", 5);
        assert_string_equal(safetensors_metadata(file, "step"), "12 \"x\"");
        if (seal) {
            assert_int_equal(safetensors_digest(digest, file, 32, &error), PLIM_OK);
            assert_int_equal(safetensors_read(file, safetensors_find(file, "plimsoll.sha256"), 0, sealed, 32, &error),
                             PLIM_OK);
            assert_memory_equal(digest, sealed, 32);
        }
        safetensors_close(file);
        end_budget(budget);
        unlink(path);
    }
}

static void nothing_declared(void **state)
{
    (void)state;
    for (int note = 0; note < 2; note++) {
        struct budget *budget = new_budget();
        struct safetensors_writer *writer;
        const char *path = path_of("empty.safetensors");
        assert_int_equal(safetensors_create(&writer, budget, path, NULL, 65536, NULL), PLIM_OK);
        if (note)
            assert_int_equal(safetensors_note(writer, "a", "b", NULL), PLIM_OK);
        assert_int_equal(safetensors_commit(writer, NULL), PLIM_OK);
        assert_int_not_equal(safetensors_commit(writer, NULL), PLIM_OK); /* once only */
        safetensors_abandon(writer);
        assert_int_equal(try_open(budget, path, NULL), PLIM_OK);
        end_budget(budget);
        unlink(path);
    }
}

enum misuse { TOO_MANY_BYTES, TOO_FEW_BYTES, SAME_NAME, LATE_DECLARE, LATE_NOTE, RESERVED_NAME, TOO_LARGE, MISUSES };

static plim_status misuse(struct safetensors_writer *writer, enum misuse what)
{
    struct shape four = {.rank = 1, .dim = {4}}, huge = {.rank = 2, .dim = {(int64_t)1 << 40, (int64_t)1 << 40}};
    if (what == RESERVED_NAME)
        return safetensors_declare(writer, "__metadata__", TYPE_U8, &four, NULL);
    if (what == TOO_LARGE)
        return safetensors_declare(writer, "huge", TYPE_U8, &huge, NULL);
    TRY(safetensors_declare(writer, "a", TYPE_U8, &four, NULL));
    if (what == SAME_NAME)
        TRY(safetensors_declare(writer, "a", TYPE_U8, &four, NULL));
    TRY(safetensors_write(writer, "1234567", what == TOO_MANY_BYTES ? 5 : what == TOO_FEW_BYTES ? 3 : 4, NULL));
    if (what == LATE_DECLARE)
        return safetensors_declare(writer, "b", TYPE_U8, &four, NULL);
    if (what == LATE_NOTE)
        return safetensors_note(writer, "b", "c", NULL);
    return safetensors_commit(writer, NULL);
}

static void misused(void **state)
{
    (void)state;
    for (int what = 0; what < MISUSES; what++) {
        struct budget *budget = new_budget();
        struct safetensors_writer *writer;
        assert_int_equal(safetensors_create(&writer, budget, path_of("wrong"), NULL, 4096, NULL), PLIM_OK);
        assert_int_not_equal(misuse(writer, (enum misuse)what), PLIM_OK);
        assert_int_not_equal(access(path_of("wrong.partial"), F_OK), 0);
        assert_int_not_equal(safetensors_write(writer, "1", 1, NULL), PLIM_OK);
        assert_int_not_equal(safetensors_commit(writer, NULL), PLIM_OK);
        safetensors_abandon(writer);
        assert_int_not_equal(access(path_of("wrong"), F_OK), 0);
        end_budget(budget);
    }
}

/* Whatever fails while a new file is written: the old one or the new one is there, whole. */
static void faults_while_writing(void **state)
{
    (void)state;
    static const int numbers_of_errors[] = {EIO, ENOSPC, 0};
    struct budget *budget = new_budget();
    const char *path = path_of("model");
    assert_int_equal(write_model(budget, path, true, NULL), PLIM_OK);
    for (size_t n = 0; n < COUNT(numbers_of_errors); n++) {
        bool reached = true;
        for (int64_t nth = 1; reached && nth < 200; nth++) {
            plim_error error = {0};
            bool short_ones = numbers_of_errors[n] == 0;
            fault_arm(short_ones ? FAULT_READ | FAULT_WRITE : FAULT_ANY, nth, false, numbers_of_errors[n]);
            plim_status status = write_model(budget, path_of("model"), true, &error);
            reached = fault_disarm();
            assert_int_equal(status != PLIM_OK, reached && !short_ones);
            assert_int_equal(error.code, status);
            assert_int_not_equal(access(path_of("model.partial"), F_OK), 0);
            assert_int_equal(try_open(budget, path_of("model"), &error), PLIM_OK);
        }
        assert_false(reached);
    }
    end_budget(budget);
    unlink(path_of("model"));
}

static void faults_while_reading(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    assert_int_equal(write_model(budget, path_of("model"), false, NULL), PLIM_OK);
    bool reached = true;
    for (int64_t nth = 1; reached && nth < 200; nth++) {
        struct safetensors *file;
        plim_error error = {0};
        fault_arm(FAULT_ANY, nth, true, EIO);
        plim_status status = safetensors_open(&file, budget, path_of("model"), &error);
        reached = fault_disarm();
        assert_int_equal(status != PLIM_OK, reached);
        assert_int_equal(error.code, status);
        if (status == PLIM_OK)
            safetensors_close(file);
        assert_int_equal(budget_usage(budget).now_by_tag[TAG_FORMATS], 0);
    }
    assert_false(reached);
    end_budget(budget);
    unlink(path_of("model"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),        cmocka_unit_test(damaged_files),        cmocka_unit_test(lying_files),
        cmocka_unit_test(bombs),        cmocka_unit_test(round_trip),           cmocka_unit_test(nothing_declared),
        cmocka_unit_test(misused),      cmocka_unit_test(faults_while_writing), cmocka_unit_test(faults_while_reading),
        cmocka_unit_test(many_tensors), cmocka_unit_test(tiny_entries),
    };
    return cmocka_run_group_tests_name("safetensors", tests, make_folder, remove_folder);
}
