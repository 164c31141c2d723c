/* test_text.c - growing text, sizes, counts, nearest words. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/numbers/count.h"
#include "base/text/text.h"

static void text_grows(void **state)
{
    (void)state;
    struct budget *budget;
    struct text text;
    assert_int_equal(budget_make(&budget, 1 << 20, NULL), PLIM_OK);
    uint64_t own = budget_usage(budget).now;
    text_init(&text, budget, TAG_FORMATS);
    for (int i = 0; i < 1000; i++)
        text_add(&text, "%d,", i);
    text_add_bytes(&text, "\0end", 4);
    assert_false(text.failed);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4 + 4);
    assert_int_equal(text.data[text.length], '\0');
    assert_memory_equal(text.data, "0,1,2,3,", 8);
    assert_memory_equal(text.data + text.length - 8, "999,\0end", 8);
    text_clear(&text);
    assert_string_equal(text.data, "");
    text_add(&text, "%s", "again");
    assert_string_equal(text.data, "again");
    text_add_bytes(&text, NULL, 0);
    assert_string_equal(text.data, "again");
    text_release(&text);
    assert_null(text.data);
    assert_int_equal(budget_usage(budget).now, own);
    budget_free(budget);
}

static void a_failed_append_marks_the_text(void **state)
{
    (void)state;
    struct budget *budget;
    struct text text;
    assert_int_equal(budget_make(&budget, 1 << 20, NULL), PLIM_OK);
    text_init(&text, budget, TAG_FORMATS);
    text_add(&text, "kept");
    fault_arm(FAULT_ALLOCATE, 1, false, ENOMEM);
    text_add(&text, "%1000d", 1);
    assert_true(fault_disarm());
    assert_true(text.failed);
    text_add(&text, "not added");
    assert_string_equal(text.data, "kept");
    text_release(&text);
    budget_free(budget);
}

static void sizes_for_people(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},
        {1023, "1023 bytes"},
        {1024, "1.0 KiB"},
        {48 << 20, "48.0 MiB"},
        {1048575, "1.0 MiB"},
        {(uint64_t)3 << 29, "1.5 GiB"},
        {((uint64_t)1 << 40) - 1, "1.0 TiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[16];
        text_size(out, cases[i].bytes);
        assert_string_equal(out, cases[i].text);
    }
}

static void counts_for_people(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1,000"},
        {-1000, "-1,000"},
        {-999, "-999"},
        {12345678, "12,345,678"},
        {INT64_MIN, "-9,223,372,036,854,775,808"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[32];
        text_count(out, cases[i].value);
        assert_string_equal(out, cases[i].text);
    }
}

static void sizes_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"1048576", 1048576},
        {"48MiB", 48 << 20},
        {"48 MB", 48000000},
        {"48mib", 48 << 20},
        {"1.5GiB", (uint64_t)3 << 29},
        {"0.000001 MB", 1},
        {"12B", 12},
        {"15EiB", (uint64_t)15 << 60},
        {"15.5 EiB", ((uint64_t)15 << 60) + ((uint64_t)1 << 59)},
        {"18446744073709551615", UINT64_MAX},
    };
    static const char *const bad[] = {"",
                                      "MiB",
                                      "-1",
                                      "48M",
                                      "48 MiBs",
                                      "48MiB ",
                                      "1.5",
                                      "1.MiB",
                                      ".5MiB",
                                      "0x10",
                                      "1e6",
                                      " 1",
                                      "16EiB",
                                      "1,5MiB",
                                      "auto",
                                      "80%",
                                      "1iB",
                                      "1..2MiB",
                                      "18446744073709551616",
                                      "99999999999999999999999MiB",
                                      "1.1234567MiB",
                                      "15.99999999EiB"};
    for (size_t i = 0; i < COUNT(good); i++) {
        uint64_t bytes = 77;
        assert_true(text_parse_size(&bytes, good[i].text));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t bytes = 77;
        if (text_parse_size(&bytes, bad[i]))
            fail_msg("'%s' was taken for a size", bad[i]);
        assert_int_equal(bytes, 77);
    }
}

static void words_are_cut_between_characters(void **state)
{
    (void)state;
    struct budget *budget;
    struct text text;
    static const struct {
        const char *words;
        int columns;
        const char *cut;
    } cases[] = {{"dense", 5, "dense"}, {"dense", 9, "dense"}, {"dense_1", 5, "dens…"}, {"größe", 5, "größe"},
                 {"größe", 4, "grö…"},  {"größe", 3, "gr…"},   {"ab", 1, "…"},          {"", 1, ""}};
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    text_init(&text, budget, TAG_PLANNER);
    for (size_t i = 0; i < COUNT(cases); i++) {
        text_clear(&text);
        text_add_cut(&text, cases[i].words, cases[i].columns);
        assert_string_equal(text.data, cases[i].cut);
        assert_true(text_columns(text.data) <= cases[i].columns);
    }
    text_release(&text);
    budget_free(budget);
}

static void the_end_of_a_path(void **state)
{
    char out[12], cut[] = "ab\xe2\x82";
    (void)state;
    text_end(out, sizeof out, "12345678901");
    assert_string_equal(out, "12345678901");
    text_end(out, sizeof out, "0123456789012");
    assert_string_equal(out, "...56789012");
    text_end(out, sizeof out,
             "/path/\xc3\xa9"
             "1234567");
    assert_string_equal(out, "...1234567"); /* the first byte of the character would not fit */
    cut[text_whole(cut, strlen(cut))] = 0;
    assert_string_equal(cut, "ab");
    snprintf(out, sizeof out, "a\xc3\xa9");
    out[text_whole(out, strlen(out))] = 0;
    assert_string_equal(out, "a\xc3\xa9");
    snprintf(out, sizeof out, "a\xf0\x9f\x98");
    out[text_whole(out, strlen(out))] = 0;
    assert_string_equal(out, "a");
    out[text_whole(out, strlen(out))] = 0;
    assert_string_equal(out, "a");
}

