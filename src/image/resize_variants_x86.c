/* resize_variants_x86.c - which copy of the loops this processor runs. */
#include "image/resize_rows.h"

const struct resize_rows *resize_rows_choose(void)
{
    return __builtin_cpu_supports("avx2") ? &resize_rows_avx2 : &resize_rows_plain;
}
