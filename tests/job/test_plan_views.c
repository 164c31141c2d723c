/* test_plan_views.c - the plot and the page of a plan: a call that fails while one is written is an error, leaves no
   file, no part of one and no open descriptor, and does not spoil the job. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/numbers/count.h"
#include "folder_entries.h"
#include "plimsoll.h"

#define MOST_FAULTS 5000 /* a sweep that does not end is an error */

static const char text[] =
    "memory: 64GiB\n"
    "data:\n  train: {random: {elements: 16, shape: [8, 8, 3], classes: 4, seed: 1}, pipeline: [batch: 8]}\n"
    "model: [Conv2D: {filters: 4, kernel_size: 3, activation: relu}, Flatten, Dense: 4]\n"
    "train: {optimizer: adam, loss: sparse_categorical_crossentropy}\n";

static char folder[256], job_path[300], view_path[300];

static int set_up(void **state)
{
    const char *temporary = getenv("TMPDIR");
    (void)state;
    snprintf(folder, sizeof folder, "%.200s/plim-views-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    snprintf(job_path, sizeof job_path, "%s/job.yaml", folder);
    snprintf(view_path, sizeof view_path, "%s/view", folder);
    FILE *file = fopen(job_path, "w");
    return !file || fputs(text, file) < 0 || fclose(file) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(view_path);
    unlink(job_path);
    return rmdir(folder);
}

static long file_bytes(void)
{
    FILE *file = fopen(view_path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    fclose(file);
    return bytes;
}

typedef plim_status writer(plim_job *job, const char *path, plim_error *error);

static const struct fault {
    unsigned site;
    int number;
    plim_status code;
} faults[] = {{FAULT_ALLOCATE, ENOMEM, PLIM_NO_MEMORY},
              {FAULT_OPEN, EMFILE, PLIM_IO},
              {FAULT_WRITE, ENOSPC, PLIM_IO},
              {FAULT_SYNC, EIO, PLIM_IO},
              {FAULT_RENAME, EACCES, PLIM_IO}};

/* Returns whether the n-th call was reached. */
static bool fail_once(plim_job *job, writer *write, const struct fault *fault, int nth, long whole)
{
    plim_error error = {0};
    int descriptors = entries("/proc/self/fd");
    fault_arm(fault->site, nth, false, fault->number);
    plim_status status = write(job, view_path, &error);
    bool reached = fault_disarm();
    assert_int_equal(entries("/proc/self/fd"), descriptors);
    if (status == PLIM_OK) { /* not reached, or what failed was advice */
        assert_int_equal(file_bytes(), whole);
        unlink(view_path);
        assert_int_equal(entries(folder), 3);
        return reached;
    }
    assert_int_equal(status, fault->code);
    assert_int_equal(error.code, status);
    assert_true(error.message[0]);
    if (access(view_path, F_OK) == 0) { /* what failed was to put its name on the disk */
        assert_true(fault->site == FAULT_SYNC || fault->site == FAULT_OPEN);
        assert_int_equal(file_bytes(), whole);
        unlink(view_path);
    }
    assert_int_equal(entries(folder), 3);
    return true;
}

static void sweep(writer *write)
{
    plim_job *job;
    plim_plan_report report;
    plim_error error = {0};
    plim_job_options options = {.threads = "2"};
    assert_int_equal(plim_job_open(&job, job_path, &options, &error), PLIM_OK);
    assert_int_equal(plim_job_plan(&report, job, &error), PLIM_OK);
    assert_int_equal(write(job, view_path, &error), PLIM_OK);
    long whole = file_bytes();
    assert_true(whole > 1000);
    unlink(view_path);
    for (int f = 0; f < COUNT(faults); f++) {
        int nth = 1;
        while (fail_once(job, write, &faults[f], nth, whole))
            assert_true(nth++ < MOST_FAULTS);
        assert_true(nth > 1);
        print_message("%d calls of kind %u\n", nth - 1, faults[f].site);
    }
    plim_job_close(job);
}

static void a_plot_is_whole_or_not_there(void **state)
{
    (void)state;
    sweep(plim_job_plan_plot);
}

static void a_page_is_whole_or_not_there(void **state)
{
    (void)state;
    sweep(plim_job_plan_page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_plot_is_whole_or_not_there),
                                       cmocka_unit_test(a_page_is_whole_or_not_there)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
