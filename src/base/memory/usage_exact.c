/* usage_exact.c - the resident size is counted by going through the page tables. */
#include "base/memory/limits.h"

const char *const usage_exact_file = "/proc/self/smaps_rollup";
