/* cpu_reduction.c - reductions over any axes, and their gradients.

   A sample is walked in order of memory, a run of the last (joined) axis at a time: a run
   that is reduced goes into one element of y, a run that is kept into as many; both
   are loops of vectors. size[0]: bytes of scratch for each element of y. */
#include <math.h>

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "ops/ops.h"

struct job {
    struct reduce_strides strides;
    int64_t samples, run, out, in;
    bool reduced; /* the run is */
};

static struct job job_of(const struct kernel *kernel, const struct call *call, int x)
{
    const struct reduce_attributes *attributes = call->node->attributes;
    const struct shape *shape = &call->node->input[x]->shape;
    struct job job = {.samples = cpu_rows(kernel, call)};
    reduce_strides_init(&job.strides, attributes->axes, shape->rank - 1, shape->dim + 1);
    job.run = job.strides.dim[job.strides.rank - 1];
    job.reduced = job.strides.reduced[job.strides.rank - 1];
    job.in = job.strides.in;
    job.out = job.strides.out;
    return job;
}

/* The body sees i, an element of the sample, and runs.to, its element of y. */
#define EACH_RUN(job)                                                                                                  \
    for (struct reduce_runs runs = {{0}, 0}, *once = &runs; once; once = NULL)                                         \
        for (int64_t i = 0; i < (job)->in; i += (job)->run, reduce_next(&runs, &(job)->strides))

/* dx = formula(x, a, b) of a sample, with a and b of the element of y that each element of x goes into. */
typedef float formula(float x, float a, float b);
INLINE void differ(float *dx, const struct job *job, const float *x, const float *a, const float *b, formula *of)
{
    EACH_RUN(job)
    {
        const float *first = a + runs.to, *second = b + runs.to;
        float one = first[0], other = second[0];
        if (job->reduced)
            for (int64_t k = 0; k < job->run; k++)
                dx[i + k] = of(x[i + k], one, other);
        else
            for (int64_t k = 0; k < job->run; k++)
                dx[i + k] = of(x[i + k], first[k], second[k]);
    }
}

/* Two doubles and a float for each element of y are enough for every reduction. */
static bool make(struct cpu_kernel *out, const struct node *node, int x)
{
    const struct reduce_attributes *attributes = node->attributes;
    const struct shape *shape = &node->input[x]->shape;
    struct reduce_strides strides;
    if (!cpu_inputs_f32(node))
        return false;
    reduce_strides_init(&strides, attributes->axes, shape->rank - 1, shape->dim + 1);
    out->kernel.scratch_bytes = (size_t)strides.out * (2 * sizeof(double) + sizeof(float));
    return true;
}

MAKER(make_reduce)
{
    return make(out, node, 0);
}

MAKER(make_reduce_gradient)
{
    return make(out, node, 1);
}

/* ---- sums ---------------------------------------------------------------- */

static void add_kept(double *restrict sum, const float *restrict x, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        sum[k] += (double)x[k];
}

static void sum_sample(double *sum, const struct job *job, const float *x)
{
    memset(sum, 0, (size_t)job->out * sizeof *sum);
    EACH_RUN(job)
    {
        if (job->reduced)
            sum[runs.to] += sum_of_row(x + i, job->run);
        else
            add_kept(sum + runs.to, x + i, job->run);
    }
}

RUNNER(run_reduce_sum)
{
    const struct reduce_attributes *attributes = call->node->attributes;
    const float *x = call->input[0];
    float *y = call->output[0];
    double *sum = call->scratch;
    const struct job job = job_of(kernel, call, 0);
    double factor = attributes->choice ? 1 / (double)job.strides.values : 1;
    for (int64_t s = 0; s < job.samples; s++, x += job.in, y += job.out) {
        sum_sample(sum, &job, x);
        for (int64_t k = 0; k < job.out; k++)
            y[k] = (float)(sum[k] * factor);
    }
}

/* size[1]: of a sample of x. */
MAKER(make_reduce_broadcast)
{
    return node->input[0]->type == TYPE_F32;
}

