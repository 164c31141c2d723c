/* test_bad_values.c - values in job files and data files that once crashed, overflowed or were answered with a wrong
   status: what is said of them now. Those that a generator would find are found by test_option_values.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers/count.h"
#include "plimsoll.h"

#define TOP "memory: 2GiB, threads: '1'"

static char folder[64], path[128];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/bad-values-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/job.yaml", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_file(const char *to, const void *data, size_t bytes)
{
    int file = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0 && write(file, data, bytes) == (ssize_t)bytes && close(file) == 0);
}

/* Opened, planned or inspected; trained where that is asked for. */
static plim_status run(plim_error *error, const char *text, bool data_only, bool train)
{
    plim_job *job = NULL;
    plim_plan_report report;
    const char *said, *json;
    const plim_job_options options = {.data_only = data_only};
    *error = (plim_error){0};
    write_file(path, text, strlen(text));
    plim_status status = plim_job_open(&job, path, &options, error);
    if (status == PLIM_OK)
        status = data_only ? plim_job_inspect_data(&said, &json, job, error) : plim_job_plan(&report, job, error);
    if (status == PLIM_OK && train)
        status = plim_job_train(job, NULL, NULL, error);
    plim_job_close(job);
    return status;
}

static void expect(const char *text, bool data_only, bool train, plim_status status, const char *words)
{
    plim_error error;
    if (run(&error, text, data_only, train) != status || !strstr(error.message, words))
        fail_msg("%s\n  %s: %s: %s", text, plim_status_name(error.code), error.where, error.message);
}

static const struct {
    const char *layers, *shape;
    plim_status status;
    const char *words;
} models[] = {
    {"Softmax: {axis: []}", "[4]", PLIM_BAD_JOB, "the list is empty"},
    {"ConvLSTM3D: {filters: 2, kernel_size: 2}", "[3, 4, 5, 2]", PLIM_BAD_JOB,
     "wants (batch, steps, depth, height, width, channels)"},
    {"ConvLSTM2D: {filters: 2, kernel_size: 2, recurrent_dropout: 0.5, seed: 9223372036854775807}", "[3, 4, 5, 2]",
     PLIM_OK, ""},
    {"LSTM: {units: 2, recurrent_dropout: 0.5, seed: 9223372036854775807}", "[3, 4]", PLIM_OK, ""},
    {"Dense: {units: 2, kernel_constraint: {unit_norm: {axis: [9223372036854775807, 0]}}}", "[4]", PLIM_UNSUPPORTED,
     "follow one another"},
    {"Op: {op: softmax, arguments: {axis: []}}", "[4]", PLIM_BAD_JOB,
     "axis: expected a whole number, got an empty list"},
    {"Op: {op: max, arguments: {axis: [[]]}}", "[4, 3]", PLIM_BAD_JOB, "got an empty list"},
    {"Op: {op: slice, arguments: {axis: 1, start: []}}", "[4]", PLIM_BAD_JOB, "start: expected a whole number"},
    {"Op: {op: slice, arguments: {axis: 1, step: -9223372036854775808}}", "[4]", PLIM_BAD_JOB, "nothing would be left"},
    {"Op: {op: get_item, arguments: {key: [':', '::-9223372036854775808']}}", "[4]", PLIM_BAD_JOB,
     "nothing would be left"},
    {"Dense: {units: 2, kernel_constraint: {unit_norm: {axis: []}}}", "[4]", PLIM_BAD_JOB, "none in it"},
};

static void of_models(void **state)
{
    char text[2048];
    (void)state;
    for (int i = 0; i < COUNT(models); i++) {
        snprintf(text, sizeof text,
                 "{" TOP ", data: {train: {random: {elements: 2, shape: %s, classes: 3}, pipeline: [batch: 2]}}, "
                 "model: [%s, Flatten, Dense: 3], train: {loss: sparse_categorical_crossentropy, optimizer: sgd, "
                 "callbacks: [checkpoint: none]}}",
                 models[i].shape, models[i].layers);
        expect(text, false, false, models[i].status, models[i].words);
    }
}

static const struct {
    const char *split;
    plim_status status;
    const char *words;
} splits[] = {
    {"{range: 9, pipeline: [map: [hashing: {num_bins: 9223372036854775807, mask_value: 3}]]}", PLIM_OK, ""},
    {"{range: 9, pipeline: [window: {size: 1, stride: 9223372036854775807}]}", PLIM_OK, ""},
    {"{range: 9, pipeline: [window: {size: 2, shift: 9223372036854775807}]}", PLIM_BAD_JOB, "more than 2^31 elements"},
    {"{range: 9, pipeline: [filter: 'x > -1', shard: {num_shards: 9223372036854775807, index: 1}]}", PLIM_OK, ""},
    {"{range: 9223372036854775807}", PLIM_OK, ""},
    {"{sample: {from: [{range: 3}, {range: 5}], weights: [2147483648, 0.7]}}", PLIM_BAD_JOB, "waited for too long"},
    {"{counter: {start: 1}, pipeline: [assert_cardinality: 5]}", PLIM_BAD_JOB,
     "has elements without end, not 5 elements"},
    {"{range: 3, pipeline: [assert_cardinality: -1]}", PLIM_BAD_JOB, "has 3 elements, not elements without end"},
};

static void of_data(void **state)
{
    char text[2048];
    (void)state;
    for (int i = 0; i < COUNT(splits); i++) {
        snprintf(text, sizeof text, "{" TOP ", data: {train: %s}}", splits[i].split);
        expect(text, true, false, splits[i].status, splits[i].words);
    }
}

