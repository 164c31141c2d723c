/* cpu_elementwise.c - ops that treat each element alone, as loops that the
   compiler turns into vectors. The output may be the first input. */
#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define OPERANDS                                                                                                       \
    int64_t count = cpu_elements(kernel, call);                                                                        \
    const float *a = call->input[0], *b = call->input[1];                                                              \
    float *y = call->output[0];                                                                                        \
    (void)a, (void)b

MAKER(make_each)
{
    const struct tensor *rows = node->output_count ? node->output[0] : node->input[0];
    if (!cpu_inputs_f32(node) || rows->type != TYPE_F32)
        return false;
    out->size[0] = shape_row(&rows->shape);
    out->flat = true;
    return true;
}

/* Input 0 is f32; size[0]: elements of a row of it. */
MAKER(make_rows)
{
    out->size[0] = shape_row(&node->input[0]->shape);
    return node->input[0]->type == TYPE_F32;
}

/* The runner of an op without attributes. */
#define EACH(name, expression)                                                                                         \
    RUNNER(run_##name)                                                                                                 \
    {                                                                                                                  \
        OPERANDS;                                                                                                      \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            y[i] = expression;                                                                                         \
    }

EACH(relu, a[i] < 0 ? 0 : a[i])
EACH(sigmoid, sigmoid_of(a[i]))
EACH(sigmoid_gradient, a[i] * b[i] * (1.0f - b[i])) /* dx = dy * y * (1 - y) */

/* dx = dy where y > 0; a: dy, b: y. */
RUNNER(run_relu_gradient)
{
    OPERANDS;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float d = a[i]; /* read always: no branch in the loop */
        y[i] = b[i] > 0 ? d : 0;
    }
}

RUNNER(run_scale)
{
    OPERANDS;
    const struct scale_attributes *attributes = call->node->attributes;
    float factor = (float)attributes->factor;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] * factor;
}

#define RESCALE(name, type)                                                                                            \
    static RUNNER(name)                                                                                                \
    {                                                                                                                  \
        const struct rescale_attributes *attributes = call->node->attributes;                                          \
        const type *x = call->input[0];                                                                                \
        float *y = call->output[0], scale = (float)attributes->scale, offset = (float)attributes->offset;              \
        int64_t count = cpu_elements(kernel, call);                                                                    \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            y[i] = madd((float)x[i], scale, offset);                                                                   \
    }
RESCALE(run_rescale, float)
RESCALE(run_rescale_u8, uint8_t)

/* numpy's own type; computed as the reference does it, in double. */
static RUNNER(run_rescale_f64)
{
    OPERANDS;
    const struct rescale_attributes *attributes = call->node->attributes;
    const double *x = call->input[0];
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)(x[i] * attributes->scale + attributes->offset);
}

MAKER(make_rescale)
{
    if (node->output[0]->type != TYPE_F32)
        return false;
    out->size[0] = shape_row(&node->output[0]->shape);
    if (node->input[0]->type == TYPE_F32)
        out->kernel.run = VARIANT(run_rescale);
    else if (node->input[0]->type == TYPE_U8)
        out->kernel.run = VARIANT(run_rescale_u8);
    else if (node->input[0]->type == TYPE_F64)
        out->kernel.run = VARIANT(run_rescale_f64);
    return out->kernel.run != NULL;
}

/* Any type: size[0] is bytes a row. */
MAKER(make_copy)
{
    const struct tensor *y = node->output[0];
    out->size[0] = shape_row(&y->shape) * (int64_t)type_bytes(y->type);
    return true;
}

RUNNER(run_copy)
{
    size_t bytes = (size_t)(cpu_elements(kernel, call));
    if (call->output[0] != call->input[0])
        memmove(call->output[0], call->input[0], bytes);
}

RUNNER(run_constant)
{
    const struct constant_attributes *attributes = call->node->attributes;
    size_t row = (size_t)cpu_kernel_of(kernel)->size[0];
    memcpy(call->output[0], (const char *)attributes->data + (size_t)call->begin * row,
           (size_t)cpu_rows(kernel, call) * row);
}

/* log_of takes normal numbers only. */
MAKER(make_clip_log)
{
    const struct clip_log_attributes *attributes = node->attributes;
    return (float)attributes->low >= 0x1p-126f && VARIANT(make_each)(out, node, request);
}

/* y = log(min(max(x, low), high)) */
RUNNER(run_clip_log)
{
    OPERANDS;
    const struct clip_log_attributes *attributes = call->node->attributes;
    float low = (float)attributes->low, high = (float)attributes->high;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float x = a[i] < low ? low : a[i];
        y[i] = log_of(x > high ? high : x);
    }
}

/* dx = dy / x inside [low, high], else 0; a: dy, b: x. */
RUNNER(run_clip_log_gradient)
{
    OPERANDS;
    const struct clip_log_attributes *attributes = call->node->attributes;
    float low = (float)attributes->low, high = (float)attributes->high;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float d = a[i] / b[i];
        y[i] = b[i] < low ? 0 : b[i] > high ? 0 : d;
    }
}
