/* bpe_read.c - vocab.json and merges.txt into the tables of a byte-level BPE.

   GPT-2's files write a byte that is no visible Latin-1 character as a letter from U+0100 on. */
#include <stdio.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/cursor.h"
#include "pipeline/bpe_tables.h"

#define MOST_FILE_BYTES ((size_t)256 << 20)
#define MOST_NUMBER     ((int64_t)1 << 24)

/* ---- memory ---- */

static uint64_t slots_for(uint64_t entries)
{
    uint64_t slots = 8;
    while (slots < entries + entries / 2)
        slots *= 2;
    return slots;
}

uint64_t bpe_bytes(const struct bpe *bpe)
{
    return budget_charge(sizeof *bpe) + budget_charge(bpe->byte_count) + 2 * budget_charge(4 * (uint64_t)bpe->size) +
           budget_charge(bpe->size) + budget_charge(8 * bpe->word_count) +
           budget_charge(sizeof(struct pair_slot) * bpe->pair_count);
}

void bpe_free(struct bpe *bpe)
{
    if (!bpe)
        return;
    struct budget *budget = bpe->budget;
    budget_give(budget, TAG_PIPELINE, bpe->pair, bpe->pair_count * sizeof *bpe->pair);
    budget_give(budget, TAG_PIPELINE, bpe->word, bpe->word_count * sizeof *bpe->word);
    budget_give(budget, TAG_PIPELINE, bpe->is_whole, bpe->size);
    budget_give(budget, TAG_PIPELINE, bpe->length, 4 * (size_t)bpe->size);
    budget_give(budget, TAG_PIPELINE, bpe->start, 4 * (size_t)bpe->size);
    budget_give(budget, TAG_PIPELINE, bpe->bytes, bpe->byte_count);
    budget_give(budget, TAG_PIPELINE, bpe, sizeof *bpe);
}

static plim_status take(void *out, struct bpe *bpe, uint64_t count, uint64_t size, plim_error *error)
{
    void *block = budget_take_array(bpe->budget, TAG_PIPELINE, count, size);
    if (!block)
        return budget_refused(bpe->budget, TAG_PIPELINE, count * size, error);
    memcpy(out, &block, sizeof block);
    return PLIM_OK;
}

/* ---- the characters of the files ---- */

static void name_bytes(struct bpe *bpe)
{
    int next = 0x100;
    for (int c = 0; c < 0x180; c++)
        bpe->byte_of[c] = -1;
    for (int byte = 0; byte < 256; byte++) {
        bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        bpe->byte_of[visible ? byte : next++] = (int16_t)byte;
    }
}

/* The bytes that a token of the files stands for. One with other characters stands for its own bytes. `to` may be
   `text`. */
static uint64_t token_bytes(uint8_t *to, const struct bpe *bpe, const char *text, uint64_t bytes)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < bytes; count++) {
        const uint8_t *p = (const uint8_t *)text + i;
        uint64_t length = json_utf8_length(text + i, bytes - i);
        uint32_t code = length == 1 ? p[0] : length == 2 ? (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f) : 0x180;
        if (code >= 0x180 || bpe->byte_of[code] < 0) {
            memmove(to, text, bytes);
            return bytes;
        }
        i += length;
    }
    for (uint64_t i = 0, k = 0; k < count; k++) {
        const uint8_t *p = (const uint8_t *)text + i;
        uint32_t code = p[0] < 0x80 ? p[0] : (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
        i += p[0] < 0x80 ? 1 : 2;
        to[k] = (uint8_t)bpe->byte_of[code];
    }
    return count;
}

/* ---- vocab.json ---- */

struct entries {
    uint32_t count;
    int64_t largest;
};

static plim_status next_entry(struct json_token *token, struct json_reader *reader, const char *path, plim_error *error)
{
    plim_status status = json_next(token, reader, error);
    return status == PLIM_OK ? PLIM_OK : place(error, status, path);
}

/* Once through all: how many there are, and that they are what they should be. */
static plim_status count_entries(struct entries *out, const char *text, size_t bytes, const char *path,
                                 plim_error *error)
{
    struct json_reader reader;
    struct json_token token;
    struct entries entries = {.largest = -1};
    json_read_init(&reader, text, bytes);
    TRY(next_entry(&token, &reader, path, error));
    if (token.kind != JSON_OBJECT)
        return fail_byte(error, PLIM_BAD_DATA, path, token.at, "a vocabulary is an object of numbers by token");
    for (;; entries.count++) {
        int64_t number;
        TRY(next_entry(&token, &reader, path, error));
        if (token.kind == JSON_OBJECT_END)
            break;
        if (!json_whole(&number, &token) || number >= MOST_NUMBER)
            return fail_byte(error, PLIM_BAD_DATA, path, token.at, "not a token's number");
        entries.largest = number > entries.largest ? number : entries.largest;
    }
    TRY(next_entry(&token, &reader, path, error));
    /* The table of numbers must not cost more than the file that asks for it. */
    if (entries.largest >= 2 * (int64_t)entries.count + 1024)
        return fail_byte(error, PLIM_BAD_DATA, path, token.at, "number %lld in a vocabulary of %u",
                         (long long)entries.largest, entries.count);
    *out = entries;
    return PLIM_OK;
}

