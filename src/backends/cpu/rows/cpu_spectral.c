/* cpu_spectral.c - power iteration on a weight: one pass over it a round. */
#include <string.h>

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "ops/ops.h"

MAKER(make_spectral_sums)
{
    if (node->input[0]->type != TYPE_F32 || node->input[1]->type != TYPE_F32)
        return false;
    out->size[1] = node->output[0]->shape.dim[0] - 1;
    out->size[0] = shape_row(&node->input[0]->shape) / out->size[1];
    return true;
}

RUNNER(run_spectral_sums)
{
    const int64_t columns = cpu_kernel_of(kernel)->size[1];
    int64_t rows = (call->end - call->begin) * cpu_kernel_of(kernel)->size[0];
    const float *w = call->input[0], *u = call->input[1];
    float *restrict s = call->output[0];
    if (!call->add)
        memset(s, 0, ((size_t)columns + 1) * sizeof *s);
    for (int64_t i = 0; i < rows; i++, w += columns) {
        float r = row_dot(w, u, columns);
        INDEPENDENT
        for (int64_t j = 0; j < columns; j++)
            s[j] = madd(r, w[j], s[j]);
        s[columns] = madd(r, r, s[columns]);
    }
}

RUNNER(run_spectral_divide)
{
    int64_t count = cpu_elements(kernel, call);
    float *w = call->input[0], sigma = *(const float *)call->input[1];
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        w[i] /= sigma;
}
