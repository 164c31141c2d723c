/* test_budget.c - the limit holds, the usage adds up, faults come out as errors; arenas. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/memory/arena.h"
#include "base/memory/budget.h"
#include "base/memory/budget_need.h"
#include "base/memory/limits.h"
#include "base/numbers/count.h"

#define MIB ((uint64_t)1024 * 1024)

static uint64_t sum_of_tags(const struct budget_usage *usage)
{
    uint64_t sum = 0;
    for (int tag = 0; tag < TAG_COUNT; tag++)
        sum += usage->now_by_tag[tag];
    return sum;
}

static uint64_t now(const struct budget *budget)
{
    struct budget_usage usage = budget_usage(budget);
    assert_int_equal(sum_of_tags(&usage), usage.now);
    assert_true(usage.now <= usage.limit);
    assert_true(usage.peak >= usage.now);
    return usage.now;
}

static struct budget *make(uint64_t limit)
{
    struct budget *budget = NULL;
    assert_int_equal(budget_make(&budget, limit, NULL), PLIM_OK);
    return budget;
}

static void blocks_are_zeroed_aligned_and_counted(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, BUDGET_MAP_BYTES - 1, BUDGET_MAP_BYTES, 1000001};
    struct budget *budget = make(BUDGET_UNLIMITED);
    uint64_t own = now(budget);
    assert_true(own > 0);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        unsigned char *block = budget_take(budget, TAG_WEIGHTS, sizes[i]);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(block[j], 0);
        memset(block, 0xff, sizes[i]);
        assert_true(now(budget) - own >= sizes[i]);
        assert_true(now(budget) - own < sizes[i] + 4096 + 64);
        assert_int_equal(now(budget) - own, budget_charge(sizes[i]));
        budget_give(budget, TAG_WEIGHTS, block, sizes[i]);
        assert_int_equal(now(budget), own);
    }
    assert_int_equal(budget_usage(budget).takes, COUNT(sizes));
    budget_give(budget, TAG_WEIGHTS, NULL, 17);
    assert_int_equal(now(budget), own);
    budget_free(budget);
}

static void a_probe_costs_nothing(void **state)
{
    (void)state;
    struct budget *budget = make(MIB);
    struct budget_usage before = budget_usage(budget);
    assert_true(budget_probe(64 * MIB)); /* the system's room, not the budget's */
    assert_false(budget_probe(SIZE_MAX / 4));
    fault_arm(FAULT_ALLOCATE, 1, false, ENOMEM);
    assert_false(budget_probe(1));
    assert_true(budget_probe(1));
    assert_true(fault_disarm());
    struct budget_usage after = budget_usage(budget);
    assert_memory_equal(&after, &before, sizeof after);
    budget_free(budget);
}

/* Blocks of all sizes at once: none touches another, and what is given back is used again. */
static void small_blocks_do_not_overlap(void **state)
{
    (void)state;
    enum { BLOCKS = 600 };
    static unsigned char *block[BLOCKS];
    struct budget *budget = make(BUDGET_UNLIMITED);
    for (int round = 0; round < 3; round++) {
        for (int i = round; i < BLOCKS; i += round + 1) {
            block[i] = budget_take(budget, TAG_CACHE, (size_t)(i * 7 % 4500));
            assert_non_null(block[i]);
            memset(block[i], i & 255, (size_t)(i * 7 % 4500));
        }
        for (int i = round; i < BLOCKS; i += round + 1) {
            for (size_t k = 0; k < (size_t)(i * 7 % 4500); k++)
                assert_int_equal(block[i][k], i & 255);
            budget_give(budget, TAG_CACHE, block[i], (size_t)(i * 7 % 4500));
        }
    }
    budget_free(budget);
}