/* The key's bytes go to text[*used], which lies before the key: what was read is not needed any more. */
static plim_status keep_token(struct bpe *bpe, char *text, uint32_t *used, const struct json_token *token,
                              const char *path, plim_error *error)
{
    int64_t number = 0;
    char *to = text + *used;
    uint64_t at = (uint64_t)(token->key - text);
    json_whole(&number, token);
    if (!json_unescape(to, token->key_bytes + 1, token->key, token->key_bytes))
        return fail_byte(error, PLIM_BAD_DATA, path, at, "a bad escape in a token");
    uint32_t bytes = (uint32_t)token_bytes((uint8_t *)to, bpe, to, strlen(to));
    if (bytes == 0)
        return fail_byte(error, PLIM_BAD_DATA, path, at, "a token without a byte");
    if (bpe->length[number])
        return fail_byte(error, PLIM_BAD_DATA, path, token->at, "number %lld twice", (long long)number);
    bpe->start[number] = *used;
    bpe->length[number] = bytes;
    *used += bytes;
    return PLIM_OK;
}

/* Afterwards the text is nothing but tokens, *used bytes of them. */
static plim_status keep_tokens(uint32_t *used, struct bpe *bpe, char *text, size_t bytes, const char *path,
                               plim_error *error)
{
    struct json_reader reader;
    struct json_token token;
    *used = 0;
    json_read_init(&reader, text, bytes);
    TRY(next_entry(&token, &reader, path, error));
    for (;;) {
        TRY(next_entry(&token, &reader, path, error));
        if (token.kind == JSON_OBJECT_END)
            return PLIM_OK;
        TRY(keep_token(bpe, text, used, &token, path, error));
    }
}

static plim_status index_tokens(struct bpe *bpe, uint32_t entries, const char *path, plim_error *error)
{
    uint64_t slots = slots_for(entries);
    TRY(take(&bpe->word, bpe, slots, sizeof *bpe->word, error));
    bpe->word_count = slots;
    for (int byte = 0; byte < 256; byte++)
        bpe->byte_token[byte] = NO_TOKEN;
    for (uint32_t token = 0; token < bpe->size; token++) {
        const uint8_t *bytes = bpe->bytes + bpe->start[token];
        if (bpe->length[token] == 0)
            continue;
        uint64_t at = word_slot(bpe, bytes, bpe->length[token]);
        if (bpe->word[at])
            return fail_at(error, PLIM_BAD_DATA, path, "byte 0: numbers %u and %u are the same token",
                           (uint32_t)bpe->word[at] - 1, token);
        bpe->word[at] = (hash_farm(bytes, bpe->length[token]) & 0xffffffff00000000u) | (token + 1);
        if (bpe->length[token] == 1)
            bpe->byte_token[*bytes] = token;
    }
    return PLIM_OK;
}

static plim_status parse_vocab(struct bpe *bpe, char *text, size_t bytes, const char *path, plim_error *error)
{
    struct entries entries = {0};
    uint32_t used = 0;
    uint8_t *kept = NULL;
    TRY(count_entries(&entries, text, bytes, path, error));
    if (entries.count == 0)
        return fail_byte(error, PLIM_BAD_DATA, path, 0, "the vocabulary is empty");
    TRY(take(&bpe->start, bpe, (uint64_t)entries.largest + 1, 4, error));
    bpe->size = (uint32_t)entries.largest + 1;
    TRY(take(&bpe->length, bpe, bpe->size, 4, error));
    TRY(take(&bpe->is_whole, bpe, bpe->size, 1, error));
    TRY(keep_tokens(&used, bpe, text, bytes, path, error));
    TRY(take(&kept, bpe, used, 1, error));
    bpe->bytes = memcpy(kept, text, used);
    bpe->byte_count = used;
    return index_tokens(bpe, entries.count, path, error);
}

/* ---- merges.txt ---- */

static uint64_t count_lines(const char *text, size_t bytes)
{
    uint64_t lines = 1;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    return lines;
}

