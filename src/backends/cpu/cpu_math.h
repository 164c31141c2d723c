/* cpu_math.h - functions of floats without branches, so that loops over
   them become vectors. exp_of, log1p_of and log_of: within 2 units in the last place on the ranges given.
   The others take every float (sin_of, cos_of and tan_of: to FAR) and are within 4 units, erfc_of and
   normal_below within 2e-6 of themselves where they are small (test_elementwise.c measures them). NaN stays NaN. */
#ifndef CPU_MATH_H
#define CPU_MATH_H

#include <stdbool.h>

#include "backends/cpu/vector.h"

INLINE float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#define LN2_HIGH 0.693359375f /* few bits: n * LN2_HIGH is exact */
#define LN2_LOW  (-2.12194440e-4f)
#define LOG2_E   1.44269504f

/* Of exp_of and vector_exp, which have the same bits. */
#define EXP_ROUND 12582912.0f /* 1.5 * 2^23: adding it rounds to a whole number */
#define EXP_LEAST (-87.0f)
#define EXP_MOST  88.0f
#define EXP_FIRST (1.0f / 5040)
#define EXP_TERMS TERM(1.0f / 720) TERM(1.0f / 120) TERM(1.0f / 24) TERM(1.0f / 6) TERM(0.5f)

/* exp(x) = 2^n exp(r), |r| <= ln(2) / 2, exp(r) by its series to r^7. Clamped
   to [-87, 88]: neither 0 nor infinity comes out. */
INLINE float exp_of(float x)
{
    const float round = EXP_ROUND;
    x = x < EXP_LEAST ? EXP_LEAST : x;
    x = x > EXP_MOST ? EXP_MOST : x;
    float shifted = madd(x, LOG2_E, round);
    float n = shifted - round;
    float r = madd(n, -LN2_LOW, madd(n, -LN2_HIGH, x));
    float p = EXP_FIRST;
#define TERM(factor) p = madd(p, r, factor);
    EXP_TERMS
#undef TERM
    p = madd(p, r * r, r) + 1.0f;
    return p * float_of((bits_of(shifted) - bits_of(round) + 127) << 23);
}

/* exp_of of every lane, for loops that must not have a scalar tail. */
typedef int32_t whole_vector __attribute__((vector_size(LANES * 4)));
INLINE vector vector_exp(vector x)
{
    const vector round = vector_all(EXP_ROUND);
    x = vector_max(vector_all(EXP_LEAST), x);
    x = vector_min(vector_all(EXP_MOST), x);
    vector shifted = vector_madd(x, vector_all(LOG2_E), round);
    vector n = shifted - round;
    vector r = vector_madd(n, vector_all(-LN2_LOW), vector_madd(n, vector_all(-LN2_HIGH), x));
    vector p = vector_all(EXP_FIRST);
#define TERM(factor) p = vector_madd(p, r, vector_all(factor));
    EXP_TERMS
#undef TERM
    p = vector_madd(p, r * r, r) + vector_all(1.0f);
    whole_vector power = ((whole_vector)shifted - (whole_vector)round + 127) << 23;
    return p * (vector)power;
}

/* (factor[0] x + factor[1]) x + ...; count is a constant where this is expanded. */
INLINE float polynomial(float x, const int count, const float *factor)
{
    float p = factor[0];
    UNROLL
    for (int i = 1; i < count; i++)
        p = madd(p, x, factor[i]);
    return p;
}

/* 2 atanh(s) = 2 (s + s^3/3 + ...) for |s| <= 1/3, to s^15. */
INLINE float twice_atanh(float s)
{
    float z = s * s;
    float p = polynomial(z, 7, (float[]){1.0f / 15, 1.0f / 13, 1.0f / 11, 1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3});
    return madd(p * z, 2 * s, 2 * s);
}

/* log(1 + t) for 0 <= t <= 1. */
INLINE float log1p_of(float t)
{
    return twice_atanh(t / (2.0f + t));
}

/* log(x) for normal x > 0: x = 2^e m, m in [0.70, 1.42). NaN stays NaN: a loss must show it. */
INLINE float log_of(float x)
{
    uint32_t bits = bits_of(x);
    int32_t e = (int32_t)(bits - 0x3f3504f3) >> 23;
    float m = float_of(bits - ((uint32_t)e << 23));
    float small = madd((float)e, LN2_LOW, twice_atanh((m - 1.0f) / (m + 1.0f)));
    return x == x ? madd((float)e, LN2_HIGH, small) : x;
}

INLINE float abs_of(float x)
{
    return float_of(bits_of(x) & 0x7fffffff);
}

/* 1 / (1 + exp(-x)), without overflow on either side. */
INLINE float sigmoid_of(float x)
{
    float e = exp_of(-abs_of(x));
    float s = 1.0f / (1.0f + e);
    return x < 0 ? e * s : s;
}

/* ---- for every float ------------------------------------------------------ */

