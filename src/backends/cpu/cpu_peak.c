/* cpu_peak.c - a loop of multiply-adds in registers, and one that goes through memory: what this machine can do at
   best, for shares of it. */
#include "backends/cpu/cpu_own.h"

/* As many sums as keep two units of latency 5 busy and fit in 16 registers with their factors. */
#define SUMS 12

double VARIANT(cpu_peak)(int64_t rounds, float *result)
{
    vector sum[SUMS], a = vector_all(result[0]), b = vector_all(result[1]);
    UNROLL
    for (int i = 0; i < SUMS; i++)
        sum[i] = vector_all((float)i);
    for (int64_t round = 0; round < rounds; round++) {
        UNROLL
        for (int i = 0; i < SUMS; i++)
            sum[i] = vector_madd(sum[i], a, b);
    }
    for (int i = 0; i < SUMS; i++)
        result[0] += vector_sum(sum[i]);
    return (double)rounds * SUMS * LANES;
}

void VARIANT(cpu_stream)(float *y, const float *a, const float *b, float factor, int64_t count)
{
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] + factor * b[i];
}
