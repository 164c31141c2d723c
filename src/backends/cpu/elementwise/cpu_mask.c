/* cpu_mask.c - masks of time steps. size[0]: steps, size[1]: elements of a step. */
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* Real operands are f32; input 1 is a mask or absent. */
MAKER(make_steps)
{
    const struct tensor *wide = node->op == &op_sum_time ? node->input[0] : node->output[0];
    out->size[0] = wide->shape.dim[1];
    out->size[1] = shape_row(&wide->shape) / wide->shape.dim[1];
    return wide->type == TYPE_F32;
}

#define OPERANDS                                                                                                       \
    int64_t rows = cpu_rows(kernel, call), steps = cpu_kernel_of(kernel)->size[0];                                     \
    int64_t width = cpu_kernel_of(kernel)->size[1];                                                                    \
    const float *x = call->input[0];                                                                                   \
    const uint8_t *mask = call->input[1];                                                                              \
    float *y = call->output[0]

RUNNER(run_mask_rows)
{
    OPERANDS;
    for (int64_t t = 0; t < rows * steps; t++) {
        float factor = mask[t] ? 1.0f : 0.0f;
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            y[t * width + k] = x[t * width + k] * factor;
    }
}

static float divisor(const struct sum_time_attributes *attributes, const uint8_t *mask, int64_t steps)
{
    int64_t count = mask ? 0 : steps;
    for (int64_t t = 0; mask && t < steps; t++)
        count += mask[t] != 0;
    return attributes->mean ? (float)count : 1.0f;
}

RUNNER(run_sum_time)
{
    OPERANDS;
    for (int64_t n = 0; n < rows; n++, y += width) {
        float by = divisor(call->node->attributes, mask ? mask + n * steps : NULL, steps);
        memset(y, 0, (size_t)width * sizeof *y);
        for (int64_t t = n * steps; t < (n + 1) * steps; t++) {
            if (mask && !mask[t])
                continue;
            INDEPENDENT
            for (int64_t k = 0; k < width; k++)
                y[k] += x[t * width + k];
        }
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            y[k] /= by;
    }
}

RUNNER(run_sum_time_gradient)
{
    OPERANDS;
    for (int64_t n = 0; n < rows; n++, x += width) {
        float by = divisor(call->node->attributes, mask ? mask + n * steps : NULL, steps);
        for (int64_t t = n * steps; t < (n + 1) * steps; t++) {
            float *to = y + t * width;
            if (mask && !mask[t]) {
                memset(to, 0, (size_t)width * sizeof *to);
                continue;
            }
            INDEPENDENT
            for (int64_t k = 0; k < width; k++)
                to[k] = x[k] / by;
        }
    }
}

/* size[0]: steps, size[1]: numbers of a step, size[2]: the type. */
MAKER(make_mask_of)
{
    const struct tensor *x = node->input[0], *y = node->output[0];
    out->size[0] = y->shape.dim[1];
    out->size[1] = shape_row(&x->shape) / y->shape.dim[1];
    out->size[2] = x->type;
    return x->type == TYPE_F32 || x->type == TYPE_I32 || x->type == TYPE_I64 || x->type == TYPE_U8;
}

#define DIFFERING(ctype)                                                                                               \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        const ctype *x = (const ctype *)call->input[0] + i * width;                                                    \
        uint8_t differs = 0;                                                                                           \
        for (int64_t k = 0; k < width; k++)                                                                            \
            differs |= (double)x[k] != value;                                                                          \
        y[i] = differs;                                                                                                \
    }

RUNNER(run_mask_of)
{
    const struct mask_of_attributes *attributes = call->node->attributes;
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    int64_t count = cpu_rows(kernel, call) * own->size[0], width = own->size[1];
    double value = attributes->value;
    uint8_t *y = call->output[0];
    if (own->size[2] == TYPE_F32)
        DIFFERING(float)
    else if (own->size[2] == TYPE_I32)
        DIFFERING(int32_t)
    else if (own->size[2] == TYPE_I64)
        DIFFERING(int64_t)
    else
        DIFFERING(uint8_t)
}

MAKER(make_mask_count)
{
    out->size[0] = node->input[0]->shape.dim[1];
    return true;
}

RUNNER(run_mask_count)
{
    const uint8_t *mask = call->input[0];
    float *y = call->output[0];
    int64_t rows = cpu_rows(kernel, call), steps = cpu_kernel_of(kernel)->size[0];
    for (int64_t n = 0; n < rows; n++) {
        int64_t count = 0;
        for (int64_t t = 0; t < steps; t++)
            count += mask[n * steps + t] != 0;
        y[n] = (float)count;
    }
}
