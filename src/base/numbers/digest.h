/* digest.h - SHA-256: what two runs are compared by, and checkpoints are
   checked with. */
#ifndef BASE_NUMBERS_DIGEST_H
#define BASE_NUMBERS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
    bool fast; /* the processor has instructions for it */
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t bytes);
void sha256_end(struct sha256 *sha, uint8_t digest[32]);
/* 64 hexadecimal digits and a NUL. */
void sha256_text(char text[65], const uint8_t digest[32]);

/* The paths behind these, for tests that compare them. */
bool sha256_has_fast(void);
void sha256_blocks_plain(uint32_t state[8], const uint8_t *data, size_t blocks);
/* Only where sha256_has_fast. */
void sha256_blocks_fast(uint32_t state[8], const uint8_t *data, size_t blocks);

#endif
