/* cpu_own.h - for the files that are compiled once an instruction set: the makers and runners of kernels.def. */
#ifndef CPU_OWN_H
#define CPU_OWN_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/vector.h"

/* Before a loop over elements whose output may be its input: iterations do
   not depend on one another. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define MAKER(name)                                                                                                    \
    plim_status VARIANT(name)(struct cpu_kernel * out, const struct cpu_entry *entry,                                  \
                              const struct cpu_request *request, plim_error *error)
#define RUNNER(name) void VARIANT(name)(const struct kernel *kernel, const struct call *call)

/* Label (or weight) i of a loss or a tally, whose second input they are; any
   type that a column of the data may have. */
static inline double label_at(const struct call *call, int64_t i)
{
    return element_get(call->input[1], call->node->input[1]->type, i);
}

/* cpu_variant's. */
void VARIANT(widen)(float *to, const void *from, enum type type, int64_t count);
void VARIANT(narrow)(void *to, const float *from, enum type type, int64_t count);

/* The makers and runners of kernels.def. make_each: every operand that is there is f32; size[0]: elements of a row of
   output 0 (of input 0 where there is no output). */
#define KERNEL(op, maker, runner)                                                                                      \
    MAKER(maker);                                                                                                      \
    RUNNER(runner);
#define CHOICE(op, maker)           MAKER(maker);
#define FALLBACK(op, maker, runner) KERNEL(op, maker, runner)
#include "backends/cpu/kernels.def"

double VARIANT(cpu_peak)(int64_t rounds, float *result);
void VARIANT(cpu_stream)(float *y, const float *a, const float *b, float factor, int64_t count);

#endif
