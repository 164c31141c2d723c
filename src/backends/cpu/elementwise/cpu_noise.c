/* cpu_noise.c - dropout and gaussian noise: 64 numbers at a time, drawn where they are used.

   size[0]: elements of a sample, size[1]: numbers of a sample (fewer where axes share them). */
#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_philox.h"
#include "ops/ops.h"

#define CHUNKS(count) (((count) + NOISE_CHUNK - 1) / NOISE_CHUNK)

MAKER(make_noise)
{
    const struct tensor *x = node->input[0];
    out->size[0] = out->size[1] = shape_row(&x->shape);
    return x->type == TYPE_F32;
}

/* ---- dropout ------------------------------------------------------------ */

struct drop {
    uint64_t seed, step;
    uint32_t threshold;
    float scale, offset, dropped;
};

static struct drop drop_of(const struct call *call)
{
    const struct dropout_attributes *attributes = call->node->attributes;
    struct drop drop = {attributes->seed,
                        (uint64_t) * (const int64_t *)call->input[1],
                        (uint32_t)dropout_threshold(attributes->rate),
                        (float)attributes->scale,
                        (float)attributes->offset,
                        (float)attributes->dropped};
    if (attributes->rate >= 1) { /* one more than a word holds: none is kept */
        drop.threshold = 0;
        drop.scale = 0;
        drop.offset = drop.dropped;
    }
    return drop;
}

INLINE void drop_run(float *y, const float *x, const uint32_t *bits, int64_t count, const struct drop *drop)
{
    uint32_t threshold = drop->threshold;
    float scale = drop->scale, offset = drop->offset, dropped = drop->dropped;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float kept = madd(x[i], scale, offset);
        y[i] = bits[i] >= threshold ? kept : dropped;
    }
}

/* A number for each element. */
static void drop_sample(float *y, const float *x, int64_t row, int64_t sample, const struct drop *drop)
{
    uint32_t bits[NOISE_CHUNK];
    int64_t i = 0;
    for (; i + NOISE_CHUNK <= row; i += NOISE_CHUNK) {
        philox_chunk(bits, drop->seed, drop->step, sample, i / NOISE_CHUNK);
        drop_run(y + i, x + i, bits, NOISE_CHUNK, drop);
    }
    if (i < row) {
        philox_chunk(bits, drop->seed, drop->step, sample, i / NOISE_CHUNK);
        drop_run(y + i, x + i, bits, row - i, drop);
    }
}

/* Axes from `axis` on, of `row` elements: an axis that shares its numbers goes over the same ones again. */
static void drop_axes(float *y, const float *x, const uint32_t *bits, const struct shape *shape, int axis, int64_t row,
                      int64_t numbers, int64_t shared, const struct drop *drop)
{
    if (row == numbers) {
        drop_run(y, x, bits, row, drop);
        return;
    }
    int64_t extent = shape->dim[axis];
    bool same = shared >> axis & 1;
    if (axis == shape->rank - 1) { /* one number for the last axis */
        float scale = *bits >= drop->threshold ? drop->scale : 0;
        float offset = *bits >= drop->threshold ? drop->offset : drop->dropped;
        INDEPENDENT
        for (int64_t i = 0; i < extent; i++)
            y[i] = madd(x[i], scale, offset);
        return;
    }
    row /= extent;
    numbers /= same ? 1 : extent;
    for (int64_t i = 0; i < extent; i++)
        drop_axes(y + i * row, x + i * row, bits + (same ? 0 : i * numbers), shape, axis + 1, row, numbers, shared,
                  drop);
}

RUNNER(run_dropout)
{
    const struct drop drop = drop_of(call);
    const float *x = call->input[0];
    float *y = call->output[0];
    int64_t rows = cpu_rows(kernel, call), row = cpu_kernel_of(kernel)->size[0];
    for (int64_t n = 0; n < rows; n++)
        drop_sample(y + n * row, x + n * row, row, call->begin + n, &drop);
}

static RUNNER(run_dropout_shared)
{
    const struct dropout_attributes *attributes = call->node->attributes;
    const struct shape *shape = &call->node->output[0]->shape;
    const struct drop drop = drop_of(call);
    const float *x = call->input[0];
    float *y = call->output[0];
    uint32_t *bits = call->scratch;
    int64_t rows = cpu_rows(kernel, call), row = cpu_kernel_of(kernel)->size[0],
            numbers = cpu_kernel_of(kernel)->size[1];
    for (int64_t n = 0; n < rows; n++) {
        int64_t sample = attributes->shared & 1 ? 0 : call->begin + n;
        for (int64_t chunk = 0; chunk < CHUNKS(numbers) && (n == 0 || sample); chunk++)
            philox_chunk(bits + chunk * NOISE_CHUNK, drop.seed, drop.step, sample, chunk);
        drop_axes(y + n * row, x + n * row, bits, shape, 1, row, numbers, attributes->shared, &drop);
    }
}

