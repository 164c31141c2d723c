/* usage_sanitized.c - the system's counters are good enough where a sanitizer's shadow is most of the memory: going
   through its page tables takes milliseconds, and was nine tenths of the time of tests that plan thousands of jobs. */
#include <stddef.h>

#include "base/memory/limits.h"

const char *const usage_exact_file = NULL;
