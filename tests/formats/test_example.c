/* test_example.c - serialized examples: TensorFlow's own, odd ones as TensorFlow judged them, damaged ones. */
#include "format_files.h"

#include "base/numbers/count.h"
#include "formats/records/example.h"
#include "formats/records/tfrecord_reader.h"

#define ROOM_BYTES 65536

static uint8_t value_bytes[ROOM_BYTES] __attribute__((aligned(VALUE_ALIGNMENT)));

static const char *golden(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/%s", name);
    return path;
}

/* The records of a golden file: they lie in the reader's buffer. */
static int64_t read_golden(struct string *records, int64_t most, struct tfrecord_reader **reader, struct budget *budget,
                           const char *name)
{
    int64_t count;
    plim_error error;
    assert_int_equal(tfrecord_reader_open(reader, budget, golden(name), 0, &error), PLIM_OK);
    assert_int_equal(tfrecord_reader_read(&count, records, *reader, most, NULL, &error), PLIM_OK);
    assert_true(count < most);
    return count;
}

static bool is(const struct string *string, const char *text)
{
    return string->bytes == strlen(text) && memcmp(string->data, text, string->bytes) == 0;
}

/* ---- good ones ---------------------------------------------------------------- */

static const struct feature features[] = {
    {.name = "tags", .kind = FEATURE_VARIABLE, .type = TYPE_I64},
    {.name = "x", .type = TYPE_F32, .shape = {.rank = 2, .dim = {5, 2}}},
    {.name = "name", .type = TYPE_STRING},
    {.name = "label", .type = TYPE_I64},
    {.name = "pairs", .kind = FEATURE_SEQUENCE, .type = TYPE_F32, .shape = {.rank = 1, .dim = {2}}, .may_miss = true},
};

struct rows {
    struct cell tags[8], pairs[8];
    float x[8][10];
    struct string name[8];
    int64_t label[8];
};

static struct row_target into(struct rows *rows, void **to, uint64_t *stride, struct value_buffer *values)
{
    void *places[] = {rows->tags, rows->x, rows->name, rows->label, rows->pairs};
    uint64_t strides[] = {sizeof rows->tags[0], sizeof rows->x[0], sizeof rows->name[0], 8, sizeof rows->pairs[0]};
    memcpy(to, places, sizeof places);
    memcpy(stride, strides, sizeof strides);
    return (struct row_target){.to = to, .stride = stride, .values = values};
}

static void parses_golden(void **state)
{
    (void)state;
    static const char *const names[] = {"records.tfrecord", "records_gzip.tfrecord", "records_zlib.tfrecord"};
    for (int f = 0; f < 3; f++) {
        struct budget *budget = new_budget();
        struct tfrecord_reader *reader;
        struct example_parser *parser;
        struct string records[16];
        struct rows rows;
        struct value_buffer values;
        void *to[5];
        uint64_t stride[5];
        int64_t done, count = read_golden(records, 16, &reader, budget, names[f]);
        plim_error error;
        assert_int_equal(count, 6);
        assert_int_equal(example_parser_make(&parser, budget, features, 5, false, &error), PLIM_OK);
        value_buffer_init(&values, value_bytes, ROOM_BYTES);
        struct row_target target = into(&rows, to, stride, &values);
        assert_int_equal(example_parse(&done, parser, records, count, &target, &error), PLIM_OK);
        assert_int_equal(done, 6);
        for (int i = 0; i < 6; i++) {
            char name[24];
            snprintf(name, sizeof name, "item-%d", i);
            assert_true(is(&rows.name[i], name));
            assert_int_equal(rows.label[i], i * i - 7);
            for (int j = 0; j < 10; j++)
                assert_true(rows.x[i][j] == (float)i + (float)j / 4);
            assert_int_equal(rows.tags[i].dim[0], i);
            int64_t power = 1;
            for (int k = 0; k < i; k++, power *= -1000)
                assert_int_equal(((int64_t *)rows.tags[i].data)[k], power);
            assert_true(rows.pairs[i].dim[0] == 0 && rows.pairs[i].dim[1] == 2);
        }
        example_parser_free(parser);
        tfrecord_reader_close(reader);
        end_budget(budget);
    }
}

