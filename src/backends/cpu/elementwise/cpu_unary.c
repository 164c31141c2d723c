/* cpu_unary.c - the ops of unary.def, as loops that the compiler turns into
   vectors. The output may be the first input. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/elementwise/formulas_float.h"
#include "ops/ops.h"

#define OPERANDS                                                                                                       \
    const struct numbers_attributes none = {0, 0, 0}, *given = call->node->attributes;                                 \
    const struct numbers_attributes *numbers = given ? given : &none;                                                  \
    const float a = (float)numbers->a, b = (float)numbers->b, c = (float)numbers->c;                                   \
    int64_t count = cpu_elements(kernel, call);                                                                        \
    (void)a, (void)b, (void)c

#define FORWARD(name, expression)                                                                                      \
    RUNNER(run_##name)                                                                                                 \
    {                                                                                                                  \
        OPERANDS;                                                                                                      \
        const float *from = call->input[0];                                                                            \
        float *to = call->output[0];                                                                                   \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const float x = from[i];                                                                                   \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }

#define BACKWARD(name, read, slope)                                                                                    \
    RUNNER(run_##name##_gradient)                                                                                      \
    {                                                                                                                  \
        OPERANDS;                                                                                                      \
        const float *d = call->input[0], *from = call->input[1];                                                       \
        float *to = call->output[0];                                                                                   \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const float read = from[i];                                                                                \
            to[i] = d[i] * (slope);                                                                                    \
        }                                                                                                              \
    }

#define FROM_X(name, example, numbers, expression, slope) FORWARD(name, expression) BACKWARD(name, x, slope)
#define FROM_Y(name, example, numbers, expression, slope) FORWARD(name, expression) BACKWARD(name, y, slope)
#define FLAT(name, example, expression)                   FORWARD(name, expression)

/* ---- functions that are fast up to FAR: a block that goes beyond is left to libm ---- */

#define BLOCK EACH_GRAIN

static bool is_far(const float *x, int64_t count)
{
    int far = 0;
    for (int64_t i = 0; i < count; i++)
        far |= !(abs_of(x[i]) <= FAR);
    return far;
}

#define FAR_LOOP(is, how, statement)                                                                                   \
    {                                                                                                                  \
        enum { far = is };                                                                                             \
        how for (int64_t i = first; i < end; i++) statement;                                                           \
    }

#define FAR_RUN(name, from, statement)                                                                                 \
    RUNNER(run_##name)                                                                                                 \
    {                                                                                                                  \
        OPERANDS;                                                                                                      \
        const float *in = call->input[0], *read = call->input[from];                                                   \
        float *out = call->output[0];                                                                                  \
        (void)in;                                                                                                      \
        for (int64_t first = 0; first < count; first += BLOCK) {                                                       \
            int64_t end = first + BLOCK < count ? first + BLOCK : count;                                               \
            if (is_far(read + first, end - first))                                                                     \
                FAR_LOOP(1, , statement)                                                                               \
            else                                                                                                       \
                FAR_LOOP(0, INDEPENDENT, statement)                                                                    \
        }                                                                                                              \
    }

/* x is what the formula reads. */
#define FAR_FORWARD(name, expression)                                                                                  \
    FAR_RUN(name, 0, {                                                                                                 \
        const float x = read[i];                                                                                       \
        out[i] = expression;                                                                                           \
    })
#define FAR_X(name, example, numbers, expression, slope)                                                               \
    FAR_FORWARD(name, expression)                                                                                      \
    FAR_RUN(name##_gradient, 1, {                                                                                      \
        const float x = read[i];                                                                                       \
        out[i] = in[i] * (slope);                                                                                      \
    })
#define FAR_Y(name, example, numbers, expression, slope) FAR_FORWARD(name, expression) BACKWARD(name, y, slope)

/* ---- truth values --------------------------------------------------------- */

#define PREDICATE(name, example, expression)                                                                           \
    RUNNER(run_##name)                                                                                                 \
    {                                                                                                                  \
        OPERANDS;                                                                                                      \
        const float *from = call->input[0];                                                                            \
        uint8_t *to = call->output[0];                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const float x = from[i];                                                                                   \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }

#include "ops/elementwise/unary.def"

FORWARD(negative, -x)

/* From f32 to bool; bool itself is one byte either way. */
MAKER(make_predicate)
{
    out->size[0] = shape_row(&node->output[0]->shape);
    return node->input[0]->type == TYPE_F32 && node->output[0]->type == TYPE_BOOL;
}