RUNNER(run_reduce_broadcast)
{
    const struct reduce_broadcast_attributes *attributes = call->node->attributes;
    const float *y = call->input[0];
    float *x = call->output[0], factor = (float)attributes->factor;
    struct job job = {.samples = cpu_rows(kernel, call)};
    reduce_strides_init(&job.strides, attributes->axes, (int)attributes->rank, attributes->row);
    job.run = job.strides.dim[job.strides.rank - 1];
    job.in = job.strides.in;
    bool reduced = job.strides.reduced[job.strides.rank - 1];
    for (int64_t s = 0; s < job.samples; s++, x += job.strides.in, y += job.strides.out) {
        EACH_RUN(&job)
        {
            const float *from = y + runs.to;
            float one = from[0] * factor;
            if (reduced)
                for (int64_t k = 0; k < job.run; k++)
                    x[i + k] = one;
            else
                for (int64_t k = 0; k < job.run; k++)
                    x[i + k] = from[k] * factor;
        }
    }
}

/* ---- extremes ------------------------------------------------------------ */

/* A NaN wins, and stays. */
INLINE float farther(float a, float b, bool least)
{
    bool nan = b != b;
    bool wins = (least ? b < a : b > a) | nan;
    return wins ? b : a;
}

INLINE vector farther_lanes(vector a, vector b, bool least)
{
    vector_whole pick = (vector_whole)(least ? b < a : b > a) | (vector_whole)(b != b);
    return (vector)(((vector_whole)b & pick) | ((vector_whole)a & ~pick));
}

INLINE float farthest_of_row(const float *x, int64_t count, bool least)
{
    float most = x[0], lanes[LANES];
    int64_t i = 0;
    if (count >= LANES) {
        vector best = vector_load(x);
        for (i = LANES; i + LANES <= count; i += LANES)
            best = farther_lanes(best, vector_load(x + i), least);
        vector_store(lanes, best);
        for (int k = 0; k < LANES; k++)
            most = farther(most, lanes[k], least);
    }
    for (; i < count; i++)
        most = farther(most, x[i], least);
    return most;
}

INLINE void farthest(float *y, const struct job *job, const float *x, bool least)
{
    for (int64_t k = 0; k < job->out; k++)
        y[k] = least ? INFINITY : -INFINITY;
    EACH_RUN(job)
    {
        float *to = y + runs.to;
        if (job->reduced)
            to[0] = farther(to[0], farthest_of_row(x + i, job->run, least), least);
        else {
            INDEPENDENT
            for (int64_t k = 0; k < job->run; k++)
                to[k] = farther(to[k], x[i + k], least);
        }
    }
}

static void largest(float *y, const struct job *job, const float *x)
{
    farthest(y, job, x, false);
}

static void smallest(float *y, const struct job *job, const float *x)
{
    farthest(y, job, x, true);
}

RUNNER(run_reduce_max)
{
    const struct reduce_attributes *attributes = call->node->attributes;
    const float *x = call->input[0];
    float *y = call->output[0];
    const struct job job = job_of(kernel, call, 0);
    for (int64_t s = 0; s < job.samples; s++, x += job.in, y += job.out) {
        if (attributes->choice)
            smallest(y, &job, x);
        else
            largest(y, &job, x);
    }
}

/* How many are y, by element of y. */
static void count_equals(float *equals, const struct job *job, const float *x, const float *y)
{
    memset(equals, 0, (size_t)job->out * sizeof *equals);
    EACH_RUN(job)
    {
        const float *like = y + runs.to;
        float *to = equals + runs.to, one = like[0];
        if (job->reduced) {
            int64_t count = 0;
            for (int64_t k = 0; k < job->run; k++)
                count += x[i + k] == one;
            to[0] += (float)count;
        } else {
            INDEPENDENT
            for (int64_t k = 0; k < job->run; k++)
                to[k] += x[i + k] == like[k] ? 1.0f : 0.0f;
        }
    }
}

INLINE float share_where_equal(float x, float y, float share)
{
    return x == y ? share : 0;
}

RUNNER(run_reduce_max_gradient)
{
    const float *dy = call->input[0], *x = call->input[1], *y = call->input[2];
    float *dx = call->output[0], *share = call->scratch;
    const struct job job = job_of(kernel, call, 1);
    for (int64_t s = 0; s < job.samples; s++, x += job.in, dx += job.in, y += job.out, dy += job.out) {
        count_equals(share, &job, x, y);
        for (int64_t k = 0; k < job.out; k++)
            share[k] = dy[k] / share[k];
        differ(dx, &job, x, y, share, share_where_equal);
    }
}

