/* bpe_tables.h - the tables of a byte-level BPE, for bpe.c and bpe_read.c.

   1. Tokens are kept as the bytes they stand for, one after another.
   2. pairs: (left, right) -> (rank, merged), an open table. words: hash of a token's bytes -> its number, likewise.
   3. A token that merging makes of its own bytes is whole: a piece of text with its bytes is that token, and need not
      be merged. The others (special tokens) are never made of texts. */
#ifndef PIPELINE_BPE_TABLES_H
#define PIPELINE_BPE_TABLES_H

#include <string.h>

#include "pipeline/bpe.h"
#include "pipeline/hashing.h"

#define NO_TOKEN    UINT32_MAX
#define SHORT_PIECE 48 /* bytes that are merged by looking at all pairs again and again */

struct pair_slot {
    uint64_t key;  /* left << 32 | right */
    uint32_t rank; /* from 1; 0: the slot is free */
    uint32_t merged;
};

struct bpe {
    struct budget *budget;
    uint8_t *bytes;
    uint32_t *start, *length; /* of token t in bytes; length 0: there is no such token */
    uint8_t *is_whole;
    uint64_t *word; /* high half of the hash | number + 1 */
    struct pair_slot *pair;
    uint64_t byte_count, word_count, pair_count;
    uint32_t size;
    uint32_t byte_token[256];
    int16_t byte_of[0x180]; /* which byte a character of the files stands for; -1: none */
};

/* The slot of the token, or the free one where it would be. */
static inline uint64_t word_slot(const struct bpe *bpe, const uint8_t *bytes, uint64_t count)
{
    uint64_t hash = hash_farm(bytes, count), mask = bpe->word_count - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
        uint64_t slot = bpe->word[at];
        if (slot == 0)
            return at;
        uint32_t token = (uint32_t)slot - 1;
        if (!((slot ^ hash) >> 32) && bpe->length[token] == count &&
            memcmp(bpe->bytes + bpe->start[token], bytes, count) == 0)
            return at;
    }
}

static inline uint32_t find_word(const struct bpe *bpe, const uint8_t *bytes, uint64_t count)
{
    uint64_t slot = count ? bpe->word[word_slot(bpe, bytes, count)] : 0;
    return slot ? (uint32_t)slot - 1 : NO_TOKEN;
}

static inline struct pair_slot *pair_slot(const struct bpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << 32 | right, hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    uint64_t mask = bpe->pair_count - 1;
    for (uint64_t at = hash >> 32 & mask;; at = (at + 1) & mask)
        if (bpe->pair[at].rank == 0 || bpe->pair[at].key == key)
            return &bpe->pair[at];
}

/* A short piece, its bytes' tokens in place; returns how many are left. */
uint32_t bpe_merge_short(uint32_t *tokens, const struct bpe *bpe, uint32_t count);

#endif
