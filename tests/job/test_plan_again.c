/* test_plan_again.c - a run after plim_job_plan, on one job, takes what was measured: the search for the largest batch
   leaves no kernels of other batches behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "job/job.h"

static const char text[] =
    "data:\n  train: {random: {elements: 5000, shape: [24, 24, 3], classes: 4, seed: 1}, pipeline: [batch: 8]}\n"
    "model: [Conv2D: {filters: 16, kernel_size: 3, activation: relu}, Conv2D: {filters: 16, kernel_size: 5}, "
    "MaxPooling2D, Conv2D: {filters: 32, kernel_size: 3}, Flatten, Dense: 64, Dense: 4]\n"
    "train: {optimizer: adam, loss: sparse_categorical_crossentropy}\n";

/* What the budget counts once the job is ready to run. */
static uint64_t ready(const char *path, bool plan_first)
{
    plim_job *job;
    plim_plan_report report;
    plim_error error = {0};
    plim_job_options options = {.memory = "256MiB"};
    assert_int_equal(plim_job_open(&job, path, &options, &error), PLIM_OK);
    if (plan_first) {
        assert_int_equal(plim_job_plan(&report, job, &error), PLIM_OK);
        assert_true(report.largest_batch > 8);
        assert_null(job->plan.program);
    }
    assert_int_equal(job_plan(job, &error), PLIM_OK);
    assert_non_null(job->plan.program);
    uint64_t bytes = budget_usage(job->budget).now_by_tag[TAG_PLANNER] + job->plan.program->tensor_arena_bytes;
    plim_job_close(job);
    return bytes;
}

static void a_run_after_a_plan_takes_no_more(void **state)
{
    char path[256];
    (void)state;
    snprintf(path, sizeof path, "%s/plim-plan-again-%ld.yaml", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (long)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    ready(path, false); /* what a process loads once is loaded */
    uint64_t alone = ready(path, false), behind = ready(path, true);
    unlink(path);
    print_message("%llu bytes, after a plan %llu\n", (unsigned long long)alone, (unsigned long long)behind);
    assert_true(behind <= alone + 16384); /* the texts of the plan */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_after_a_plan_takes_no_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
