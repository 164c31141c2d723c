/* test_status.c - errors: names, exit codes, cutting, cleaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/status.h"
#include "base/text/message.h"

static void every_status_has_a_name_and_an_exit_code(void **state)
{
    (void)state;
    static const int exits[] = {0, 2, 2, 3, 3, 4, 4, 5, 6, 7, 2, 1};
    for (int i = PLIM_OK; i <= PLIM_INTERNAL; i++) {
        assert_non_null(plim_status_name((plim_status)i));
        assert_int_equal(plim_status_exit((plim_status)i), exits[i]);
    }
    assert_string_equal(plim_status_name(PLIM_OVER_BUDGET), "OVER_BUDGET");
    assert_string_equal(plim_status_name((plim_status)99), "INTERNAL");
    assert_int_equal(plim_status_exit((plim_status)-1), 1);
    assert_string_equal(plim_version(), PLIM_VERSION);
}

static void fields_are_filled(void **state)
{
    (void)state;
    plim_error error;
    memset(&error, 'x', sizeof error);
    assert_int_equal(fail_at(&error, PLIM_BAD_DATA, "a.npy", "record %d", 17), PLIM_BAD_DATA);
    assert_int_equal(error.code, PLIM_BAD_DATA);
    assert_string_equal(error.where, "a.npy");
    assert_string_equal(error.message, "record 17");
    assert_string_equal(error.hint, "");
    assert_int_equal(hint(&error, PLIM_IO, "try %s", "this"), PLIM_BAD_DATA);
    assert_string_equal(error.hint, "try this");
    assert_int_equal((fail)(&error, PLIM_IO, "other"), PLIM_IO);
    assert_string_equal(error.where, "");
    assert_string_equal(error.hint, "");
}

static void no_error_struct_is_fine(void **state)
{
    (void)state;
    assert_int_equal((fail)(NULL, PLIM_IO, "x"), PLIM_IO);
    assert_int_equal(fail_at(NULL, PLIM_IO, "x", "x"), PLIM_IO);
    assert_int_equal(hint(NULL, PLIM_IO, "x"), PLIM_IO);
    assert_int_equal(error_at(NULL, PLIM_IO, "x"), PLIM_IO);
}

static void a_place_is_added_once(void **state)
{
    (void)state;
    plim_error error;
    (fail)(&error, PLIM_IO, "x");
    assert_int_equal(error_at(&error, PLIM_IO, "inner"), PLIM_IO);
    error_at(&error, PLIM_IO, "outer");
    assert_string_equal(error.where, "inner");
}

/* A caller may put words around the message that is already there. */
static void an_error_may_be_wrapped(void **state)
{
    (void)state;
    plim_error error;
    fail_at(&error, PLIM_IO, "file", "inner");
    fail_at(&error, PLIM_BAD_JOB, error.where, "outer: %s", error.message);
    assert_string_equal(error.where, "file");
    assert_string_equal(error.message, "outer: inner");
}

static void long_texts_are_cut_between_characters(void **state)
{
    (void)state;
    plim_error error;
    char text[2048];
    memset(text, 'a', sizeof text);
    memcpy(text + 510, "\xc3\xa9", 2); /* e acute: its second byte is the first that does not fit */
    text[sizeof text - 1] = '\0';
    fail_at(&error, PLIM_IO, text, "%s", text);
    assert_int_equal(strlen(error.where), sizeof error.where - 1);
    assert_int_equal(strlen(error.message), 510);
    assert_int_equal(error.message[509], 'a');
}

/* A precision cuts bytes; half a character is no bad byte of the file. */
static void precisions_cut_between_characters(void **state)
{
    (void)state;
    plim_error error;
    char part[8];
    fail_at(&error, PLIM_IO, "f", "'%.3s' and '%.4s' of %d", "ab\xc3\xa9", "ab\xe2\x82\xac", 7);
    assert_string_equal(error.message, "'ab' and 'ab' of 7");
    hint(&error, PLIM_IO, "%.*s|%5.1f%%|%.4s", 5, "\xf0\x9f\x9a\xa2\xf0\x9f", 2.25, "ab\xc3\xa9");
    assert_string_equal(error.hint, "\xf0\x9f\x9a\xa2|  2.2%|ab\xc3\xa9");
    reword(&error, PLIM_IO, "%.3s, %.3s", "a\xe9z", "ab\xff"); /* bad bytes stay told */
    assert_string_equal(error.message, "a\\xe9z, ab\\xff");
    assert_int_equal(message_print(part, sizeof part, "abcdef%s", "\xc3\xa9"), 8);
    assert_string_equal(part, "abcdef");
}

static void an_error_is_one_line(void **state)
{
    (void)state;
    plim_error error;
    fail_at(&error, PLIM_IO, "a\nb", "%s", "x\x1b[31m\ty");
    assert_string_equal(error.where, "a\\x0ab");
    assert_string_equal(error.message, "x\\x1b[31m\\x09y");
    (fail)(&error, PLIM_IO, "%s", "C1 \xc2\x9b, turned \xe2\x80\xae, line \xe2\x80\xa8, apart \xe2\x81\xa7");
    assert_string_equal(error.message, "C1 \\xc2\\x9b, turned \\xe2\\x80\\xae, line \\xe2\\x80\\xa8, "
                                       "apart \\xe2\\x81\\xa7");
}

/* Errors quote what files say: valid UTF-8 stays, other bytes are written in hexadecimal. */
static void an_error_is_utf8(void **state)
{
    (void)state;
    plim_error error;
    char bytes[257] = "";
    fail_at(&error, PLIM_IO, "\xff.npy", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\xa2 \xe9 \xc0\xaf \xed\xa0\x80");
    assert_string_equal(error.where, "\\xff.npy");
    assert_string_equal(error.message, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\xa2 \\xe9 \\xc0\\xaf \\xed\\xa0\\x80");
    hint(&error, PLIM_IO, "%s", "\x80\x80");
    assert_string_equal(error.hint, "\\x80\\x80");
    error_at((error.where[0] = '\0', &error), PLIM_IO, "\xfe");
    assert_string_equal(error.where, "\\xfe");
    reword(&error, PLIM_BAD_DATA, "element 3: %s\n", error.hint);
    assert_string_equal(error.message, "element 3: \\x80\\x80\\x0a");
    assert_string_equal(error.where, "\\xfe");
    memset(bytes, 0x90, sizeof bytes - 1); /* four characters each: cut between them */
    (fail)(&error, PLIM_IO, "%s", bytes);
    assert_int_equal(strlen(error.message), 508);
}

static void keep_line(void *context, const char *line)
{
    strncpy(context, line, 31);
}

static void a_log_line_reaches_its_sink(void **state)
{
    (void)state;
    char kept[32] = "";
    struct log log = {.sink = keep_line, .context = kept};
    log_line(&log, "%d batches", 3);
    assert_string_equal(kept, "3 batches");
    log_line(NULL, "nobody");
    log_line(&(struct log){0}, "nobody");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_an_exit_code),
        cmocka_unit_test(fields_are_filled),
        cmocka_unit_test(no_error_struct_is_fine),
        cmocka_unit_test(a_place_is_added_once),
        cmocka_unit_test(an_error_may_be_wrapped),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(precisions_cut_between_characters),
        cmocka_unit_test(an_error_is_one_line),
        cmocka_unit_test(an_error_is_utf8),
        cmocka_unit_test(a_log_line_reaches_its_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