/* What we write of the same columns are TensorFlow's bytes. */
static void writes_golden(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct string records[16], written;
    struct value_buffer values;
    plim_error error;
    int64_t count = read_golden(records, 16, &reader, budget, "records.tfrecord");
    for (int i = 0; i < count; i++) {
        float x[10];
        int64_t label = i * i - 7, tags[6];
        char text[24];
        snprintf(text, sizeof text, "item-%d", i);
        struct string name = {.data = (uint8_t *)text, .bytes = strlen(text)};
        for (int j = 0; j < 10; j++)
            x[j] = (float)i + (float)j / 4;
        for (int64_t k = 0, power = 1; k < i; k++, power *= -1000)
            tags[k] = power;
        struct example_column columns[] = {{"label", TYPE_I64, &label, 1},
                                           {"name", TYPE_STRING, &name, 1},
                                           {"tags", TYPE_I64, tags, i},
                                           {"x", TYPE_F32, x, 10}};
        value_buffer_init(&values, value_bytes, ROOM_BYTES);
        assert_int_equal(example_write(&written, columns, 4, &values, &error), PLIM_OK);
        assert_int_equal(written.bytes, records[i].bytes);
        assert_memory_equal(written.data, records[i].data, written.bytes);
        value_buffer_init(&values, value_bytes, written.bytes - 1);
        assert_int_equal(example_write(&written, columns, 4, &values, &error), PLIM_OK);
        assert_null(written.data);
        assert_int_equal(values.wanted, records[i].bytes);
    }
    tfrecord_reader_close(reader);
    end_budget(budget);
}

/* Other types than the three are converted. */
static void writes_other_types(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct example_parser *parser;
    struct string record;
    struct value_buffer values;
    plim_error error;
    int64_t done, a[3], b[2];
    float c[2];
    static const struct feature declared[] = {{.name = "a", .type = TYPE_I64, .shape = {.rank = 1, .dim = {3}}},
                                              {.name = "b", .type = TYPE_I64, .shape = {.rank = 1, .dim = {2}}},
                                              {.name = "c", .type = TYPE_F32, .shape = {.rank = 1, .dim = {2}}}};
    struct example_column columns[] = {{"a", TYPE_U8, (uint8_t[]){0, 200, 255}, 3},
                                       {"b", TYPE_I32, (int32_t[]){-5, 70000}, 2},
                                       {"c", TYPE_F64, (double[]){0.5, -3}, 2}};
    value_buffer_init(&values, value_bytes, ROOM_BYTES);
    assert_int_equal(example_write(&record, columns, 3, &values, &error), PLIM_OK);
    assert_int_equal(example_parser_make(&parser, budget, declared, 3, false, &error), PLIM_OK);
    struct row_target target = {.to = (void *[]){a, b, c}, .stride = (uint64_t[]){24, 16, 8}};
    assert_int_equal(example_parse(&done, parser, &record, 1, &target, &error), PLIM_OK);
    assert_true(a[0] == 0 && a[1] == 200 && a[2] == 255 && b[0] == -5 && b[1] == 70000 && c[0] == 0.5f && c[1] == -3);
    example_parser_free(parser);
    end_budget(budget);
}

/* ---- odd ones ------------------------------------------------------------------- */

/* One line of example_cases.txt, as our own parse gives it. */
static void judge(char *out, size_t capacity, const struct example_parser *parser, const struct string *record)
{
    float x[3];
    int64_t y, done;
    struct cell n;
    struct value_buffer values;
    plim_error error;
    value_buffer_init(&values, value_bytes, ROOM_BYTES);
    struct row_target target = {
        .to = (void *[]){x, &y, &n}, .stride = (uint64_t[]){12, 8, sizeof n}, .values = &values};
    if (example_parse(&done, parser, record, 1, &target, &error) != PLIM_OK) {
        assert_int_equal(error.code, PLIM_BAD_DATA);
        assert_int_equal(done, 0);
        snprintf(out, capacity, "error %s", error.message);
        return;
    }
    int length = snprintf(out, capacity, "ok x=%g,%g,%g y=%lld n=%lld:", (double)x[0], (double)x[1], (double)x[2],
                          (long long)y, (long long)n.dim[0]);
    for (int64_t i = 0; i < n.dim[0]; i++) {
        struct string *string = (struct string *)n.data + i;
        length += snprintf(out + length, capacity - (size_t)length, "%s%.*s", i ? "|" : "", (int)string->bytes,
                           (const char *)string->data);
    }
}

