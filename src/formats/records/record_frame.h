/* record_frame.h - what lies around the data of a TFRecord record.

   u64 length, u32 masked CRC-32C of those 8 bytes, the data, u32 masked CRC-32C of the data; little-endian, as
   every machine that we run on. No header, no index, nothing between records. */
#ifndef FORMATS_RECORDS_RECORD_FRAME_H
#define FORMATS_RECORDS_RECORD_FRAME_H

#include <stdbool.h>
#include <string.h>

#include "base/numbers/crc32c.h"

#define RECORD_HEAD_BYTES  12
#define RECORD_FOOT_BYTES  4
#define RECORD_FRAME_BYTES 16

static inline uint64_t record_length(const uint8_t *head)
{
    uint64_t length;
    memcpy(&length, head, sizeof length);
    return length;
}

static inline uint32_t stored_checksum(const uint8_t *p)
{
    uint32_t stored;
    memcpy(&stored, p, sizeof stored);
    return stored;
}

static inline bool record_checksum_holds(const uint8_t *data, uint64_t bytes, const uint8_t *stored)
{
    return crc32c_mask(crc32c(0, data, bytes)) == stored_checksum(stored);
}

static inline bool record_head_holds(const uint8_t *head)
{
    return record_checksum_holds(head, 8, head + 8);
}

static inline void record_head_write(uint8_t head[RECORD_HEAD_BYTES], uint64_t length)
{
    memcpy(head, &length, sizeof length);
    uint32_t masked = crc32c_mask(crc32c(0, head, 8));
    memcpy(head + 8, &masked, sizeof masked);
}

#endif