static void sizes_without_unit_are_seen(void **state)
{
    (void)state;
    static const char *const lacking[] = {"16", "1", "65535"}, *const whole[] = {"65536", "16B", "16MiB", "0",
                                                                                 "auto",  "80%", ""};
    for (size_t i = 0; i < COUNT(lacking); i++)
        assert_true(text_lacks_unit(lacking[i]));
    for (size_t i = 0; i < COUNT(whole); i++)
        assert_false(text_lacks_unit(whole[i]));
}

static const char *nearest(const char *word)
{
    static const char *const words[] = {
        "epochs", "optimizer", "shuffle", "batch",
        "map",    "prefetch",  "repeat",  "a_word_that_is_so_long_that_nobody_would_ever_want_to_type_it_by_hand"};
    return text_nearest(word, words, COUNT(words));
}

static void the_nearest_word_is_found(void **state)
{
    (void)state;
    assert_string_equal(nearest("epoch"), "epochs");
    assert_string_equal(nearest("Epochs"), "epochs");
    assert_string_equal(nearest("optimiser"), "optimizer");
    assert_string_equal(nearest("shufle"), "shuffle");
    assert_string_equal(nearest("bacth"), "batch");
    assert_string_equal(nearest("mpa"), "map");
    assert_string_equal(nearest("batch"), "batch");
    assert_null(nearest("learning_rate"));
    assert_null(nearest("xyz"));
    assert_null(nearest(""));
    char longest[200];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_null(nearest(longest));
    assert_null(text_nearest("batch", NULL, 0));
}

/* Each part of a word counts by itself: what is another word is no slip. */
static void another_word_is_no_neighbour(void **state)
{
    static const char *const words[] = {
        "random_flip",        "output_dim",   "lion",         "learning_rate", "Discretization",
        "RandomFlip",         "MaxPooling2D", "weight_decay", "multi_hot",     "output_shape",
        "MultiHeadAttention", "adamw",        "adamax"};
    static const char *const pairs[][2] = {
        {"random_hue", NULL},
        {"RandomHue", NULL},
        {"input_dim", NULL},
        {"input_shape", NULL},
        {"muon", NULL},
        {"Quantization", NULL},
        {"random_flop", "random_flip"},
        {"learnign_rate", "learning_rate"},
        {"learningrate", "learning_rate"},
        {"max_pooling2d", "MaxPooling2D"},
        {"multihot", "multi_hot"},
        {"wieght_decay", "weight_decay"},
        {"output_dims", "output_dim"},
        {"MultiheadAttention", "MultiHeadAttention"}, /* capitals alone: other parts, the same word */
        {"Randomflip", "RandomFlip"},
        {"adamx", NULL}, /* as near to both */
        {"adamaxx", "adamax"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        const char *found = text_nearest(pairs[i][0], words, COUNT(words));
        if (!found != !pairs[i][1] || (found && strcmp(found, pairs[i][1]) != 0))
            fail_msg("%s: %s", pairs[i][0], found ? found : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_grows),
        cmocka_unit_test(a_failed_append_marks_the_text),
        cmocka_unit_test(sizes_for_people),
        cmocka_unit_test(counts_for_people),
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(words_are_cut_between_characters),
        cmocka_unit_test(the_end_of_a_path),
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(sizes_without_unit_are_seen),
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(the_nearest_word_is_found),
        cmocka_unit_test(another_word_is_no_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
