/* cpu_update_norm.c - clipping, Lamb and Adafactor. Sums are of doubles: a
   norm over millions of squares keeps its digits. */
#include <math.h>

#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* LANES sums side by side, added up at the end: the order is fixed. */
RUNNER(run_square_sum)
{
    int64_t count = cpu_elements(kernel, call), i = 0;
    const float *x = call->input[0];
    double *y = call->output[0], sum[8] = {0}, total = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += (double)x[i + k] * (double)x[i + k];
    for (int k = 0; k < 8; k++)
        total += sum[k];
    for (; i < count; i++)
        total += (double)x[i] * (double)x[i];
    *y = call->add ? *y + total : total;
}

RUNNER(run_clip_value)
{
    const struct clip_attributes *attributes = call->node->attributes;
    int64_t count = cpu_elements(kernel, call);
    const float *x = call->input[0];
    float *y = call->output[0], limit = (float)attributes->limit;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

static void multiply(float *y, const float *x, int64_t count, float factor)
{
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] * factor;
}

RUNNER(run_clip_norm)
{
    const double *squares = call->input[1];
    float factor = (float)clip_norm_factor(call->node->attributes, *squares);
    multiply(call->output[0], call->input[0], cpu_elements(kernel, call), factor);
}

RUNNER(run_unscale_gradient)
{
    const float *scale = call->input[1];
    multiply(call->output[0], call->input[0], cpu_elements(kernel, call), 1.0f / *scale);
}

RUNNER(run_lamb_direction)
{
    const double *control = call->input[1];
    int64_t count = cpu_elements(kernel, call);
    double numbers[UPDATE_NUMBERS];
    const float *g = call->input[0];
    float *m = call->input[2], *v = call->input[3], *u = call->output[0];
    update_numbers(numbers, call->node, control, 0);
    bool applies = control[CONTROL_APPLIES] != 0;
    float m_rate = applies ? (float)numbers[0] : 0, v_rate = applies ? (float)numbers[1] : 0;
    float m_rest = (float)numbers[2], v_rest = (float)numbers[3], epsilon = (float)numbers[4];
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float d = g[i];
        m[i] = madd(d - m[i], m_rate, m[i]);
        v[i] = madd(madd(d, d, -v[i]), v_rate, v[i]);
        u[i] = m[i] * m_rest / (sqrtf(v[i] * v_rest) + epsilon);
    }
}

/* w -= factor u */
static void take_off(const struct kernel *kernel, const struct call *call, float factor)
{
    const double *control = call->input[2];
    int64_t count = cpu_elements(kernel, call);
    float *restrict w = call->input[0];
    const float *restrict u = call->input[1];
    for (int64_t i = 0; i < count && control[CONTROL_APPLIES] != 0; i++)
        w[i] = madd(u[i], -factor, w[i]);
}

RUNNER(run_lamb)
{
    const double *w = call->input[3], *u = call->input[4];
    take_off(kernel, call, (float)lamb_factor(call->node, call->input[2], *w, *u));
}

RUNNER(run_adafactor)
{
    const double *w = call->input[3], *u = call->input[4];
    take_off(kernel, call, (float)adafactor_factor(call->node, call->input[2], *w, *u));
}

/* size[0]: elements of a row of g; size[1]: columns; size[2]: rows of a matrix; size[3]: 1 for a matrix alone. */
MAKER(make_factored)
{
    const struct shape *shape = &node->input[0]->shape;
    out->size[0] = shape_row(shape);
    out->size[1] = shape->dim[shape->rank - 1];
    out->size[2] = shape->dim[shape->rank - 2];
    out->size[3] = shape->rank == 2;
    return cpu_inputs_f32(node);
}

RUNNER(run_square_rows)
{
    const struct update_attributes *attributes = call->node->attributes;
    int64_t width = cpu_kernel_of(kernel)->size[1], rows = cpu_elements(kernel, call) / width;
    const float *x = call->input[0];
    float *y = call->output[0];
    for (int64_t row = 0; row < rows; row++, x += width) {
        float sum[8] = {0}, total = 0;
        int64_t i = 0;
        for (; i + 8 <= width; i += 8)
            for (int k = 0; k < 8; k++)
                sum[k] += x[i + k] * x[i + k];
        for (int k = 0; k < 8; k++)
            total += sum[k];
        for (; i < width; i++)
            total += x[i] * x[i];
        y[row] = total / (float)width + (float)attributes->epsilon;
    }
}

static void add_squares(float *restrict y, const float *restrict x, int64_t count, float share, float epsilon)
{
    for (int64_t i = 0; i < count; i++)
        y[i] += (x[i] * x[i] + epsilon) * share;
}

RUNNER(run_square_columns)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    const struct update_attributes *attributes = call->node->attributes;
    int64_t width = own->size[1], all = own->size[2], count = cpu_elements(kernel, call) / width;
    const float *x = call->input[0];
    float *y = call->output[0], share = 1.0f / (float)all;
    bool alone = own->size[3];
    for (int64_t row = 0; row < count; row++, x += width) {
        float *to = alone ? y : y + row / all * width;
        if (alone ? row == 0 && !call->add : row % all == 0)
            memset(to, 0, (size_t)width * sizeof *to);
        add_squares(to, x, width, share, (float)attributes->epsilon);
    }
}

RUNNER(run_adafactor_average)
{
    const double *control = call->input[2];
    int64_t count = cpu_elements(kernel, call);
    float *restrict state = call->input[0];
    const float *restrict mean = call->input[1];
    double keep = adafactor_keep(call->node, control);
    float kept = (float)keep, taken = (float)(1 - keep);
    for (int64_t i = 0; i < count && control[CONTROL_APPLIES] != 0; i++)
        state[i] = kept * state[i] + taken * mean[i];
}

RUNNER(run_adafactor_factored)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    int64_t width = own->size[1], rows = own->size[2], count = cpu_elements(kernel, call) / width;
    int64_t first = call->begin * own->size[0] / width, known = -1;
    const float *g = call->input[0], *r = call->input[1];
    float *u = call->output[0];
    double mean = 0;
    for (int64_t row = 0; row < count; row++, g += width, u += width) {
        int64_t at = first + row, matrix = at / rows;
        const float *c = (const float *)call->input[2] + matrix * width;
        if (matrix != known) {
            mean = 0;
            for (int64_t i = 0; i < rows; i++)
                mean += (double)r[matrix * rows + i];
            mean /= (double)rows;
            known = matrix;
        }
        float share = (float)((double)r[at] / mean);
        INDEPENDENT
        for (int64_t i = 0; i < width; i++)
            u[i] = g[i] / sqrtf(share * c[i]);
    }
}

RUNNER(run_adafactor_direction)
{
    const struct update_attributes *attributes = call->node->attributes;
    const double *control = call->input[1];
    int64_t count = cpu_elements(kernel, call);
    const float *g = call->input[0];
    float *v = call->input[2], *u = call->output[0], epsilon = (float)attributes->epsilon;
    double keep = control[CONTROL_APPLIES] != 0 ? adafactor_keep(call->node, control) : 1;
    float kept = (float)keep, taken = (float)(1 - keep);
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float d = g[i];
        v[i] = kept * v[i] + taken * (d * d + epsilon);
        u[i] = d / sqrtf(v[i]);
    }
}