/* The words that our message shares with TensorFlow's. */
static void check_message(const char *ours, const char *theirs)
{
    static const char *const words[] = {"is required but could not be found", "values != expected",
                                        "ata types don't match", "ould not parse example input"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (strstr(theirs, words[i]) && !strstr(theirs, "Values size: 2 but output shape: [3]"))
            assert_non_null(strstr(ours, words[i]));
}

static void judges_as_tensorflow(void **state)
{
    (void)state;
    const struct feature declared[] = {
        {.name = "x", .type = TYPE_F32, .shape = {.rank = 1, .dim = {3}}},
        {.name = "y", .type = TYPE_I64, .fallback = &(int64_t){42}},
        {.name = "n", .kind = FEATURE_VARIABLE, .type = TYPE_STRING},
    };
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct example_parser *parser;
    struct string records[64];
    char line[1024], ours[1024];
    int64_t count = read_golden(records, 64, &reader, budget, "example_cases.tfrecord");
    FILE *text = fopen(golden("example_cases.txt"), "r");
    assert_non_null(text);
    assert_int_equal(example_parser_make(&parser, budget, declared, 3, false, NULL), PLIM_OK);
    for (int64_t i = 0; i < count; i++) {
        assert_non_null(fgets(line, sizeof line, text));
        line[strcspn(line, "\n")] = 0;
        char *theirs = strchr(line, '\t');
        assert_non_null(theirs);
        *theirs++ = 0;
        judge(ours, sizeof ours, parser, &records[i]);
        if (strncmp(theirs, "error", 5) == 0 ? strncmp(ours, "error", 5) != 0 : strcmp(ours, theirs) != 0)
            fail_msg("%s: ours '%s', TensorFlow's '%s'", line, ours, theirs);
        if (strncmp(theirs, "error", 5) == 0)
            check_message(ours, theirs);
    }
    assert_null(fgets(line, sizeof line, text));
    fclose(text);
    example_parser_free(parser);
    tfrecord_reader_close(reader);
    end_budget(budget);
}

static void names_what_is_wrong(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct example_parser *parser;
    struct string record;
    struct value_buffer values;
    plim_error error;
    int64_t done, y[4];
    struct cell cell;
    value_buffer_init(&values, value_bytes, ROOM_BYTES);
    struct example_column columns[] = {{"y", TYPE_I64, (int64_t[]){1, 2, 3}, 3}};
    assert_int_equal(example_write(&record, columns, 1, &values, &error), PLIM_OK);
    const struct {
        struct feature feature;
        const char *message;
    } cases[] = {
        {{.name = "y", .type = TYPE_I64, .shape = {.rank = 2, .dim = {2, 2}}},
         "feature 'y': number of int64 values != expected: the record has 3, the declared shape is (2, 2)"},
        {{.name = "y", .type = TYPE_F32},
         "feature 'y': data types don't match: the record has int64, declared is float32"},
        {{.name = "z", .type = TYPE_STRING}, "feature 'z' (string) is required but could not be found"},
        {{.name = "y", .kind = FEATURE_SEQUENCE, .type = TYPE_I64, .shape = {.rank = 1, .dim = {2}}},
         "feature 'y': number of int64 values != expected: the record has 3, the declared shape is (steps) of (2,)"},
        {{.name = "z", .kind = FEATURE_SEQUENCE, .type = TYPE_I64}, "feature 'z' (int64) is required"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        void *to = cases[i].feature.kind == FEATURE_FIXED ? (void *)y : (void *)&cell;
        struct row_target target = {.to = &to, .stride = (uint64_t[]){sizeof cell}, .values = &values};
        assert_int_equal(example_parser_make(&parser, budget, &cases[i].feature, 1, false, &error), PLIM_OK);
        assert_int_equal(example_parse(&done, parser, &record, 1, &target, &error), PLIM_BAD_DATA);
        if (!strstr(error.message, cases[i].message))
            fail_msg("'%s' instead of '%s'", error.message, cases[i].message);
        example_parser_free(parser);
    }
    end_budget(budget);
}

static void refuses_declarations(void **state)
{
    (void)state;
    static const struct {
        struct feature feature[2];
        int count;
        const char *message;
    } cases[] = {
        {{{.name = "a", .type = TYPE_I32}}, 1, "float32, int64 and string only"},
        {{{.name = "a", .type = TYPE_I64, .shape = {.rank = 1, .dim = {-1}}}}, 1, "not fully known"},
        {{{.name = "a", .type = TYPE_I64, .shape = {.rank = 2, .dim = {INT64_MAX, 3}}}}, 1, "not fully known"},
        {{{.name = "a", .type = TYPE_I64}, {.name = "a", .type = TYPE_F32}}, 2, "declared twice"},
        {{{.name = "a", .type = TYPE_I64, .in_list = true}}, 1, "only sequence examples"},
        {{{.name = "a", .kind = FEATURE_VARIABLE, .type = TYPE_I64, .shape = {.rank = 1, .dim = {2}}}}, 1, "no shape"},
        {{{.name = "a", .kind = FEATURE_SEQUENCE, .type = TYPE_I64, .shape = {.rank = 1}}}, 1, "no steps"},
        {{{.name = "a"}}, 0, "0 features"},
    };
    struct budget *budget = new_budget();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct example_parser *parser;
        plim_error error;
        assert_int_equal(example_parser_make(&parser, budget, cases[i].feature, cases[i].count, false, &error),
                         PLIM_BAD_JOB);
        assert_non_null(strstr(error.message, cases[i].message));
    }
    end_budget(budget);
}

/* Keys that change their order, come and go: guesses are only guesses. */
static void guesses_are_checked(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct example_parser *parser;
    struct string records[6];
    struct value_buffer values;
    plim_error error;
    static const char *const names[] = {"alpha", "gamma", "delta", "alpho"};
    int64_t numbers[6][4], done, out[2][6];
    const struct feature declared[] = {{.name = "gamma", .type = TYPE_I64},
                                       {.name = "alpha", .type = TYPE_I64, .fallback = &(int64_t){-1}}};
    static const int order[6][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 3}, {3, 1, 0}, {3, 0, 1}, {0, 3, 1}};
    value_buffer_init(&values, value_bytes, ROOM_BYTES);
    for (int i = 0; i < 6; i++) {
        struct example_column columns[3];
        for (int k = 0; k < 3; k++) {
            numbers[i][k] = 10 * i + order[i][k];
            columns[k] = (struct example_column){names[order[i][k]], TYPE_I64, &numbers[i][k], 1};
        }
        assert_int_equal(example_write(&records[i], columns, 3, &values, &error), PLIM_OK);
    }
    assert_int_equal(example_parser_make(&parser, budget, declared, 2, false, &error), PLIM_OK);
    struct row_target target = {.to = (void *[]){out[0], out[1]}, .stride = (uint64_t[]){8, 8}};
    assert_int_equal(example_parse(&done, parser, records, 6, &target, &error), PLIM_OK);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(out[0][i], 10 * i + 1);
        assert_int_equal(out[1][i], i == 2 ? -1 : 10 * i);
    }
    example_parser_free(parser);
    end_budget(budget);
}

