/* cpu_variants_x86.c - which copy of the own kernels this processor runs. */
#include "backends/cpu/cpu.h"
#include "base/numbers/count.h"

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool always(void)
{
    return true;
}

const struct cpu_choice cpu_variants[] = {
    {&cpu_variant_avx512, has_avx512},
    {&cpu_variant_avx2, has_avx2},
    {&cpu_variant_plain, always},
};
const int cpu_variant_count = COUNT(cpu_variants);
