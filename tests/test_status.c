/* test_status.c - errors: names, exit codes, cutting, cleaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/status.h"

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
    assert_int_equal(place(NULL, PLIM_IO, "x"), PLIM_IO);
}

static void a_place_is_added_once(void **state)
{
    (void)state;
    plim_error error;
    (fail)(&error, PLIM_IO, "x");
    assert_int_equal(place(&error, PLIM_IO, "inner"), PLIM_IO);
    place(&error, PLIM_IO, "outer");
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

static void an_error_is_one_line(void **state)
{
    (void)state;
    plim_error error;
    fail_at(&error, PLIM_IO, "a\nb", "%s", "x\x1b[31m\ty");
    assert_string_equal(error.where, "a?b");
    assert_string_equal(error.message, "x?[31m?y");
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
        cmocka_unit_test(an_error_is_one_line),
        cmocka_unit_test(a_log_line_reaches_its_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
