/* cpu_loss_formulas.c - the losses of losses.h in float32: formulas of an
   element, of a row, and the sums that make one number of them. */
#include <math.h>

#include "backends/cpu/loss/cpu_loss.h"

/* k: smoothing as factor and offset, delta, alpha, gamma, weight of a positive and of a negative. */
enum { K_FACTOR, K_OFFSET, K_DELTA, K_GAMMA, K_POSITIVE, K_NEGATIVE, K_COUNT };

INLINE float between(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}
INLINE float sign(float x)
{
    return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
}
/* Of a number in [0, 1]; 0 to the power of 0 is 1. */
INLINE float power(float x, float exponent)
{
    float y = exp_of(exponent * log_of(above(x, 1e-37f)));
    return exponent == 0 ? 1.0f : x <= 0 ? 0.0f : y;
}

FORMULA(squared, (t - x) * (t - x))
FORMULA(squared_slope, 2.0f * (x - t))
FORMULA(absolute, abs_of(t - x))
FORMULA(absolute_slope, sign(x - t))
FORMULA(percentage, 100.0f * abs_of(t - x) / above(abs_of(t), EPSILON))
FORMULA(percentage_slope, 100.0f * sign(x - t) / above(abs_of(t), EPSILON))
INLINE float logarithms(float x, float t)
{
    return log_of(above(x, EPSILON) + 1.0f) - log_of(above(t, EPSILON) + 1.0f);
}
FORMULA(logarithmic, logarithms(x, t) * logarithms(x, t))
FORMULA(logarithmic_slope, x < EPSILON ? 0.0f : 2.0f * logarithms(x, t) / (x + 1.0f))
FORMULA(huber, abs_of(x - t) <= k[K_DELTA] ? 0.5f * (x - t) * (x - t)
                                           : k[K_DELTA] * abs_of(x - t) - 0.5f * k[K_DELTA] * k[K_DELTA])
FORMULA(huber_slope, abs_of(x - t) <= k[K_DELTA] ? x - t : k[K_DELTA] * sign(x - t))
/* Small differences would drown in |e| - log(2): there the series. */
INLINE float log_cosh(float x, float t, UNUSED const float *k)
{
    float e = abs_of(x - t), s = e * e;
    float near = s * (0.5f - s * (1.0f / 12 - s * (1.0f / 45)));
    float far = e + log1p_of(exp_of(-2.0f * e)) - 0.69314718f;
    return e < 0.25f ? near : far;
}
INLINE float log_cosh_slope(float x, float t, UNUSED const float *k)
{
    float d = x - t, e = abs_of(d), s = d * d;
    float near = d * (1.0f - s * (1.0f / 3 - s * (2.0f / 15)));
    float far = sign(d) * (1.0f - 2.0f / (1.0f + exp_of(2.0f * e)));
    return e < 0.125f ? near : far;
}
FORMULA(hinge, above(1.0f - t * x, 0))
FORMULA(hinge_slope, 1.0f - t * x > 0 ? -t : 0.0f)
FORMULA(squared_hinge, above(1.0f - t * x, 0) * above(1.0f - t * x, 0))
FORMULA(squared_hinge_slope, -2.0f * t * above(1.0f - t * x, 0))
FORMULA(poisson, x - t * log_of(x + EPSILON))
FORMULA(poisson_slope, 1.0f - t / (x + EPSILON))
INLINE float divergence(float x, float t, UNUSED const float *k)
{
    t = between(t, EPSILON, 1.0f);
    return t * (log_of(t) - log_of(between(x, EPSILON, 1.0f)));
}
FORMULA(divergence_slope, x<EPSILON ? 0.0f : x> 1.0f ? 0.0f : -between(t, EPSILON, 1.0f) / x)
INLINE float focal(float x, float t, const float *k)
{
    float rest = 1.0f - (t * x + (1.0f - t) * (1.0f - x)), weight = t * k[K_POSITIVE] + (1.0f - t) * k[K_NEGATIVE];
    return weight * power(rest, k[K_GAMMA]) * bernoulli(x, t, k);
}
INLINE float focal_slope(float x, float t, const float *k)
{
    float rest = 1.0f - (t * x + (1.0f - t) * (1.0f - x)), weight = t * k[K_POSITIVE] + (1.0f - t) * k[K_NEGATIVE];
    float change = k[K_GAMMA] * power(rest, k[K_GAMMA] - 1.0f) * (1.0f - 2.0f * t);
    return weight * (change * bernoulli(x, t, k) + power(rest, k[K_GAMMA]) * bernoulli_slope(x, t, k));
}

/* ---- over elements ------------------------------------------------------ */