MAKER(make_dropout)
{
    const struct dropout_attributes *attributes = node->attributes;
    const struct shape *shape = &node->input[0]->shape;
    if (!VARIANT(make_noise)(out, node, request))
        return false;
    if (!(attributes->shared & ((1 << shape->rank) - 1)))
        return true;
    for (int axis = 1; axis < shape->rank; axis++)
        if (attributes->shared >> axis & 1)
            out->size[1] /= shape->dim[axis];
    out->kernel.run = VARIANT(run_dropout_shared);
    out->kernel.scratch_bytes = (size_t)(CHUNKS(out->size[1]) * NOISE_CHUNK) * sizeof(uint32_t);
    return true;
}

/* ---- gaussian ------------------------------------------------------------ */

/* sin and cos of `turn` whole turns in [0, 1): the nearest quarter is taken off, the rest is a series of at most
   a quarter of pi. */
INLINE void sine_of_turn(float *sine, float *cosine, float turn)
{
    float quarter = (float)(int32_t)madd(turn, 4.0f, 0.5f);
    float a = (turn - 0.25f * quarter) * 6.28318531f, z = a * a;
    float s = madd(madd(madd(z, -1.0f / 5040, 1.0f / 120), z, -1.0f / 6) * z, a, a);
    float c = madd(madd(madd(z, 1.0f / 40320, -1.0f / 720), z, 1.0f / 24), z * z, madd(z, -0.5f, 1.0f));
    int32_t q = (int32_t)quarter;
    float odd_s = q & 1 ? c : s, odd_c = q & 1 ? s : c;
    *sine = q & 2 ? -odd_s : odd_s;
    *cosine = (q + 1) & 2 ? -odd_c : odd_c;
}

/* 64 normal numbers from 64 words: words 0 and 1 of a block, then 2 and 3. */
INLINE void normal_chunk(float z[NOISE_CHUNK], const uint32_t bits[NOISE_CHUNK])
{
    for (int half = 0; half < NOISE_CHUNK; half += 2 * NOISE_LANES) {
        INDEPENDENT
        for (int i = half; i < half + NOISE_LANES; i++) {
            float u = 1.0f - (float)(int32_t)(bits[i] >> 8) * 0x1p-24f;
            float turn = (float)(int32_t)(bits[i + NOISE_LANES] >> 8) * 0x1p-24f, sine, cosine;
            float radius = __builtin_sqrtf(-2.0f * log_of(u));
            sine_of_turn(&sine, &cosine, turn);
            z[i] = radius * cosine;
            z[i + NOISE_LANES] = radius * sine;
        }
    }
}

/* y = x * (1 + a z) + b z */
INLINE void noisy(const struct kernel *kernel, const struct call *call, float a, float b)
{
    const struct noise_attributes *attributes = call->node->attributes;
    uint64_t step = (uint64_t) * (const int64_t *)call->input[1];
    const float *x = call->input[0];
    float *y = call->output[0], z[NOISE_CHUNK];
    uint32_t bits[NOISE_CHUNK];
    int64_t rows = cpu_rows(kernel, call), row = cpu_kernel_of(kernel)->size[0];
    for (int64_t n = 0; n < rows; n++, x += row, y += row) {
        for (int64_t first = 0; first < row; first += NOISE_CHUNK) {
            int64_t count = row - first < NOISE_CHUNK ? row - first : NOISE_CHUNK;
            philox_chunk(bits, attributes->seed, step, call->begin + n, first / NOISE_CHUNK);
            normal_chunk(z, bits);
            INDEPENDENT
            for (int64_t i = 0; i < count; i++)
                y[first + i] = madd(x[first + i], madd(z[i], a, 1.0f), b * z[i]);
        }
    }
}

RUNNER(run_gaussian_noise)
{
    noisy(kernel, call, 0, (float)((const struct noise_attributes *)call->node->attributes)->stddev);
}

RUNNER(run_gaussian_dropout)
{
    noisy(kernel, call, (float)((const struct noise_attributes *)call->node->attributes)->stddev, 0);
}
