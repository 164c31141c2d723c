/* multiple.h - the least common multiple. */
#ifndef BASE_NUMBERS_MULTIPLE_H
#define BASE_NUMBERS_MULTIPLE_H

#include <stdint.h>

/* Of two numbers above 0 whose product does not overflow. */
static inline int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t divisor = a, rest = b;
    while (rest) {
        int64_t next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return a / divisor * b;
}

#endif
