/* test_numbers.c - numbers have a point, whatever the locale of the host. Where
   no locale with a comma can be had, there is nothing to see: it is skipped. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/numbers/numbers.h"
#include "base/text/json.h"
#include "base/text/settings.h"
#include "base/text/text.h"

struct host {
    char folder[64]; /* with a locale of our own making, or "" */
    bool comma;      /* a locale with a comma is in force */
};

/* A locale that is made for this test. */
static bool make_comma(char folder[64])
{
    char text[256];
    strcpy(folder, "test_numbers_XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(text, sizeof text, "localedef -i de_DE -f UTF-8 ./%s/de_DE.UTF-8 2>/dev/null", folder);
    int status = system(text);
    snprintf(text, sizeof text, "%s/de_DE.UTF-8/LC_NUMERIC", folder);
    if (status < 0 || access(text, R_OK) != 0)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

/* One that the system has, else one of our own. */
static int set_up(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "it_IT.UTF-8"};
    struct host *host = calloc(1, sizeof *host);
    for (size_t i = 0; i < COUNT(names) && !host->comma; i++)
        host->comma = setlocale(LC_ALL, names[i]) != NULL;
    if (!host->comma)
        host->comma = make_comma(host->folder);
    if (!host->comma)
        print_message("no locale with a decimal comma can be had here\n");
    *state = host;
    return 0;
}

static int tear_down(void **state)
{
    struct host *host = *state;
    char command[256];
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof command, "rm -rf ./%s", host->folder);
    int status = host->folder[0] ? system(command) : 0;
    free(host);
    return status;
}

/* The host's locale is in force, and has a comma. */
static void in_force(void **state)
{
    char text[32];
    const struct host *host = *state;
    if (!host->comma)
        skip();
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
}

static void numbers_are_read(void **state)
{
    char *end;
    double value = 0;
    in_force(state);
    assert_true(number_parse("0.25x", &end) == 0.25 && *end == 'x');
    assert_true(number_parse("0x1.8p+1", NULL) == 3.0);
    assert_true(isnan(number_parse("nan", NULL)));
    assert_true(setting_number(&value, "1e-3") && value == 1e-3);
    assert_true(setting_number(&value, "0.5") && value == 0.5);
    assert_true(setting_number(&value, "1.5/0.5") && value == 3.0);
    assert_false(setting_number(&value, "0,5"));
    in_force(state); /* as it was */
}

static void numbers_are_written(void **state)
{
    char text[64];
    plim_error error;
    in_force(state);
    number_print(text, sizeof text, "%a", 1.5);
    assert_string_equal(text, "0x1.8p+0");
    assert_int_equal(number_print(text, sizeof text, "%.2f %s", 0.25, "MB"), 7);
    assert_string_equal(text, "0.25 MB");
    text_size(text, 1536);
    assert_string_equal(text, "1.5 KiB");
    (void)(fail)(&error, PLIM_USAGE, "got %g", 0.5);
    assert_string_equal(error.message, "got 0.5");
    in_force(state);
}

static void texts_and_json_have_points(void **state)
{
    struct budget *budget;
    struct text text;
    struct json_writer json;
    in_force(state);
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    text_init(&text, budget, TAG_PLANNER);
    text_add(&text, "loss: %.4f ", 0.5);
    json_init(&json, &text);
    json_double(&json, "a", 0.1);
    assert_string_equal(text.data, "loss: 0.5000 \"a\":0.1");
    text_release(&text);
    budget_free(budget);
    in_force(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(numbers_are_written),
        cmocka_unit_test(texts_and_json_have_points),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