/* Pages that somebody else touches count as much as our own. */
static void the_process_stays_within_the_limit(void **state)
{
    (void)state;
    plim_error error = {0};
    struct process_usage usage;
    struct budget *budget = make(BUDGET_UNLIMITED);
    assert_true(process_usage_now(&usage));
    uint64_t limit = usage.rss + usage.page_tables + 8 * MIB;
    assert_int_equal(budget_bind_process(budget, usage.rss / 2, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "process itself"));
    assert_int_equal(budget_bind_process(budget, limit, &error), PLIM_OK);
    assert_true(budget_has_room(budget, MIB));
    assert_false(budget_has_room(budget, 9 * MIB));
    assert_null(budget_take(budget, TAG_CACHE, 9 * MIB));
    assert_int_equal(budget_refused(budget, TAG_CACHE, 9 * MIB, &error), PLIM_OVER_BUDGET);
    assert_int_equal(budget_outside(budget, 9 * MIB, "a library", &error), PLIM_OVER_BUDGET);
    assert_int_equal(budget_outside(budget, MIB, "a library", &error), PLIM_OK);

    const size_t foreign = 5 * MIB;
    char *library = mmap(NULL, foreign, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_true(library != MAP_FAILED);
    void *pieces[64];
    int taken = 0;
    while (taken < 64 && (pieces[taken] = budget_take(budget, TAG_CACHE, MIB / 4)))
        taken++;
    assert_in_range(taken, 1, 14); /* 3 MiB were left, more or less a page of libc's */
    assert_true(process_usage_now(&usage));
    assert_true(usage.rss + usage.page_tables <= limit + MIB / 4);
    budget_unbind_process(budget); /* the ledger alone counts again */
    void *more = budget_take(budget, TAG_CACHE, 4 * MIB);
    assert_non_null(more);
    budget_give(budget, TAG_CACHE, more, 4 * MIB);
    munmap(library, foreign);
    while (taken)
        budget_give(budget, TAG_CACHE, pieces[--taken], MIB / 4);
    budget_free(budget);
}

static void the_limit_is_never_passed(void **state)
{
    (void)state;
    plim_error error;
    struct budget *budget = make(MIB);
    void *half = budget_take(budget, TAG_CACHE, MIB / 2);
    assert_non_null(half);
    assert_null(budget_take(budget, TAG_WEIGHTS, MIB / 2)); /* the ledger itself is in the way */
    assert_int_equal(budget_refused(budget, TAG_WEIGHTS, MIB / 2, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "weights"));
    assert_non_null(strstr(error.message, "512.0 KiB"));
    assert_true(error.hint[0] != '\0');
    assert_int_equal(budget_usage(budget).peak_by_tag[TAG_WEIGHTS], 0);

    /* To the last byte: what is left is given, one more is not. */
    uint64_t left = MIB - now(budget);
    assert_int_equal(budget_reserve(budget, TAG_KERNEL, left + 1, &error), PLIM_OVER_BUDGET);
    assert_int_equal(budget_reserve(budget, TAG_KERNEL, left, &error), PLIM_OK);
    assert_int_equal(now(budget), MIB);
    assert_null(budget_take(budget, TAG_WEIGHTS, 0));
    assert_int_equal(budget_limit(budget, MIB - 1, &error), PLIM_OVER_BUDGET);
    budget_release(budget, TAG_KERNEL, left);
    assert_int_equal(budget_limit(budget, MIB - 1, &error), PLIM_OK);
    assert_int_equal(budget_usage(budget).limit, MIB - 1);
    budget_give(budget, TAG_CACHE, half, MIB / 2);
    budget_free(budget);

    budget = NULL;
    assert_int_equal(budget_make(&budget, 16, &error), PLIM_OVER_BUDGET);
    assert_null(budget);
}

static void peaks_are_kept_by_tag(void **state)
{
    (void)state;
    struct budget *budget = make(BUDGET_UNLIMITED);
    uint64_t own = now(budget);
    void *a = budget_take(budget, TAG_WEIGHTS, 1024);
    void *b = budget_take(budget, TAG_GRADIENTS, 2048);
    budget_give(budget, TAG_WEIGHTS, a, 1024);
    a = budget_take(budget, TAG_WEIGHTS, 512);
    struct budget_usage usage = budget_usage(budget);
    assert_int_equal(usage.now_by_tag[TAG_WEIGHTS], 512);
    assert_int_equal(usage.peak_by_tag[TAG_WEIGHTS], 1024);
    assert_int_equal(usage.peak_by_tag[TAG_GRADIENTS], 2048);
    assert_int_equal(usage.peak, own + 1024 + 2048);
    budget_give(budget, TAG_WEIGHTS, a, 512);
    budget_give(budget, TAG_GRADIENTS, b, 2048);
    budget_free(budget);
    assert_string_equal(tag_name(TAG_PROCESS), "process");
    assert_string_equal(tag_name(TAG_PLANNER), "planner");
}

/* What is given back between the refusal and its error does not make a full system of a small budget. */
static void a_refusal_is_remembered(void **state)
{
    struct budget *budget;
    struct arena arena;
    plim_error error = {0};
    (void)state;
    assert_int_equal(budget_make(&budget, MIB, NULL), PLIM_OK);
    void *block = budget_take(budget, TAG_WEIGHTS, MIB / 2);
    assert_null(budget_take(budget, TAG_WEIGHTS, MIB));
    budget_give(budget, TAG_WEIGHTS, block, MIB / 2);
    assert_int_equal(budget_refused(budget, TAG_WEIGHTS, 80, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "1.0 MiB more"));
    arena_init(&arena, budget, TAG_PLANNER);
    arena.block_bytes = 2 * MIB;
    assert_null(arena_take(&arena, 80)); /* the block that they would lie in */
    assert_int_equal(arena_refused(&arena, &error), PLIM_OVER_BUDGET);
    assert_non_null(strstr(error.message, "2.0 MiB more"));
    arena_release(&arena);
    fault_arm(FAULT_ALLOCATE, 1, false, ENOMEM);
    assert_null(budget_take(budget, TAG_WEIGHTS, 80));
    fault_disarm();
    assert_int_equal(budget_refused(budget, TAG_WEIGHTS, 80, &error), PLIM_NO_MEMORY);
    budget_free(budget);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    plim_error error;
    struct budget *budget = make(BUDGET_UNLIMITED);
    uint64_t own = now(budget);
    assert_null(budget_take_array(budget, TAG_WEIGHTS, SIZE_MAX / 2, 3));
    assert_null(budget_take_array(budget, TAG_WEIGHTS, (size_t)1 << 32, (size_t)1 << 32));
    assert_null(budget_take(budget, TAG_WEIGHTS, SIZE_MAX));
    assert_null(budget_take(budget, TAG_WEIGHTS, SIZE_MAX / 2));
    assert_int_equal(budget_refused(budget, TAG_WEIGHTS, SIZE_MAX / 2, &error), PLIM_NO_MEMORY);
    assert_int_equal(now(budget), own);
    assert_int_equal(budget_usage(budget).peak, own);
    void *block = budget_take_array(budget, TAG_WEIGHTS, 10, 13);
    assert_non_null(block);
    budget_give(budget, TAG_WEIGHTS, block, 130);
    budget_free(budget);
}

static void growing_keeps_the_bytes(void **state)
{
    (void)state;
    struct budget *budget = make(MIB);
    uint64_t own = now(budget);
    unsigned char *block = budget_grow(budget, TAG_FORMATS, NULL, 0, 100);
    assert_non_null(block);
    memset(block, 7, 100);
    unsigned char *larger = budget_grow(budget, TAG_FORMATS, block, 100, BUDGET_MAP_BYTES + 5);
    assert_non_null(larger);
    for (size_t i = 0; i < BUDGET_MAP_BYTES + 5; i++)
        assert_int_equal(larger[i], i < 100 ? 7 : 0);
    assert_null(budget_grow(budget, TAG_FORMATS, larger, BUDGET_MAP_BYTES + 5, MIB));
    assert_int_equal(larger[99], 7);
    budget_give(budget, TAG_FORMATS, larger, BUDGET_MAP_BYTES + 5);
    assert_int_equal(now(budget), own);
    budget_free(budget);
}

static void a_fault_is_no_memory(void **state)
{
    (void)state;
    plim_error error;
    struct budget *budget = make(MIB);
    fault_arm(FAULT_ALLOCATE, 2, false, ENOMEM);
    void *first = budget_take(budget, TAG_WEIGHTS, 100);
    void *second = budget_take(budget, TAG_WEIGHTS, BUDGET_MAP_BYTES);
    void *third = budget_take(budget, TAG_WEIGHTS, 100);
    assert_int_equal(fault_calls(), 3);
    assert_true(fault_disarm());
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    assert_int_equal(budget_refused(budget, TAG_WEIGHTS, BUDGET_MAP_BYTES, &error), PLIM_NO_MEMORY);

    fault_arm(FAULT_ALLOCATE, 2, true, ENOMEM);
    void *fourth = budget_take(budget, TAG_WEIGHTS, 100);
    for (int i = 0; i < 3; i++)
        assert_null(budget_take(budget, TAG_WEIGHTS, 100));
    assert_true(fault_disarm());
    budget_give(budget, TAG_WEIGHTS, first, 100);
    budget_give(budget, TAG_WEIGHTS, third, 100);
    budget_give(budget, TAG_WEIGHTS, fourth, 100);
    budget_free(budget);

    budget = NULL;
    fault_arm(FAULT_ALLOCATE, 1, false, ENOMEM);
    assert_int_equal(budget_make(&budget, MIB, &error), PLIM_NO_MEMORY);
    assert_true(fault_disarm());
    assert_null(budget);
}

static void only_armed_sites_fail(void **state)
{
    (void)state;
    fault_arm(FAULT_READ | FAULT_SYNC, 2, false, EIO);
    assert_int_equal(fault_at(FAULT_WRITE), 0);
    assert_int_equal(fault_at(FAULT_READ), 0);
    assert_int_equal(fault_at(FAULT_SYNC), EIO);
    assert_int_equal(fault_at(FAULT_READ), 0);
    assert_int_equal(fault_calls(), 3);
    assert_true(fault_disarm());
    assert_int_equal(fault_at(FAULT_READ), 0);

    fault_arm(FAULT_ANY, 1, true, 0);
    assert_int_equal(fault_at(FAULT_ALLOCATE), 0); /* cannot be short */
    assert_int_equal(fault_at(FAULT_WRITE), FAULT_SHORT);
    assert_true(fault_disarm());
    fault_arm(FAULT_ANY, 5, false, EIO);
    assert_false(fault_disarm());
}

struct race {
    struct budget *budget;
    atomic_int refused;
};

static void *race_main(void *argument)
{
    struct race *race = argument;
    for (size_t i = 0; i < 2000; i++) {
        size_t bytes = 64 + i % 7 * 300;
        enum tag tag = (enum tag)(i % TAG_COUNT);
        unsigned char *block = budget_take(race->budget, tag, bytes);
        if (block)
            block[bytes - 1] = 1;
        else
            atomic_fetch_add(&race->refused, 1);
        budget_give(race->budget, tag, block, bytes);
    }
    return NULL;
}

static void threads_may_take_and_give(void **state)
{
    (void)state;
    pthread_t threads[4];
    struct race race = {.budget = make(8192)};
    uint64_t own = now(race.budget);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race_main, &race), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(now(race.budget), own);
    assert_int_equal(budget_usage(race.budget).takes + (uint64_t)race.refused, 4 * 2000);
    assert_true(budget_usage(race.budget).peak <= 8192);
    budget_free(race.budget);
}

