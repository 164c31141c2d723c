/* test_onednn.c - oneDNN as a guest and as a host: no memory for it is an error and never another kernel; what it
   shares with the process is left as it was. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/numbers/count.h"
#include "kernel_bench.h"
#include "op_fixture.h"
#include "ops/ops.h"

#if __has_include(<oneapi/dnnl/dnnl_version.h>)
#include <oneapi/dnnl/dnnl_version.h>
#else
#define DNNL_VERSION_MAJOR 2
#endif

#define BATCH 7
#if DNNL_VERSION_MAJOR >= 3
#define LIBRARY "libdnnl.so.3"
#else
#define LIBRARY "libdnnl.so.2"
#endif
#define ENOUGH_MIB 130 /* for the larger of the two */

static const struct op *const convolutions[] = {&op_conv2d, &op_conv2d_input_gradient, &op_conv2d_weight_gradient};

/* An op on the backend. */
struct guest {
    struct bench bench;
    struct fixture fixture;
};

static void guest_open(struct guest *guest, const struct op *op)
{
    bench_open(&guest->bench, NULL, 2);
    assert_true(fixture_init(&guest->fixture, op, 0, TYPE_F32, BATCH));
}

static void guest_close(struct guest *guest)
{
    fixture_release(&guest->fixture);
    bench_close(&guest->bench);
}

static plim_status prepare(const struct kernel **kernel, struct guest *guest, plim_error *error)
{
    static const int64_t shorter[] = {1};
    const struct kernel_request request = {
        .node = guest->fixture.node, .slice = 3, .short_rows = shorter, .short_count = 1};
    return cpu_backend.prepare(kernel, guest->bench.backend, &request, error);
}

static bool is_here(void)
{
    return access("/proc/self/statm", R_OK) == 0 && dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL) != NULL;
}

/* ---- memory ------------------------------------------------------------- */

enum outcome { FAST, REFUSED, PLAIN, OTHER };

static uint64_t mapped_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* In a process of its own, with this much address space left. */
static enum outcome prepare_within(uint64_t bytes)
{
    struct guest guest;
    const struct kernel *kernel = NULL;
    plim_error error = {0};
    guest_open(&guest, &op_conv2d);
    struct rlimit limit = {.rlim_cur = mapped_bytes() + bytes, .rlim_max = RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return OTHER;
    plim_status status = prepare(&kernel, &guest, &error);
    if (status == PLIM_NO_MEMORY)
        return error.hint[0] ? REFUSED : OTHER;
    if (status != PLIM_OK)
        return OTHER;
    return strncmp(kernel->implementation, "onednn", 6) == 0 ? FAST : PLAIN;
}

static int outcome_within(uint64_t bytes)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(prepare_within(bytes));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("with %llu KiB left: ended by signal %d", (unsigned long long)bytes >> 10, WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* First of all tests: the library is not open yet. */
static void little_address_space_is_an_error(void **state)
{
    (void)state;
    if (mapped_bytes() >> 40)
        skip(); /* a sanitizer's shadow: no limit can be set */
    int fast = 0;
    for (uint64_t mib = 2; mib <= ENOUGH_MIB; mib += mib < 40 ? 6 : 2) {
        int outcome = outcome_within(mib << 20);
        if (outcome != REFUSED && outcome != FAST)
            fail_msg("with %llu MiB left the outcome is %d", (unsigned long long)mib, outcome);
        if (outcome == REFUSED && fast)
            fail_msg("with %llu MiB left it is refused, with less it was not", (unsigned long long)mib);
        fast += outcome == FAST;
    }
    assert_true(fast > 0);
}

static void no_failed_allocation_changes_the_kernel(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(convolutions); i++) {
        bool reached = true;
        int nth = 0;
        while (reached) {
            struct guest guest;
            const struct kernel *kernel = NULL;
            guest_open(&guest, convolutions[i]);
            fault_arm(FAULT_ALLOCATE, ++nth, false, ENOMEM);
            plim_status status = prepare(&kernel, &guest, NULL);
            reached = fault_disarm();
            assert_int_equal(status, reached ? PLIM_NO_MEMORY : PLIM_OK);
            if (!reached)
                assert_memory_equal(kernel->implementation, "onednn", 6);
            guest_close(&guest);
        }
        assert_true(nth > 8); /* the library's own are among them */
    }
}

/* ---- a run that fails --------------------------------------------------- */

/* A length that nobody prepared: the kernel has nothing to run it with. */
static void a_kernel_that_cannot_run_says_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(convolutions); i++) {
        struct guest guest;
        const struct kernel *kernel = NULL;
        plim_error error = {0};
        struct call call;
        guest_open(&guest, convolutions[i]);
        fixture_fill(&guest.fixture, 3);
        assert_int_equal(prepare(&kernel, &guest, NULL), PLIM_OK);
        void *scratch = budget_take(guest.bench.budget, TAG_SCRATCH, kernel->scratch_bytes);
        void *pack = budget_take(guest.bench.budget, TAG_SCRATCH, kernel->pack_bytes);
        fixture_call(&call, &guest.fixture, guest.fixture.node, 0, 3, BATCH);
        call.scratch = scratch;
        call.pack = pack;
        kernel->run(kernel, &call);
        assert_int_equal(backend_check(guest.bench.backend, &error), PLIM_OK);
        fixture_fill(&guest.fixture, 3);
        call.end = 2;
        kernel->run(kernel, &call);
        const struct tensor *y = guest.fixture.node->output[0];
        for (size_t b = 0; b < guest.fixture.bytes[y->id]; b++)
            assert_int_equal(((unsigned char *)guest.fixture.data[y->id])[b], POISON);
        assert_int_equal(backend_check(guest.bench.backend, &error), PLIM_INTERNAL);
        assert_int_equal(backend_check(guest.bench.backend, NULL), PLIM_INTERNAL); /* it stays */
        assert_non_null(strstr(error.message, "cpu"));
        budget_give(guest.bench.budget, TAG_SCRATCH, scratch, kernel->scratch_bytes);
        budget_give(guest.bench.budget, TAG_SCRATCH, pack, kernel->pack_bytes);
        guest_close(&guest);
    }
}

