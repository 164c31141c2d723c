/* noise.h - ops that draw random numbers: dropout, gaussian_noise, gaussian_dropout.

   A number is a pure function of (seed, iteration, place of the sample in the batch, place of the element in the
   sample): slices, threads and budget change nothing, and backward draws the same ones again instead of keeping
   them. Inputs x and iteration (i64 [1], the optimizer's count of steps).

   Elements are numbered so that vectors need no shuffling: 64 at a time, word w of the 16 blocks of such a chunk
   holds elements 16 w .. 16 w + 15. */
#ifndef OPS_ELEMENTWISE_NOISE_H
#define OPS_ELEMENTWISE_NOISE_H

#include <stdint.h>

#include "base/numbers/random.h"

#define NOISE_CHUNK 64 /* elements */
#define NOISE_LANES 16 /* blocks of four words a chunk */

/* Number of the block of 4 words that holds element `i` of a sample, and which of them. */
static inline uint64_t noise_block(int64_t i)
{
    return (uint64_t)(i / NOISE_CHUNK * NOISE_LANES + i % NOISE_LANES);
}
static inline int noise_word(int64_t i)
{
    return (int)(i % NOISE_CHUNK / NOISE_LANES);
}
/* The four words, of which element `i` has one (the pair of it: the normal numbers are made of two). */
static inline void noise_bits(uint32_t out[4], uint64_t seed, uint64_t iteration, int64_t sample, int64_t i)
{
    random_block(out, seed, iteration, (uint64_t)sample << 32 | (uint32_t)noise_block(i));
}

/* dropout: y = x * scale + offset with probability 1 - rate, else `dropped`; the gradient is dropout again, with
   offset and dropped 0. Dropout: scale = 1 / (1 - rate). AlphaDropout: all three. An axis in `shared` (bit 0 is the
   batch) has one number for all its places: SpatialDropout, noise_shape. */
struct dropout_attributes {
    double rate, scale, offset, dropped;
    uint64_t seed;
    int64_t shared;
};
/* The 2^32 numbers below this one drop an element. */
static inline uint64_t dropout_threshold(double rate)
{
    return (uint64_t)(rate * 4294967296.0);
}

/* gaussian_noise: y = x + stddev * z; gaussian_dropout: y = x * (1 + stddev * z), z normal (Box and Muller). */
struct noise_attributes {
    double stddev;
    uint64_t seed;
};

#endif
