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

/* The functions of a kernel, with the types of struct cpu_entry and struct kernel. */
#define UNUSED __attribute__((unused))
#define MAKER(name)                                                                                                    \
    bool VARIANT(name)(UNUSED struct cpu_kernel * out, UNUSED const struct node *node,                                 \
                       UNUSED struct cpu_request *request)
#define RUNNER(name) void VARIANT(name)(const struct kernel *kernel, const struct call *call)
#define PACKER(name)                                                                                                   \
    static void name(UNUSED const struct kernel *kernel, UNUSED const struct call *whole, UNUSED int unit, void *pack)

/* size[0]: elements of a sample, size[1]: extent of the axis, size[2]: elements that lie behind it. */
static inline void cpu_set_axis(struct cpu_kernel *out, const struct shape *shape, int64_t axis)
{
    out->size[0] = shape_row(shape);
    out->size[1] = shape->dim[axis];
    out->size[2] = 1;
    for (int64_t i = axis + 1; i < shape->rank; i++)
        out->size[2] *= shape->dim[i];
}

/* Label (or weight) i of a loss or of sample_sums, whose second input they are; any
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
