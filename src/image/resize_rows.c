/* resize_rows.c - the inner loops of resizing, for one instruction set. */
#include "image/resize_rows.h"

#include <string.h>

/* Four floats at once: every machine has them, and every lane is rounded as a single float is. */
typedef float four __attribute__((vector_size(16)));

static inline four load_four(const float *p)
{
    four values;
    memcpy(&values, p, sizeof values);
    return values;
}

static inline void store_four(float *p, four values)
{
    memcpy(p, &values, sizeof values);
}

#if defined(__AVX2__)

#include <immintrin.h>

/* A pixel and the next one: eight bytes, of which six count. */
static inline __m256 load_two(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

static inline four mix_two(__m256 pixels, float fraction)
{
    const __m256i second = _mm256_setr_epi32(3, 4, 5, 6, 7, 7, 7, 7);
    four a = _mm256_castps256_ps128(pixels);
    four b = _mm256_castps256_ps128(_mm256_permutevar8x32_ps(pixels, second));
    return a + (b - a) * fraction;
}

static inline four mix_pixel(const uint8_t *top, const uint8_t *bottom, struct tap tap, float y)
{
    four over = mix_two(load_two(top + tap.lower), tap.fraction);
    four under = mix_two(load_two(bottom + tap.lower), tap.fraction);
    return over + (under - over) * y;
}

#else

typedef uint32_t four_words __attribute__((vector_size(16)));
typedef int32_t four_whole __attribute__((vector_size(16)));

/* Three bytes as floats, each 256 times the one before: a scaling by powers of two rounds nothing, and one at the end
   undoes it. The fourth lane is not used. */
static inline four load_scaled(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    four_words lanes = {word & 0xff, word & 0xff00, word & 0xff0000, 0};
    return __builtin_convertvector((four_whole)lanes, four);
}

static inline four mix_pixel(const uint8_t *top, const uint8_t *bottom, struct tap tap, float y)
{
    const four unscale = {1, 1.0f / 256, 1.0f / 65536, 1};
    four a = load_scaled(top + tap.lower), b = load_scaled(top + tap.upper);
    four c = load_scaled(bottom + tap.lower), d = load_scaled(bottom + tap.upper);
    four over = a + (b - a) * tap.fraction, under = c + (d - c) * tap.fraction;
    return (over + (under - over) * y) * unscale;
}

#endif

static void mix_three(float *restrict out, const uint8_t *top, const uint8_t *bottom, const struct tap *taps,
                      int64_t count, float y)
{
    for (int64_t x = 0; x < count; x++)
        store_four(out + 3 * x, mix_pixel(top, bottom, taps[x], y));
}

static void set_bytes(float *restrict sum, const uint8_t *restrict row, int64_t count, float weight)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] = (float)row[i] * weight;
}

static void add_bytes(float *restrict sum, const uint8_t *restrict row, int64_t count, float weight)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += (float)row[i] * weight;
}

static void set_floats(float *restrict sum, const float *restrict row, int64_t count, float weight)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] = row[i] * weight;
}

static void add_floats(float *restrict sum, const float *restrict row, int64_t count, float weight)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += row[i] * weight;
}

static void sum_three(float *out, const float *row, const float *weights, int64_t count, float scale)
{
    four total = {0};
    for (int64_t k = 0; k < count; k++)
        total += load_four(row + 3 * k) * weights[k];
    store_four(out, total * scale);
}

const struct resize_rows VARIANT_ROWS(resize_rows) = {
    .mix_three = mix_three,
    .set_bytes = set_bytes,
    .add_bytes = add_bytes,
    .set_floats = set_floats,
    .add_floats = add_floats,
    .sum_three = sum_three,
};
