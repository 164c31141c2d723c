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

#endif
