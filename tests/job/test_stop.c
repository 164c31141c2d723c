/* test_stop.c - a stop that is asked for: what the budget says of it, and who hears it while waiting. What the program
   does is in end_to_end_stop.py. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "base/files/process.h"
#include "base/memory/budget_stop.h"
#include "base/threads/clock.h"
#include "base/threads/stop.h"
#include "formats/files/heapsort.h"

#define MIB     ((uint64_t)1024 * 1024)
#define BOUND_S 5 /* what is waited for lasts 30 s or for ever */

struct fixture {
    struct budget *budget;
    struct stop stop;
};

static int begin(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    assert_int_equal(budget_make(&fixture.budget, 64 * MIB, NULL), PLIM_OK);
    budget_watch_stop(fixture.budget, &fixture.stop);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    budget_free(f->budget);
    return 0;
}

static void test_budget_says_so(void **state)
{
    struct fixture *f = *state;
    plim_error error;
    assert_int_equal(budget_go_on(f->budget, &error), PLIM_OK);
    stop_ask(&f->stop);
    assert_int_equal(budget_go_on(f->budget, &error), PLIM_INTERRUPTED);
    assert_int_equal(error.code, PLIM_INTERRUPTED);
    assert_int_equal(budget_may_transfer(f->budget, &error), PLIM_OK);
    budget_watch_stop(f->budget, NULL);
    assert_int_equal(budget_go_on(f->budget, &error), PLIM_OK);
}

static void test_blocks_are_refused_only_while_it_is_set(void **state)
{
    struct fixture *f = *state;
    plim_error error;
    stop_ask(&f->stop);
    void *before = budget_take(f->budget, TAG_PLANNER, 100);
    assert_non_null(before);
    assert_false(budget_stop_refuses(f->budget, true));
    for (size_t bytes = 1; bytes <= 16 * MIB; bytes *= 16)
        assert_null(budget_take(f->budget, TAG_PLANNER, bytes));
    assert_int_equal(budget_refused(f->budget, TAG_PLANNER, 100, &error), PLIM_INTERRUPTED);
    budget_give(f->budget, TAG_PLANNER, before, 100); /* cleaning up works */
    assert_true(budget_stop_refuses(f->budget, false));
    void *after = budget_take(f->budget, TAG_PLANNER, 100);
    assert_non_null(after);
    budget_give(f->budget, TAG_PLANNER, after, 100);
}

static void test_files_are_refused_only_while_it_is_set(void **state)
{
    struct fixture *f = *state;
    struct file *file;
    char byte = 'a';
    assert_int_equal(file_open(&file, f->budget, "/tmp", FILE_SCRATCH, NULL), PLIM_OK);
    stop_ask(&f->stop);
    assert_int_equal(file_write(file, 0, &byte, 1, NULL), PLIM_OK);
    assert_int_equal(file_read(file, 0, &byte, 1, NULL), PLIM_OK);
    budget_stop_refuses(f->budget, true);
    assert_int_equal(file_write(file, 0, &byte, 1, NULL), PLIM_INTERRUPTED);
    assert_int_equal(file_read(file, 0, &byte, 1, NULL), PLIM_INTERRUPTED);
    file_close(file);
}

static bool smaller(const void *context, uint32_t a, uint32_t b)
{
    (void)context;
    return a < b;
}

/* Cut short, an order is still a permutation: who uses it up does not leave its array. */
static void test_a_sort_that_is_cut_short(void **state)
{
    struct fixture *f = *state;
    uint32_t order[1000], seen[1000] = {0};
    stop_ask(&f->stop);
    budget_stop_refuses(f->budget, true);
    sort_indices(order, 1000, smaller, NULL, f->budget);
    for (int i = 0; i < 1000; i++)
        seen[order[i]]++;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(seen[i], 1);
}

/* ---- waiting ---- */

static double seconds_since(uint64_t begin_ns)
{
    return (double)(clock_ns() - begin_ns) * 1e-9;
}

static void test_a_full_pipe_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    static const char line[3000];
    int ends[2], lines = 0;
    assert_int_equal(pipe(ends), 0);
    stop_ask(&f->stop);
    uint64_t begin_ns = clock_ns();
    while (file_send_until(&f->stop, ends[1], line, sizeof line))
        assert_true(++lines < 1000);
    assert_int_equal(errno, EAGAIN);
    assert_true(lines > 1); /* what there was room for went there */
    assert_true(seconds_since(begin_ns) < BOUND_S);
    close(ends[0]);
    close(ends[1]);
}

