/* cpu_variants_plain.c - processors for which there is one copy of the own kernels. */
#include "backends/cpu/cpu.h"

static bool always(void)
{
    return true;
}

const struct cpu_choice cpu_variants[] = {{&cpu_variant_plain, always}};
const int cpu_variant_count = 1;