static void take_numbers(float k[K_COUNT], const struct call *call, int others)
{
    const struct elementwise_loss_attributes *a = call->node->attributes;
    const float *count = call->node->input_count > others ? call->input[others] : NULL;
    bool halves = count && *count == 0; /* 0 and 1 become -1 and 1 */
    float keep = (float)(1 - a->smoothing);
    k[K_FACTOR] = halves ? 2.0f * keep : keep;
    k[K_OFFSET] = (float)(0.5 * a->smoothing) - (halves ? keep : 0.0f);
    k[K_DELTA] = (float)a->delta;
    k[K_GAMMA] = (float)a->gamma;
    k[K_POSITIVE] = a->balances ? (float)a->alpha : 1.0f;
    k[K_NEGATIVE] = a->balances ? (float)(1 - a->alpha) : 1.0f;
}

static void take_targets(float *room, const struct call *call, int64_t first, int64_t count, const float *k)
{
    if (call->node->input[1]->type == TYPE_F32) {
        const float *t = (const float *)call->input[1] + first;
        for (int64_t i = 0; i < count; i++)
            room[i] = t[i] * k[K_FACTOR] + k[K_OFFSET];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        room[i] = (float)label_at(call, first + i) * k[K_FACTOR] + k[K_OFFSET];
}

INLINE void run_values(const struct kernel *kernel, const struct call *call, formula *value)
{
    const struct elementwise_loss_attributes *a = call->node->attributes;
    int64_t width = cpu_kernel_of(kernel)->size[0], rows = cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[1];
    const float *x = call->input[0];
    float *y = call->output[0], t[CHUNK], values[CHUNK], k[K_COUNT];
    float share = a->sums ? 1.0f : 1.0f / (float)width;
    take_numbers(k, call, 2);
    for (int64_t row = 0; row < rows; row++) {
        float sum = 0;
        for (int64_t first = row * width; first < (row + 1) * width; first += CHUNK) {
            int64_t left = (row + 1) * width - first, chunk = left < CHUNK ? left : CHUNK;
            take_targets(t, call, first, chunk, k);
            for (int64_t i = 0; i < chunk; i++)
                values[i] = value(x[first + i], t[i], k);
            for (int64_t i = 0; i < chunk; i++)
                sum += values[i];
        }
        y[row] = sum * share;
    }
}

INLINE void run_slopes(const struct kernel *kernel, const struct call *call, formula *slope)
{
    const struct elementwise_loss_attributes *a = call->node->attributes;
    int64_t width = cpu_kernel_of(kernel)->size[0], rows = cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[1];
    const float *x = call->input[0], *d = call->input[2];
    float *y = call->output[0], t[CHUNK], k[K_COUNT];
    float share = a->sums ? 1.0f : 1.0f / (float)width;
    take_numbers(k, call, 3);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t first = row * width; first < (row + 1) * width; first += CHUNK) {
            int64_t left = (row + 1) * width - first, chunk = left < CHUNK ? left : CHUNK;
            float factor = d[row] * share;
            take_targets(t, call, first, chunk, k);
            for (int64_t i = 0; i < chunk; i++)
                y[first + i] = factor * slope(x[first + i], t[i], k);
        }
}

/* Every formula with its functions. */
#define FORMULAS(X)                                                                                                    \
    X(FORMULA_SQUARED, squared)                                                                                        \
    X(FORMULA_ABSOLUTE, absolute)                                                                                      \
    X(FORMULA_PERCENTAGE, percentage)                                                                                  \
    X(FORMULA_LOGARITHMIC, logarithmic)                                                                                \
    X(FORMULA_HUBER, huber)                                                                                            \
    X(FORMULA_LOG_COSH, log_cosh)                                                                                      \
    X(FORMULA_HINGE, hinge)                                                                                            \
    X(FORMULA_SQUARED_HINGE, squared_hinge)                                                                            \
    X(FORMULA_POISSON, poisson)                                                                                        \
    X(FORMULA_DIVERGENCE, divergence)                                                                                  \
    X(FORMULA_BINARY, bernoulli)                                                                                       \
    X(FORMULA_BINARY_LOGITS, logits)                                                                                   \
    X(FORMULA_BINARY_FOCAL, focal)

