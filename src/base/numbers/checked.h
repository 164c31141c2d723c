/* checked.h - arithmetic on sizes that says when it does not fit.
   Sizes from files are multiplied and added here and nowhere else. */
#ifndef BASE_NUMBERS_CHECKED_H
#define BASE_NUMBERS_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns false, and leaves *out alone, when the result does not fit. */
static inline bool add_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool mul_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool mul_i64(int64_t *out, int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* The sum; saturates, for totals that are only compared and printed. */
static inline uint64_t add_most(uint64_t a, uint64_t b)
{
    uint64_t r;
    return add_u64(&r, a, b) ? r : UINT64_MAX;
}

/* value rounded up to a multiple of `to` (a power of two); saturates. */
static inline uint64_t round_up(uint64_t value, uint64_t to)
{
    return value > UINT64_MAX - (to - 1) ? UINT64_MAX & ~(to - 1) : (value + to - 1) & ~(to - 1);
}

#endif