/* Defaults of all types are copied, strings with their bytes. */
static void keeps_defaults(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct example_parser *parser;
    struct string record, strings[2], s[2];
    struct value_buffer values;
    plim_error error;
    float f[2] = {1.5f, 2.5f}, x[2];
    char text[] = "abc";
    int64_t done;
    strings[0] = (struct string){.data = (uint8_t *)text, .bytes = 3};
    strings[1] = (struct string){0};
    const struct feature declared[] = {
        {.name = "s", .type = TYPE_STRING, .shape = {.rank = 1, .dim = {2}}, .fallback = strings},
        {.name = "f", .type = TYPE_F32, .shape = {.rank = 1, .dim = {2}}, .fallback = f},
    };
    assert_int_equal(example_parser_make(&parser, budget, declared, 2, false, &error), PLIM_OK);
    memset(text, 0, sizeof text);
    memset(f, 0, sizeof f);
    memset(strings, 0, sizeof strings);
    value_buffer_init(&values, value_bytes, ROOM_BYTES);
    assert_int_equal(example_write(&record, NULL, 0, &values, &error), PLIM_OK);
    struct row_target target = {.to = (void *[]){s, x}, .stride = (uint64_t[]){sizeof s, sizeof x}};
    assert_int_equal(example_parse(&done, parser, &record, 1, &target, &error), PLIM_OK);
    assert_true(is(&s[0], "abc") && s[1].bytes == 0 && x[0] == 1.5f && x[1] == 2.5f);
    example_parser_free(parser);
    end_budget(budget);
}

