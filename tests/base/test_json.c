/* test_json.c - what is written is read back; what is not RFC 8259 is refused
   with its byte; damaged input never does harm. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/count.h"
#include "base/numbers/numbers.h"
#include "base/numbers/random.h"
#include "base/text/json.h"

#include <cmocka.h> /* last: it has a macro fail() */

struct fixture {
    struct budget *budget;
    struct text text;
    struct json_writer json;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    if (budget_make(&fixture.budget, BUDGET_UNLIMITED, NULL) != PLIM_OK)
        return -1;
    text_init(&fixture.text, fixture.budget, TAG_FORMATS);
    json_init(&fixture.json, &fixture.text);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    text_release(&fixture->text);
    budget_free(fixture->budget);
    return 0;
}

/* ---- writing --------------------------------------------------------- */

static void writer_puts_commas(void **state)
{
    struct fixture *fixture = *state;
    struct json_writer *json = &fixture->json;
    json_object(json, NULL);
    json_string(json, "event", "plan");
    json_bool(json, "fits", true);
    json_array(json, "frontier");
    json_object(json, NULL);
    json_uint(json, "bytes", UINT64_MAX);
    json_double(json, "relative_time", 1.5);
    json_end_object(json);
    json_object(json, NULL);
    json_end_object(json);
    json_array(json, NULL);
    json_end_array(json);
    json_int(json, NULL, INT64_MIN);
    json_bool(json, NULL, false);
    json_end_array(json);
    json_string(json, "checkpoint", NULL);
    json_object(json, "by_tag");
    json_end_object(json);
    json_end_object(json);
    assert_false(fixture->text.failed);
    assert_string_equal(fixture->text.data,
                        "{\"event\":\"plan\",\"fits\":true,\"frontier\":[{\"bytes\":18446744073709551615,"
                        "\"relative_time\":1.5},{},[],-9223372036854775808,false],\"checkpoint\":null,\"by_tag\":{}}");
}

static void writer_escapes(void **state)
{
    struct fixture *fixture = *state;
    json_string(&fixture->json, NULL, "a\"b\\c\nd\te\x01\x7f/\xc3\xa9\xf0\x9f\x98\x80");
    assert_string_equal(fixture->text.data, "\"a\\\"b\\\\c\\nd\\u0009e\\u0001\\u007f/\xc3\xa9\xf0\x9f\x98\x80\"");
    text_clear(&fixture->text);
    json_init(&fixture->json, &fixture->text);
    json_string(&fixture->json, NULL, "x\xff\xed\xa0\x80y\xc3");
    assert_string_equal(fixture->text.data, "\"x\\ufffd\\ufffd\\ufffd\\ufffdy\\ufffd\"");
}

static const char *written(struct fixture *fixture, double value)
{
    text_clear(&fixture->text);
    json_init(&fixture->json, &fixture->text);
    json_double(&fixture->json, NULL, value);
    return fixture->text.data;
}

static void doubles_are_short_and_exact(void **state)
{
    struct fixture *fixture = *state;
    assert_string_equal(written(fixture, 0.1), "0.1");
    assert_string_equal(written(fixture, 1), "1");
    assert_string_equal(written(fixture, -0.0), "-0");
    assert_string_equal(written(fixture, 1.0 / 3), "0.3333333333333333");
    assert_string_equal(written(fixture, 0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(written(fixture, 5e-324), "5e-324");
    assert_string_equal(written(fixture, 1e300), "1e+300");
    assert_string_equal(written(fixture, NAN), "null");
    assert_string_equal(written(fixture, INFINITY), "null");
    assert_string_equal(written(fixture, -INFINITY), "null");
}

static void check_round_trip(struct fixture *fixture, double value)
{
    struct json_reader reader;
    struct json_token token;
    const char *text = written(fixture, value);
    json_read_init(&reader, text, strlen(text));
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    double back = number_parse(token.text, NULL);
    assert_memory_equal(&back, &value, sizeof value);
}

static void random_doubles_round_trip(void **state)
{
    check_round_trip(*state, DBL_MAX);
    check_round_trip(*state, DBL_MIN);
    check_round_trip(*state, nextafter(DBL_MIN, 0));
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t bits = random_key(1, 2, i);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            check_round_trip(*state, value);
    }
}

/* A host program may have set a locale with a decimal comma. */
static void numbers_ignore_the_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < 4 && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    assert_string_equal(written(*state, 1.5), "1.5");
    check_round_trip(*state, 1.0 / 3);
    setlocale(LC_NUMERIC, "C");
    if (!found)
        print_message("no locale with a decimal comma here: only the C locale was tried\n");
}

