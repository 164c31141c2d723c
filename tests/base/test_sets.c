/* test_sets.c - number_set, min_tree and names against plain arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/numbers/count.h"
#include "base/sets/min_tree.h"
#include "base/sets/names.h"
#include "base/sets/number_set.h"

#define MOST   5000
#define ROUNDS 3000

static const int sizes[] = {1, 2, 63, 64, 65, 127, 4095, 4096, 4097, MOST};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static struct budget *open_arena(struct arena *arena)
{
    struct budget *budget = NULL;
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    arena_init(arena, budget, TAG_PLANNER);
    return budget;
}

static void numbers_are_found_both_ways(void **state)
{
    (void)state;
    for (int s = 0; s < COUNT(sizes); s++) {
        struct arena arena;
        struct budget *budget = open_arena(&arena);
        struct number_set set;
        bool there[MOST] = {false};
        uint32_t random = 7;
        assert_true(number_set_init(&set, &arena, sizes[s]));
        for (int round = 0; round < ROUNDS; round++) {
            int number = (int)(next_random(&random) % (uint32_t)sizes[s]);
            bool more = next_random(&random) % (round % 200 < 100 ? 3 : 2) == 0;
            (more ? number_set_add : number_set_remove)(&set, number);
            there[number] = more;
            int from = (int)(next_random(&random) % (uint32_t)(sizes[s] + 2)) - 1, next = from < 0 ? 0 : from,
                before = from >= sizes[s] ? sizes[s] - 1 : from;
            while (next < sizes[s] && !there[next])
                next++;
            while (before >= 0 && !there[before])
                before--;
            assert_int_equal(number_set_next(&set, from), next < sizes[s] ? next : -1);
            assert_int_equal(number_set_previous(&set, from), before);
        }
        arena_release(&arena);
        budget_free(budget);
    }
}

static void the_first_that_is_least_is_found(void **state)
{
    (void)state;
    for (int s = 0; s < COUNT(sizes); s++) {
        struct arena arena;
        struct budget *budget = open_arena(&arena);
        struct min_tree tree;
        static int64_t key[MOST];
        uint32_t random = 11;
        assert_true(min_tree_init(&tree, &arena, sizes[s]));
        for (int i = 0; i < sizes[s]; i++)
            key[i] = LEAST_NONE;
        for (int round = 0; round < ROUNDS; round++) {
            uint32_t count = (uint32_t)sizes[s];
            int place = (int)(next_random(&random) % count), begin = (int)(next_random(&random) % count);
            int end = begin + (int)(next_random(&random) % (count - (uint32_t)begin + 1)), found = begin;
            int64_t most = next_random(&random) % 100;
            key[place] = next_random(&random) % 4 ? LEAST_NONE : (int64_t)(next_random(&random) % 1000);
            min_tree_set(&tree, place, key[place]);
            while (found < end && key[found] > most)
                found++;
            assert_int_equal(min_tree_first(&tree, begin, end, most), found < end ? found : -1);
        }
        arena_release(&arena);
        budget_free(budget);
    }
}

static void names_have_their_numbers(void **state)
{
    struct arena arena;
    struct budget *budget = open_arena(&arena);
    struct names names;
    char text[32];
    (void)state;
    names_init(&names, &arena);
    assert_int_equal(names_find(&names, "none"), -1);
    for (int i = 0; i < MOST; i++)
        assert_true(names_add(&names, arena_format(&arena, "layer_%d/kernel", i), i));
    for (int i = 0; i < MOST; i++) {
        snprintf(text, sizeof text, "layer_%d/kernel", i);
        assert_int_equal(names_find(&names, text), i);
        snprintf(text, sizeof text, "layer_%d/bias", i);
        assert_int_equal(names_find(&names, text), -1);
    }
    arena_release(&arena);
    budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_found_both_ways),
        cmocka_unit_test(the_first_that_is_least_is_found),
        cmocka_unit_test(names_have_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
