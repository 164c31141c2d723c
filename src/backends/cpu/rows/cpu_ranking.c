/* cpu_ranking.c - arg_max, top_k, sums that grow, sums over the batch.

   Along an axis: size[0]: elements of a sample, size[1]: the axis, size[2]: elements behind it. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "ops/ops.h"

/* ---- arg_max ------------------------------------------------------------- */

MAKER(make_arg_max)
{
    const struct arg_max_attributes *attributes = node->attributes;
    if (node->input[0]->type != TYPE_F32)
        return false;
    cpu_set_axis(out, &node->input[0]->shape, attributes->axis);
    out->kernel.scratch_bytes = (size_t)out->size[2] * sizeof(float);
    return true;
}

/* Whether b, which comes later, goes before a; a NaN goes before all but a NaN. */
INLINE bool goes_before(float b, float a, float sign)
{
    return (b * sign > a * sign) | ((b != b) & (a == a));
}

#define CHAINS 4 /* rows are searched as so many interleaved ones */

static int32_t place_in_row(const float *x, int64_t count, float sign)
{
    float best[CHAINS];
    int64_t at[CHAINS], i = 0;
    for (int k = 0; k < CHAINS; k++) {
        best[k] = x[k < count ? k : 0];
        at[k] = k < count ? k : 0;
    }
    for (i = CHAINS; i + CHAINS <= count; i += CHAINS) {
        UNROLL
        for (int k = 0; k < CHAINS; k++) {
            bool pick = goes_before(x[i + k], best[k], sign);
            best[k] = pick ? x[i + k] : best[k];
            at[k] = pick ? i + k : at[k];
        }
    }
    for (; i < count; i++)
        if (goes_before(x[i], best[0], sign)) {
            best[0] = x[i];
            at[0] = i;
        }
    for (int k = 1; k < CHAINS; k++) {
        bool equal = !goes_before(best[k], best[0], sign) && !goes_before(best[0], best[k], sign);
        if (goes_before(best[k], best[0], sign) || (equal && at[k] < at[0])) {
            best[0] = best[k];
            at[0] = at[k];
        }
    }
    return (int32_t)at[0];
}

static void place_in_columns(int32_t *restrict y, float *restrict best, const float *restrict x, int64_t extent,
                             int64_t width, float sign)
{
    memcpy(best, x, (size_t)width * sizeof *best);
    memset(y, 0, (size_t)width * sizeof *y);
    for (int64_t i = 1; i < extent; i++) {
        const float *row = x + i * width;
        int32_t place = (int32_t)i;
        for (int64_t k = 0; k < width; k++) {
            float b = row[k], a = best[k];
            bool pick = goes_before(b, a, sign);
            best[k] = pick ? b : a;
            y[k] = pick ? place : y[k];
        }
    }
}

RUNNER(run_arg_max)
{
    const struct arg_max_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t extent = size[1], width = size[2], groups = cpu_rows(kernel, call) * (size[0] / (extent * width));
    float sign = attributes->least ? -1 : 1;
    const float *x = call->input[0];
    int32_t *y = call->output[0];
    for (int64_t group = 0; group < groups; group++, x += extent * width, y += width) {
        if (width == 1)
            *y = place_in_row(x, extent, sign);
        else
            place_in_columns(y, call->scratch, x, extent, width, sign);
    }
}

/* ---- top_k --------------------------------------------------------------- */

MAKER(make_top_k)
{
    out->size[0] = shape_row(&node->input[0]->shape);
    out->size[1] = node->input[0]->shape.dim[node->input[0]->shape.rank - 1];
    out->size[2] = node->output[0]->shape.dim[node->output[0]->shape.rank - 1];
    return node->input[0]->type == TYPE_F32;
}

/* Sorted in as they come; one look says that most do not come in. */
static void top_of_row(float *values, int32_t *places, const float *x, int64_t width, int64_t k)
{
    int64_t held = 0;
    for (int64_t i = 0; i < width; i++) {
        if (held == k && !goes_before(x[i], values[k - 1], 1))
            continue;
        int64_t at = held < k ? held++ : k - 1;
        for (; at > 0 && goes_before(x[i], values[at - 1], 1); at--) {
            values[at] = values[at - 1];
            places[at] = places[at - 1];
        }
        values[at] = x[i];
        places[at] = (int32_t)i;
    }
}