static void test_a_silent_command_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    struct process process;
    plim_error error;
    char bytes[16];
    size_t got;
    assert_int_equal(process_open(&process, f->budget, "echo abc; trap '' TERM; sleep 30", NULL, "0", &error), PLIM_OK);
    assert_int_equal(process_read(&got, &process, bytes, sizeof bytes, &error), PLIM_OK);
    assert_int_equal(got, 4);
    stop_ask(&f->stop);
    uint64_t begin_ns = clock_ns();
    assert_int_equal(process_read(&got, &process, bytes, sizeof bytes, &error), PLIM_INTERRUPTED);
    assert_int_equal(process_wait(&process, &error), PLIM_INTERRUPTED);
    process_close(&process);
    assert_true(seconds_since(begin_ns) < BOUND_S);
}

/* timeout makes a group of its own: the guard's kill does not reach it. */
static void test_a_command_that_leaves_its_group(void **state)
{
    struct fixture *f = *state;
    struct process process;
    plim_error error;
    char bytes[16];
    size_t got;
    assert_int_equal(process_open(&process, f->budget, "echo abc; exec timeout 30 sleep 30", NULL, "0", &error),
                     PLIM_OK);
    assert_int_equal(process_read(&got, &process, bytes, sizeof bytes, &error), PLIM_OK);
    poll(NULL, 0, 200); /* until it has left, most of the time */
    uint64_t begin_ns = clock_ns();
    stop_ask(&f->stop);
    process_close(&process);
    assert_true(seconds_since(begin_ns) < BOUND_S);
}

/* Its parent, the one that holds the other end of the lifeline, is gone: here it is enough to close that end. */
static void test_the_guard(void **state)
{
    struct fixture *f = *state;
    struct process process;
    plim_error error;
    char byte;
    size_t got;
    assert_int_equal(process_open(&process, f->budget, "sleep 30 | cat", NULL, "0", &error), PLIM_OK);
    uint64_t begin_ns = clock_ns();
    close(process.lifeline);
    process.lifeline = -1;
    assert_int_equal(process_read(&got, &process, &byte, 1, &error), PLIM_OK);
    assert_int_equal(got, 0); /* nobody holds its output any more */
    assert_int_equal(process_wait(&process, &error), PLIM_IO);
    process_close(&process);
    assert_true(seconds_since(begin_ns) < BOUND_S);
}

/* ---- a job ---- */

static void test_a_job_that_is_stopped_before_it_is_planned(void **state)
{
    (void)state;
    char path[] = "/tmp/plim-stop-XXXXXX";
    static const char text[] = "memory: 16GiB\n"
                               "data: {train: {random: {elements: 64, shape: [4], classes: 2}, pipeline: [batch: 8]}}\n"
                               "model: [Dense: {units: 2, activation: softmax}]\n"
                               "train: {optimizer: sgd, loss: sparse_categorical_crossentropy, epochs: 1}\n";
    plim_job *job;
    plim_plan_report report;
    plim_data_figures figures;
    plim_error error;
    int descriptor = mkstemp(path);
    assert_int_equal(write(descriptor, text, sizeof text - 1), sizeof text - 1);
    close(descriptor);
    assert_int_equal(plim_job_open(&job, path, NULL, &error), PLIM_OK);
    plim_job_stop(job);
    assert_int_equal(plim_job_plan(&report, job, &error), PLIM_INTERRUPTED);
    assert_non_null(strstr(error.message, "asked to stop"));
    assert_int_equal(plim_job_train(job, NULL, NULL, &error), PLIM_INTERRUPTED);
    assert_int_equal(plim_job_bench_data(&figures, job, &error), PLIM_INTERRUPTED);
    plim_job_close(job);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_budget_says_so, begin, end),
        cmocka_unit_test_setup_teardown(test_blocks_are_refused_only_while_it_is_set, begin, end),
        cmocka_unit_test_setup_teardown(test_files_are_refused_only_while_it_is_set, begin, end),
        cmocka_unit_test_setup_teardown(test_a_sort_that_is_cut_short, begin, end),
        cmocka_unit_test_setup_teardown(test_a_full_pipe_is_not_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(test_a_silent_command_is_not_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(test_a_command_that_leaves_its_group, begin, end),
        cmocka_unit_test_setup_teardown(test_the_guard, begin, end),
        cmocka_unit_test(test_a_job_that_is_stopped_before_it_is_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
