/* cpu_activation_bits.c - pieces of lines that bend, as bits: comparisons give them, and gradients choose by them,
   sixteen elements at a time.

   A relu's small floats are compared and chosen as whole numbers where they lie; others pass through f32. */
#include "backends/cpu/elementwise/cpu_activation_bits.h"

#include <math.h>

#include "ops/ops.h"

#define GROUP 16 /* elements that a step takes: so many bits are two bytes */

/* ---- lanes and bits ------------------------------------------------------- */

#if LANES == 16
INLINE unsigned lanes_above(vector x, vector low)
{
    return _mm512_cmp_ps_mask(x, low, _CMP_GT_OQ);
}
INLINE unsigned lanes_from(vector x, vector high)
{
    return _mm512_cmp_ps_mask(x, high, _CMP_GE_OQ);
}
INLINE vector lanes_choose(unsigned bits, vector set, vector clear)
{
    return _mm512_mask_blend_ps((__mmask16)bits, clear, set);
}
#elif LANES == 8
INLINE unsigned lanes_above(vector x, vector low)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, low, _CMP_GT_OQ));
}
INLINE unsigned lanes_from(vector x, vector high)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, high, _CMP_GE_OQ));
}
INLINE vector lanes_choose(unsigned bits, vector set, vector clear)
{
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i is = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), each), each);
    return _mm256_blendv_ps(clear, set, _mm256_castsi256_ps(is));
}
#else
INLINE unsigned lanes_above(vector x, vector low)
{
    return (x[0] > low[0]) | (x[1] > low[1]) << 1 | (x[2] > low[2]) << 2 | (x[3] > low[3]) << 3;
}
INLINE unsigned lanes_from(vector x, vector high)
{
    return (x[0] >= high[0]) | (x[1] >= high[1]) << 1 | (x[2] >= high[2]) << 2 | (x[3] >= high[3]) << 3;
}
INLINE vector lanes_choose(unsigned bits, vector set, vector clear)
{
    return (vector){bits & 1 ? set[0] : clear[0], bits & 2 ? set[1] : clear[1], bits & 4 ? set[2] : clear[2],
                    bits & 8 ? set[3] : clear[3]};
}
#endif

/* Bits 0, 2, 4, ... of 32, side by side; and the way back. */
INLINE uint32_t every_second(uint32_t x)
{
    x &= 0x55555555;
    x = (x | x >> 1) & 0x33333333;
    x = (x | x >> 2) & 0x0f0f0f0f;
    x = (x | x >> 4) & 0x00ff00ff;
    return (x | x >> 8) & 0xffff;
}

INLINE uint32_t to_every_second(uint32_t x)
{
    x = (x | x << 8) & 0x00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f;
    x = (x | x << 2) & 0x33333333;
    return (x | x << 1) & 0x55555555;
}

/* ---- runs: rows of whole bytes are one ------------------------------------ */

struct runs {
    int64_t count, elements, bytes; /* of each */
};

static struct runs runs_of(const struct kernel *kernel, const struct call *call, int64_t bits)
{
    int64_t rows = cpu_rows(kernel, call), row = cpu_kernel_of(kernel)->size[0];
    if (row * bits % 8 == 0)
        return (struct runs){1, rows * row, packed_bytes(rows * row, bits)};
    return (struct runs){rows, row, packed_bytes(row, bits)};
}

/* ---- slope_bits ------------------------------------------------------------ */

static void floats_to_bits(uint8_t *to, const float *x, const struct slope_attributes *slopes, int64_t count)
{
    const float low = (float)slopes->low, high = (float)slopes->high;
    bool two = slopes->bits == 2;
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP) {
        uint32_t above = 0, beyond = 0;
        UNROLL
        for (int part = 0; part < GROUP; part += LANES) {
            vector here = vector_load(x + i + part);
            above |= lanes_above(here, vector_all(low)) << part;
            beyond |= lanes_from(here, vector_all(high)) << part;
        }
        uint32_t inside = above & ~beyond, outside = above & beyond;
        uint32_t made = two ? to_every_second(inside) | to_every_second(outside) << 1 : inside;
        memcpy(to + (two ? i / 4 : i / 8), &made, two ? 4 : 2);
    }
    for (; i < count; i++) {
        int above = x[i] > low, beyond = x[i] >= high;
        packed_set(to, slopes->bits, i, two ? (above ? 1 + beyond : 0) : above && !beyond);
    }
}

