/* cpu_regularize.c - penalties and constraints. */
#include <math.h>

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* size[0]: elements of a row; size[1]: 1 where axis 0 is the batch. The norms of a row of groups lie in the scratch. */
MAKER(make_penalty)
{
    const struct tensor *x = node->input[node->input_count - 1];
    out->size[0] = shape_row(&x->shape);
    out->size[1] = x->batched;
    return x->type == TYPE_F32;
}

RUNNER(run_penalty)
{
    const struct penalty_attributes *attributes = call->node->attributes;
    int64_t count = cpu_elements(kernel, call), i = 0;
    const float *x = call->input[0];
    float *y = call->output[0];
    double squares[8] = {0}, sizes[8] = {0}, sum = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; k++) {
            squares[k] += (double)x[i + k] * (double)x[i + k];
            sizes[k] += (double)abs_of(x[i + k]);
        }
    for (int k = 0; k < 8; k++)
        sum += attributes->l1 * sizes[k] + attributes->l2 * squares[k];
    for (; i < count; i++)
        sum += attributes->l1 * (double)abs_of(x[i]) + attributes->l2 * (double)x[i] * (double)x[i];
    sum = cpu_kernel_of(kernel)->size[1] ? sum / (double)call->count : sum;
    *y = (call->add ? *y : 0) + (float)sum;
}

RUNNER(run_penalty_gradient)
{
    const struct penalty_attributes *attributes = call->node->attributes;
    int64_t count = cpu_elements(kernel, call);
    const float *d = call->input[0], *x = call->input[1];
    float *y = call->output[0], factor = d ? *d : 1.0f;
    factor = cpu_kernel_of(kernel)->size[1] ? factor / (float)call->count : factor;
    float l1 = (float)attributes->l1 * factor, l2 = 2.0f * (float)attributes->l2 * factor;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = l2 * x[i] + (x[i] > 0 ? l1 : x[i] < 0 ? -l1 : 0.0f);
}

MAKER(make_constrain)
{
    const struct constrain_attributes *attributes = node->attributes;
    if (node->input[0]->type != TYPE_F32)
        return false;
    out->kernel.scratch_bytes = (size_t)attributes->inner * sizeof(double);
    return true;
}

RUNNER(run_constrain)
{
    const struct constrain_attributes *a = call->node->attributes;
    float *w = call->input[0];
    double *factor = call->scratch;
    (void)kernel;
    for (int64_t outer = 0; outer < a->outer && call->begin < call->end; outer++, w += a->reduced * a->inner) {
        memset(factor, 0, (size_t)a->inner * sizeof *factor);
        for (int64_t r = 0; r < a->reduced; r++)
            for (int64_t i = 0; i < a->inner; i++)
                factor[i] += (double)w[r * a->inner + i] * (double)w[r * a->inner + i];
        for (int64_t i = 0; i < a->inner; i++)
            factor[i] = constraint_factor(a, sqrt(factor[i]));
        for (int64_t r = 0; r < a->reduced; r++)
            for (int64_t i = 0; i < a->inner; i++) {
                float *at = &w[r * a->inner + i];
                *at = a->kind == CONSTRAINT_NON_NEG ? (*at >= 0 ? *at : 0) : (float)((double)*at * factor[i]);
            }
    }
}
