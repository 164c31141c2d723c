/* cpu_elementwise.c - ops that treat each element alone, as loops that the
   compiler turns into vectors. The output may be the first input. */
#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

#define OPERANDS                                                                                                       \
    int64_t count = cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[0];                                           \
    const float *a = call->input[0], *b = call->input[1];                                                              \
    float *y = call->output[0];                                                                                        \
    (void)a, (void)b

MAKER(make_each)
{
    (void)error;
    const struct node *node = request->node;
    const struct tensor *rows = node->output_count ? node->output[0] : node->input[0];
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type != TYPE_F32)
            return PLIM_OK;
    if (rows->type != TYPE_F32)
        return PLIM_OK;
    out->size[0] = shape_row(&rows->shape);
    out->flat = true;
    out->kernel.run = entry->run;
    return PLIM_OK;
}

RUNNER(run_relu)
{
    OPERANDS;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] < 0 ? 0 : a[i];
}

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

RUNNER(run_sigmoid)
{
    OPERANDS;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = sigmoid_of(a[i]);
}

/* dx = dy * y * (1 - y) */
RUNNER(run_sigmoid_gradient)
{
    OPERANDS;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] * b[i] * (1.0f - b[i]);
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

static RUNNER(run_rescale)
{
    OPERANDS;
    const struct rescale_attributes *attributes = call->node->attributes;
    float scale = (float)attributes->scale, offset = (float)attributes->offset;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = madd(a[i], scale, offset);
}

static RUNNER(run_rescale_u8)
{
    OPERANDS;
    const struct rescale_attributes *attributes = call->node->attributes;
    const uint8_t *x = call->input[0];
    float scale = (float)attributes->scale, offset = (float)attributes->offset;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = madd((float)x[i], scale, offset);
}

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
    (void)entry, (void)error;
    const struct node *node = request->node;
    if (node->output[0]->type != TYPE_F32)
        return PLIM_OK;
    out->size[0] = shape_row(&node->output[0]->shape);
    if (node->input[0]->type == TYPE_F32)
        out->kernel.run = VARIANT(run_rescale);
    else if (node->input[0]->type == TYPE_U8)
        out->kernel.run = VARIANT(run_rescale_u8);
    else if (node->input[0]->type == TYPE_F64)
        out->kernel.run = VARIANT(run_rescale_f64);
    return PLIM_OK;
}

/* Any type: size[0] is bytes a row. */
MAKER(make_copy)
{
    (void)error;
    const struct tensor *y = request->node->output[0];
    out->size[0] = shape_row(&y->shape) * (int64_t)type_bytes(y->type);
    out->kernel.run = entry->run;
    return PLIM_OK;
}

RUNNER(run_copy)
{
    size_t bytes = (size_t)(cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[0]);
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
    const struct clip_log_attributes *attributes = request->node->attributes;
    if ((float)attributes->low < 0x1p-126f)
        return PLIM_OK;
    return VARIANT(make_each)(out, entry, request, error);
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
