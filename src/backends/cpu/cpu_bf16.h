/* cpu_bf16.h - elements of f32 or bf16 in loops over floats: widened as they are loaded, rounded once as they are
   stored, to the nearest, ties to even. */
#ifndef CPU_BF16_H
#define CPU_BF16_H

#include "backends/cpu/cpu_math.h"

INLINE float bf16_widened(uint16_t x)
{
    return float_of((uint32_t)x << 16);
}

INLINE uint16_t bf16_rounded(float x)
{
    uint32_t bits = bits_of(x), near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, none = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? none : near);
}

/* `small` is a constant where these are expanded: bf16, else f32. */
INLINE float element_at(const void *from, int64_t i, const bool small)
{
    return small ? bf16_widened(((const uint16_t *)from)[i]) : ((const float *)from)[i];
}

INLINE void element_put(void *to, int64_t i, float x, const bool small)
{
    if (small)
        ((uint16_t *)to)[i] = bf16_rounded(x);
    else
        ((float *)to)[i] = x;
}

INLINE const void *element_of(const void *from, int64_t i, const bool small)
{
    return (const char *)from + i * (small ? 2 : 4);
}

/* Two vectors of floats are the words of one of bf16: the even elements are their low halves, the odd ones their high
   halves. Nothing has to be moved from lane to lane. */
typedef uint32_t vector_bits __attribute__((vector_size(LANES * 4)));

INLINE vector_bits bf16_words(const uint16_t *from)
{
    vector_bits bits;
    memcpy(&bits, from, sizeof bits);
    return bits;
}
INLINE vector bf16_even(const uint16_t *from)
{
    return (vector)(bf16_words(from) << 16);
}
INLINE vector bf16_odd(const uint16_t *from)
{
    return (vector)(bf16_words(from) & 0xffff0000);
}

/* Rounded, in the high halves of words. */
INLINE vector_bits bf16_near(vector x)
{
    vector_bits bits = (vector_bits)x, near = bits + 0x7fff + (bits >> 16 & 1);
#if LANES == 16
    __mmask16 none = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return (vector_bits)_mm512_mask_or_epi32((__m512i)near, none, (__m512i)bits, _mm512_set1_epi32(0x400000));
#else
    vector_bits none = (vector_bits)(x != x);
    return ((bits | 0x400000) & none) | (near & ~none);
#endif
}

INLINE void bf16_put_pair(uint16_t *to, vector even, vector odd)
{
    vector_bits bits = (bf16_near(even) >> 16) | (bf16_near(odd) & 0xffff0000);
    memcpy(to, &bits, sizeof bits);
}

#endif
