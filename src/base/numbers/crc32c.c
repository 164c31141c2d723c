/* crc32c.c - CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), by the processor's instruction or by tables.

   The instruction takes 8 bytes a cycle but answers after three: long inputs go through it as three streams of n
   words. The remainders are put together by a*x^(64*2n) + b*x^(64n) + c, where a product without carries by
   x^(64n-33), given to the instruction once more, is that shift (the instruction itself multiplies by x^32, and a
   reflected product of 32 bits by 32 is one bit short of 64). Tests compare the two paths. */
#include "base/numbers/crc32c.h"

#include <stdbool.h>
#include <string.h>

/* The entry of byte b is the sum (without carries) of those of its bits: the compiler makes the tables. */
#define BIT(b, i, c) (((b) >> (i)&1) * (c))
#define ENTRY(b, c0, c1, c2, c3, c4, c5, c6, c7)                                                                       \
    (BIT(b, 0, c0) ^ BIT(b, 1, c1) ^ BIT(b, 2, c2) ^ BIT(b, 3, c3) ^ BIT(b, 4, c4) ^ BIT(b, 5, c5) ^ BIT(b, 6, c6) ^   \
     BIT(b, 7, c7))
#define ENTRIES4(b, ...)                                                                                               \
    ENTRY(b, __VA_ARGS__), ENTRY((b) + 1, __VA_ARGS__), ENTRY((b) + 2, __VA_ARGS__), ENTRY((b) + 3, __VA_ARGS__)
#define ENTRIES16(b, ...)                                                                                              \
    ENTRIES4(b, __VA_ARGS__), ENTRIES4((b) + 4, __VA_ARGS__), ENTRIES4((b) + 8, __VA_ARGS__),                          \
        ENTRIES4((b) + 12, __VA_ARGS__)
#define ENTRIES64(b, ...)                                                                                              \
    ENTRIES16(b, __VA_ARGS__), ENTRIES16((b) + 16, __VA_ARGS__), ENTRIES16((b) + 32, __VA_ARGS__),                     \
        ENTRIES16((b) + 48, __VA_ARGS__)
#define ENTRIES(...)                                                                                                   \
    ENTRIES64(0u, __VA_ARGS__), ENTRIES64(64u, __VA_ARGS__), ENTRIES64(128u, __VA_ARGS__), ENTRIES64(192u, __VA_ARGS__)

/* table[k][b]: the remainder of byte b with k bytes behind it. */
static const uint32_t table[8][256] = {
    {ENTRIES(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78)},
    {ENTRIES(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9)},
    {ENTRIES(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743)},
    {ENTRIES(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f)},
    {ENTRIES(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c)},
    {ENTRIES(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6)},
    {ENTRIES(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4)},
    {ENTRIES(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664)},
};

static inline uint64_t load(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

uint32_t crc32c_plain(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word = load(p) ^ crc;
        crc = table[7][word & 255] ^ table[6][word >> 8 & 255] ^ table[5][word >> 16 & 255] ^
              table[4][word >> 24 & 255] ^ table[3][word >> 32 & 255] ^ table[2][word >> 40 & 255] ^
              table[1][word >> 48 & 255] ^ table[0][word >> 56];
    }
    for (; bytes > 0; bytes--)
        crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
    return ~crc;
}

#if defined(__x86_64__)

#include <immintrin.h>

#define STREAM_MOST 64 /* words of a stream */
/* Below this a stream is too short to pay for putting the remainders together. */
#define STREAM_LEAST 6