/* A full value buffer stops before the record that does not fit, and the next call goes on there. */
static void stops_at_a_full_room(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct example_parser *parser;
    struct string records[16];
    struct rows rows;
    struct value_buffer values;
    void *to[5];
    uint64_t stride[5];
    plim_error error;
    int64_t done, at = 0, calls = 0, count = read_golden(records, 16, &reader, budget, "records.tfrecord");
    assert_int_equal(example_parser_make(&parser, budget, features, 5, false, &error), PLIM_OK);
    for (; at < count; at += done, calls++) {
        value_buffer_init(&values, value_bytes, 128);
        struct row_target target = into(&rows, to, stride, &values);
        assert_int_equal(example_parse(&done, parser, records + at, count - at, &target, &error), PLIM_OK);
        assert_true(done > 0 && (done == count - at || values.wanted));
        for (int64_t i = 0; i < done; i++)
            assert_true(rows.label[i] == (at + i) * (at + i) - 7 && rows.tags[i].dim[0] == at + i);
    }
    assert_true(calls > 1);
    value_buffer_init(&values, value_bytes, 16);
    struct row_target target = into(&rows, to, stride, &values);
    assert_int_equal(example_parse(&done, parser, records + 5, 1, &target, &error), PLIM_OK);
    assert_int_equal(done, 0);
    assert_int_equal(values.wanted, 40);
    assert_int_equal(values.used, 0);
    example_parser_free(parser);
    tfrecord_reader_close(reader);
    end_budget(budget);
}

/* ---- sequence examples --------------------------------------------------------------- */

static const struct feature sequence_features[] = {
    {.name = "words", .kind = FEATURE_VARIABLE, .type = TYPE_STRING, .in_list = true},
    {.name = "id", .type = TYPE_I64},
    {.name = "frames", .kind = FEATURE_SEQUENCE, .type = TYPE_F32, .shape = {.rank = 1, .dim = {2}}, .in_list = true},
    {.name = "none", .kind = FEATURE_SEQUENCE, .type = TYPE_I64, .in_list = true, .may_miss = true},
};

