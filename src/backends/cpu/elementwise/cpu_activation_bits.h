/* cpu_activation_bits.h - whole numbers of 1, 2 or 4 bits (ops/elementwise/activation_bits.h) from bytes and to bytes:
   eight at a time in a word, several words in a vector. */
#ifndef CPU_ACTIVATION_BITS_H
#define CPU_ACTIVATION_BITS_H

#include "backends/cpu/cpu_own.h"
#include "ops/elementwise/activation_bits.h"

/* The low bits of eight bytes side by side: three times every second lot moves up to its neighbour. */
INLINE uint64_t bits_together(uint64_t x, int bits)
{
    const uint64_t masks[3][3] = {{0x0003000300030003, 0x0000000f0000000f, 0xff},
                                  {0x000f000f000f000f, 0x000000ff000000ff, 0xffff},
                                  {0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0xffffffff}};
    const uint64_t *mask = masks[bits / 2];
    for (int step = 0; step < 3; step++)
        x = (x | x >> ((8 - bits) << step)) & mask[step];
    return x;
}

/* The way back. */
INLINE uint64_t bits_apart(uint64_t x, int bits)
{
    const uint64_t masks[3][3] = {{0x0000000f0000000f, 0x0003000300030003, 0x0101010101010101},
                                  {0x000000ff000000ff, 0x000f000f000f000f, 0x0303030303030303},
                                  {0x0000ffff0000ffff, 0x00ff00ff00ff00ff, 0x0f0f0f0f0f0f0f0f}};
    const uint64_t *mask = masks[bits / 2];
    for (int step = 0; step < 3; step++)
        x = (x | x << ((8 - bits) << (2 - step))) & mask[step];
    return x;
}

INLINE void pack_words(uint8_t *restrict to, const uint8_t *restrict from, int bits, int64_t words)
{
    for (int64_t i = 0; i < words; i++) {
        uint64_t x;
        memcpy(&x, from + 8 * i, sizeof x);
        x = bits_together(x, bits);
        if (bits == 1)
            to[i] = (uint8_t)x;
        else if (bits == 2)
            memcpy(to + 2 * i, &(uint16_t){(uint16_t)x}, 2);
        else
            memcpy(to + 4 * i, &(uint32_t){(uint32_t)x}, 4);
    }
}

INLINE void unpack_words(uint8_t *restrict to, const uint8_t *restrict from, int bits, int64_t words)
{
    for (int64_t i = 0; i < words; i++) {
        uint16_t two;
        uint32_t four;
        memcpy(&two, from + (bits == 2 ? 2 * i : i), bits == 2 ? 2 : 1);
        memcpy(&four, from + (bits == 4 ? 4 * i : i), bits == 4 ? 4 : 1);
        uint64_t x = bits_apart(bits == 1 ? from[i] : bits == 2 ? two : four, bits);
        memcpy(to + 8 * i, &x, sizeof x);
    }
}

/* `count` elements from the first of a byte on. */
static inline void pack_bits(uint8_t *to, const uint8_t *from, int bits, int64_t count)
{
    if (bits == 1)
        pack_words(to, from, 1, count / 8);
    else if (bits == 2)
        pack_words(to, from, 2, count / 8);
    else
        pack_words(to, from, 4, count / 8);
    for (int64_t i = count / 8 * 8; i < count; i++)
        packed_set(to, bits, i, from[i]);
}

static inline void unpack_bits(uint8_t *to, const uint8_t *from, int bits, int64_t count)
{
    if (bits == 1)
        unpack_words(to, from, 1, count / 8);
    else if (bits == 2)
        unpack_words(to, from, 2, count / 8);
    else
        unpack_words(to, from, 4, count / 8);
    for (int64_t i = count / 8 * 8; i < count; i++)
        to[i] = (uint8_t)packed_get(from, bits, i);
}

#endif