INLINE float copy_sign(float x, float from)
{
    return float_of((bits_of(x) & 0x7fffffff) | (bits_of(from) & 0x80000000));
}

/* 2^n, n in [-126, 127]. */
INLINE float power_of_two(int32_t n)
{
    return float_of((uint32_t)(n + 127) << 23);
}

/* x = n ln(2) + r, |r| <= ln(2) / 2. */
INLINE int32_t reduce_exp(float x, float *r)
{
    const float round = EXP_ROUND;
    float shifted = madd(x, LOG2_E, round);
    float n = shifted - round;
    *r = madd(n, -LN2_LOW, madd(n, -LN2_HIGH, x));
    return (int32_t)(bits_of(shifted) - bits_of(round));
}

/* exp(r) - 1 for |r| <= ln(2) / 2. */
INLINE float expm1_near(float r)
{
    float p =
        polynomial(r, 6, (float[]){1.9907694e-4f, 1.3933733e-3f, 8.3332859e-3f, 4.1666464e-2f, 1.6666667e-1f, 0.5f});
    return madd(p, r * r, r);
}

/* 0 and infinity come out where they should: 2^n in two halves. */
INLINE float exp_full_of(float x)
{
    float r, low = x < -105.0f ? -105.0f : x;
    int32_t n = reduce_exp(low > 89.0f ? 89.0f : low, &r), half = n >> 1;
    return (expm1_near(r) + 1.0f) * power_of_two(half) * power_of_two(n - half);
}

/* 2 (t e + (t - 1/2)), t = 2^(n - 1): exact near 0, no overflow before its time. */
INLINE float expm1_of(float x)
{
    float r, low = x < -30.0f ? -30.0f : x;
    int32_t n = reduce_exp(low > 89.0f ? 89.0f : low, &r);
    float t = power_of_two(n - 1);
    return 2.0f * madd(expm1_near(r), t, t - 0.5f);
}

INLINE float log_full_of(float x)
{
    bool tiny = x < 0x1p-126f;
    float scaled = tiny ? x * 0x1p23f : x;
    uint32_t bits = bits_of(scaled);
    int32_t e = (int32_t)(bits - 0x3f3504f3) >> 23;
    float m = float_of(bits - ((uint32_t)e << 23)), whole = (float)e - (tiny ? 23.0f : 0.0f);
    float y = madd(whole, LN2_HIGH, madd(whole, LN2_LOW, twice_atanh((m - 1.0f) / (m + 1.0f))));
    y = x == 0 ? -__builtin_inff() : x < 0 ? __builtin_nanf("") : y;
    return x < __builtin_inff() ? y : x;
}

/* log(u) + what rounding u = 1 + x lost, over u. */
INLINE float log1p_full_of(float x)
{
    float u = 1.0f + x, lost = (x - (u - 1.0f)) / u;
    float y = log_full_of(u);
    return u > 0 && u < __builtin_inff() ? y + lost : y;
}

INLINE float tanh_of(float x)
{
    float t = expm1_of(-2.0f * abs_of(x));
    return copy_sign(-t / (2.0f + t), x);
}

INLINE float sigmoid_full_of(float x)
{
    float e = exp_full_of(-abs_of(x));
    float s = 1.0f / (1.0f + e);
    return x < 0 ? e * s : s;
}

INLINE float softplus_of(float x)
{
    return (x > 0 ? x : 0.0f) + log1p_of(exp_full_of(-abs_of(x)));
}

/* erfc(z) exp(z^2) for 0 <= z: t P(t), t = 1 / (1 + z / 2). */
INLINE float erfc_scaled(float z)
{
    float t = 1.0f / madd(z, 0.5f, 1.0f);
    float p = polynomial(t, 11,
                         (float[]){0.038531035f, -0.20731346f, 0.42340767f, -0.35188371f, 0.036754966f, -0.0012336501f,
                                   0.070162758f, 0.1813982f, 0.24590296f, 0.28218177f, 0.28209147f});
    return p * t;
}

/* exp(-x^2 / 2): what rounding the square lost is made good. */
INLINE float bell_of(float x)
{
    float square = -0.5f * x * x, lost = madd(-0.5f * x, x, -square);
    float e = exp_full_of(square);
    return square > -110.0f ? madd(e, lost, e) : e;
}

/* The normal distribution below x: erfc(-x / sqrt(2)) / 2. */
INLINE float normal_below_of(float x)
{
    float tail = 0.5f * bell_of(x) * erfc_scaled(abs_of(x) * 0.70710678f);
    return x > 0 ? 1.0f - tail : tail;
}

/* x times a polynomial of x^2 up to 1, then 1 - erfc. */
INLINE float erf_of(float x)
{
    float size = abs_of(x), far = size > 4.0f ? 4.0f : size, z = x * x;
    float p =
        polynomial(z, 8,
                   (float[]){-9.6415033e-6f, 1.1256943e-4f, -8.4828283e-4f, 5.2209455e-3f, -2.68654e-2f, 1.1283782e-1f,
                             -3.7612638e-1f, 1.2837917e-1f}); /* 2 / sqrt(pi) = 1 + this: the last step rounds once */
    float tail = exp_full_of(-far * far) * erfc_scaled(far);
    return size < 1.0f ? madd(p, x, x) : copy_sign(1.0f - tail, x);
}

