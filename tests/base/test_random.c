/* test_random.c - Philox against published answers; the permutation is a
   bijection of any size and treats positions alike over seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/numbers/count.h"
#include "base/numbers/random.h"

static void check_block(uint64_t seed, uint64_t stream, uint64_t index, const uint32_t expected[4])
{
    uint32_t out[4];
    random_block(out, seed, stream, index);
    assert_memory_equal(out, expected, sizeof out);
}

/* The answers of the authors' own test file, for philox4x32-10. */
static void known_answers(void **state)
{
    (void)state;
    check_block(0, 0, 0, (const uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_block(UINT64_MAX, UINT64_MAX, UINT64_MAX, (const uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    /* counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0 */
    check_block(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull,
                (const uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

static void unit_is_below_one(void **state)
{
    (void)state;
    assert_true(random_unit(0) == 0.0f);
    assert_true(random_unit(255) == 0.0f);
    assert_true(random_unit(256) == 0x1p-24f);
    assert_true(random_unit(UINT32_MAX) < 1.0f);
    assert_true(random_unit(UINT32_MAX) == 1.0f - 0x1p-24f);
}

/* Numbers do not depend on how they are asked for. */
static void fill_is_a_pure_function_of_position(void **state)
{
    (void)state;
    float all[64], part[64];
    random_fill_unit(all, 64, 7, 3, 0);
    for (uint64_t first = 0; first < 64; first++)
        for (uint64_t count = 0; count <= 64 - first && count < 10; count++) {
            part[count] = -1;
            random_fill_unit(part, count, 7, 3, first);
            assert_memory_equal(part, all + first, count * sizeof *part);
            assert_true(part[count] == -1);
        }
    random_fill_unit(part, 64, 7, 4, 0);
    assert_memory_not_equal(part, all, sizeof all);
    uint32_t block[4];
    random_block(block, 7, 3, 5);
    assert_true(all[22] == random_unit(block[2]));
}

static void fill_has_the_mean_and_variance_of_a_uniform(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    float *values = malloc(COUNT * sizeof *values);
    assert_non_null(values);
    random_fill_unit(values, COUNT, 1, 0, 0);
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(values[i] >= 0 && values[i] < 1);
        sum += values[i];
        squares += (double)values[i] * values[i];
    }
    double mean = sum / COUNT, variance = squares / COUNT - mean * mean;
    assert_true(mean > 0.495 && mean < 0.505);
    assert_true(variance > 1.0 / 12 - 0.002 && variance < 1.0 / 12 + 0.002);
    free(values);
}

static void keys_differ(void **state)
{
    (void)state;
    uint64_t keys[216];
    int count = 0;
    for (uint64_t seed = 0; seed < 6; seed++)
        for (uint64_t a = 0; a < 6; a++)
            for (uint64_t b = 0; b < 6; b++)
                keys[count++] = random_key(seed, a, b);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            assert_true(keys[i] != keys[j]);
}

static void check_bijection(uint64_t n, uint64_t seed)
{
    struct permutation permutation;
    permutation_init(&permutation, n, seed, 5);
    assert_true(permutation.left * permutation.right >= n);
    assert_true(permutation.right == 1ull << permutation.shift);
    unsigned char *seen = calloc(n, 1);
    int64_t *many = calloc(n, sizeof *many);
    assert_true(seen && many);
    for (uint64_t i = 0; i < n; i++)
        many[i] = (int64_t)i;
    permutation_map(&permutation, many, (int64_t)n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t to = permutation_at(&permutation, i);
        assert_true(to < n && (int64_t)to == many[i]);
        assert_int_equal(seen[to], 0);
        seen[to] = 1;
    }
    free(many);
    free(seen);
}

static void permutation_is_a_bijection(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 300; n++)
        for (uint64_t seed = 0; seed < 4; seed++)
            check_bijection(n, seed);
    const uint64_t sizes[] = {1023, 1024, 1025, 4095, 4096, 4097, 10007, 60000, 65535, 65536, 65537, 262147, 1000000};
    for (size_t i = 0; i < COUNT(sizes); i++)
        check_bijection(sizes[i], i);
}

/* Sizes too large to count: in range, and no two of a sample meet. */
static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void large_permutations_do_not_collide(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static uint64_t out[COUNT];
    const uint64_t sizes[] = {1000000007ull,     1ull << 32, (1ull << 32) + 15, 1ull << 40,
                              (1ull << 40) - 87, 1ull << 63, UINT64_MAX};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        struct permutation permutation;
        permutation_init(&permutation, sizes[s], s, 1);
        for (uint64_t i = 0; i < COUNT; i++) {
            uint64_t from = i % 2 ? sizes[s] - 1 - i : i;
            out[i] = permutation_at(&permutation, from);
            assert_true(out[i] < sizes[s]);
        }
        qsort(out, COUNT, sizeof *out, by_value);
        for (int i = 1; i < COUNT; i++)
            assert_true(out[i] != out[i - 1]);
    }
}

/* Where does each position go over many seeds? For matrices of permutations
   (n-1)/n * chi-square has (n-1)^2 degrees of freedom; the bound is 6 standard
   deviations to either side. */
static void check_uniform(uint64_t n, int seeds)
{
    uint32_t *cells = calloc(n * n, sizeof *cells);
    assert_non_null(cells);
    for (int seed = 0; seed < seeds; seed++) {
        struct permutation permutation;
        permutation_init(&permutation, n, (uint64_t)seed, 9);
        for (uint64_t i = 0; i < n; i++)
            cells[i * n + permutation_at(&permutation, i)]++;
    }
    double expected = (double)seeds / (double)n, chi = 0, freedom = (double)((n - 1) * (n - 1));
    for (uint64_t i = 0; i < n * n; i++)
        chi += (cells[i] - expected) * (cells[i] - expected) / expected;
    double slack = chi * (double)(n - 1) / (double)n - freedom;
    assert_true(slack * slack < 36 * 2 * freedom);
    free(cells);
}

static void positions_are_treated_alike(void **state)
{
    (void)state;
    const uint64_t sizes[] = {2, 3, 4, 5, 7, 8, 16, 31, 64, 100};
    for (size_t i = 0; i < COUNT(sizes); i++)
        check_uniform(sizes[i], 20000);
}

/* All 24 orders of 4 things come up, about equally often. */
static void every_small_order_comes_up(void **state)
{
    (void)state;
    uint32_t count[256] = {0};
    for (uint64_t seed = 0; seed < 24000; seed++) {
        struct permutation permutation;
        permutation_init(&permutation, 4, seed, 0);
        unsigned code = 0;
        for (uint64_t i = 0; i < 4; i++)
            code = code * 4 + (unsigned)permutation_at(&permutation, i);
        count[code]++;
    }
    int orders = 0;
    for (int i = 0; i < 256; i++) {
        orders += count[i] > 0;
        assert_true(count[i] == 0 || (count[i] > 800 && count[i] < 1200));
    }
    assert_int_equal(orders, 24);
}

/* Neighbours are not neighbours afterwards: the mean distance of a random
   pair is n/3, and correlation of position and value is about 0. */
static void order_is_lost(void **state)
{
    (void)state;
    const uint64_t n = 60000;
    struct permutation permutation;
    permutation_init(&permutation, n, 7, 1);
    double distance = 0, product = 0, middle = (double)(n - 1) / 2;
    uint64_t last = permutation_at(&permutation, 0);
    for (uint64_t i = 1; i < n; i++) {
        uint64_t to = permutation_at(&permutation, i);
        distance += to > last ? (double)(to - last) : (double)(last - to);
        product += ((double)i - middle) * ((double)to - middle);
        last = to;
    }
    double mean = distance / (double)n, correlation = product / ((double)n * (double)n * (double)n / 12);
    assert_true(mean > (double)n / 3 * 0.98 && mean < (double)n / 3 * 1.02);
    assert_true(correlation > -0.02 && correlation < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(unit_is_below_one),
        cmocka_unit_test(fill_is_a_pure_function_of_position),
        cmocka_unit_test(fill_has_the_mean_and_variance_of_a_uniform),
        cmocka_unit_test(keys_differ),
        cmocka_unit_test(permutation_is_a_bijection),
        cmocka_unit_test(large_permutations_do_not_collide),
        cmocka_unit_test(positions_are_treated_alike),
        cmocka_unit_test(every_small_order_comes_up),
        cmocka_unit_test(order_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