static void an_arena_is_freed_whole(void **state)
{
    (void)state;
    struct budget *budget = make(MIB);
    uint64_t own = now(budget);
    struct arena arena;
    arena_init(&arena, budget, TAG_PLANNER);
    assert_int_equal(now(budget), own);
    for (size_t i = 1; i < 2000; i = i * 2 + 1) {
        unsigned char *block = arena_take(&arena, i);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 16, 0);
        for (size_t j = 0; j < i; j++)
            assert_int_equal(block[j], 0);
        memset(block, 0xff, i);
    }
    for (int i = 0; i < 40; i++) /* several blocks */
        assert_non_null(arena_take(&arena, 1000));
    uint64_t before = now(budget);
    char *name = arena_string(&arena, "conv2d_1");
    assert_non_null(arena_take(&arena, 100000)); /* a block of its own; the last one goes on being filled */
    char *text = arena_format(&arena, "%s/%d", name, 7);
    assert_string_equal(name, "conv2d_1");
    assert_string_equal(text, "conv2d_1/7");
    assert_true(text > name && text - name < 64);
    assert_true(now(budget) - before < 100000 + 4096);
    assert_null(arena_take(&arena, MIB));
    assert_null(arena_take(&arena, SIZE_MAX));
    assert_null(arena_array(&arena, SIZE_MAX / 4, 8));
    assert_non_null(arena_array(&arena, 3, 5));
    arena_release(&arena);
    assert_int_equal(now(budget), own);
    budget_free(budget);
}