/* ---- products ------------------------------------------------------------ */

static float product_of_row(const float *x, int64_t count)
{
    vector product = vector_all(1);
    float lanes[LANES], total = 1;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        product *= vector_load(x + i);
    vector_store(lanes, product);
    for (int k = 0; k < LANES; k++)
        total *= lanes[k];
    for (; i < count; i++)
        total *= x[i];
    return total;
}

RUNNER(run_reduce_prod)
{
    const float *x = call->input[0];
    float *y = call->output[0];
    const struct job job = job_of(kernel, call, 0);
    for (int64_t s = 0; s < job.samples; s++, x += job.in, y += job.out) {
        for (int64_t k = 0; k < job.out; k++)
            y[k] = 1;
        EACH_RUN(&job)
        {
            float *to = y + runs.to;
            if (job.reduced)
                to[0] *= product_of_row(x + i, job.run);
            else
                for (int64_t k = 0; k < job.run; k++)
                    to[k] *= x[i + k];
        }
    }
}

/* Products of what is not 0, and how many are 0. */
static void products(double *product, float *zeros, const struct job *job, const float *x)
{
    for (int64_t k = 0; k < job->out; k++) {
        product[k] = 1;
        zeros[k] = 0;
    }
    EACH_RUN(job)
    {
        int64_t step = job->reduced ? 0 : 1;
        for (int64_t k = 0; k < job->run; k++) {
            float value = x[i + k];
            product[runs.to + k * step] *= value == 0 ? 1 : (double)value;
            zeros[runs.to + k * step] += value == 0;
        }
    }
}

RUNNER(run_reduce_prod_gradient)
{
    const float *dy = call->input[0], *x = call->input[1];
    float *dx = call->output[0];
    const struct job job = job_of(kernel, call, 1);
    double *product = call->scratch;
    float *whole = (float *)(product + job.out), *zeros = whole + job.out, *lone = zeros;
    for (int64_t s = 0; s < job.samples; s++, x += job.in, dx += job.in, dy += job.out) {
        products(product, zeros, &job, x);
        for (int64_t k = 0; k < job.out; k++) {
            float value = (float)((double)dy[k] * product[k]), none = zeros[k];
            whole[k] = none == 0 ? value : 0;
            lone[k] = none == 1 ? value : 0;
        }
        EACH_RUN(&job)
        {
            int64_t step = job.reduced ? 0 : 1;
            for (int64_t k = 0; k < job.run; k++) {
                int64_t at = runs.to + k * step;
                dx[i + k] = x[i + k] == 0 ? lone[at] : whole[at] / x[i + k];
            }
        }
    }
}

/* ---- variance ------------------------------------------------------------ */

/* What rounding the mean to f32 leaves is taken from the squares afterwards. */
static void take_means(float *mean, double *sum, const struct job *job, const float *x)
{
    sum_sample(sum, job, x);
    for (int64_t k = 0; k < job->out; k++) {
        double exact = sum[k] / (double)job->strides.values;
        mean[k] = (float)exact;
        sum[k] = exact - (double)mean[k];
    }
}

RUNNER(run_reduce_variance)
{
    const float *x = call->input[0];
    float *y = call->output[0];
    const struct job job = job_of(kernel, call, 0);
    double *left = call->scratch, *squares = left + job.out, values = (double)job.strides.values;
    float *means = (float *)(squares + job.out);
    for (int64_t s = 0; s < job.samples; s++, x += job.in, y += job.out) {
        take_means(means, left, &job, x);
        memset(squares, 0, (size_t)job.out * sizeof *squares);
        EACH_RUN(&job)
        {
            const float *mean = means + runs.to;
            double *to = squares + runs.to;
            if (job.reduced)
                to[0] += squares_of_row(x + i, job.run, mean[0]);
            else
                for (int64_t k = 0; k < job.run; k++) {
                    double d = (double)(x[i + k] - mean[k]);
                    to[k] += d * d;
                }
        }
        for (int64_t k = 0; k < job.out; k++)
            y[k] = (float)(squares[k] / values - left[k] * left[k]);
    }
}

INLINE float centred(float x, float mean, float factor)
{
    return (x - mean) * factor;
}

