/* cpu_softmax.c - softmax, log_softmax, sparsemax along an axis, glu, and their gradients.

   size[0]: elements of a sample, size[1]: extent of the axis, size[2]: elements that lie
   behind it. The last axis is a line; another is done for columns that lie side by side. */
#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "ops/ops.h"

#define OPERANDS                                                                                                       \
    const int64_t extent = cpu_kernel_of(kernel)->size[1], step = cpu_kernel_of(kernel)->size[2];                      \
    const int64_t block = extent * step, all = cpu_elements(kernel, call);                                             \
    const float *in[2] = {call->input[0], call->input[1]};                                                             \
    float *to = call->output[0]

MAKER(make_axis)
{
    const struct axis_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[node->input_count - 1];
    cpu_set_axis(out, &x->shape, x->shape.rank - 1 - attributes->from_end);
    return x->type == TYPE_F32;
}

/* ---- lines ---------------------------------------------------------------- */

static void softmax_line(float *y, const float *x, const float *unused, int64_t count)
{
    (void)unused;
    float most = row_largest(x, count);
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = exp_of(x[i] - most);
    float scale = 1.0f / row_total(y, count);
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] *= scale;
}

/* The sum is taken of what lies in y for a moment. */
static void log_softmax_line(float *y, const float *x, const float *unused, int64_t count)
{
    (void)unused;
    float most = row_largest(x, count);
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = exp_of(x[i] - most);
    float low = log_full_of(row_total(y, count));
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] - most - low;
}

/* dx = y (dy - sum(y dy)) */
static void softmax_gradient_line(float *to, const float *d, const float *y, int64_t count)
{
    float sum = row_dot(y, d, count);
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        to[i] = y[i] * (d[i] - sum);
}

/* dx = dy - exp(y) sum(dy) */
static void log_softmax_gradient_line(float *to, const float *d, const float *y, int64_t count)
{
    float sum = row_total(d, count);
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        to[i] = d[i] - exp_full_of(y[i]) * sum;
}

/* ---- columns: SIDE lines side by side, `step` elements from one to the next ---- */

#define SIDE 64

struct columns {
    int64_t extent, step;
    int width; /* of these columns, at most SIDE */
};

#define EACH_ROW(row) for (int64_t row = 0; row < columns->extent; row++)
#define EACH(i)                                                                                                        \
    INDEPENDENT                                                                                                        \
    for (int i = 0; i < columns->width; i++)

static void max_columns(float *most, const float *x, const struct columns *columns)
{
    memcpy(most, x, (size_t)columns->width * sizeof *x);
    EACH_ROW(row)
    {
        const float *line = x + row * columns->step;
        EACH(i) most[i] = line[i] > most[i] ? line[i] : most[i];
    }
}

static void softmax_columns(float *y, const float *x, const float *unused, const struct columns *columns)
{
    float most[SIDE], sum[SIDE] = {0};
    (void)unused;
    max_columns(most, x, columns);
    EACH_ROW(row)
    {
        const float *from = x + row * columns->step;
        float *line = y + row * columns->step;
        EACH(i)
        {
            line[i] = exp_of(from[i] - most[i]);
            sum[i] += line[i];
        }
    }
    EACH(i) sum[i] = 1.0f / sum[i];
    EACH_ROW(row)
    {
        float *line = y + row * columns->step;
        EACH(i) line[i] *= sum[i];
    }
}

static void log_softmax_columns(float *y, const float *x, const float *unused, const struct columns *columns)
{
    float most[SIDE], sum[SIDE] = {0};
    (void)unused;
    max_columns(most, x, columns);
    EACH_ROW(row)
    {
        const float *from = x + row * columns->step;
        EACH(i) sum[i] += exp_of(from[i] - most[i]);
    }
    EACH(i) sum[i] = log_full_of(sum[i]);
    EACH_ROW(row)
    {
        const float *from = x + row * columns->step;
        float *line = y + row * columns->step;
        EACH(i) line[i] = from[i] - most[i] - sum[i];
    }
}

static void softmax_gradient_columns(float *to, const float *d, const float *y, const struct columns *columns)
{
    float sum[SIDE] = {0};
    EACH_ROW(row)
    {
        const float *p = y + row * columns->step, *q = d + row * columns->step;
        EACH(i) sum[i] = madd(p[i], q[i], sum[i]);
    }
    EACH_ROW(row)
    {
        const float *p = y + row * columns->step, *q = d + row * columns->step;
        float *line = to + row * columns->step;
        EACH(i) line[i] = p[i] * (q[i] - sum[i]);
    }
}

static void log_softmax_gradient_columns(float *to, const float *d, const float *y, const struct columns *columns)
{
    float sum[SIDE] = {0};
    EACH_ROW(row)
    {
        const float *q = d + row * columns->step;
        EACH(i) sum[i] += q[i];
    }
    EACH_ROW(row)
    {
        const float *p = y + row * columns->step, *q = d + row * columns->step;
        float *line = to + row * columns->step;
        EACH(i) line[i] = q[i] - exp_full_of(p[i]) * sum[i];
    }
}

