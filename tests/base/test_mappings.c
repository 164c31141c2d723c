/* test_mappings.c - the process's own bytes from smaps, and the host's floating-point mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory/budget.h"
#include "base/memory/mappings.h"
#include "base/numbers/floats.h"

#include <cmocka.h>

#define KIB 1024

static const char smaps[] =
    /* a small file in two mappings: 8 KiB + 4 KiB, one page of it written; what cannot be read does not count */
    "1000-3000 r-xp 00000000 fe:00 11 /lib/small.so\nSize: 8 kB\nRss: 4 kB\nAnonymous: 0 kB\n"
    "3000-9000 ---p 00002000 fe:00 11 /lib/small.so\nSize: 24 kB\nRss: 0 kB\nAnonymous: 0 kB\n"
    "9000-a000 rw-p 00002000 fe:00 11 /lib/small.so\nSize: 4 kB\nRss: 4 kB\nAnonymous: 4 kB\n"
    /* a large one: 16 MiB, 100 KiB resident, 12 of them written */
    "10000000-11000000 r-xp 00000000 fe:00 12 /lib/large.so\nSize: 16384 kB\nRss: 100 kB\nAnonymous: 12 kB\n"
    /* a heap and a stack as they begin count whole; a host's large one what is resident and 160 KiB */
    "20000000-20100000 rw-p 00000000 00:00 0 [heap]\nSize: 1024 kB\nRss: 40 kB\nAnonymous: 40 kB\n"
    "28000000-28002000 rw-p 00000000 00:00 0\nSize: 8 kB\nRss: 4 kB\nAnonymous: 4 kB\n"
    "30000000-30021000 rw-p 00000000 00:00 0 [stack]\nSize: 132 kB\nRss: 8 kB\nAnonymous: 8 kB\nVmFlags: rd wr\n";

static void files_count_whole_or_resident(void **state)
{
    struct mappings mappings;
    struct budget *budget = NULL;
    char path[] = "plim-smaps-XXXXXX";
    (void)state;
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, smaps, sizeof smaps - 1), sizeof smaps - 1);
    close(descriptor);
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(mappings_read_from(&mappings, budget, path, NULL, 0, NULL), PLIM_OK);
    assert_int_equal(mappings.small_files, 8 * KIB); /* 12 KiB less the written page, which is anonymous */
    assert_int_equal(mappings.large_files, 88 * KIB);
    assert_int_equal(mappings.anonymous, (4 + 12 + 40 + 160 + 4 + 132) * KIB);
    /* Code that is never run, less what neighbours bring in with them: here it leaves nothing of 16 MiB but 128 KiB. */
    const struct code_range unused[] = {{0x10000000, 0x11000000}, {0x1000, 0x3000}};
    assert_int_equal(mappings_read_from(&mappings, budget, path, unused, 2, NULL), PLIM_OK);
    assert_int_equal(mappings.small_files, (8 + 128 - 12) * KIB); /* it counts as a small file then */
    assert_int_equal(mappings.large_files, 0);
    budget_free(budget);
    unlink(path);
}

static void this_process_is_measured(void **state)
{
    struct mappings before, after;
    struct budget *budget = NULL;
    (void)state;
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(mappings_read(&before, budget, NULL, 0, NULL), PLIM_OK);
    assert_true(before.small_files > 500 * KIB && before.anonymous > 20 * KIB);
    void *block = budget_take(budget, TAG_CACHE, 3000 * KIB);
    assert_int_equal(mappings_read(&after, budget, NULL, 0, NULL), PLIM_OK);
    assert_true(after.anonymous >= before.anonymous + 3000 * KIB);
    budget_give(budget, TAG_CACHE, block, 3000 * KIB);
    budget_free(budget);
}

static void a_missing_file_is_an_error(void **state)
{
    struct mappings mappings = {.anonymous = 7};
    struct budget *budget = NULL;
    (void)state;
    assert_int_equal(budget_make(&budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(mappings_read_from(&mappings, budget, "/nonexistent/smaps", NULL, 0, NULL), PLIM_IO);
    assert_int_equal(mappings.anonymous, 7);
    budget_free(budget);
}

/* 1 / 3 rounded down and to nearest differ in the last bit. Not inlined: compilers move arithmetic over a change of
   mode. */
__attribute__((noinline)) static float third(void)
{
    volatile float one = 1, three = 3;
    return one / three;
}

/* As is this one. */
__attribute__((noinline)) static float half_of(float value)
{
    volatile float half = 0.5f;
    return value * half;
}

static void the_hosts_mode_comes_back(void **state)
{
    (void)state;
#if defined(__x86_64__)
    unsigned before = __builtin_ia32_stmxcsr();
    float nearest = third();
    __builtin_ia32_ldmxcsr(0x1f80 | 0x2000); /* a host that rounds down */
    assert_true(third() < nearest);
    unsigned host = floats_enter();
    assert_true(third() == nearest);
    assert_true(half_of(1e-39f) == 0); /* a denormal is zero */
    floats_restore(host);
    assert_true(third() < nearest);
    __builtin_ia32_ldmxcsr(before);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_count_whole_or_resident),
        cmocka_unit_test(this_process_is_measured),
        cmocka_unit_test(a_missing_file_is_an_error),
        cmocka_unit_test(the_hosts_mode_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
