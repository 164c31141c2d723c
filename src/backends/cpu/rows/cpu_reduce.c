/* cpu_reduce.c - sums over rows, over the last axis, over the batch.

   size[0]: elements of a sample, size[1]: extent of the last axis. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "backends/cpu/gemm/gemm.h"
#include "base/status.h"

#define OPERANDS                                                                                                       \
    int64_t width = cpu_kernel_of(kernel)->size[1];                                                                    \
    int64_t groups = cpu_rows(kernel, call) * (cpu_kernel_of(kernel)->size[0] / width);                                \
    const float *x = call->input[0];                                                                                   \
    float *y = call->output[0]

/* The last axis is the longer one of those of input and output: sum_last and
   spread_last are told apart by that. */
MAKER(make_last_axis)
{
    const struct tensor *x = node->input[0], *y = node->output[0];
    if (x->type != TYPE_F32 || x->shape.rank < 2 || shape_row(&x->shape) < 1)
        return false;
    const struct tensor *wide = shape_count(&y->shape) > shape_count(&x->shape) ? y : x;
    out->size[0] = shape_row(&wide->shape);
    out->size[1] = wide->shape.dim[wide->shape.rank - 1];
    return true;
}

/* A row is all that the output has, be it several axes. */
MAKER(make_sum_rows)
{
    if (!VARIANT(make_last_axis)(out, node, request))
        return false;
    out->size[1] = shape_count(&node->output[0]->shape);
    return true;
}

/* A product with a row of ones: [1, groups] . [groups, width]. */
RUNNER(run_sum_rows)
{
    OPERANDS;
    const float one = 1;
    const struct gemm g = {
        .m = 1, .n = width, .k = groups, .a = &one, .b = x, .b_step = width, .c = y, .add = call->add};
    if (width == 1)
        *y = (call->add ? *y : 0) + row_total(x, groups);
    else
        VARIANT(gemm)(&g);
}

RUNNER(run_sum_last)
{
    OPERANDS;
    for (int64_t group = 0; group < groups; group++)
        y[group] = row_total(x + group * width, width);
}

RUNNER(run_spread_last)
{
    OPERANDS;
    for (int64_t group = 0; group < groups; group++)
        for (int64_t i = 0; i < width; i++)
            y[group * width + i] = x[group];
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
