/* cpu_binary.c - the ops of binary.def and where: their loops; cpu_broadcast.c walks the operands. */
#include "backends/cpu/elementwise/cpu_broadcast.h"
#include "backends/cpu/elementwise/formulas_float.h"
#include "ops/ops.h"

#define LOOP(name)                                                                                                     \
    static void name##_loop(float *to, const float *first, const float *second, const float *third, int64_t count,     \
                            const void *attributes)
#define RUN(name)                                                                                                      \
    RUNNER(run_##name)                                                                                                 \
    {                                                                                                                  \
        VARIANT(broadcast_walk)(kernel, call, name##_loop);                                                            \
    }

#define FORWARD(name, expression)                                                                                      \
    LOOP(name)                                                                                                         \
    {                                                                                                                  \
        (void)third, (void)attributes;                                                                                 \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const float a = first[i], b = second[i];                                                                   \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    RUN(name)

#define SLOPE_LOOP(expression)                                                                                         \
    {                                                                                                                  \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const float d = first[i], a = second[i], b = third[i];                                                     \
            (void)d, (void)a, (void)b;                                                                                 \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }

#define COMPOSED FORWARD
#define STEPPED  FORWARD
#define TRUTH    FORWARD
#define SLOPED(name, expression, slope_a, slope_b)                                                                     \
    FORWARD(name, expression)                                                                                          \
    LOOP(name##_gradient)                                                                                              \
    {                                                                                                                  \
        if (((const struct operand_attributes *)attributes)->of == 0)                                                  \
            SLOPE_LOOP(slope_a)                                                                                        \
        else                                                                                                           \
            SLOPE_LOOP(slope_b)                                                                                        \
    }                                                                                                                  \
    RUN(name##_gradient)

/* ---- formulas that are fast for usual operands: a block with others is left to libm ---- */

#define BLOCK 512

static bool any_unusual(const float *a, const float *b, int64_t count)
{
    int unusual = 0;
    for (int64_t i = 0; i < count; i++)
        unusual |= !power_usual(a[i], b[i]);
    return unusual;
}

#define BLOCKS(a_, b_, ...)                                                                                            \
    for (int64_t start = 0, all = count; start < all; start += BLOCK) {                                                \
        count = all - start < BLOCK ? all - start : BLOCK;                                                             \
        if (any_unusual(a_, b_, count)) {                                                                              \
            enum { far = 1 };                                                                                          \
            __VA_ARGS__                                                                                                \
        } else {                                                                                                       \
            enum { far = 0 };                                                                                          \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
        to += count, first += count, second += count, third = third ? third + count : NULL;                            \
    }

#define TESTED(name, expression, slope_a, slope_b)                                                                     \
    LOOP(name)                                                                                                         \
    {                                                                                                                  \
        (void)attributes;                                                                                              \
        BLOCKS(                                                                                                        \
            first, second, INDEPENDENT for (int64_t i = 0; i < count; i++) {                                           \
                const float a = first[i], b = second[i];                                                               \
                to[i] = expression;                                                                                    \
            })                                                                                                         \
    }                                                                                                                  \
    RUN(name)                                                                                                          \
    LOOP(name##_gradient)                                                                                              \
    {                                                                                                                  \
        if (((const struct operand_attributes *)attributes)->of == 0)                                                  \
            BLOCKS(second, third, SLOPE_LOOP(slope_a))                                                                 \
        else                                                                                                           \
            BLOCKS(second, third, SLOPE_LOOP(slope_b))                                                                 \
    }                                                                                                                  \
    RUN(name##_gradient)

#include "ops/elementwise/binary.def"

/* first: the condition. */
LOOP(where)
{
    (void)attributes;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float a = second[i], b = third[i]; /* read always: no branch in the loop */
        to[i] = first[i] != 0 ? a : b;
    }
}
RUN(where)

/* first: dy, second: the condition. */
LOOP(where_gradient)
{
    float when = ((const struct operand_attributes *)attributes)->of == 0 ? 1 : 0;
    (void)third;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float d = first[i], holds = second[i] != 0 ? 1 : 0;
        to[i] = holds == when ? d : 0;
    }
}
RUN(where_gradient)
