/* heapsort.h - puts indices in order without taking memory (the C library's
   qsort may) and without a bad case that a file could ask for. */
#ifndef FORMATS_FILES_HEAPSORT_H
#define FORMATS_FILES_HEAPSORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/budget.h"

/* True when a belongs before b. */
typedef bool index_before(const void *context, uint32_t a, uint32_t b);

/* order[0..count) gets the numbers 0..count-1, sorted; all of them, but in no order, where a stop refuses transfers
   (budget_stop.h; NULL: nothing stops it). */
void sort_indices(uint32_t *order, uint32_t count, index_before *before, const void *context,
                  const struct budget *budget);

#endif