#define RUNNERS(which, name)                                                                                           \
    static void run_##name(const struct kernel *kernel, const struct call *call)                                       \
    {                                                                                                                  \
        run_values(kernel, call, name);                                                                                \
    }                                                                                                                  \
    static void run_##name##_slope(const struct kernel *kernel, const struct call *call)                               \
    {                                                                                                                  \
        run_slopes(kernel, call, name##_slope);                                                                        \
    }
FORMULAS(RUNNERS)

static const struct {
    void (*value)(const struct kernel *kernel, const struct call *call);
    void (*slope)(const struct kernel *kernel, const struct call *call);
} runners[FORMULA_COUNT] = {
#define ROW(which, name) [which] = {run_##name, run_##name##_slope},
    FORMULAS(ROW)
#undef ROW
};

MAKER(make_formula)
{
    const struct elementwise_loss_attributes *attributes = node->attributes;
    out->kernel.run = runners[attributes->formula].value;
    return take_score_sizes(out, node);
}

MAKER(make_formula_gradient)
{
    const struct elementwise_loss_attributes *attributes = node->attributes;
    out->kernel.run = runners[attributes->formula].slope;
    return take_score_sizes(out, node);
}

/* ---- over rows ---------------------------------------------------------- */

/* The targets of a row lie in the worker's scratch, smoothed. */
MAKER(make_row_loss)
{
    if (!take_score_sizes(out, node))
        return false;
    out->kernel.scratch_bytes = (size_t)out->size[0] * sizeof(float);
    return true;
}

struct row {
    const float *x, *t;
    float *y; /* the gradient goes here */
    int64_t width;
    float d;
    const struct row_loss_attributes *a;
};

static float sum_of(const float *x, int64_t count)
{
    float sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i];
    return sum;
}

static float dot(const float *a, const float *b, int64_t count)
{
    float sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum = madd(a[i], b[i], sum);
    return sum;
}

static float row_logits(const struct row *r)
{
    float most = largest(r->x, r->width), sum = 0, parts = 0;
    for (int64_t i = 0; i < r->width; i++)
        sum += exp_of(r->x[i] - most);
    float log_sum = logf(sum);
    for (int64_t i = 0; i < r->width; i++)
        parts += r->t[i] * (log_sum - (r->x[i] - most));
    return parts;
}

static void row_logits_slope(const struct row *r)
{
    float most = largest(r->x, r->width), targets = sum_of(r->t, r->width);
    for (int64_t i = 0; i < r->width; i++)
        r->y[i] = exp_of(r->x[i] - most);
    float scale = r->d * targets / sum_of(r->y, r->width);
    for (int64_t i = 0; i < r->width; i++)
        r->y[i] = r->y[i] * scale - r->d * r->t[i];
}

INLINE float row_weight(const struct row *r, float p)
{
    return r->a->formula == ROW_CATEGORICAL_FOCAL ? (float)r->a->alpha * power(1.0f - p, (float)r->a->gamma) : 1.0f;
}

static float row_probability(const struct row *r)
{
    float all = 1.0f / sum_of(r->x, r->width), sum = 0;
    for (int64_t i = 0; i < r->width; i++) {
        float p = between(r->x[i] * all, EPSILON, 1.0f - EPSILON);
        sum -= r->t[i] * row_weight(r, p) * log_of(p);
    }
    return sum;
}

static void row_probability_slope(const struct row *r)
{
    float all = 1.0f / sum_of(r->x, r->width), alpha = (float)r->a->alpha, gamma = (float)r->a->gamma;
    bool focal_one = r->a->formula == ROW_CATEGORICAL_FOCAL;
    for (int64_t i = 0; i < r->width; i++) {
        float p = r->x[i] * all, q = between(p, EPSILON, 1.0f - EPSILON);
        float change = focal_one ? alpha * gamma * power(1.0f - q, gamma - 1.0f) * log_of(q) : 0.0f;
        r->y[i] = p < EPSILON || p > 1.0f - EPSILON ? 0.0f : r->t[i] * (change - row_weight(r, q) / q);
    }
    float around = dot(r->y, r->x, r->width) * all;
    for (int64_t i = 0; i < r->width; i++)
        r->y[i] = r->d * (r->y[i] - around) * all;
}

static float length_of(const float *x, int64_t count)
{
    return sqrtf(above(dot(x, x, count), EPSILON * EPSILON));
}

static float row_cosine(const struct row *r)
{
    return -dot(r->x, r->t, r->width) / (length_of(r->x, r->width) * length_of(r->t, r->width));
}

static void row_cosine_slope(const struct row *r)
{
    float x = length_of(r->x, r->width), t = length_of(r->t, r->width);
    float around = x > EPSILON ? row_cosine(r) / (x * x) : 0;
    for (int64_t i = 0; i < r->width; i++)
        r->y[i] = r->d * (-r->t[i] / (x * t) - r->x[i] * around);
}

static float row_hinge_at(const struct row *r, int64_t *most)
{
    float wrong = (1.0f - r->t[0]) * r->x[0];
    *most = 0;
    for (int64_t i = 1; i < r->width; i++) {
        float other = (1.0f - r->t[i]) * r->x[i];
        *most = other > wrong ? i : *most;
        wrong = other > wrong ? other : wrong;
    }
    return above(wrong - dot(r->x, r->t, r->width) + 1.0f, 0);
}

static float row_hinge(const struct row *r)
{
    int64_t most;
    return row_hinge_at(r, &most);
}

