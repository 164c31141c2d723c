/* random.c - Philox 4x32-10, and a keyed permutation of any size.

   Philox: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
   1, 2, 3" (2011). The seed is the key; (index, stream) is the counter.

   The permutation is a Feistel network over pairs (l, r) with l < left and
   r < right, eight rounds, each adding a keyed hash of one half to the other.
   1. right is a power of two: an index is split by a shift, never a division.
   2. left * right - n < right, so that about one index in sqrt(n) lands
      outside [0, n) and is sent round again (that walk ends: the network is a
      bijection of the larger set, and the walk began inside).
   3. Halves are added, not xored: xor alone could only make even permutations
      of small powers of two. */
#include "base/numbers/random.h"

#include <string.h>

#define PHILOX_ROUNDS     10
#define PHILOX_MULTIPLY_0 0xD2511F53u
#define PHILOX_MULTIPLY_1 0xCD9E8D57u
#define PHILOX_STEP_0     0x9E3779B9u
#define PHILOX_STEP_1     0xBB67AE85u

/* Keeps the keys of a purpose apart from the numbers of a stream. */
#define KEY_DOMAIN 0x6B65795F706C696Dull

void random_block(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)PHILOX_MULTIPLY_0 * c0;
        uint64_t p1 = (uint64_t)PHILOX_MULTIPLY_1 * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += PHILOX_STEP_0;
        k1 += PHILOX_STEP_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t random_key(uint64_t seed, uint64_t a, uint64_t b)
{
    uint32_t block[4];
    random_block(block, seed ^ KEY_DOMAIN, a, b);
    return (uint64_t)block[1] << 32 | block[0];
}

float random_unit(uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f;
}

void random_fill_unit(float *out, uint64_t count, uint64_t seed, uint64_t stream, uint64_t first)
{
    uint64_t index = first / 4;
    unsigned lane = (unsigned)(first % 4);
    while (count > 0) {
        uint32_t block[4];
        random_block(block, seed, stream, index++);
        for (; lane < 4 && count > 0; lane++, count--)
            *out++ = random_unit(block[lane]);
        lane = 0;
    }
}

void permutation_init(struct permutation *permutation, uint64_t n, uint64_t seed, uint64_t stream)
{
    memset(permutation, 0, sizeof *permutation);
    permutation->n = n;
    int bits = n > 1 ? 64 - __builtin_clzll(n - 1) : 0;
    permutation->shift = bits / 2;
    permutation->right = 1ull << permutation->shift;
    permutation->left = n > 1 ? ((n - 1) >> permutation->shift) + 1 : 1;
    uint64_t key = random_key(seed, stream, n);
    for (uint64_t round = 0; round < 8; round++)
        permutation->key[round] = random_key(key, stream, round);
}

/* 64 bits of half and key; the upper ones are the good ones. */
static inline uint64_t round_hash(uint64_t half, uint64_t key)
{
    uint64_t z = (half ^ key) * 0x9E3779B97F4A7C15ull;
    z ^= z >> 32;
    return z * 0xD6E8FEB86659FD93ull;
}

/* The upper half of a 64 x 64 bit product: hash * bound / 2^64 is a number
   below bound, without a division. */
static inline uint64_t multiply_high(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

/* Two rounds of the network. */
static inline void mix_halves(uint64_t *l, uint64_t *r, const struct permutation *permutation, int round)
{
    const uint64_t left = permutation->left;
    *l += multiply_high(round_hash(*r, permutation->key[round]), left);
    *l -= *l >= left ? left : 0;
    *r = (*r + (round_hash(*l, permutation->key[round + 1]) >> 32)) & (permutation->right - 1);
}

uint64_t permutation_at(const struct permutation *permutation, uint64_t i)
{
    const uint64_t mask = permutation->right - 1;
    const int shift = permutation->shift;
    if (permutation->n < 2)
        return 0;
    do {
        uint64_t l = i >> shift, r = i & mask;
        for (int round = 0; round < 8; round += 2)
            mix_halves(&l, &r, permutation, round);
        i = l << shift | r;
    } while (i >= permutation->n);
    return i;
}

#define TOGETHER 4

void permutation_map(const struct permutation *permutation, int64_t *positions, int64_t count)
{
    const uint64_t mask = permutation->right - 1;
    const int shift = permutation->shift;
    int64_t first = 0;
    for (; permutation->n > 1 && first + TOGETHER <= count; first += TOGETHER) {
        uint64_t l[TOGETHER], r[TOGETHER];
        for (int k = 0; k < TOGETHER; k++) {
            l[k] = (uint64_t)positions[first + k] >> shift;
            r[k] = (uint64_t)positions[first + k] & mask;
        }
        for (int round = 0; round < 8; round += 2)
            for (int k = 0; k < TOGETHER; k++)
                mix_halves(&l[k], &r[k], permutation, round);
        for (int k = 0; k < TOGETHER; k++) {
            uint64_t to = l[k] << shift | r[k];
            positions[first + k] = (int64_t)(to < permutation->n ? to : permutation_at(permutation, to));
        }
    }
    for (; first < count; first++)
        positions[first] = (int64_t)permutation_at(permutation, (uint64_t)positions[first]);
}
