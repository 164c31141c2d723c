/* random.h - counter-based random numbers (Philox 4x32-10).
   A number is a pure function of (seed, stream, index): nothing to save,
   nothing to lock, and any order of asking gives the same numbers. */
#ifndef BASE_NUMBERS_RANDOM_H
#define BASE_NUMBERS_RANDOM_H

#include <stdint.h>

/* Four 32-bit numbers of (seed, stream, index). */
void random_block(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t index);
/* A 64-bit key for a purpose: hash of (seed, a, b). */
uint64_t random_key(uint64_t seed, uint64_t a, uint64_t b);
/* In [0, 1): 24 random bits times 2^-24. */
float random_unit(uint32_t bits);
/* count numbers in [0, 1), numbers first.. of the stream (4 a block). */
void random_fill_unit(float *out, uint64_t count, uint64_t seed, uint64_t stream, uint64_t first);

/* A keyed permutation of [0, n): exact shuffle of any size in O(1) memory. */
struct permutation {
    uint64_t n, left, right; /* mixed radix: left * right >= n; right = 2^shift */
    uint64_t key[8];
    int shift;
};
void permutation_init(struct permutation *permutation, uint64_t n, uint64_t seed, uint64_t stream);
/* Where position `i` < n goes. A bijection of [0, n). */
uint64_t permutation_at(const struct permutation *permutation, uint64_t i);
/* The same of many: each is replaced by where it goes. Several on their way at once take a third of the time less. */
void permutation_map(const struct permutation *permutation, int64_t *positions, int64_t count);

#endif