RUNNER(run_top_k)
{
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t width = size[1], k = size[2], rows = cpu_rows(kernel, call) * (size[0] / width);
    const float *x = call->input[0];
    float *values = call->output[0];
    int32_t *places = call->output[1];
    for (int64_t row = 0; row < rows; row++)
        top_of_row(values + row * k, places + row * k, x + row * width, width, k);
}

MAKER(make_top_k_gradient)
{
    out->size[0] = shape_row(&node->output[0]->shape);
    out->size[1] = node->output[0]->shape.dim[node->output[0]->shape.rank - 1];
    out->size[2] = node->input[0]->shape.dim[node->input[0]->shape.rank - 1];
    return node->input[0]->type == TYPE_F32;
}

RUNNER(run_top_k_gradient)
{
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t width = size[1], k = size[2], rows = cpu_rows(kernel, call) * (size[0] / width);
    const float *dy = call->input[0];
    const int32_t *places = call->input[1];
    float *dx = call->output[0];
    memset(dx, 0, (size_t)(rows * width) * sizeof *dx);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = row * k; i < (row + 1) * k; i++)
            if (places[i] >= 0 && places[i] < width)
                dx[row * width + places[i]] = dy[i];
}

/* ---- sums that grow ------------------------------------------------------ */

MAKER(make_cumulative_sum)
{
    const struct cumulative_sum_attributes *attributes = node->attributes;
    if (node->input[0]->type != TYPE_F32 || shape_row(&node->input[0]->shape) < 1)
        return false;
    cpu_set_axis(out, &node->input[0]->shape, attributes->axis);
    out->kernel.scratch_bytes = (size_t)out->size[2] * sizeof(double);
    return true;
}

RUNNER(run_cumulative_sum)
{
    const struct cumulative_sum_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t extent = size[1], width = size[2], groups = cpu_rows(kernel, call) * (size[0] / (extent * width));
    double *sum = call->scratch;
    for (int64_t group = 0; group < groups; group++) {
        const float *x = (const float *)call->input[0] + group * extent * width;
        float *y = (float *)call->output[0] + group * extent * width;
        memset(sum, 0, (size_t)width * sizeof *sum);
        for (int64_t i = 0; i < extent; i++) {
            int64_t at = (attributes->reverse ? extent - 1 - i : i) * width;
            INDEPENDENT
            for (int64_t k = 0; k < width; k++) {
                sum[k] += (double)x[at + k];
                y[at + k] = (float)sum[k];
            }
        }
    }
}

/* ---- sums over the batch ------------------------------------------------- */

RUNNER(run_batch_sum)
{
    const struct batch_sum_attributes *attributes = call->node->attributes;
    int64_t rows = cpu_rows(kernel, call), width = cpu_kernel_of(kernel)->size[0];
    float factor = attributes->mean ? 1.0f / (float)call->count : 1;
    const float *x = call->input[0];
    float *y = call->output[0];
    if (!call->add)
        memset(y, 0, (size_t)width * sizeof *y);
    if (width == 1) {
        *y += (float)sum_of_row(x, rows) * factor;
        return;
    }
    for (int64_t row = 0; row < rows; row++, x += width) {
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            y[k] = madd(x[k], factor, y[k]);
    }
}

RUNNER(run_batch_broadcast)
{
    const struct batch_sum_attributes *attributes = call->node->attributes;
    int64_t rows = cpu_rows(kernel, call), width = cpu_kernel_of(kernel)->size[0];
    float factor = attributes->mean ? 1.0f / (float)call->count : 1;
    const float *d = call->input[0];
    float *y = call->output[0];
    for (int64_t row = 0; row < rows; row++, y += width)
        for (int64_t k = 0; k < width; k++)
            y[k] = d[k] * factor;
}