/* "left right", `at` byte of the file. The text is overwritten. */
static plim_status add_merge(struct bpe *bpe, uint32_t rank, char *line, uint64_t bytes, const char *path, uint64_t at,
                             plim_error *error)
{
    char *blank = memchr(line, ' ', bytes);
    uint64_t left_bytes = blank ? (uint64_t)(blank - line) : 0;
    if (!blank || left_bytes == 0 || left_bytes + 1 == bytes || memchr(blank + 1, ' ', bytes - left_bytes - 1))
        return fail_byte(error, PLIM_BAD_DATA, path, at, "a merge is two tokens with a blank between them");
    left_bytes = token_bytes((uint8_t *)line, bpe, line, left_bytes);
    uint64_t right_bytes =
        token_bytes((uint8_t *)line + left_bytes, bpe, blank + 1, bytes - (uint64_t)(blank + 1 - line));
    uint32_t left = find_word(bpe, (uint8_t *)line, left_bytes);
    uint32_t right = find_word(bpe, (uint8_t *)line + left_bytes, right_bytes);
    uint32_t merged = find_word(bpe, (uint8_t *)line, left_bytes + right_bytes);
    if (left == NO_TOKEN || right == NO_TOKEN || merged == NO_TOKEN)
        return fail_byte(error, PLIM_BAD_DATA, path, at, "%s of this merge is not in the vocabulary",
                         left == NO_TOKEN    ? "the left token"
                         : right == NO_TOKEN ? "the right token"
                                             : "the result");
    struct pair_slot *slot = pair_slot(bpe, left, right);
    if (slot->rank)
        return fail_byte(error, PLIM_BAD_DATA, path, at, "this merge is there twice");
    *slot = (struct pair_slot){.key = (uint64_t)left << 32 | right, .rank = rank, .merged = merged};
    return PLIM_OK;
}

static plim_status parse_merges(struct bpe *bpe, char *text, size_t bytes, const char *path, plim_error *error)
{
    uint64_t slots = slots_for(count_lines(text, bytes));
    uint32_t rank = 0;
    TRY(take(&bpe->pair, bpe, slots, sizeof *bpe->pair, error));
    bpe->pair_count = slots;
    for (size_t at = 0; at < bytes;) {
        char *line = text + at, *end = memchr(line, '\n', bytes - at);
        size_t length = end ? (size_t)(end - line) : bytes - at, next = at + length + 1;
        if (length && line[length - 1] == '\r')
            length--;
        bool version = at == 0 && length >= 8 && memcmp(line, "#version", 8) == 0;
        if (length && !version)
            TRY(add_merge(bpe, ++rank, line, length, path, at, error));
        at = next;
    }
    return PLIM_OK;
}

/* ---- making ---- */

int64_t bpe_size(const struct bpe *bpe)
{
    return bpe->size;
}

int64_t bpe_find(const struct bpe *bpe, const char *token)
{
    uint8_t bytes[256];
    uint64_t length = strlen(token);
    if (length == 0 || length > sizeof bytes)
        return -1;
    uint32_t found = find_word(bpe, bytes, token_bytes(bytes, bpe, token, length));
    return found == NO_TOKEN ? -1 : (int64_t)found;
}

/* Which tokens merging makes of their own bytes. Long ones are left to merging: nobody meets them. */
static void find_whole(struct bpe *bpe)
{
    for (uint32_t token = 0; token < bpe->size; token++) {
        uint32_t tokens[SHORT_PIECE], bytes = bpe->length[token];
        bool known = bytes > 0 && bytes <= SHORT_PIECE;
        for (uint32_t i = 0; known && i < bytes; i++)
            known = (tokens[i] = bpe->byte_token[bpe->bytes[bpe->start[token] + i]]) != NO_TOKEN;
        bpe->is_whole[token] = known && bpe_merge_short(tokens, bpe, bytes) == 1 && tokens[0] == token;
    }
}

static plim_status load(struct bpe *bpe, const char *path,
                        plim_status (*parse)(struct bpe *bpe, char *text, size_t bytes, const char *path,
                                             plim_error *error),
                        plim_error *error)
{
    char *text;
    size_t bytes;
    TRY(file_load(&text, &bytes, bpe->budget, TAG_PIPELINE, path, MOST_FILE_BYTES, error));
    plim_status status = parse(bpe, text, bytes, path, error);
    budget_give(bpe->budget, TAG_PIPELINE, text, bytes + 1);
    return status;
}

plim_status bpe_make(struct bpe **out, struct budget *budget, const char *vocab_path, const char *merges_path,
                     plim_error *error)
{
    struct bpe *bpe = budget_take(budget, TAG_PIPELINE, sizeof *bpe);
    if (!bpe)
        return budget_refused(budget, TAG_PIPELINE, sizeof *bpe, error);
    bpe->budget = budget;
    name_bytes(bpe);
    plim_status status = load(bpe, vocab_path, parse_vocab, error);
    if (status == PLIM_OK)
        status = load(bpe, merges_path, parse_merges, error);
    if (status != PLIM_OK) {
        bpe_free(bpe);
        return status;
    }
    find_whole(bpe);
    *out = bpe;
    return PLIM_OK;
}
