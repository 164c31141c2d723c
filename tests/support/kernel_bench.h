/* kernel_bench.h - what tests of single kernels work with: a budget and the CPU backend, of one instruction set. */
#ifndef TESTS_KERNEL_BENCH_H
#define TESTS_KERNEL_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/cpu/cpu.h"

struct bench {
    struct budget *budget;
    struct backend *backend;
};

/* variant NULL: this processor's best. */
static inline void bench_open(struct bench *bench, const struct cpu_variant *variant, int threads)
{
    assert_int_equal(budget_make(&bench->budget, BUDGET_UNLIMITED, NULL), PLIM_OK);
    assert_int_equal(cpu_backend.open(&bench->backend, bench->budget, NULL), PLIM_OK);
    backend_threads(bench->backend, threads);
    if (variant)
        ((struct cpu_backend *)bench->backend)->variant = variant;
}

static inline void bench_close(struct bench *bench)
{
    cpu_backend.close(bench->backend);
    budget_free(bench->budget);
}

#endif
