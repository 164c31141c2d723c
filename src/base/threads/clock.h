/* clock.h - time. */
#ifndef BASE_THREADS_CLOCK_H
#define BASE_THREADS_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void); /* monotonic */

#endif
