/* test_workers.c - every unit is run once, whoever runs it; threads that do not start. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/numbers/count.h"
#include "base/threads/workers.h"

#define UNITS_MOST 40

static struct budget *make_budget(void)
{
    struct budget *budget = NULL;
    assert_int_equal(budget_make(&budget, 64 << 20, NULL), PLIM_OK);
    return budget;
}

static void nap(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

struct unit_counts {
    int runs[UNITS_MOST]; /* not atomic: a unit has one owner, and the end of a run orders it */
    int workers;
    atomic_int out_of_range;
    bool slow;
};

static void count_unit(void *context, int unit, int worker)
{
    struct unit_counts *counts = context;
    if (unit < 0 || unit >= UNITS_MOST || worker < 0 || worker >= counts->workers) {
        atomic_fetch_add(&counts->out_of_range, 1);
        return;
    }
    if (counts->slow && unit % 3 == 0)
        nap(30000);
    counts->runs[unit]++;
}

static void run_rounds(struct team *team, int workers, int rounds, bool slow)
{
    for (int round = 0; round < rounds; round++) {
        struct unit_counts counts = {.workers = workers, .slow = slow};
        int units = round % UNITS_MOST;
        team_run(team, units, count_unit, &counts);
        for (int unit = 0; unit < UNITS_MOST; unit++)
            assert_int_equal(counts.runs[unit], unit < units);
        assert_int_equal(counts.out_of_range, 0);
        if (round % 100 == 99)
            nap(60000); /* long enough for the others to fall asleep */
    }
}

static void every_unit_is_run_once(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 4; workers++) {
        struct budget *budget = make_budget();
        uint64_t own = budget_usage(budget).now;
        struct team *team = NULL;
        assert_int_equal(team_make(&team, budget, workers, NULL, NULL), PLIM_OK);
        assert_true(budget_usage(budget).now_by_tag[TAG_STACKS] >= (uint64_t)(workers - 1) * THREAD_STACK_BYTES);
        uint64_t takes = budget_usage(budget).takes;
        run_rounds(team, workers, 5000, false);
        run_rounds(team, workers, 120, true);
        assert_int_equal(budget_usage(budget).takes, takes);
        team_free(team);
        assert_int_equal(budget_usage(budget).now, own);
        budget_free(budget);
    }
}

static void one_unit_stays_with_the_caller(void **state)
{
    (void)state;
    struct budget *budget = make_budget();
    struct team *team = NULL;
    assert_int_equal(team_make(&team, budget, 3, NULL, NULL), PLIM_OK);
    for (int i = 0; i < 1000; i++) {
        struct unit_counts counts = {.workers = 1}; /* any other worker is out of range */
        team_run(team, 1, count_unit, &counts);
        assert_int_equal(counts.runs[0], 1);
    }
    team_free(team);
    budget_free(budget);
}

/* Two units that wait for each other: two workers must be at it. */
struct meeting {
    atomic_int arrived, alone;
};

static void meet(void *context, int unit, int worker)
{
    (void)unit;
    (void)worker;
    struct meeting *meeting = context;
    atomic_fetch_add(&meeting->arrived, 1);
    for (int i = 0; i < 100000 && atomic_load(&meeting->arrived) < 2; i++)
        nap(100000);
    if (atomic_load(&meeting->arrived) < 2)
        atomic_fetch_add(&meeting->alone, 1);
}

static void the_others_do_work(void **state)
{
    (void)state;
    struct budget *budget = make_budget();
    struct team *team = NULL;
    assert_int_equal(team_make(&team, budget, 2, NULL, NULL), PLIM_OK);
    for (int i = 0; i < 5; i++) {
        struct meeting meeting = {0};
        nap(i * 50000); /* the other one is awake or asleep */
        team_run(team, 2, meet, &meeting);
        assert_int_equal(meeting.arrived, 2);
        assert_int_equal(meeting.alone, 0);
    }
    team_free(team);
    budget_free(budget);
}

