/* cpu_cast.c - any type to any type, as the reference does it: through doubles, a block at a time. */
#include <math.h>

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "graph/tensor.h"

#define BLOCK 256

typedef void load_block(double *to, const void *from, int64_t count);
typedef void store_block(void *to, const double *from, int64_t count);

#define LOAD(name, element)                                                                                            \
    static void load_##name(double *to, const void *from, int64_t count)                                               \
    {                                                                                                                  \
        const element *x = from;                                                                                       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = (double)x[i];                                                                                      \
    }
LOAD(f32, float)
LOAD(f64, double)
LOAD(i8, int8_t)
LOAD(i16, int16_t)
LOAD(i32, int32_t)
LOAD(i64, int64_t)
LOAD(u8, uint8_t)

/* The small floats by their bits: f16's as a float with an exponent that is 112 short. */
static void load_f16(double *to, const void *from, int64_t count)
{
    const uint16_t *x = from;
    for (int64_t i = 0; i < count; i++) {
        uint32_t size = (uint32_t)(x[i] & 0x7fff) << 13, sign = (uint32_t)(x[i] & 0x8000) << 16;
        float normal = float_of(size + ((uint32_t)112 << 23)), low = (float)(x[i] & 0x3ff) * 0x1p-24f;
        float y = size < 0x00800000 ? low : size >= 0x0f800000 ? float_of(size | 0x7f800000) : normal;
        to[i] = (double)float_of(bits_of(y) | sign);
    }
}

static void load_bf16(double *to, const void *from, int64_t count)
{
    const uint16_t *x = from;
    for (int64_t i = 0; i < count; i++)
        to[i] = (double)float_of((uint32_t)x[i] << 16);
}

static void store_f32(void *to, const double *from, int64_t count)
{
    float *y = to;
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)from[i];
}

static void store_f64(void *to, const double *from, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof *from);
}

static void store_bool(void *to, const double *from, int64_t count)
{
    uint8_t *y = to;
    for (int64_t i = 0; i < count; i++)
        y[i] = from[i] != 0;
}

/* Towards zero, at most the limits, NaN is 0. */
#define STORE(name, element, low, high)                                                                                \
    static void store_##name(void *to, const double *from, int64_t count)                                              \
    {                                                                                                                  \
        element *y = to;                                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            double x = from[i] < (low) ? (low) : from[i] > (high) ? (high) : from[i];                                  \
            y[i] = (element)(int32_t)(x == x ? x : 0.0);                                                               \
        }                                                                                                              \
    }
STORE(i8, int8_t, -128.0, 127.0)
STORE(i16, int16_t, -32768.0, 32767.0)
STORE(i32, int32_t, -2147483648.0, 2147483647.0)
STORE(u8, uint8_t, 0.0, 255.0)

static void store_i64(void *to, const double *from, int64_t count)
{
    int64_t *y = to;
    for (int64_t i = 0; i < count; i++) {
        double x = from[i] == from[i] ? from[i] : 0.0;
        y[i] = x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
    }
}

/* Rounds to `bits` of mantissa (ties to even) by adding a number whose last place that is; `least` is the exponent
   below which places no longer shrink. What comes out is a float exactly. */
INLINE float round_to(double x, int bits, int least)
{
    uint64_t exponent = double_bits_of(x) >> 52 & 0x7ff, lowest = (uint64_t)(1023 + least);
    exponent = exponent < lowest ? lowest : exponent;
    double size = double_of(double_bits_of(x) & 0x7fffffffffffffff);
    double big = double_of((exponent + (uint64_t)(52 - bits)) << 52);
    return (float)((size + big) - big);
}

static void store_f16(void *to, const double *from, int64_t count)
{
    uint16_t *y = to;
    for (int64_t i = 0; i < count; i++) {
        double x = from[i], most = x > 1e6 ? 1e6 : x < -1e6 ? -1e6 : x;
        float r = round_to(most, 10, -14);
        uint32_t sign = (uint32_t)(double_bits_of(x) >> 48) & 0x8000, low = (uint32_t)(int32_t)(r * 0x1p24f);
        uint32_t bits = r < 0x1p-14f ? low : r > 65504.0f ? 0x7c00 : (bits_of(r) >> 13) - (112 << 10);
        y[i] = (uint16_t)(sign | (x == x ? bits : 0x7e00));
    }
}

static void store_bf16(void *to, const double *from, int64_t count)
{
    uint16_t *y = to;
    for (int64_t i = 0; i < count; i++) {
        double x = from[i], most = x > 1e39 ? 1e39 : x < -1e39 ? -1e39 : x;
        uint32_t sign = (uint32_t)(double_bits_of(x) >> 48) & 0x8000;
        uint32_t bits = bits_of(round_to(most, 7, -126)) >> 16;
        y[i] = (uint16_t)(sign | (x == x ? bits : 0x7fc0));
    }
}

static load_block *const loads[TYPE_COUNT] = {
    [TYPE_F32] = load_f32, [TYPE_F64] = load_f64, [TYPE_F16] = load_f16, [TYPE_BF16] = load_bf16, [TYPE_I8] = load_i8,
    [TYPE_I16] = load_i16, [TYPE_I32] = load_i32, [TYPE_I64] = load_i64, [TYPE_U8] = load_u8,     [TYPE_BOOL] = load_u8,
};
static store_block *const stores[TYPE_COUNT] = {
    [TYPE_F32] = store_f32, [TYPE_F64] = store_f64,   [TYPE_F16] = store_f16, [TYPE_BF16] = store_bf16,
    [TYPE_I8] = store_i8,   [TYPE_I16] = store_i16,   [TYPE_I32] = store_i32, [TYPE_I64] = store_i64,
    [TYPE_U8] = store_u8,   [TYPE_BOOL] = store_bool,
};

MAKER(make_cast)
{
    out->size[0] = shape_row(&node->output[0]->shape);
    out->kernel.scratch_bytes = BLOCK * sizeof(double);
    return true;
}

RUNNER(run_cast)
{
    enum type from = call->node->input[0]->type, to = call->node->output[0]->type;
    int64_t count = cpu_elements(kernel, call);
    if (from == TYPE_F32 && cpu_small_type(to)) {
        VARIANT(narrow)(call->output[0], call->input[0], to, count);
        return;
    }
    if (to == TYPE_F32 && cpu_small_type(from)) {
        VARIANT(widen)(call->output[0], call->input[0], from, count);
        return;
    }
    const char *x = call->input[0];
    char *y = call->output[0];
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t some = count - i < BLOCK ? count - i : BLOCK;
        loads[from](call->scratch, x + i * (int64_t)type_bytes(from), some);
        stores[to](y + i * (int64_t)type_bytes(to), call->scratch, some);
    }
}
