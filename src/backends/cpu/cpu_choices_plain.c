/* cpu_choices_plain.c - processors for which there is one copy of the own kernels. */
#include "backends/cpu/cpu.h"

static bool always(void)
{
    return true;
}

const struct cpu_choice cpu_choices[] = {{&cpu_variant_plain, always}};
const int cpu_choices_count = 1;
