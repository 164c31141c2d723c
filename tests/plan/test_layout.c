/* test_layout.c - packing: nothing overlaps, and the bound is reached where
   it should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory/budget_stop.h"
#include "base/memory/work.h"
#include "base/numbers/random.h"
#include "base/threads/stop.h"
#include "plan/plan.h"

#define MOST 200

struct generator {
    uint64_t seed, index;
};

static uint64_t below(struct generator *g, uint64_t n)
{
    uint32_t block[4];
    random_block(block, g->seed, 7, g->index++);
    return block[0] % n;
}

static int open_budget(void **state)
{
    return budget_make((struct budget **)state, BUDGET_UNLIMITED, NULL) == PLIM_OK ? 0 : -1;
}

static int close_budget(void **state)
{
    struct budget_usage usage = budget_usage(*state);
    uint64_t held = usage.now - usage.now_by_tag[TAG_PLANNER];
    budget_free(*state);
    return held == 0 ? 0 : -1;
}

static bool overlap(const struct instance *a, const struct instance *b)
{
    bool in_time = a->first <= b->last && b->first <= a->last;
    return in_time && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* The bound by its definition, not by layout_max_live. */
static uint64_t bound_of(const struct instance *instance, int count, int instructions)
{
    uint64_t most = 0;
    for (int t = 0; t < instructions; t++) {
        uint64_t live = 0;
        for (int i = 0; i < count; i++)
            live += instance[i].first <= t && t <= instance[i].last ? (instance[i].bytes + 63) / 64 * 64 : 0;
        most = live > most ? live : most;
    }
    return most;
}

static void check(const struct instance *instance, int count, uint64_t top)
{
    uint64_t reached = 0;
    for (int i = 0; i < count; i++) {
        assert_int_equal(instance[i].offset % 64, 0);
        assert_true(instance[i].offset + instance[i].bytes <= top);
        uint64_t end = instance[i].offset + (instance[i].bytes + 63) / 64 * 64;
        reached = end > reached ? end : reached;
        for (int j = 0; j < i; j++)
            assert_false(overlap(&instance[i], &instance[j]));
    }
    assert_int_equal(reached, top);
}

static void random_instances(void **state)
{
    double worst = 1;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct generator g = {.seed = seed};
        struct instance instance[MOST];
        int count = 1 + (int)below(&g, MOST), instructions = 1 + (int)below(&g, 60);
        for (int i = 0; i < count; i++) {
            int first = (int)below(&g, (uint64_t)instructions);
            int last = first + (int)below(&g, (uint64_t)(instructions - first));
            instance[i] = (struct instance){
                .name = "x", .bytes = 1 + below(&g, 100000), .offset = 12345, .first = first, .last = last};
        }
        uint64_t top;
        int peak;
        uint64_t live[60];
        assert_int_equal(layout_pack(&top, instance, count, *state, NULL), PLIM_OK);
        check(instance, count, top);
        uint64_t bound = bound_of(instance, count, instructions);
        assert_int_equal(layout_max_live(live, instance, count, instructions, &peak), bound);
        assert_in_range(peak, 0, instructions - 1);
        assert_true(top >= bound);
        worst = (double)top / (double)bound > worst ? (double)top / (double)bound : worst;
    }
    assert_true(worst < 1.05);
}

/* Forward and backward of a chain of layers: activation i is made at i and read at
   2n - 1 - i; gradients hand over from step to step; scratch lives at one. Sizes are equal,
   or halve every third layer, or (wild) are anything. */
enum sizes { EQUAL, HALVING, WILD };

static int training_chain(struct instance *instance, int layers, struct generator *g, enum sizes sizes)
{
    int count = 0, end = 2 * layers - 1;
    uint64_t bytes = 64 * 2000;
    for (int i = 0; i < layers; i++) {
        if (sizes == WILD)
            bytes = 64 * (1 + below(g, 1000));
        else if (sizes == HALVING && i % 3 == 2)
            bytes = bytes > 256 ? bytes / 128 * 64 : bytes;
        instance[count++] = (struct instance){.name = "activation", .bytes = bytes, .first = i, .last = end - i};
        instance[count++] =
            (struct instance){.name = "gradient", .bytes = bytes, .first = end - i, .last = i ? end - i + 1 : end};
        instance[count++] = (struct instance){
            .name = "scratch", .bytes = sizes == WILD ? 1 + below(g, bytes / 2) : bytes / 4, .first = i, .last = i};
        instance[count++] = (struct instance){.name = "scratch",
                                              .bytes = sizes == WILD ? 1 + below(g, bytes / 2) : bytes / 4,
                                              .first = end - i,
                                              .last = end - i};
    }
    return count;
}

static void chains_reach_the_bound(void **state)
{
    for (uint64_t seed = 0; seed < 80; seed++) {
        struct generator g = {.seed = seed + 1000};
        struct instance instance[MOST];
        enum sizes sizes = (enum sizes)(seed % 3);
        int layers = 2 + (int)below(&g, 30);
        int count = training_chain(instance, layers, &g, sizes);
        uint64_t top;
        assert_int_equal(layout_pack(&top, instance, count, *state, NULL), PLIM_OK);
        check(instance, count, top);
        if (sizes == WILD) /* the bound is not always within anybody's reach */
            assert_true(top <= bound_of(instance, count, 2 * layers) * 21 / 20);
        else
            assert_int_equal(top, bound_of(instance, count, 2 * layers));
    }
}

static void nothing_to_pack(void **state)
{
    uint64_t top = 1;
    int peak = -1;
    assert_int_equal(layout_pack(&top, NULL, 0, *state, NULL), PLIM_OK);
    assert_int_equal(top, 0);
    assert_int_equal(layout_max_live(&top, NULL, 0, 0, &peak), 0);
}

/* The search for gaps takes seconds for tens of thousands of values, and takes no memory that could be refused. */
static void a_stop_ends_the_search(void **state)
{
    struct generator g = {.seed = 7};
    struct instance instance[MOST];
    struct stop stop = {0};
    plim_error error = {0};
    uint64_t top;
    int count = training_chain(instance, MOST / 4, &g, WILD);
    uint64_t before = work_counted(*state);
    assert_int_equal(layout_pack(&top, instance, count, *state, &error), PLIM_OK);
    uint64_t whole = work_counted(*state) - before;
    budget_watch_stop(*state, &stop);
    stop_ask(&stop);
    before = work_counted(*state);
    assert_int_equal(layout_pack(&top, instance, count, *state, &error), PLIM_INTERRUPTED);
    assert_int_equal(error.code, PLIM_INTERRUPTED);
    assert_true(work_counted(*state) - before <= (uint64_t)count);
    assert_true(whole > 4 * (uint64_t)count);
    budget_watch_stop(*state, NULL);
}

static void bad_lifetimes_are_refused(void **state)
{
    struct instance instance = {.name = "x", .bytes = 64, .first = 3, .last = 2};
    plim_error error;
    uint64_t top;
    assert_int_equal(layout_pack(&top, &instance, 1, *state, &error), PLIM_INTERNAL);
}

static void too_many_bytes_are_refused(void **state)
{
    struct instance instance[2] = {{.name = "a", .bytes = UINT64_MAX / 2 + 1},
                                   {.name = "b", .bytes = UINT64_MAX / 2 + 1}};
    plim_error error;
    uint64_t top;
    assert_int_equal(layout_pack(&top, instance, 2, *state, &error), PLIM_OVER_BUDGET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_instances, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(chains_reach_the_bound, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(nothing_to_pack, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(a_stop_ends_the_search, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(bad_lifetimes_are_refused, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(too_many_bytes_are_refused, open_budget, close_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
