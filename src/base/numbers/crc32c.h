/* crc32c.h - CRC-32C, and the masked form that TFRecord stores. */
#ifndef BASE_NUMBERS_CRC32C_H
#define BASE_NUMBERS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Start with 0; continue with the last result. */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

/* A checksum that lies beside its data is masked, so that a checksum over both is of use. */
static inline uint32_t crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The path without special instructions, for tests that compare. */
uint32_t crc32c_plain(uint32_t crc, const void *data, size_t bytes);

#endif
