/* cpu_math.h - exp and log of floats without branches, so that loops over
   them become vectors. Within 2 units in the last place on the ranges given;
   NaN stays NaN. */
#ifndef CPU_MATH_H
#define CPU_MATH_H

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

/* exp(x) = 2^n exp(r), |r| <= ln(2) / 2, exp(r) by its series to r^7. Clamped
   to [-87, 88]: neither 0 nor infinity comes out. */
INLINE float exp_of(float x)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float shifted = madd(x, 1.44269504f, round);
    float n = shifted - round;
    float r = madd(n, -LN2_LOW, madd(n, -LN2_HIGH, x));
    float p = madd(r, 1.0f / 5040, 1.0f / 720);
    p = madd(p, r, 1.0f / 120);
    p = madd(p, r, 1.0f / 24);
    p = madd(p, r, 1.0f / 6);
    p = madd(p, r, 0.5f);
    p = madd(p, r * r, r) + 1.0f;
    return p * float_of((bits_of(shifted) - bits_of(round) + 127) << 23);
}

/* 2 atanh(s) = 2 (s + s^3/3 + ...) for |s| <= 1/3, to s^15. */
INLINE float twice_atanh(float s)
{
    float z = s * s;
    float p = madd(z, 1.0f / 15, 1.0f / 13);
    p = madd(p, z, 1.0f / 11);
    p = madd(p, z, 1.0f / 9);
    p = madd(p, z, 1.0f / 7);
    p = madd(p, z, 1.0f / 5);
    p = madd(p, z, 1.0f / 3);
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

#endif
