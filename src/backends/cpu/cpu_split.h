/* cpu_split.h - floats as sums of two of bf16: 16 bits of 24, enough where matrix tiles multiply what is no bf16. */
#ifndef CPU_SPLIT_H
#define CPU_SPLIT_H

#include "backends/cpu/cpu_math.h"

/* x = high + low, as nearly as can be. */
static inline void split_in_two(uint16_t *restrict high, uint16_t *restrict low, const float *restrict x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(x[i]), upper = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
        upper = x[i] == x[i] ? upper : bits | 0x400000;
        /* What would round beyond the largest is cut off; an infinity is all in the first. */
        bool beyond = (upper & 0x7f800000) == 0x7f800000;
        upper = beyond && x[i] == x[i] ? bits & 0xffff0000 : upper;
        uint32_t rest = bits_of((bits & 0x7fffffff) == 0x7f800000 ? 0 : x[i] - float_of(upper));
        high[i] = (uint16_t)(upper >> 16);
        low[i] = (uint16_t)((rest + 0x7fff + (rest >> 16 & 1)) >> 16);
    }
}

#endif