/* y > 0 of small floats: above 0 as whole numbers, and not above infinity. */
static void small_to_bits(uint8_t *to, const int16_t *y, int16_t infinity, int64_t count)
{
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP) {
        uint16_t made = 0;
#if LANES == 16
        __m256i here = _mm256_loadu_si256((const __m256i *)(y + i));
        made = _mm256_cmpgt_epi16_mask(here, _mm256_setzero_si256()) &
               _mm256_cmple_epi16_mask(here, _mm256_set1_epi16(infinity));
#else
        for (int k = 0; k < GROUP; k++)
            made |= (uint16_t)((y[i + k] > 0 && y[i + k] <= infinity) << k);
#endif
        memcpy(to + i / 8, &made, sizeof made);
    }
    for (; i < count; i++)
        packed_set(to, 1, i, y[i] > 0 && y[i] <= infinity);
}

RUNNER(run_slope_bits)
{
    const struct slope_attributes *slopes = call->node->attributes;
    const struct runs runs = runs_of(kernel, call, slopes->bits);
    enum type type = call->node->input[0]->type;
    for (int64_t r = 0; r < runs.count; r++) {
        uint8_t *to = (uint8_t *)call->output[0] + r * runs.bytes;
        if (type == TYPE_F32)
            floats_to_bits(to, (const float *)call->input[0] + r * runs.elements, slopes, runs.elements);
        else
            small_to_bits(to, (const int16_t *)call->input[0] + r * runs.elements, type == TYPE_BF16 ? 0x7f80 : 0x7c00,
                          runs.elements);
    }
}

/* ---- slope_gradient -------------------------------------------------------- */

static void choose_floats(float *dx, const float *dy, const uint8_t *bits, int64_t count)
{
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP) {
        uint16_t set;
        memcpy(&set, bits + i / 8, sizeof set);
        UNROLL
        for (int part = 0; part < GROUP; part += LANES)
            vector_store(dx + i + part, lanes_choose((unsigned)set >> part, vector_load(dy + i + part), vector_all(0)));
    }
    for (; i < count; i++)
        dx[i] = packed_get(bits, 1, i) ? dy[i] : 0;
}

static void choose_small(uint16_t *dx, const uint16_t *dy, const uint8_t *bits, int64_t count)
{
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP) {
        uint16_t set;
        memcpy(&set, bits + i / 8, sizeof set);
#if LANES == 16
        __m256i here = _mm256_loadu_si256((const __m256i *)(dy + i));
        _mm256_storeu_si256((__m256i *)(dx + i), _mm256_maskz_mov_epi16(set, here));
#else
        for (int k = 0; k < GROUP; k++)
            dx[i + k] = (uint16_t)(dy[i + k] & -(set >> k & 1));
#endif
    }
    for (; i < count; i++)
        dx[i] = packed_get(bits, 1, i) ? dy[i] : 0;
}

static void multiply_slopes(float *dx, const float *dy, const uint8_t *bits, const struct slope_attributes *slopes,
                            int64_t count)
{
    const float slope[4] = {(float)slopes->slope[0], (float)slopes->slope[1], (float)slopes->slope[2], 0};
    bool two = slopes->bits == 2;
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP) {
        uint32_t given = 0;
        memcpy(&given, bits + (two ? i / 4 : i / 8), two ? 4 : 2);
        uint32_t inside = two ? every_second(given) : given, outside = two ? every_second(given >> 1) : 0;
        UNROLL
        for (int part = 0; part < GROUP; part += LANES) {
            vector s = lanes_choose(inside >> part, vector_all(slope[1]), vector_all(slope[0]));
            s = lanes_choose(outside >> part, vector_all(slope[2]), s);
            vector_store(dx + i + part, vector_load(dy + i + part) * s);
        }
    }
    for (; i < count; i++)
        dx[i] = dy[i] * slope[packed_get(bits, slopes->bits, i)];
}

RUNNER(run_slope_gradient)
{
    const struct slope_attributes *slopes = call->node->attributes;
    const struct runs runs = runs_of(kernel, call, slopes->bits);
    for (int64_t r = 0; r < runs.count; r++) {
        const uint8_t *bits = (const uint8_t *)call->input[1] + r * runs.bytes;
        float *dx = (float *)call->output[0] + r * runs.elements;
        const float *dy = (const float *)call->input[0] + r * runs.elements;
        if (call->node->input[0]->type != TYPE_F32)
            choose_small((uint16_t *)call->output[0] + r * runs.elements,
                         (const uint16_t *)call->input[0] + r * runs.elements, bits, runs.elements);
        else if (slopes->product)
            multiply_slopes(dx, dy, bits, slopes, runs.elements);
        else
            choose_floats(dx, dy, bits, runs.elements);
    }
}

/* Small floats: only those of a relu, which need no arithmetic. */
MAKER(make_slope)
{
    const struct tensor *x = node->input[0];
    const struct slope_attributes *slopes = node->attributes;
    bool relu = slopes->bits == 1 && !slopes->product && slopes->low == 0 && isnan(slopes->high);
    out->size[0] = shape_row(&x->shape);
    return x->type == TYPE_F32 || (relu && cpu_small_type(x->type));
}