static void parses_sequences(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct example_parser *parser;
    struct string records[16];
    struct value_buffer values;
    struct cell words[4], frames[4], none[4];
    int64_t id[4], done, count = read_golden(records, 16, &reader, budget, "sequence.tfrecord");
    plim_error error;
    assert_int_equal(count, 4);
    assert_int_equal(example_parser_make(&parser, budget, sequence_features, 4, true, &error), PLIM_OK);
    struct shape shape = feature_shape(&sequence_features[0]);
    assert_true(shape.rank == 2 && shape.dim[0] == -1 && shape.dim[1] == -1);
    shape = feature_shape(&sequence_features[2]);
    assert_true(shape.rank == 2 && shape.dim[0] == -1 && shape.dim[1] == 2);
    value_buffer_init(&values, value_bytes, ROOM_BYTES);
    size_t cell = sizeof(struct cell);
    struct row_target target = {
        .to = (void *[]){words, id, frames, none}, .stride = (uint64_t[]){cell, 8, cell, cell}, .values = &values};
    assert_int_equal(example_parse(&done, parser, records, count, &target, &error), PLIM_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(id[i], i);
        assert_true(frames[i].dim[0] == i && frames[i].dim[1] == 2 && none[i].dim[0] == 0);
        assert_true(words[i].dim[0] == i && words[i].dim[1] == (i ? i - 1 : 0));
        for (int k = 0; k < i; k++) {
            float *frame = (float *)frames[i].data + 2 * k;
            assert_true(frame[0] == (float)i && frame[1] == (float)k);
            for (int w = 0; w < i - 1; w++) {
                char text[16];
                snprintf(text, sizeof text, "w%d", k);
                if (w >= k)
                    text[0] = 0;
                assert_true(is((struct string *)words[i].data + k * (i - 1) + w, text));
            }
        }
    }
    example_parser_free(parser);
    /* Steps of another size, of another type, and no list. */
    struct feature wrong = sequence_features[2];
    wrong.shape.dim[0] = 3;
    for (int i = 0; i < 3; i++) {
        static const char *const messages[] = {"the record has 2, the declared shape", "don't match",
                                               "feature list 'else' (int64) is required but could not be found"};
        assert_int_equal(example_parser_make(&parser, budget, &wrong, 1, true, &error), PLIM_OK);
        target.to = (void *[]){frames};
        target.stride = &(uint64_t){sizeof(struct cell)};
        assert_int_equal(example_parse(&done, parser, records, count, &target, &error), PLIM_BAD_DATA);
        assert_int_equal(done, i == 2 ? 0 : 1);
        assert_non_null(strstr(error.message, messages[i]));
        example_parser_free(parser);
        wrong.type = TYPE_I64;
        if (i == 1)
            wrong.name = "else";
    }
    tfrecord_reader_close(reader);
    end_budget(budget);
}

/* ---- damage ----------------------------------------------------------------------------- */

/* Cut at every byte, every bit turned, each in a block of its own size: an error or values, and nothing beyond it. */
static int sweep_record(const struct example_parser *parser, const struct string *record,
                        const struct row_target *target)
{
    int errors = 0;
    for (uint64_t n = 0; n < 9 * record->bytes; n++) {
        uint64_t bytes = n < record->bytes ? n : record->bytes, bit = n - record->bytes;
        uint8_t *copy = malloc(bytes ? bytes : 1);
        int64_t done;
        plim_error error;
        memcpy(copy, record->data, bytes);
        if (n >= record->bytes)
            copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        target->values->used = 0;
        plim_status status =
            example_parse(&done, parser, &(struct string){.data = copy, .bytes = bytes}, 1, target, &error);
        assert_true(status == PLIM_OK || status == PLIM_BAD_DATA);
        errors += status != PLIM_OK;
        free(copy);
    }
    return errors;
}

static void sweeps(void **state)
{
    (void)state;
    struct budget *budget = new_budget();
    struct tfrecord_reader *reader;
    struct example_parser *parser;
    struct string records[16];
    struct rows rows;
    struct value_buffer values;
    void *to[5];
    uint64_t stride[5];
    read_golden(records, 16, &reader, budget, "records.tfrecord");
    assert_int_equal(example_parser_make(&parser, budget, features, 5, false, NULL), PLIM_OK);
    value_buffer_init(&values, value_bytes, ROOM_BYTES);
    struct row_target target = into(&rows, to, stride, &values);
    assert_true(sweep_record(parser, &records[5], &target) > 500);
    example_parser_free(parser);
    tfrecord_reader_close(reader);
    read_golden(records, 16, &reader, budget, "sequence.tfrecord");
    assert_int_equal(example_parser_make(&parser, budget, sequence_features, 4, true, NULL), PLIM_OK);
    target.to = (void *[]){rows.tags, rows.label, rows.pairs, rows.x};
    target.stride = (uint64_t[]){sizeof rows.tags[0], 8, sizeof rows.pairs[0], 64};
    assert_true(sweep_record(parser, &records[3], &target) > 400);
    example_parser_free(parser);
    tfrecord_reader_close(reader);
    end_budget(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_golden),
        cmocka_unit_test(writes_golden),
        cmocka_unit_test(writes_other_types),
        cmocka_unit_test(judges_as_tensorflow),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(refuses_declarations),
        cmocka_unit_test(guesses_are_checked),
        cmocka_unit_test(keeps_defaults),
        cmocka_unit_test(stops_at_a_full_room),
        cmocka_unit_test(parses_sequences),
        cmocka_unit_test(sweeps),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