/* ---- reading --------------------------------------------------------- */

/* Reads all tokens; the status of the first that fails. */
static plim_status read_all(const char *text, size_t bytes, plim_error *error)
{
    struct json_reader reader;
    struct json_token token = {.kind = JSON_NULL};
    json_read_init(&reader, text, bytes);
    for (int i = 0; token.kind != JSON_END; i++) {
        plim_status status = json_next(&token, &reader, error);
        if (status != PLIM_OK)
            return status;
        assert_true(reader.at <= bytes);
        assert_true((size_t)i <= 2 * bytes + 2);
    }
    return PLIM_OK;
}

static void accepts_json(void **state)
{
    (void)state;
    static const char *const good[] = {
        "null",
        " true ",
        "false\r\n",
        "0",
        "-0",
        "-0.0e-0",
        "1E+5",
        "123.456",
        "\"\"",
        "[]",
        "{}",
        "[[],{}]",
        "\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "{\"a\":1,\"a\":2}",
        "\t[ 1 , 2 ]\n",
        "\"\x7f\"",
        "\"\xe2\x82\xac\xf4\x8f\xbf\xbf\"",
        "\"\\ud800\"",
        "{\"\":{\"\":[{}]}}",
        "1e999",
    };
    for (size_t i = 0; i < COUNT(good); i++)
        if (read_all(good[i], strlen(good[i]), NULL) != PLIM_OK)
            fail_msg("refused: %s", good[i]);
}

/* `at`: the byte that the message names. */
static const struct {
    const char *text;
    size_t at;
} not_json[] = {
    {"", 0},
    {" ", 1},
    {"nul", 0},
    {"nulll", 4},
    {"tru", 0},
    {"NaN", 0},
    {"-", 1},
    {"01", 1},
    {"+1", 0},
    {"1.", 2},
    {".5", 0},
    {"1e", 2},
    {"1e+", 3},
    {"0x10", 1},
    {"-Infinity", 1},
    {"[1,]", 3},
    {"[,1]", 1},
    {"[1 2]", 3},
    {"[1", 2},
    {"[", 1},
    {"]", 0},
    {"[}", 1},
    {"{]", 1},
    {"{\"a\"}", 4},
    {"{\"a\":}", 5},
    {"{\"a\":1,}", 7},
    {"{a:1}", 1},
    {"{\"a\":1 \"b\":2}", 7},
    {"{1:2}", 1},
    {"'a'", 0},
    {"\"a", 0},
    {"\"a\\\"", 0},
    {"\"\\x\"", 2},
    {"\"\\u12g4\"", 3},
    {"\"\n\"", 1},
    {"\"\x1f\"", 1},
    {"\"\xff\"", 1},
    {"\"\xc0\x80\"", 1},
    {"\"\xed\xa0\x80\"", 1},
    {"\"\xf4\x90\x80\x80\"", 1},
    {"\"\xe2\x82\"", 1},
    {"\xef\xbb\xbf{}", 0},
    {"1 2", 2},
    {"{} []", 3},
    {"// a\n1", 0},
    {"[1]]", 3},
    {"\"\\", 2},
    {"\"\\u12", 3},
};

static void refuses_what_is_not_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(not_json); i++) {
        plim_error error = {0};
        char where[32];
        if (read_all(not_json[i].text, strlen(not_json[i].text), &error) != PLIM_BAD_DATA)
            fail_msg("accepted: %s", not_json[i].text);
        snprintf(where, sizeof where, "byte %zu: ", not_json[i].at);
        if (strncmp(error.message, where, strlen(where)) != 0)
            fail_msg("%s: expected %s, got: %s", not_json[i].text, where, error.message);
        assert_true(error.where[0] == 0);
    }
    assert_int_equal(read_all("1\0", 2, NULL), PLIM_BAD_DATA);
    assert_int_equal(read_all("\"\\\0\"", 4, NULL), PLIM_BAD_DATA);
    assert_int_equal(read_all("\"\0\"", 3, NULL), PLIM_BAD_DATA);
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    char deep[2 * JSON_DEPTH + 2];
    memset(deep, '[', JSON_DEPTH);
    memset(deep + JSON_DEPTH, ']', JSON_DEPTH);
    assert_int_equal(read_all(deep, 2 * JSON_DEPTH, NULL), PLIM_OK);
    memset(deep, '[', JSON_DEPTH + 1);
    memset(deep + JSON_DEPTH + 1, ']', JSON_DEPTH + 1);
    assert_int_equal(read_all(deep, 2 * JSON_DEPTH + 2, NULL), PLIM_BAD_DATA);
}