static const struct {
    const char *shape, *map;
    plim_status status;
    const char *words;
} images[] = {
    {"[4, 4, 2]", "crop: [3, 3, 1, 1]", PLIM_OK, ""},
    {"[4, 4, 2]", "crop: [5, 0, 1, 1]", PLIM_BAD_JOB,
     "crop: 1 x 1 pixels at (5, 0) are not inside column 'x', which is (4, 4, 2)"},
    {"[4, 4, 2]", "crop: [0, 2, 1, 3]", PLIM_BAD_JOB, "1 x 3 pixels at (0, 2) are not inside"},
    {"[4, 4, 2]", "crop: [9223372036854775807, 0, 9223372036854775807, 1]", PLIM_BAD_JOB, "are not inside"},
    {"[4, 4, 2]", "center_crop: [4, 4]", PLIM_OK, ""},
    {"[4, 4, 2]", "center_crop: [5, 1]", PLIM_BAD_JOB, "center_crop: 5 x 1 pixels are not inside column 'x'"},
    {"[4, 4, 2]", "random_crop: [1, 5]", PLIM_BAD_JOB, "random_crop: 1 x 5 pixels are not inside column 'x'"},
    {"[4, 4, 2]", "resize: [3, 3], random_crop: [4, 2]", PLIM_BAD_JOB, "which is (3, 3, 2)"},
    {"[4, 4, 2]", "resize_with_crop_or_pad: [5, 1]", PLIM_OK, ""},
    {"[4, 4, 2]", "resize_with_crop_or_pad: [16777217, 1]", PLIM_BAD_JOB, "cannot be resized or cropped"},
    {"[4, 4, 2]", "resize: [1, 16777217]", PLIM_BAD_JOB, "cannot be resized or cropped"},
    {"[1, 16777217, 1]", "resize: [1, 1]", PLIM_BAD_JOB, "cannot be resized or cropped"},
    {"[1, 16777217, 1]", "center_crop: [1, 1]", PLIM_BAD_JOB, "cannot be resized or cropped"},
    {"[4, 4, 2]", "cast: int32, crop: [1, 1, 2, 2], cast: float32", PLIM_OK, ""}, /* pixels of any type are moved */
};

/* Sizes that are known beforehand are checked when the stage is read, and the place of the function is told. */
static void of_images(void **state)
{
    char text[2048];
    plim_error error;
    (void)state;
    for (int i = 0; i < COUNT(images); i++) {
        bool good = images[i].status == PLIM_OK;
        snprintf(text, sizeof text,
                 "{" TOP ", data: {train: {random: {elements: 2, shape: %s, classes: 3}, pipeline: [map: {x: [%s]}, "
                 "batch: 2]}}, model: [Flatten, Dense: 3], train: {loss: sparse_categorical_crossentropy, optimizer: "
                 "sgd, callbacks: [checkpoint: none]}}",
                 images[i].shape, images[i].map);
        expect(text, false, good, images[i].status, images[i].words);
        assert_int_equal(run(&error, text, false, good), images[i].status);
        assert_true(good || strstr(error.where, "job.yaml:1:"));
    }
}

/* Where it is not known how many elements there are, no number stands for it. */
static void of_counts(void **state)
{
    (void)state;
    expect("{" TOP ", data: {train: {random: {elements: 4, shape: [2], classes: 3}, pipeline: [filter: 'y > 7', batch: "
           "2]}}, model: [Dense: 3], train: {loss: sparse_categorical_crossentropy, optimizer: sgd, callbacks: "
           "[checkpoint: none]}}",
           false, true, PLIM_BAD_DATA, "no batch: an unknown number of elements, batches of 2");
}

/* Of a header of no bytes nothing can be taken: the file is what is wrong. */
static void of_npy(void **state)
{
    static const char file[] = "\x93NUMPY\x01\x00\x00\x00";
    char name[160], text[512];
    (void)state;
    snprintf(name, sizeof name, "%s/x.npy", folder);
    snprintf(text, sizeof text, "{" TOP ", data: {train: {npy: '%s'}}}", name);
    write_file(name, file, 10);
    expect(text, true, false, PLIM_BAD_DATA, "a header of 0 bytes");
    write_file(name, "\x93NUMPY\x02\x00\x00\x00\x00\x00", 12);
    expect(text, true, false, PLIM_BAD_DATA, "a header of 0 bytes");
    unlink(name);
}

/* Bytes of data that a message quotes. */
static void of_bytes(void **state)
{
    plim_error error;
    char name[160], text[512];
    (void)state;
    snprintf(name, sizeof name, "%s/x.csv", folder);
    snprintf(text, sizeof text, "{" TOP ", data: {train: {csv: {files: '%s', types: {a: int64}}}}}", name);
    write_file(name, "a,b\n\xff\x80\x1b[31m,2\n", 14);
    assert_int_equal(run(&error, text, true, false), PLIM_BAD_DATA);
    for (const char *c = error.message; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
            fail_msg("byte 0x%02x in: %s", (unsigned char)*c, error.message);
    assert_non_null(strstr(error.message, "\\xff\\x80\\x1b[31m"));
    unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_models), cmocka_unit_test(of_data), cmocka_unit_test(of_images),
        cmocka_unit_test(of_counts), cmocka_unit_test(of_npy),  cmocka_unit_test(of_bytes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
