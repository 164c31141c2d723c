/* test_stage_words.c - the words of job files for several data sets in one and for stacks: what they give, and what is
   refused, with its place. */
#include "stream_text.h"

#include "api/api.h"

static void expect(const char *text, const char *elements)
{
    static struct paper paper;
    plim_budget *budget;
    plim_error error = {0};
    struct runner runner;
    assert_int_equal(plim_budget_make(&budget, BUDGET_UNLIMITED, &error), PLIM_OK);
    struct dataset *dataset = inside(plim_dataset_read(budget, text, SEED));
    if (dataset_error(dataset, &error) != PLIM_OK)
        fail_msg("%s: %s: %s", text, error.where, error.message);
    dataset = dataset_close_batch(dataset);
    run_open(&runner, dataset, budget->inner, 16);
    run_epoch(&paper, &runner, 0, 0);
    assert_string_equal(paper.text, elements);
    run_close(&runner);
    dataset_unref(dataset);
    plim_budget_free(budget);
}

static void refused(const char *text, plim_status status, const char *where, const char *words)
{
    plim_budget *budget;
    plim_error error = {0};
    assert_int_equal(plim_budget_make(&budget, BUDGET_UNLIMITED, &error), PLIM_OK);
    struct dataset *dataset = inside(plim_dataset_read(budget, text, SEED));
    assert_int_equal(dataset_error(dataset, &error), status);
    if (strcmp(error.where, where) != 0 || !strstr(error.message, words))
        fail_msg("%s: '%s': '%s'", text, error.where, error.message);
    dataset_unref(dataset);
    plim_budget_free(budget);
}

static void several_into_one(void **state)
{
    (void)state;
    expect("{zip: [{range: 3}, {counter: {start: 10, step: -1}}], pipeline: [batch: 2]}",
           "[([0, 1], [10, 9]), ([2], [8])]");
    expect("{zip: [{range: 3, pipeline: [batch: 2, unbatch]}, {range: 5, pipeline: [skip: 2]}]}",
           "[(0, 2), (1, 3), (2, 4)]");
    expect("{concatenate: [{range: 2}, {counter: {start: 7, count: 2}}, {range: 1}], pipeline: [skip: 1]}",
           "[1, 7, 8, 0]");
    expect("{choose: {from: [{range: 3}, {counter: {start: 10}}], choices: {range: 2, pipeline: [repeat]}}}",
           "[0, 10, 1, 11, 2, 12]");
    expect(
        "{choose: {from: [{range: 1}, {counter: {start: 10, count: 3}}], choices: {range: 2, pipeline: [repeat: 3]}, "
        "stop_on_empty_dataset: false}}",
        "[0, 10, 11, 12]");
    expect("{sample: {from: [{range: 3}, {counter: {start: 10}}], weights: [1, 0]}}", "[0, 1, 2]");
    expect("{zip: [{zip: [{zip: [{range: 2}]}]}]}", "[0, 1]");
}

static void stacks(void **state)
{
    (void)state;
    expect("{range: 5, pipeline: [padded_batch: 2]}", "[[0, 1], [2, 3], [4]]");
    expect("{range: 5, pipeline: [batch: 2, padded_batch: {size: 2, padding_values: 9, drop_remainder: false}]}",
           "[[[0, 1], [2, 3]], [[4]]]");
    expect(
        "{range: 5, pipeline: [batch: 2, padded_batch: {size: 3, padded_shapes: {x: [3]}, padding_values: {x: -1}}]}",
        "[[[0, 1, -1], [2, 3, -1], [4, -1, -1]]]");
    expect("{range: 5, pipeline: [batch: 2, padded_batch: {size: 3, padded_shapes: [null], room: 64KiB}]}",
           "[[[0, 1], [2, 3], [4, 0]]]");
    expect("{range: 7, pipeline: [batch: 2, rebatch: {size: 3, drop_remainder: true}]}", "[[0, 1, 2], [3, 4, 5]]");
    expect("{range: 7, pipeline: [batch: 2, rebatch: [3, 1], prefetch: 2]}", "[[0, 1, 2], [3], [4, 5, 6]]");
    expect("{range: 7, pipeline: [prefetch: 2, batch: 3]}", "[[0, 1, 2], [3, 4, 5], [6]]");
    expect("{range: 5, pipeline: [window: 2]}", "[[0, 1], [2, 3], [4]]");
    expect("{range: 5, pipeline: [window: {size: 2, shift: 1, stride: 2, drop_remainder: true}]}",
           "[[0, 2], [1, 3], [2, 4]]");
    expect("{range: 6, pipeline: [bucket_by_sequence_length: {boundaries: [2, 4], batch_sizes: [2, 1, 3], length: x}]}",
           "[[0, 1], [2], [3], [4, 5]]");
    expect("{range: 5, pipeline: [group_by_window: {key: x, window_size: 2}]}", "[[0], [1], [2], [3], [4]]");
}