static void an_arena_survives_every_fault(void **state)
{
    (void)state;
    struct budget *budget = make(MIB);
    uint64_t own = now(budget);
    int64_t nth = 1;
    bool reached = true;
    for (; reached; nth++) {
        struct arena arena;
        arena_init(&arena, budget, TAG_PLANNER);
        fault_arm(FAULT_ALLOCATE, nth, false, ENOMEM);
        int refused = 0;
        for (int i = 0; i < 40; i++)
            refused += arena_take(&arena, 1000) == NULL;
        reached = fault_disarm();
        assert_int_equal(refused, reached);
        arena_release(&arena);
        assert_int_equal(now(budget), own);
    }
    assert_true(nth > 3);
    budget_free(budget);
}

static void the_heap_is_measured(void **state)
{
    (void)state;
    if (budget_heap_bytes() == 0)
        skip(); /* a sanitizer's malloc does not tell */
    struct budget *budget = make(MIB);
    uint64_t before = budget_heap_bytes();
    void *block = malloc(50000);
    assert_non_null(block);
    assert_true(budget_heap_bytes() >= before + 50000);
    free(block);
    uint64_t between = budget_heap_bytes();
    void *small = budget_take(budget, TAG_CACHE, 500), *large = budget_take(budget, TAG_CACHE, 50000);
    assert_true(budget_heap_bytes() == between); /* the budget's blocks are not malloc's */
    budget_give(budget, TAG_CACHE, small, 500);
    budget_give(budget, TAG_CACHE, large, 50000);
    budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_aligned_and_counted),
        cmocka_unit_test(a_probe_costs_nothing),
        cmocka_unit_test(small_blocks_do_not_overlap),
        cmocka_unit_test(the_process_stays_within_the_limit),
        cmocka_unit_test(the_limit_is_never_passed),
        cmocka_unit_test(peaks_are_kept_by_tag),
        cmocka_unit_test(a_refusal_is_remembered),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(growing_keeps_the_bytes),
        cmocka_unit_test(a_fault_is_no_memory),
        cmocka_unit_test(only_armed_sites_fail),
        cmocka_unit_test(threads_may_take_and_give),
        cmocka_unit_test(an_arena_is_freed_whole),
        cmocka_unit_test(an_arena_survives_every_fault),
        cmocka_unit_test(the_heap_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
