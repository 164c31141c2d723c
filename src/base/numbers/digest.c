/* digest.c - SHA-256 (FIPS 180-4).

   It has a plain C path and one that uses the processor's own instructions,
   chosen at run time; tests compare the two. Asking for SHA instructions may
   trap in a virtual machine, so a digest asks once and remembers. */
#include "base/numbers/digest.h"

#include <string.h>

static const uint32_t sha256_start[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t sha256_round[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotate(uint32_t x, int bits)
{
    return x >> bits | x << (32 - bits);
}

static inline uint32_t load_big(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void store_big(uint8_t *p, uint32_t x)
{
    p[0] = (uint8_t)(x >> 24);
    p[1] = (uint8_t)(x >> 16);
    p[2] = (uint8_t)(x >> 8);
    p[3] = (uint8_t)x;
}

/* w[t] = s1(w[t-2]) + w[t-7] + s0(w[t-15]) + w[t-16] */
static void sha256_schedule(uint32_t w[64], const uint8_t *block)
{
    for (int t = 0; t < 16; t++)
        w[t] = load_big(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

/* One round; the caller turns the letters instead of moving the words. */
static inline void sha256_step(const uint32_t v[6], uint32_t *d, uint32_t *h, uint32_t add)
{
    uint32_t a = v[0], b = v[1], c = v[2], e = v[3], f = v[4], g = v[5];
    uint32_t t1 = *h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + add;
    *d += t1;
    *h = t1 + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

#define STEP(a, b, c, d, e, f, g, h, i)                                                                                \
    sha256_step((const uint32_t[]){a, b, c, e, f, g}, &d, &h, sha256_round[t + i] + w[t + i])

void sha256_blocks_plain(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    for (; blocks > 0; blocks--, data += 64) {
        uint32_t w[64];
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        sha256_schedule(w, data);
        for (int t = 0; t < 64; t += 8) {
            STEP(a, b, c, d, e, f, g, h, 0);
            STEP(h, a, b, c, d, e, f, g, 1);
            STEP(g, h, a, b, c, d, e, f, 2);
            STEP(f, g, h, a, b, c, d, e, 3);
            STEP(e, f, g, h, a, b, c, d, 4);
            STEP(d, e, f, g, h, a, b, c, 5);
            STEP(c, d, e, f, g, h, a, b, 6);
            STEP(b, c, d, e, f, g, h, a, 7);
        }
        const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
        for (int i = 0; i < 8; i++)
            state[i] += sum[i];
    }
}

#undef STEP

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__) /* clang 14 does not know the name "sha" */
#include <cpuid.h>

bool sha256_has_fast(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 29);
}

#else

bool sha256_has_fast(void)
{
    return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sha");
}

#endif

#define SHA256_TARGET __attribute__((target("sha,sse4.1")))

/* Four rounds with the words w. */
SHA256_TARGET static inline void sha256_four(__m128i *abef, __m128i *cdgh, __m128i w, const uint32_t round[4])
{
    __m128i add = _mm_add_epi32(w, _mm_loadu_si128((const __m128i *)round));
    *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, add);
    *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(add, 0x0e));
}

/* The next four words of the schedule after the sixteen in a, b, c, d. */
SHA256_TARGET static inline __m128i sha256_words(__m128i a, __m128i b, __m128i c, __m128i d)
{
    return _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4)), d);
}

/* The state in the order of the instructions: abef holds a, b, e, f from the
   top, cdgh the rest. Words of the schedule live in four registers in turn. */
SHA256_TARGET void sha256_blocks_fast(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i dcba = _mm_loadu_si128((const __m128i *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; blocks > 0; blocks--, data += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++) {
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * i)), swap);
            sha256_four(&abef, &cdgh, w[i], sha256_round + 4 * i);
        }
        for (int i = 4; i < 16; i += 4) {
            w[0] = sha256_words(w[0], w[1], w[2], w[3]);
            sha256_four(&abef, &cdgh, w[0], sha256_round + 4 * i);
            w[1] = sha256_words(w[1], w[2], w[3], w[0]);
            sha256_four(&abef, &cdgh, w[1], sha256_round + 4 * i + 4);
            w[2] = sha256_words(w[2], w[3], w[0], w[1]);
            sha256_four(&abef, &cdgh, w[2], sha256_round + 4 * i + 8);
            w[3] = sha256_words(w[3], w[0], w[1], w[2]);
            sha256_four(&abef, &cdgh, w[3], sha256_round + 4 * i + 12);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool sha256_has_fast(void)
{
    return false;
}

void sha256_blocks_fast(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    sha256_blocks_plain(state, data, blocks);
}

#endif

static void sha256_blocks(struct sha256 *sha, const uint8_t *data, size_t blocks)
{
    if (sha->fast)
        sha256_blocks_fast(sha->state, data, blocks);
    else
        sha256_blocks_plain(sha->state, data, blocks);
}

void sha256_init(struct sha256 *sha)
{
    memset(sha, 0, sizeof *sha);
    memcpy(sha->state, sha256_start, sizeof sha->state);
    sha->fast = sha256_has_fast();
}

void sha256_add(struct sha256 *sha, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    size_t held = sha->bytes % 64;
    if (bytes == 0)
        return;
    sha->bytes += bytes;
    if (held > 0) {
        size_t part = 64 - held < bytes ? 64 - held : bytes;
        memcpy(sha->block + held, p, part);
        p += part;
        bytes -= part;
        if (held + part < 64)
            return;
        sha256_blocks(sha, sha->block, 1);
    }
    sha256_blocks(sha, p, bytes / 64);
    if (bytes % 64 > 0)
        memcpy(sha->block, p + bytes / 64 * 64, bytes % 64);
}

void sha256_end(struct sha256 *sha, uint8_t digest[32])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = sha->bytes * 8;
    uint8_t length[8];
    store_big(length, (uint32_t)(bits >> 32));
    store_big(length + 4, (uint32_t)bits);
    size_t held = sha->bytes % 64;
    sha256_add(sha, padding, held < 56 ? 56 - held : 120 - held);
    sha256_add(sha, length, sizeof length);
    for (int i = 0; i < 8; i++)
        store_big(digest + 4 * i, sha->state[i]);
}

void sha256_text(char text[65], const uint8_t digest[32])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[64] = 0;
}