static void the_first_failure_is_kept(void **state)
{
    struct backend backend = {.type = &cpu_backend};
    plim_error error = {0};
    (void)state;
    assert_int_equal(backend_check(&backend, &error), PLIM_OK);
    backend_fail(&backend, PLIM_NO_MEMORY);
    backend_fail(&backend, PLIM_INTERNAL);
    assert_int_equal(backend_check(&backend, &error), PLIM_NO_MEMORY);
    assert_true(error.hint[0]);
}

/* ---- what it shares, and what it is called ------------------------------ */

static void features_name_the_version(void **state)
{
    struct guest guest;
    const struct kernel *kernel = NULL;
    char before[64];
    (void)state;
    guest_open(&guest, &op_relu);
    assert_int_equal(prepare(&kernel, &guest, NULL), PLIM_OK);
    snprintf(before, sizeof before, "%s", cpu_backend.features(guest.bench.backend));
    assert_null(strstr(before, "onednn"));
    fixture_release(&guest.fixture);
    assert_true(fixture_init(&guest.fixture, &op_conv2d, 0, TYPE_F32, BATCH));
    assert_int_equal(prepare(&kernel, &guest, NULL), PLIM_OK);
    const char *after = cpu_backend.features(guest.bench.backend);
    int numbers[3], read = 0;
    assert_memory_equal(after, before, strlen(before));
    assert_int_equal(sscanf(after + strlen(before), " onednn-%d.%d.%d%n", numbers, numbers + 1, numbers + 2, &read), 3);
    assert_int_equal(numbers[0], DNNL_VERSION_MAJOR);
    assert_int_equal(after[strlen(before) + (size_t)read], '\0');
    assert_true(strlen(after) < 32);
    guest_close(&guest);
}

static void the_hosts_cache_stays_as_it_was(void **state)
{
    struct guest guest;
    const struct kernel *kernel = NULL;
    int capacity = 0;
    (void)state;
    void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    assert_non_null(library);
    int (*set)(int) = (int (*)(int))dlsym(library, "dnnl_set_primitive_cache_capacity");
    int (*get)(int *) = (int (*)(int *))dlsym(library, "dnnl_get_primitive_cache_capacity");
    assert_int_equal(set(17), 0);
    guest_open(&guest, &op_conv2d);
    assert_int_equal(prepare(&kernel, &guest, NULL), PLIM_OK);
    assert_int_equal(get(&capacity), 0);
    assert_int_equal(capacity, 17);
    guest_close(&guest);
    assert_int_equal(get(&capacity), 0);
    assert_int_equal(capacity, 17);
}

int main(void)
{
    const struct CMUnitTest first[] = {
        cmocka_unit_test(little_address_space_is_an_error),
        cmocka_unit_test(the_first_failure_is_kept),
    };
    const struct CMUnitTest rest[] = {
        cmocka_unit_test(no_failed_allocation_changes_the_kernel),
        cmocka_unit_test(a_kernel_that_cannot_run_says_so),
        cmocka_unit_test(features_name_the_version),
        cmocka_unit_test(the_hosts_cache_stays_as_it_was),
    };
    pid_t child = fork(); /* looks for the library without opening it here */
    int status = 0;
    if (child == 0)
        _exit(is_here() ? 0 : 1);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return 77; /* skipped: nothing to test without it */
    int failed = cmocka_run_group_tests_name("onednn, closed", first, NULL, NULL);
    return failed + cmocka_run_group_tests_name("onednn", rest, NULL, NULL);
}