static void row_hinge_slope(const struct row *r)
{
    int64_t most;
    float flows = row_hinge_at(r, &most) > 0 ? r->d : 0;
    for (int64_t i = 0; i < r->width; i++)
        r->y[i] = -flows * r->t[i];
    r->y[most] += flows * (1.0f - r->t[most]);
}

static const struct {
    float (*value)(const struct row *r);
    void (*slope)(const struct row *r);
} row_formulas[ROW_FORMULA_COUNT] = {
    [ROW_CATEGORICAL] = {row_probability, row_probability_slope},
    [ROW_CATEGORICAL_LOGITS] = {row_logits, row_logits_slope},
    [ROW_CATEGORICAL_FOCAL] = {row_probability, row_probability_slope},
    [ROW_COSINE] = {row_cosine, row_cosine_slope},
    [ROW_CATEGORICAL_HINGE] = {row_hinge, row_hinge_slope},
};

INLINE void run_rows(const struct kernel *kernel, const struct call *call, bool gradient)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    struct row row = {.a = call->node->attributes, .width = own->size[0], .t = call->scratch};
    int64_t rows = cpu_rows(kernel, call) * own->size[1];
    const float k[2] = {(float)(1 - row.a->smoothing), (float)(row.a->smoothing / (double)row.width)};
    for (int64_t i = 0; i < rows; i++) {
        row.x = (const float *)call->input[0] + i * row.width;
        take_targets(call->scratch, call, i * row.width, row.width, k);
        if (gradient) {
            row.d = ((const float *)call->input[2])[i];
            row.y = (float *)call->output[0] + i * row.width;
            row_formulas[row.a->formula].slope(&row);
        } else {
            ((float *)call->output[0])[i] = row_formulas[row.a->formula].value(&row);
        }
    }
}

RUNNER(run_row_loss)
{
    run_rows(kernel, call, false);
}

RUNNER(run_row_loss_gradient)
{
    run_rows(kernel, call, true);
}

/* ---- to one number ------------------------------------------------------ */

/* size[0]: values a sample (of the values, not of the weights); size[1]: of input 1 where it is batched. */
MAKER(make_values)
{
    const struct tensor *v = node->output[0]->batched ? node->output[0] : node->input[0];
    if (node->output[0]->type != TYPE_F32 || (node->input[0] && cpu_small_type(node->input[0]->type)))
        return false;
    out->size[0] = shape_row(&v->shape);
    out->size[1] = node->input_count > 1 && node->input[1] ? shape_row(&node->input[1]->shape) : 1;
    return true;
}

RUNNER(run_weigh)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    int64_t rows = cpu_rows(kernel, call), share = own->size[0] / own->size[1];
    const float *v = call->input[0];
    float *y = call->output[0];
    for (int64_t w = 0; w < rows * own->size[1]; w++) {
        float weight = (float)label_at(call, w);
        INDEPENDENT
        for (int64_t i = w * share; i < (w + 1) * share; i++)
            y[i] = v[i] * weight;
    }
}

static double part_of(const struct kernel *kernel, const struct call *call, int at)
{
    const struct loss_mean_attributes *attributes = call->node->attributes;
    const float *count = call->node->input_count > at ? call->input[at] : NULL;
    double all = count ? (double)*count : (double)call->count * (double)cpu_kernel_of(kernel)->size[0];
    return attributes->sums ? 1 : all > 0 ? 1 / all : 0;
}

RUNNER(run_loss_mean)
{
    int64_t count = cpu_elements(kernel, call), i = 0;
    const float *v = call->input[0];
    float *y = call->output[0];
    double sum[8] = {0}, total = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += (double)v[i + k];
    for (int k = 0; k < 8; k++)
        total += sum[k];
    for (; i < count; i++)
        total += (double)v[i];
    *y = (call->add ? *y : 0) + (float)(total * part_of(kernel, call, 1));
}

RUNNER(run_loss_mean_gradient)
{
    int64_t count = cpu_elements(kernel, call);
    const float *d = call->input[0];
    float *y = call->output[0], value = (float)((d ? (double)*d : 1.0) * part_of(kernel, call, 2));
    for (int64_t i = 0; i < count; i++)
        y[i] = value;
}

RUNNER(run_count_valid)
{
    const struct count_valid_attributes *attributes = call->node->attributes;
    int64_t count = cpu_elements(kernel, call), valid = 0;
    float *y = call->output[0];
    for (int64_t i = 0; i < count; i++)
        valid += element_get(call->input[0], call->node->input[0]->type, i) != attributes->ignored;
    *y = (call->add ? *y : 0) + (float)valid;
}

RUNNER(run_count_others)
{
    int64_t count = cpu_elements(kernel, call), others = 0;
    float *y = call->output[0];
    for (int64_t i = 0; i < count; i++) {
        double t = element_get(call->input[0], call->node->input[0]->type, i);
        others += t != 0 && t != 1;
    }
    *y = (call->add ? *y : 0) + (float)others;
}
