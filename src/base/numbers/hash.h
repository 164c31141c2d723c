/* hash.h - FNV-1a of 64 bits: the hash of every table, and of names that random streams are keyed by. */
#ifndef BASE_NUMBERS_HASH_H
#define BASE_NUMBERS_HASH_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A_START 14695981039346656037u

/* The hash with one more byte, or with a word of 64 bits at once. */
static inline uint64_t fnv1a_step(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 1099511628211u;
}

/* Start with FNV1A_START; continue with the last result. */
static inline uint64_t fnv1a(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = fnv1a_step(hash, ((const uint8_t *)data)[i]);
    return hash;
}

/* Of a text, without its NUL. */
static inline uint64_t fnv1a_text(const char *text)
{
    uint64_t hash = FNV1A_START;
    for (; *text; text++)
        hash = fnv1a_step(hash, (uint8_t)*text);
    return hash;
}

#endif