/* shift[n - 1]: x^(64n-33), reflected. */
static const uint32_t shift[2 * STREAM_MOST] = {
    0x00000001, 0x493c7d27, 0xf20c0dfe, 0xba4fc28e, 0x3da6d0cb, 0xddc0152b, 0x1c291d04, 0x9e4addf8, 0x740eef02,
    0x39d3b296, 0x083a6eec, 0x0715ce53, 0xc49f4f67, 0x47db8317, 0x2ad91c30, 0x0d3b6092, 0x6992cea2, 0xc96cfdc0,
    0x7e908048, 0x878a92a7, 0x1b3d8f29, 0xdaece73e, 0xf1d0f55e, 0xab7aff2a, 0xa87ab8a8, 0x2162d385, 0x8462d800,
    0x83348832, 0x71d111a8, 0x299847d5, 0xffd852c6, 0xb9e02b86, 0xdcb17aa4, 0x18b33a4e, 0xf37c5aee, 0xb6dd949b,
    0x6051d5a2, 0x78d9ccb7, 0x18b0d4ff, 0xbac2fd7b, 0x21f3d99c, 0xa60ce07b, 0x8f158014, 0xce7f39f4, 0xa00457f7,
    0x61d82e56, 0x8d6d2c43, 0xd270f1a2, 0x00ac29cf, 0xc619809d, 0xe9adf796, 0x2b3cac5d, 0x96638b34, 0x65863b64,
    0xe0e9f351, 0x1b03397f, 0x9af01f2d, 0xebb883bd, 0x2cff42cf, 0xb3e32c28, 0x88f25a3a, 0x064f7f26, 0x4e36f0b0,
    0xdd7e3b0c, 0xbd6f81f8, 0xf285651c, 0x91c9bd4b, 0x10746f3c, 0x885f087b, 0xc7a68855, 0x4c144932, 0x271d9844,
    0x52148f02, 0x8e766a0c, 0xa3c6f37a, 0x93a5f730, 0xd7c0557f, 0x6cb08e5c, 0x63ded06a, 0x6b749fb2, 0x4d56973c,
    0x1393e203, 0x9669c9df, 0xcec3662e, 0xe417f38a, 0x96c515bb, 0x4b9e0f71, 0xe6fc4e6a, 0xd104b8fc, 0x8227bb8a,
    0x5b397730, 0xb0cd4768, 0xe78eb416, 0x39c7ff35, 0x61ff0e01, 0xd7a4825c, 0x8d96551c, 0x0ab3844b, 0x0bf80dd2,
    0x0167d312, 0x8821abed, 0xf6076544, 0x6a45d2b2, 0x26f6a60a, 0xd8d26619, 0xa741c1bf, 0xde87806c, 0x98d8d9cb,
    0x14338754, 0x49c3cc9c, 0x5bd2011f, 0x68bce87a, 0xdd07448e, 0x57a3d037, 0xdde8f5b9, 0x6956fc3b, 0xa3e3e02c,
    0x42d98888, 0xd73c7bea, 0x3771e98f, 0x80ff0093, 0xb42ae3d9, 0x8fe4c34d, 0x2178513a, 0xdf99fc11, 0xe0ac139e,
    0x6c23e841, 0x170076fa,
};

#define FAST __attribute__((target("sse4.2,pclmul")))

FAST static inline uint64_t times(uint64_t crc, uint32_t factor)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128(factor), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

/* 3n words. */
FAST static inline uint64_t three_streams(uint64_t a, const uint8_t *p, size_t n)
{
    uint64_t b = 0, c = 0;
    for (const uint8_t *end = p + 8 * n; p < end; p += 8) {
        a = _mm_crc32_u64(a, load(p));
        b = _mm_crc32_u64(b, load(p + 8 * n));
        c = _mm_crc32_u64(c, load(p + 16 * n));
    }
    return _mm_crc32_u64(0, times(a, shift[2 * n - 1]) ^ times(b, shift[n - 1])) ^ c;
}

/* Fewer than 8. */
FAST static inline uint32_t last_bytes(uint32_t crc, const uint8_t *p, size_t bytes)
{
    if (bytes & 4) {
        uint32_t word;
        memcpy(&word, p, sizeof word);
        crc = _mm_crc32_u32(crc, word);
        p += 4;
    }
    for (bytes &= 3; bytes > 0; bytes--)
        crc = _mm_crc32_u8(crc, *p++);
    return crc;
}

FAST static uint32_t crc32c_fast(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint64_t wide = ~crc;
    while (bytes >= 3 * 8 * STREAM_LEAST) {
        size_t n = bytes / 24 < STREAM_MOST ? bytes / 24 : STREAM_MOST;
        wide = three_streams(wide, p, n);
        p += 24 * n;
        bytes -= 24 * n;
    }
    for (; bytes >= 8; bytes -= 8, p += 8)
        wide = _mm_crc32_u64(wide, load(p));
    return ~last_bytes((uint32_t)wide, p, bytes);
}

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
    bool fast = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    return fast ? crc32c_fast(crc, data, bytes) : crc32c_plain(crc, data, bytes);
}

#else

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return crc32c_plain(crc, data, bytes);
}

#endif
