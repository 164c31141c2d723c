/* bpe_tables.h - the tables of a byte-level BPE, for bpe.c and bpe_read.c.

   1. Tokens are kept as the bytes they stand for, one after another, each with its length in front: one byte, or
      LONG_TOKEN and four. start[t] is where that of token t begins; 0: there is no such token.
   2. merges[rank] is (left, right) and what becomes of them. Two tables find ranks by pair, and numbers by the bytes of
      a token.
   3. A token that merging makes of its own bytes is whole: a piece of text with its bytes is that token, and need not
      be merged. The others (special tokens) are never made of texts.
   A token costs its bytes and 11 more, a merge 18. */
#ifndef PIPELINE_TEXT_BPE_TABLES_H
#define PIPELINE_TEXT_BPE_TABLES_H

#include <string.h>

#include "base/sets/index_table.h"
#include "pipeline/text/bpe.h"
#include "pipeline/text/hashing.h"

#define NO_TOKEN    UINT32_MAX
#define NO_RANK     UINT32_MAX
#define SHORT_PIECE 48 /* bytes that are merged by looking at all pairs again and again */
#define LONG_TOKEN  255

struct merge {
    uint32_t left, right, merged;
};

struct bpe {
    struct budget *budget;
    uint8_t *bytes;
    uint32_t *start;
    uint8_t *whole; /* a bit a token */
    struct index_table words, pairs;
    struct merge *merge;
    uint64_t byte_count, merge_count, whole_bytes;
    uint32_t size;
    uint32_t byte_token[256];
    int16_t byte_of[0x180]; /* which byte a character of the files stands for; -1: none */
};

/* The bytes of a token that there is. */
static inline const uint8_t *token_text(uint32_t *bytes, const struct bpe *bpe, uint32_t token)
{
    const uint8_t *text = bpe->bytes + bpe->start[token];
    *bytes = *text++;
    if (*bytes < LONG_TOKEN)
        return text;
    memcpy(bytes, text, sizeof *bytes);
    return text + sizeof *bytes;
}

static inline bool token_is_whole(const struct bpe *bpe, uint32_t token)
{
    return bpe->whole[token / 8] >> token % 8 & 1;
}

static inline bool token_is(const struct bpe *bpe, uint32_t token, const uint8_t *bytes, uint64_t count)
{
    uint32_t own_count;
    const uint8_t *own = token_text(&own_count, bpe, token);
    return own_count == count && memcmp(own, bytes, count) == 0;
}

/* The entry of the token, or the free one where it would be. */
static inline uint64_t word_entry(const struct bpe *bpe, const uint8_t *bytes, uint64_t count, uint64_t hash)
{
    for (uint64_t at = table_first(&bpe->words, hash);; at = table_next(&bpe->words, at)) {
        uint32_t entry = bpe->words.entry[at];
        if (entry == 0 ||
            (table_may_be(&bpe->words, entry, hash) && token_is(bpe, table_number(&bpe->words, entry), bytes, count)))
            return at;
    }
}

static inline uint32_t find_word(const struct bpe *bpe, const uint8_t *bytes, uint64_t count)
{
    uint32_t entry = count ? bpe->words.entry[word_entry(bpe, bytes, count, hash_farm(bytes, count))] : 0;
    return entry ? table_number(&bpe->words, entry) : NO_TOKEN;
}

/* The low half takes part in what the product made of the high one. */
static inline uint64_t pair_hash(uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << 32 | right, hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static inline uint64_t pair_entry(const struct bpe *bpe, uint32_t left, uint32_t right, uint64_t hash)
{
    for (uint64_t at = table_first(&bpe->pairs, hash);; at = table_next(&bpe->pairs, at)) {
        uint32_t entry = bpe->pairs.entry[at];
        if (entry == 0)
            return at;
        if (!table_may_be(&bpe->pairs, entry, hash))
            continue;
        const struct merge *merge = &bpe->merge[table_number(&bpe->pairs, entry)];
        if (merge->left == left && merge->right == right)
            return at;
    }
}

/* NO_RANK: nothing becomes of this pair. */
static inline uint32_t find_pair(const struct bpe *bpe, uint32_t left, uint32_t right)
{
    uint32_t entry = bpe->pairs.entry[pair_entry(bpe, left, right, pair_hash(left, right))];
    return entry ? table_number(&bpe->pairs, entry) : NO_RANK;
}

/* A short piece, its bytes' tokens in place; returns how many are left. */
uint32_t bpe_merge_short(uint32_t *tokens, const struct bpe *bpe, uint32_t count);

#endif