static void tokens_carry_keys(void **state)
{
    (void)state;
    static const char text[] = "{\"w\": {\"dtype\":\"F32\", \"shape\":[2,3]}, \"__x__\": [1,{\"y\":2}], \"z\": null}";
    struct json_reader reader;
    struct json_token token;
    json_read_init(&reader, text, sizeof text - 1);
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_int_equal(token.kind, JSON_OBJECT);
    assert_null(token.key);
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_int_equal(token.kind, JSON_OBJECT);
    assert_true(json_is(token.key, token.key_bytes, "w"));
    assert_int_equal(token.at, 6);
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_int_equal(token.kind, JSON_STRING);
    assert_true(json_is(token.key, token.key_bytes, "dtype"));
    assert_true(json_is(token.text, token.text_bytes, "F32"));
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_int_equal(token.kind, JSON_ARRAY);
    for (int i = 2; i <= 3; i++) {
        int64_t whole;
        assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
        assert_null(token.key);
        assert_true(json_whole(&whole, &token));
        assert_int_equal(whole, i);
    }
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_int_equal(token.kind, JSON_ARRAY_END);
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_int_equal(token.kind, JSON_OBJECT_END);
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_true(json_is(token.key, token.key_bytes, "__x__"));
    assert_int_equal(json_skip(&reader, &token, NULL), PLIM_OK);
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_true(json_is(token.key, token.key_bytes, "z"));
    assert_int_equal(token.kind, JSON_NULL);
    assert_int_equal(json_skip(&reader, &token, NULL), PLIM_OK);
    assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
    assert_int_equal(token.kind, JSON_OBJECT_END);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(json_next(&token, &reader, NULL), PLIM_OK);
        assert_int_equal(token.kind, JSON_END);
    }
}

static bool unescaped(const char *raw, const char *expected, size_t capacity)
{
    char out[32];
    memset(out, 'x', sizeof out);
    bool done = json_unescape(out, capacity, raw, strlen(raw));
    for (size_t i = capacity; i < sizeof out; i++)
        assert_true(out[i] == 'x');
    if (done)
        assert_string_equal(out, expected);
    return done;
}

static void strings_are_unescaped(void **state)
{
    (void)state;
    assert_true(unescaped("a\\n\\\"\\\\\\/\\b\\f\\r\\t", "a\n\"\\/\b\f\r\t", 32));
    assert_true(unescaped("\\u0041\\u00e9\\u20ac\\ud83d\\ude00", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 32));
    assert_true(unescaped("", "", 1));
    assert_false(unescaped("", "", 0));
    assert_true(unescaped("abc", "abc", 4));
    assert_false(unescaped("abc", "abc", 3));
    assert_false(unescaped("\\u20ac", "", 3));
    assert_false(unescaped("\\ud83d", "", 32));
    assert_false(unescaped("\\ud83dx", "", 32));
    assert_false(unescaped("\\ud83d\\u0041", "", 32));
    assert_false(unescaped("\\ude00", "", 32));
    assert_false(unescaped("\\u0000", "", 32));
    assert_false(unescaped("\\", "", 32));
    assert_false(unescaped("\\q", "", 32));
    assert_false(unescaped("\\u12", "", 32));
}