/* dx = 2 dy (x - mean) / values */
RUNNER(run_reduce_variance_gradient)
{
    const float *dy = call->input[0], *x = call->input[1];
    float *dx = call->output[0];
    const struct job job = job_of(kernel, call, 1);
    double *left = call->scratch;
    float *means = (float *)(left + job.out), *factors = means + job.out;
    for (int64_t s = 0; s < job.samples; s++, x += job.in, dx += job.in, dy += job.out) {
        take_means(means, left, &job, x);
        for (int64_t k = 0; k < job.out; k++)
            factors[k] = 2 * dy[k] / (float)job.strides.values;
        differ(dx, &job, x, means, factors, centred);
    }
}

/* ---- log-sum-exp --------------------------------------------------------- */

#define PIECE 256

static double exponentials_of_row(const float *x, int64_t count, float most)
{
    float e[PIECE];
    double sum = 0;
    for (int64_t i = 0; i < count; i += PIECE) {
        int64_t length = count - i < PIECE ? count - i : PIECE;
        for (int64_t k = 0; k < length; k++)
            e[k] = exp_of(x[i + k] - most);
        sum += sum_of_row(e, length);
    }
    return sum;
}

static void sum_exponentials(double *sum, const float *most, const struct job *job, const float *x)
{
    memset(sum, 0, (size_t)job->out * sizeof *sum);
    EACH_RUN(job)
    {
        const float *top = most + runs.to;
        double *to = sum + runs.to;
        if (job->reduced)
            to[0] += exponentials_of_row(x + i, job->run, top[0]);
        else
            for (int64_t k = 0; k < job->run; k++)
                to[k] += (double)exp_of(x[i + k] - top[k]);
    }
}

/* y holds the largest until it is y. An infinite one is the result. */
RUNNER(run_reduce_logsumexp)
{
    const float *x = call->input[0];
    float *y = call->output[0];
    double *sum = call->scratch;
    const struct job job = job_of(kernel, call, 0);
    for (int64_t s = 0; s < job.samples; s++, x += job.in, y += job.out) {
        largest(y, &job, x);
        sum_exponentials(sum, y, &job, x);
        for (int64_t k = 0; k < job.out; k++)
            y[k] = isinf(y[k]) ? y[k] : (float)(log(sum[k]) + (double)y[k]);
    }
}

INLINE float exponential(float x, float y, float dy)
{
    return dy * exp_of(x - y);
}

/* dx = dy exp(x - y) */
RUNNER(run_reduce_logsumexp_gradient)
{
    const float *dy = call->input[0], *x = call->input[1], *y = call->input[2];
    float *dx = call->output[0];
    const struct job job = job_of(kernel, call, 1);
    for (int64_t s = 0; s < job.samples; s++, x += job.in, dx += job.in, y += job.out, dy += job.out)
        differ(dx, &job, x, y, dy, exponential);
}

/* ---- any and every ------------------------------------------------------- */

MAKER(make_reduce_any)
{
    return true;
}

static uint8_t found_in_row(const uint8_t *x, int64_t count, uint8_t every)
{
    uint8_t found = 0;
    for (int64_t k = 0; k < count; k++)
        found |= (uint8_t)((x[k] != 0) ^ every);
    return found;
}

static void find_kept(uint8_t *restrict found, const uint8_t *restrict x, int64_t count, uint8_t every)
{
    for (int64_t k = 0; k < count; k++)
        found[k] |= (uint8_t)((x[k] != 0) ^ every);
}

/* Every is: not any that is 0. */
RUNNER(run_reduce_any)
{
    const struct reduce_attributes *attributes = call->node->attributes;
    const uint8_t *x = call->input[0];
    uint8_t *y = call->output[0], every = attributes->choice != 0;
    const struct job job = job_of(kernel, call, 0);
    for (int64_t s = 0; s < job.samples; s++, x += job.in, y += job.out) {
        memset(y, 0, (size_t)job.out);
        EACH_RUN(&job)
        {
            if (job.reduced)
                y[runs.to] |= found_in_row(x + i, job.run, every);
            else
                find_kept(y + runs.to, x + i, job.run, every);
        }
        for (int64_t k = 0; k < job.out; k++)
            y[k] ^= every;
    }
}
