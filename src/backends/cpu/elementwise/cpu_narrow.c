/* cpu_narrow.c - the small floats (f16, bf16) as f32, and back.

   By their bits, as loops that the compiler turns into vectors; AVX-512 has instructions for f16. Rounding is to the
   nearest, ties to even, of numbers too small to be normal too; what is too large becomes infinite. */
#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"

static void widen_bf16(float *restrict to, const uint16_t *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = float_of((uint32_t)from[i] << 16);
}

static void narrow_bf16(uint16_t *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(from[i]), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t none = bits >> 16 | 0x40;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? none : rounded);
    }
}

/* f16 as a float with an exponent that is 112 short. */
static void widen_f16_bits(float *restrict to, const uint16_t *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t size = (uint32_t)(from[i] & 0x7fff) << 13, sign = (uint32_t)(from[i] & 0x8000) << 16;
        float normal = float_of(size + ((uint32_t)112 << 23)), low = (float)(from[i] & 0x3ff) * 0x1p-24f;
        float y = size < 0x00800000 ? low : size >= 0x0f800000 ? float_of(size | 0x7f800000) : normal;
        to[i] = float_of(bits_of(y) | sign);
    }
}

/* Rounds by adding a number whose last place is that of f16: below 2^-14 its places no longer shrink. */
static void narrow_f16_bits(uint16_t *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(from[i]), sign = bits >> 16 & 0x8000;
        float size = float_of(bits & 0x7fffffff), most = size > 1e6f ? 1e6f : size;
        uint32_t exponent = bits_of(most) >> 23, place = exponent < 127 - 14 ? 127 - 14 : exponent;
        float big = float_of((place + 13) << 23), r = (most + big) - big;
        uint32_t low = (uint32_t)(int32_t)(r * 0x1p24f);
        uint32_t y = r < 0x1p-14f ? low : r > 65504.0f ? 0x7c00 : (bits_of(r) >> 13) - (112 << 10);
        to[i] = (uint16_t)(sign | (size == size ? y : 0x7e00));
    }
}

#if LANES == 16
static void widen_f16(float *restrict to, const uint16_t *restrict from, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        vector_store(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
    widen_f16_bits(to + i, from + i, count - i);
}

static void narrow_f16(uint16_t *restrict to, const float *restrict from, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm256_storeu_si256((__m256i *)(to + i),
                            _mm512_cvtps_ph(vector_load(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    narrow_f16_bits(to + i, from + i, count - i);
}
#else
#define widen_f16  widen_f16_bits
#define narrow_f16 narrow_f16_bits
#endif

void VARIANT(widen)(float *to, const void *from, enum type type, int64_t count)
{
    (type == TYPE_BF16 ? widen_bf16 : widen_f16)(to, from, count);
}

void VARIANT(narrow)(void *to, const float *from, enum type type, int64_t count)
{
    (type == TYPE_BF16 ? narrow_bf16 : narrow_f16)(to, from, count);
}