static void names_are_compared_unescaped(void **state)
{
    (void)state;
    assert_true(json_is("dt\\u0079pe", 10, "dtype"));
    assert_false(json_is("dtype", 5, "dtyp"));
    assert_false(json_is("dtyp", 4, "dtype"));
    assert_true(json_is("", 0, ""));
    assert_false(json_is("\\u00e9", 6, "\xc3"));
}

static bool whole(int64_t *out, const char *text)
{
    struct json_token token = {.kind = JSON_NUMBER, .text = text, .text_bytes = strlen(text)};
    return json_whole(out, &token);
}

static void whole_numbers_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"-0", 0},
        {"-0.0e5", 0},
        {"7", 7},
        {"100", 100},
        {"1e3", 1000},
        {"2.50e1", 25},
        {"5.0", 5},
        {"1200e-2", 12},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775807.000", INT64_MAX},
        {"0.0000000000000000000001e22", 1},
        {"0e999999999999999999999", 0},
        {"9.007199254740993e15", 9007199254740993},
    };
    static const char *const bad[] = {
        "-1",          "0.5",  "9223372036854775808", "18446744073709551616",         "1e19",
        "1e999999999", "1e-1", "9007199254740992.5",  "1.00000000000000000000000001", "1e-999999999999"};
    int64_t value;
    for (size_t i = 0; i < COUNT(good); i++) {
        if (!whole(&value, good[i].text))
            fail_msg("%s is whole", good[i].text);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (whole(&value, bad[i]))
            fail_msg("%s is not whole", bad[i]);
}

/* ---- damage ---------------------------------------------------------- */

static const char sample[] = "{\"__metadata__\":{\"format\":\"pt\\u00e9\xc3\xa9\"},\"weight\":{\"dtype\":\"F32\","
                             "\"shape\":[16,-2.5e+3],\"data_offsets\":[0,4096]},\"t\":[true,false,null,{}]}";

/* In a block of just its size, so that a byte too far is seen. */
static plim_status read_exact(const char *text, size_t bytes)
{
    char *copy = malloc(bytes + (bytes == 0));
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    plim_status status = read_all(copy, bytes, NULL);
    free(copy);
    return status;
}

static void every_prefix_is_refused(void **state)
{
    (void)state;
    size_t bytes = sizeof sample - 1;
    assert_int_equal(read_exact(sample, bytes), PLIM_OK);
    for (size_t cut = 0; cut < bytes; cut++)
        assert_int_equal(read_exact(sample, cut), PLIM_BAD_DATA);
}

static void damage_does_no_harm(void **state)
{
    (void)state;
    char copy[sizeof sample];
    int refused = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        memcpy(copy, sample, sizeof sample);
        for (uint64_t change = 0; change <= i % 3; change++) {
            uint64_t key = random_key(9, i, change);
            copy[key % (sizeof sample - 1)] = (char)(key >> 40);
        }
        refused += read_exact(copy, sizeof sample - 1) != PLIM_OK;
    }
    assert_true(refused > 10000 && refused < 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writer_puts_commas, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writer_escapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(doubles_are_short_and_exact, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_doubles_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_ignore_the_locale, set_up, tear_down),
        cmocka_unit_test(accepts_json),
        cmocka_unit_test(refuses_what_is_not_json),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(tokens_carry_keys),
        cmocka_unit_test(strings_are_unescaped),
        cmocka_unit_test(names_are_compared_unescaped),
        cmocka_unit_test(whole_numbers_are_exact),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
