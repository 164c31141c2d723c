/* cpu_philox.h - Philox 4x32-10 by vectors: the 64 words of a chunk of noise (ops/elementwise/noise.h). */
#ifndef CPU_PHILOX_H
#define CPU_PHILOX_H

#include "backends/cpu/vector.h"
#include "ops/elementwise/noise.h"

typedef uint32_t vector_word __attribute__((vector_size(LANES * 4)));
typedef uint64_t vector_wide __attribute__((vector_size(LANES * 4)));

/* Products of the even words of a with m, 64 bits each. */
INLINE vector_wide multiply_even(vector_wide a, uint32_t m)
{
#if LANES == 16
    return (vector_wide)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(m));
#elif LANES == 8
    return (vector_wide)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(m));
#else
    return (a & 0xffffffff) * m;
#endif
}

/* Even words of a, odd words of b. */
INLINE vector_word words_of(vector_wide a, vector_wide b)
{
#if LANES == 16
    return (vector_word)_mm512_mask_blend_epi32(0xaaaa, (__m512i)a, (__m512i)b);
#elif LANES == 8
    return (vector_word)_mm256_blend_epi32((__m256i)a, (__m256i)b, 0xaa);
#else
    return (vector_word)((a & 0xffffffff) | (b & ~0xffffffffull));
#endif
}

INLINE void multiply_words(vector_word *high, vector_word *low, vector_word a, uint32_t m)
{
    vector_wide even = multiply_even((vector_wide)a, m), odd = multiply_even((vector_wide)a >> 32, m);
    *low = words_of(even, odd << 32);
    *high = words_of(even >> 32, odd);
}

INLINE void philox_lanes(uint32_t out[NOISE_CHUNK], uint64_t seed, uint64_t stream, uint32_t sample, uint32_t first,
                         int lane)
{
    static const uint32_t count[NOISE_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    vector_word c[4] = {{0}}, high[2], low[2];
    memcpy(&c[0], count + lane, sizeof c[0]);
    c[0] += first;
    c[1] += sample;
    c[2] += (uint32_t)stream;
    c[3] += (uint32_t)(stream >> 32);
    UNROLL
    for (int round = 0; round < 10; round++) {
        multiply_words(&high[0], &low[0], c[0], 0xD2511F53u);
        multiply_words(&high[1], &low[1], c[2], 0xCD9E8D57u);
        c[0] = high[1] ^ c[1] ^ k0;
        c[2] = high[0] ^ c[3] ^ k1;
        c[1] = low[1];
        c[3] = low[0];
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int word = 0; word < 4; word++)
        memcpy(out + word * NOISE_LANES + lane, &c[word], sizeof c[word]);
}

/* The words of elements `chunk` * 64 .. + 63 of a sample. */
INLINE void philox_chunk(uint32_t out[NOISE_CHUNK], uint64_t seed, uint64_t stream, int64_t sample, int64_t chunk)
{
    for (int lane = 0; lane < NOISE_LANES; lane += LANES)
        philox_lanes(out, seed, stream, (uint32_t)sample, (uint32_t)(chunk * NOISE_LANES), lane);
}

#endif