static void mistakes(void **state)
{
    (void)state;
    refused("{zip: {range: 3}}", PLIM_BAD_JOB, "text:1:7", "a list of data sets");
    refused("{zip: [{range: 3, pipeline: [take: -5]}]}", PLIM_BAD_JOB, "text:1:36", "take");
    refused("{zip: [{rnge: 3}]}", PLIM_BAD_JOB, "text:1:9", "unknown key 'rnge'");
    refused("{concatenate: [{range: 3}, {list_files: \"*\"}]}", PLIM_BAD_JOB, "text:1:15", "column 'file' where");
    refused("{sample: {from: [{range: 3}], weights: [1, 2]}}", PLIM_BAD_JOB, "text:1:40", "one for each");
    refused("{sample: {weights: [1, 2]}}", PLIM_BAD_JOB, "text:1:10", "'from:' is missing");
    refused("{choose: {from: [{range: 3}]}}", PLIM_BAD_JOB, "text:1:10", "'choices:'");
    refused("{command: \"\"}", PLIM_BAD_JOB, "text:1:11", "there is none");
    refused("{range: 3, pipeline: [padded_batch: {drop_remainder: true}]}", PLIM_BAD_JOB, "text:1:37", "'size'");
    refused("{range: 3, pipeline: [padded_batch: {size: 2, room: much}]}", PLIM_BAD_JOB, "text:1:37", "a size");
    refused("{range: 3, pipeline: [padded_batch: {size: 2, padded_shapes: {z: [1]}}]}", PLIM_BAD_JOB, "text:1:23",
            "no column 'z'");
    refused("{range: 3, pipeline: [unbatch]}", PLIM_BAD_JOB, "text:1:23", "a single value");
    refused("{range: 3, pipeline: [bucket_by_sequence_length: {boundaries: [2], batch_sizes: [2]}]}", PLIM_BAD_JOB,
            "text:1:81", "1 boundaries need 2 batch_sizes");
    refused("{range: 3, pipeline: [group_by_window: {window_size: 2}]}", PLIM_BAD_JOB, "text:1:40", "'key'");
    refused("{range: 3, pipeline: [zip: 3]}", PLIM_UNSUPPORTED, "text:1:23", "'zip' is no stage");
}

/* 17 deep. */
static void nesting_is_bounded(void **state)
{
    char text[256] = "";
    (void)state;
    for (int i = 0; i < 18; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "{zip: [");
    snprintf(text + strlen(text), sizeof text - strlen(text), "{range: 1}");
    for (int i = 0; i < 18; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "]}");
    plim_budget *budget;
    plim_error error = {0};
    assert_int_equal(plim_budget_make(&budget, BUDGET_UNLIMITED, &error), PLIM_OK);
    struct dataset *dataset = inside(plim_dataset_read(budget, text, SEED));
    assert_int_equal(dataset_error(dataset, &error), PLIM_BAD_JOB);
    assert_non_null(strstr(error.message, "too deep"));
    dataset_unref(dataset);
    plim_budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_into_one),
        cmocka_unit_test(stacks),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