static atomic_int starts;
static void count_start(void)
{
    atomic_fetch_add(&starts, 1);
}

static void each_thread_starts_once(void **state)
{
    (void)state;
    struct budget *budget = make_budget();
    struct team *team = NULL;
    atomic_store(&starts, 0);
    assert_int_equal(team_make(&team, budget, 4, count_start, NULL), PLIM_OK);
    team_free(team);
    assert_int_equal(starts, 3);
    budget_free(budget);
}

static void threads_that_do_not_start(void **state)
{
    (void)state;
    struct budget *budget = make_budget();
    uint64_t own = budget_usage(budget).now;
    bool reached = true;
    int nth = 1;
    for (; reached; nth++) {
        plim_error error;
        struct team *team = NULL;
        fault_arm(FAULT_THREAD | FAULT_ALLOCATE, nth, nth % 2 == 0, EAGAIN);
        plim_status status = team_make(&team, budget, 4, NULL, &error);
        reached = fault_disarm();
        assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
        assert_int_equal(team == NULL, reached);
        if (reached)
            assert_true(error.message[0] != '\0');
        team_free(team);
        assert_int_equal(budget_usage(budget).now, own);
    }
    assert_int_equal(nth - 2, 1 + 3 * 3); /* the team; a struct, a stack and a start for each of three */
    budget_free(budget);
}

static void a_team_must_fit(void **state)
{
    (void)state;
    plim_error error;
    struct budget *budget = NULL;
    struct team *team = NULL;
    assert_int_equal(budget_make(&budget, THREAD_STACK_BYTES * 2, NULL), PLIM_OK);
    assert_int_equal(team_make(&team, budget, 3, NULL, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "stacks"));
    assert_int_equal(team_make(&team, budget, 0, NULL, &error), PLIM_USAGE);
    assert_int_equal(team_make(&team, budget, 100000, NULL, &error), PLIM_USAGE);
    assert_int_equal(team_make(&team, budget, 2, NULL, &error), PLIM_OK);
    team_free(team);
    budget_free(budget);
    assert_true(cpu_count() >= 1);
}

static void a_team_costs_what_it_says(void **state)
{
    static const int workers[] = {1, 2, 70}; /* 70: the team itself is mapped */
    (void)state;
    for (size_t i = 0; i < COUNT(workers); i++) {
        struct budget *budget;
        struct team *team;
        assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
        uint64_t before = budget_usage(budget).now;
        assert_int_equal(team_make(&team, budget, workers[i], NULL, NULL), PLIM_OK);
        assert_int_equal(budget_usage(budget).now - before, team_cost(workers[i]));
        team_free(team);
        budget_free(budget);
    }
}

static void look_at_signals(void *context)
{
    sigset_t mask;
    char deep[THREAD_STACK_BYTES / 2]; /* the stack is really there */
    memset(deep, 1, sizeof deep);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    *(int *)context = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGSEGV) == 0 && deep[17] == 1;
}

static void a_thread_leaves_signals_to_the_host(void **state)
{
    (void)state;
    struct budget *budget = make_budget();
    struct thread *thread = NULL;
    sigset_t mask;
    int seen = 0;
    assert_int_equal(thread_start(&thread, budget, look_at_signals, &seen, NULL), PLIM_OK);
    thread_join(thread);
    thread_join(NULL);
    assert_int_equal(seen, 1);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGINT), 0);
    budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_run_once),    cmocka_unit_test(one_unit_stays_with_the_caller),
        cmocka_unit_test(the_others_do_work),        cmocka_unit_test(each_thread_starts_once),
        cmocka_unit_test(threads_that_do_not_start), cmocka_unit_test(a_team_must_fit),
        cmocka_unit_test(a_team_costs_what_it_says), cmocka_unit_test(a_thread_leaves_signals_to_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
