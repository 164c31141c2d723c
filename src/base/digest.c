/* digest.c - SHA-256 (FIPS 180-4) and CRC-32C (Castagnoli).

   Each has a plain C path and one that uses the processor's own instructions,
   chosen at run time; tests compare the two. Asking for SHA instructions may
   trap in a virtual machine, so a digest asks once and remembers. */
#include "base/digest.h"

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

/* Remainders of the bytes 0..255 by the reflected polynomial 0x82f63b78. */
static const uint32_t crc32c_table[256] = {
    0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f, 0x35f1141c, 0x26a1e7e8, 0xd4ca64eb, 0x8ad958cf,
    0x78b2dbcc, 0x6be22838, 0x9989ab3b, 0x4d43cfd0, 0xbf284cd3, 0xac78bf27, 0x5e133c24, 0x105ec76f, 0xe235446c,
    0xf165b798, 0x030e349b, 0xd7c45070, 0x25afd373, 0x36ff2087, 0xc494a384, 0x9a879fa0, 0x68ec1ca3, 0x7bbcef57,
    0x89d76c54, 0x5d1d08bf, 0xaf768bbc, 0xbc267848, 0x4e4dfb4b, 0x20bd8ede, 0xd2d60ddd, 0xc186fe29, 0x33ed7d2a,
    0xe72719c1, 0x154c9ac2, 0x061c6936, 0xf477ea35, 0xaa64d611, 0x580f5512, 0x4b5fa6e6, 0xb93425e5, 0x6dfe410e,
    0x9f95c20d, 0x8cc531f9, 0x7eaeb2fa, 0x30e349b1, 0xc288cab2, 0xd1d83946, 0x23b3ba45, 0xf779deae, 0x05125dad,
    0x1642ae59, 0xe4292d5a, 0xba3a117e, 0x4851927d, 0x5b016189, 0xa96ae28a, 0x7da08661, 0x8fcb0562, 0x9c9bf696,
    0x6ef07595, 0x417b1dbc, 0xb3109ebf, 0xa0406d4b, 0x522bee48, 0x86e18aa3, 0x748a09a0, 0x67dafa54, 0x95b17957,
    0xcba24573, 0x39c9c670, 0x2a993584, 0xd8f2b687, 0x0c38d26c, 0xfe53516f, 0xed03a29b, 0x1f682198, 0x5125dad3,
    0xa34e59d0, 0xb01eaa24, 0x42752927, 0x96bf4dcc, 0x64d4cecf, 0x77843d3b, 0x85efbe38, 0xdbfc821c, 0x2997011f,
    0x3ac7f2eb, 0xc8ac71e8, 0x1c661503, 0xee0d9600, 0xfd5d65f4, 0x0f36e6f7, 0x61c69362, 0x93ad1061, 0x80fde395,
    0x72966096, 0xa65c047d, 0x5437877e, 0x4767748a, 0xb50cf789, 0xeb1fcbad, 0x197448ae, 0x0a24bb5a, 0xf84f3859,
    0x2c855cb2, 0xdeeedfb1, 0xcdbe2c45, 0x3fd5af46, 0x7198540d, 0x83f3d70e, 0x90a324fa, 0x62c8a7f9, 0xb602c312,
    0x44694011, 0x5739b3e5, 0xa55230e6, 0xfb410cc2, 0x092a8fc1, 0x1a7a7c35, 0xe811ff36, 0x3cdb9bdd, 0xceb018de,
    0xdde0eb2a, 0x2f8b6829, 0x82f63b78, 0x709db87b, 0x63cd4b8f, 0x91a6c88c, 0x456cac67, 0xb7072f64, 0xa457dc90,
    0x563c5f93, 0x082f63b7, 0xfa44e0b4, 0xe9141340, 0x1b7f9043, 0xcfb5f4a8, 0x3dde77ab, 0x2e8e845f, 0xdce5075c,
    0x92a8fc17, 0x60c37f14, 0x73938ce0, 0x81f80fe3, 0x55326b08, 0xa759e80b, 0xb4091bff, 0x466298fc, 0x1871a4d8,
    0xea1a27db, 0xf94ad42f, 0x0b21572c, 0xdfeb33c7, 0x2d80b0c4, 0x3ed04330, 0xccbbc033, 0xa24bb5a6, 0x502036a5,
    0x4370c551, 0xb11b4652, 0x65d122b9, 0x97baa1ba, 0x84ea524e, 0x7681d14d, 0x2892ed69, 0xdaf96e6a, 0xc9a99d9e,
    0x3bc21e9d, 0xef087a76, 0x1d63f975, 0x0e330a81, 0xfc588982, 0xb21572c9, 0x407ef1ca, 0x532e023e, 0xa145813d,
    0x758fe5d6, 0x87e466d5, 0x94b49521, 0x66df1622, 0x38cc2a06, 0xcaa7a905, 0xd9f75af1, 0x2b9cd9f2, 0xff56bd19,
    0x0d3d3e1a, 0x1e6dcdee, 0xec064eed, 0xc38d26c4, 0x31e6a5c7, 0x22b65633, 0xd0ddd530, 0x0417b1db, 0xf67c32d8,
    0xe52cc12c, 0x1747422f, 0x49547e0b, 0xbb3ffd08, 0xa86f0efc, 0x5a048dff, 0x8ecee914, 0x7ca56a17, 0x6ff599e3,
    0x9d9e1ae0, 0xd3d3e1ab, 0x21b862a8, 0x32e8915c, 0xc083125f, 0x144976b4, 0xe622f5b7, 0xf5720643, 0x07198540,
    0x590ab964, 0xab613a67, 0xb831c993, 0x4a5a4a90, 0x9e902e7b, 0x6cfbad78, 0x7fab5e8c, 0x8dc0dd8f, 0xe330a81a,
    0x115b2b19, 0x020bd8ed, 0xf0605bee, 0x24aa3f05, 0xd6c1bc06, 0xc5914ff2, 0x37faccf1, 0x69e9f0d5, 0x9b8273d6,
    0x88d28022, 0x7ab90321, 0xae7367ca, 0x5c18e4c9, 0x4f48173d, 0xbd23943e, 0xf36e6f75, 0x0105ec76, 0x12551f82,
    0xe03e9c81, 0x34f4f86a, 0xc69f7b69, 0xd5cf889d, 0x27a40b9e, 0x79b737ba, 0x8bdcb4b9, 0x988c474d, 0x6ae7c44e,
    0xbe2da0a5, 0x4c4623a6, 0x5f16d052, 0xad7d5351,
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

uint32_t crc32c_plain(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++)
        crc = crc >> 8 ^ crc32c_table[(crc ^ p[i]) & 0xff];
    return ~crc;
}

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
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
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

__attribute__((target("sse4.2"))) static uint32_t crc32c_fast(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint64_t wide = ~crc;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; bytes > 0; bytes--)
        crc = _mm_crc32_u8(crc, *p++);
    return ~crc;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_fast(crc, data, bytes) : crc32c_plain(crc, data, bytes);
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

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return crc32c_plain(crc, data, bytes);
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
