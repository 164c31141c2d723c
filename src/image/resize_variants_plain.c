/* resize_variants_plain.c - there is one copy of the loops. */
#include "image/resize_rows.h"

const struct resize_rows *resize_rows_choose(void)
{
    return &resize_rows_plain;
}
