/* cpu_depthwise.h - what the two files of depthwise kernels share. */
#ifndef CPU_DEPTHWISE_H
#define CPU_DEPTHWISE_H

#include "backends/cpu/cpu_bf16.h"

/* Before a loop with constant bounds above UNROLL's. */
#if defined(__clang__)
#define UNROLL_ALL _Pragma("clang loop unroll(full)")
#else
#define UNROLL_ALL _Pragma("GCC unroll 32")
#endif

/* Channels are done a vector at a time. Of f32 that is LANES of them; of bf16 the even or the odd ones of twice as
   many, whose bits are a word's low or high half: nothing has to be moved from lane to lane. The last vector of bf16
   begins earlier where channels are no multiple, and does some of them again. REST: the n channels of f32 behind the
   last whole vector. */
enum part_of { SINGLE, EVEN, ODD, REST };

INLINE vector load_part(const void *from, int64_t i, const enum part_of part, int n)
{
    if (part == REST)
        return vector_load_part((const float *)from + i, n);
    if (part == SINGLE)
        return vector_load((const float *)from + i);
    return part == EVEN ? bf16_even((const uint16_t *)from + i) : bf16_odd((const uint16_t *)from + i);
}

/* Channels rounded up to whole pairs of vectors. */
INLINE int64_t depthwise_padded(int64_t channels)
{
    return (channels + 2 * LANES - 1) / (2 * LANES) * (2 * LANES);
}

/* Floats that belong to the channels of a part. */
INLINE vector load_floats(const float *from, const enum part_of part, int n)
{
    vector x;
    if (part == SINGLE || part == REST)
        return load_part(from, 0, part, n);
    for (int i = 0; i < LANES; i++)
        x[i] = from[2 * i + (part == ODD)];
    return x;
}

INLINE void store_part(void *to, int64_t i, vector x, const enum part_of part, int n)
{
    if (part == REST)
        vector_store_part((float *)to + i, x, n);
    if (part == SINGLE)
        vector_store((float *)to + i, x);
    if (part == REST || part == SINGLE)
        return;
    vector_bits bits = part == EVEN ? bf16_near(x) >> 16 : bf16_near(x);
#if LANES == 16
    _mm512_mask_storeu_epi16((uint16_t *)to + i, part == EVEN ? 0x55555555 : 0xaaaaaaaa, (__m512i)bits);
#else
    vector_bits old = bf16_words((uint16_t *)to + i);
    bits = part == EVEN ? bits | (old & 0xffff0000) : (bits & 0xffff0000) | (old & 0xffff);
    memcpy((uint16_t *)to + i, &bits, sizeof bits);
#endif
}

/* to[i * multiplier + m] = x[i] */
void VARIANT(depthwise_repeat)(float *restrict to, const float *restrict x, int64_t count, int64_t multiplier);

#endif