#define AXIS_RUN(name)                                                                                                 \
    RUNNER(run_##name)                                                                                                 \
    {                                                                                                                  \
        OPERANDS;                                                                                                      \
        for (int64_t outer = 0; outer < all; outer += block) {                                                         \
            if (step == 1) {                                                                                           \
                name##_line(to + outer, in[0] + outer, in[1] ? in[1] + outer : NULL, extent);                          \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t i = outer; i < outer + step; i += SIDE) {                                                     \
                int64_t left = outer + step - i;                                                                       \
                const struct columns columns = {extent, step, left < SIDE ? (int)left : SIDE};                         \
                name##_columns(to + i, in[0] + i, in[1] ? in[1] + i : NULL, &columns);                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
AXIS_RUN(softmax)
AXIS_RUN(softmax_gradient)
AXIS_RUN(log_softmax)
AXIS_RUN(log_softmax_gradient)

/* ---- sparsemax ------------------------------------------------------------- */

/* Of x - most: the sum of those above the threshold (NaN counts: it shows), and how many they are. */
struct above {
    float sum;
    int32_t count;
};

static struct above sum_above(const float *x, int64_t extent, int64_t step, float most, float threshold)
{
    struct above above = {0, 0};
    vector sum = vector_all(0), limit = vector_all(threshold), off = vector_all(most);
    vector_whole stay = {0};
    int64_t i = 0;
    for (; step == 1 && i + LANES <= extent; i += LANES) {
        vector at = vector_load(x + i) - off;
        vector_whole stays = ~(vector_whole)(at <= limit);
        sum += (vector)((vector_whole)at & stays);
        stay -= stays;
    }
    above.sum = vector_sum(sum);
    for (int k = 0; k < LANES; k++)
        above.count += stay[k];
    for (; i < extent; i++) {
        float at = x[i * step] - most;
        bool stays = !(at <= threshold);
        above.count += stays;
        above.sum += stays ? at : 0;
    }
    return above;
}

/* As the reference, in float, of x - max: small numbers lose no digits. */
static void sparsemax_group(float *y, const float *x, int64_t extent, int64_t step)
{
    float most = x[0], threshold = -__builtin_inff();
    struct above above = {0, 0};
    int32_t before = -1;
    for (int64_t i = 1; i < extent && step > 1; i++)
        most = x[i * step] > most ? x[i * step] : most;
    if (step == 1)
        most = row_largest(x, extent);
    while (above.count != before) {
        before = above.count;
        above = sum_above(x, extent, step, most, threshold);
        threshold = (above.sum - 1.0f) / (float)above.count;
    }
    INDEPENDENT
    for (int64_t i = 0; i < extent; i++) {
        float at = x[i * step] - most - threshold;
        y[i * step] = at < 0 ? 0 : at;
    }
}

static void sparsemax_gradient_group(float *to, const float *d, const float *y, int64_t extent, int64_t step)
{
    float sum = 0, count = 0;
    for (int64_t i = 0; i < extent; i++) {
        sum += y[i * step] > 0 ? d[i * step] : 0;
        count += y[i * step] > 0 ? 1 : 0;
    }
    float mean = sum / count;
    for (int64_t i = 0; i < extent; i++)
        to[i * step] = y[i * step] > 0 ? d[i * step] - mean : 0;
}

RUNNER(run_sparsemax)
{
    OPERANDS;
    for (int64_t outer = 0; outer < all; outer += block)
        for (int64_t i = outer; i < outer + step; i++)
            sparsemax_group(to + i, in[0] + i, extent, step);
}

RUNNER(run_sparsemax_gradient)
{
    OPERANDS;
    for (int64_t outer = 0; outer < all; outer += block)
        for (int64_t i = outer; i < outer + step; i++)
            sparsemax_gradient_group(to + i, in[0] + i, in[1] + i, extent, step);
}

/* ---- glu: x is [all / block, 2, block / 2] ------------------------------------ */

RUNNER(run_glu)
{
    OPERANDS;
    int64_t half = block / 2;
    for (int64_t outer = 0; outer < all; outer += block, to += half) {
        const float *a = in[0] + outer, *b = a + half;
        INDEPENDENT
        for (int64_t i = 0; i < half; i++)
            to[i] = a[i] * sigmoid_full_of(b[i]);
    }
}

RUNNER(run_glu_gradient)
{
    OPERANDS;
    int64_t half = block / 2;
    const float *d = in[0];
    for (int64_t outer = 0; outer < all; outer += block, d += half) {
        const float *a = in[1] + outer, *b = a + half;
        float *da = to + outer, *db = da + half;
        INDEPENDENT
        for (int64_t i = 0; i < half; i++) {
            float s = sigmoid_full_of(b[i]), x = a[i], dy = d[i];
            da[i] = dy * s;
            db[i] = dy * x * s * (1.0f - s);
        }
    }
}
