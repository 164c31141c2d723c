/* cpu_reduce.c - sums over rows and over the batch.

   size[0]: elements of a sample, size[1]: elements of the output. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "backends/cpu/gemm/gemm.h"
#include "base/status.h"

/* A row is all that the output has, be it several axes. */
MAKER(make_sum_rows)
{
    const struct tensor *x = node->input[0];
    if (x->type != TYPE_F32 || x->shape.rank < 2 || shape_row(&x->shape) < 1)
        return false;
    out->size[0] = shape_row(&x->shape);
    out->size[1] = shape_count(&node->output[0]->shape);
    return true;
}

/* A product with a row of ones: [1, groups] . [groups, width]. */
RUNNER(run_sum_rows)
{
    int64_t width = cpu_kernel_of(kernel)->size[1];
    int64_t groups = cpu_rows(kernel, call) * (cpu_kernel_of(kernel)->size[0] / width);
    const float *x = call->input[0];
    float *y = call->output[0];
    const float one = 1;
    const struct gemm g = {
        .m = 1, .n = width, .k = groups, .a = &one, .b = x, .b_step = width, .c = y, .add = call->add};
    if (width == 1)
        *y = (call->add ? *y : 0) + row_total(x, groups);
    else
        VARIANT(gemm)(&g);
}

RUNNER(run_batch_mean)
{
    float *y = call->output[0];
    float sum = row_total(call->input[0], cpu_rows(kernel, call));
    *y = (call->add ? *y : 0) + sum / (float)call->count;
}

/* d / count for each sample; an absent d is 1. */
RUNNER(run_batch_mean_gradient)
{
    const float *d = call->input[0];
    float *y = call->output[0];
    float value = (d ? *d : 1) / (float)call->count;
    int64_t rows = cpu_rows(kernel, call);
    for (int64_t i = 0; i < rows; i++)
        y[i] = value;
}