INLINE float round_of(float x)
{
    float size = abs_of(x);
    return size < 0x1p23f ? copy_sign((size + 0x1p23f) - 0x1p23f, x) : x;
}

INLINE float floor_of(float x)
{
    float near = round_of(x);
    return near > x ? near - 1.0f : near;
}

INLINE double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint64_t double_bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE double floor_wide_of(double x)
{
    double size = double_of(double_bits_of(x) & 0x7fffffffffffffff);
    double near = (size + 0x1p52) - 0x1p52;
    near = double_of(double_bits_of(near) | (double_bits_of(x) & 0x8000000000000000));
    near = near > x ? near - 1.0 : near;
    return size < 0x1p52 ? near : x;
}

/* ---- angles, to FAR: quarters of a circle are taken off in double ------------ */

#define FAR 1e6f

/* x less n quarters, |it| <= pi / 4; the low bits of the sum that rounds hold n. */
INLINE float reduce_angle(float x, uint64_t *quarters)
{
    const double round = 0x1.8p52;
    double shifted = (double)x * 0.63661977236758134 + round, n = shifted - round;
    *quarters = double_bits_of(shifted);
    return (float)(((double)x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34);
}

INLINE float sin_near(float r)
{
    float z = r * r;
    float p = polynomial(z, 4, (float[]){2.7183114e-6f, -1.9839335e-4f, 8.333329e-3f, -1.6666667e-1f});
    return madd(p * z, r, r);
}

INLINE float cos_near(float r)
{
    float z = r * r;
    float p = polynomial(z, 4, (float[]){-2.7239e-7f, 2.4799e-5f, -1.3888885e-3f, 4.1666668e-2f});
    return madd(p * z, z, madd(z, -0.5f, 1.0f));
}

/* `shift` quarters further on: 0 is sin, 1 is cos. */
INLINE float wave_of(float x, uint64_t shift)
{
    uint64_t quarters;
    float r = reduce_angle(x, &quarters);
    quarters += shift;
    float y = quarters & 1 ? cos_near(r) : sin_near(r);
    return quarters & 2 ? -y : y;
}

INLINE float tan_of(float x)
{
    uint64_t quarters;
    float r = reduce_angle(x, &quarters), s = sin_near(r), c = cos_near(r);
    return (quarters & 1 ? -c : s) / (quarters & 1 ? s : c);
}

/* ---- a^b in double, for a and b that are finite ------------------------------- */

INLINE double polynomial_wide(double x, const int count, const double *factor)
{
    double p = factor[0];
    UNROLL
    for (int i = 1; i < count; i++)
        p = p * x + factor[i];
    return p;
}

INLINE double log_wide(double x)
{
    uint64_t bits = double_bits_of(x) - 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
    uint64_t biased = (bits + 0x3ff0000000000000) >> 52;
    double m = double_of(double_bits_of(x) - (biased << 52) + 0x3ff0000000000000);
    double e = double_of(biased | 0x4330000000000000) - (0x1p52 + 1023.0);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = polynomial_wide(z, 7,
                               (double[]){0.14624981, 0.15331013503444532, 0.1818291120501725, 0.2222221081565803,
                                          0.2857142862809004, 0.39999999999894204, 0.666666666666667});
    return e * 0.69314718055994531 + (2.0 * s + s * z * p);
}

INLINE double exp_wide(double x)
{
    const double round = 0x1.8p52;
    x = x < -120.0 ? -120.0 : x;
    x = x > 100.0 ? 100.0 : x;
    double shifted = x * 1.4426950408889634 + round, n = shifted - round;
    double r = x - n * 0.69314718055994531;
    double p = polynomial_wide(r, 8,
                               (double[]){2.7632699284672768e-06, 2.4868004282196427e-05, 0.00019841192785098008,
                                          0.0013888838908362841, 0.008333333363312736, 0.04166666678699973,
                                          0.16666666666633864, 0.4999999999995473});
    p = p * r * r + r + 1.0;
    return p * double_of((double_bits_of(shifted) + 1023) << 52);
}

INLINE float power_of(float a, float b)
{
    double y = exp_wide((double)b * log_wide(a == 0 ? 1.0 : (double)abs_of(a)));
    bool whole = floor_of(b) == b, odd = whole && floor_of(b * 0.5f) * 2.0f != b;
    float size = a == 0 ? (b == 0 ? 1.0f : b < 0 ? __builtin_inff() : 0.0f) : (float)y;
    size = odd && bits_of(a) >> 31 ? -size : size;
    return a < 0 && !whole ? __builtin_nanf("") : size;
}

INLINE bool power_usual(float a, float b)
{
    return a - a == 0 && b - b == 0;
}

#endif
