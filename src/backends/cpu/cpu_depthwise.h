/* cpu_depthwise.h - what the two files of depthwise kernels share. */
#ifndef CPU_DEPTHWISE_H
#define CPU_DEPTHWISE_H

#include "backends/cpu/vector.h"

/* Before a loop with constant bounds above UNROLL's. */
#if defined(__clang__)
#define UNROLL_ALL _Pragma("clang loop unroll(full)")
#else
#define UNROLL_ALL _Pragma("GCC unroll 32")
#endif

/* to[i * multiplier + m] = x[i] */
void VARIANT(depthwise_spread)(float *restrict to, const float *restrict x, int64_t count, int64_t multiplier);

#endif
