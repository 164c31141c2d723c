/* bpe_read.c - vocab.json and merges.txt into the tables of a byte-level BPE.

   GPT-2's files write a byte that is no visible Latin-1 character as a letter from U+0100 on. Each file is read twice
   through a window: it is counted, then what it takes is taken, once. */
#include <stdio.h>

#include "base/memory/budget_alloc.h"
#include "base/memory/budget_need.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/numbers/digest.h"
#include "base/text/json_file.h"
#include "formats/files/cursor.h"
#include "pipeline/text/bpe_tables.h"

#define MOST_NUMBER ((int64_t)1 << 24)

/* ---- memory ---- */

static uint64_t words_cost(const struct bpe *bpe)
{
    return budget_charge(bpe->byte_count) + budget_charge(4 * (uint64_t)bpe->size) + budget_charge(bpe->whole_bytes) +
           budget_charge(4 * bpe->words.count);
}

static uint64_t merges_cost(const struct bpe *bpe)
{
    return budget_charge(bpe->merge_count * sizeof *bpe->merge) + budget_charge(4 * bpe->pairs.count);
}

void bpe_content(struct sha256 *sha, const struct bpe *bpe)
{
    if (!bpe)
        return;
    sha256_add(sha, bpe->bytes, bpe->byte_count);
    sha256_add(sha, bpe->start, sizeof *bpe->start * (uint64_t)bpe->size);
    sha256_add(sha, bpe->merge, sizeof *bpe->merge * bpe->merge_count);
}

void bpe_free(struct bpe *bpe)
{
    if (!bpe)
        return;
    struct budget *budget = bpe->budget;
    budget_give(budget, TAG_PIPELINE, bpe->pairs.entry, 4 * bpe->pairs.count);
    budget_give(budget, TAG_PIPELINE, bpe->merge, bpe->merge_count * sizeof *bpe->merge);
    budget_give(budget, TAG_PIPELINE, bpe->words.entry, 4 * bpe->words.count);
    budget_give(budget, TAG_PIPELINE, bpe->whole, bpe->whole_bytes);
    budget_give(budget, TAG_PIPELINE, bpe->start, 4 * (size_t)bpe->size);
    budget_give(budget, TAG_PIPELINE, bpe->bytes, bpe->byte_count);
    budget_give(budget, TAG_PIPELINE, bpe, sizeof *bpe);
}

static plim_status take_array(void *out, struct bpe *bpe, uint64_t count, uint64_t size, plim_error *error)
{
    void *block = budget_take_array(bpe->budget, TAG_PIPELINE, count, size);
    if (!block)
        return budget_refused(bpe->budget, TAG_PIPELINE, count * size, error);
    memcpy(out, &block, sizeof block);
    return PLIM_OK;
}

/* Not refused after budget_need, but the system may have none. */
static plim_status take_table(struct index_table *out, struct bpe *bpe, uint64_t keys, uint64_t most, plim_error *error)
{
    uint32_t *entry = NULL;
    uint64_t entries = table_entries(keys);
    TRY(take_array(&entry, bpe, entries, sizeof *entry, error));
    table_init(out, entry, entries, most);
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

struct vocab {
    struct json_file json;
    const char *path;
    uint64_t file_bytes;
    uint32_t count; /* of entries */
    int64_t largest;
    uint64_t bytes; /* that the tokens take, their lengths included */
};

static plim_status next_token(struct json_token *token, struct vocab *vocab, plim_error *error)
{
    plim_status status = json_file_next(token, &vocab->json, error);
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, vocab->path);
}

static plim_status begin_vocab(struct vocab *vocab, plim_error *error)
{
    struct json_token token;
    json_file_set(&vocab->json, 0, vocab->file_bytes);
    TRY(next_token(&token, vocab, error));
    if (token.kind == JSON_OBJECT)
        return PLIM_OK;
    return fail_byte(error, PLIM_BAD_DATA, vocab->path, token.at, "a vocabulary is an object of numbers by token");
}

/* A token of the file: the bytes it stands for, good until the next one. */
struct entry {
    int64_t number;
    const uint8_t *text;
    uint32_t bytes;
    uint64_t at, number_at; /* bytes of the file */
};

static plim_status next_entry(bool *more, struct entry *out, const struct bpe *bpe, struct vocab *vocab,
                              plim_error *error)
{
    struct json_token token;
    char *text;
    TRY(next_token(&token, vocab, error));
    *more = token.kind != JSON_OBJECT_END;
    if (!*more)
        return next_token(&token, vocab, error); /* nothing follows */
    out->number_at = token.at;
    if (!json_whole(&out->number, &token) || out->number >= MOST_NUMBER)
        return fail_byte(error, PLIM_BAD_DATA, vocab->path, token.at, "not a token's number");
    out->at = token.at - (uint64_t)(token.text - token.key);
    if (!json_file_unescape(&text, &vocab->json, token.key, token.key_bytes))
        return fail_byte(error, PLIM_BAD_DATA, vocab->path, out->at, "a bad escape in a token");
    out->bytes = (uint32_t)token_bytes((uint8_t *)text, bpe, text, strlen(text));
    out->text = (const uint8_t *)text;
    if (out->bytes == 0)
        return fail_byte(error, PLIM_BAD_DATA, vocab->path, out->at, "a token without a byte");
    return PLIM_OK;
}

static uint64_t kept_bytes(uint32_t bytes)
{
    return bytes < LONG_TOKEN ? 1 + (uint64_t)bytes : 1 + sizeof bytes + (uint64_t)bytes;
}

/* Once through all: how many there are, and that they are what they should be. */
static plim_status count_entries(struct vocab *vocab, const struct bpe *bpe, plim_error *error)
{
    struct entry entry = {0};
    vocab->count = 0;
    vocab->largest = -1;
    vocab->bytes = 1; /* no token begins at 0 */
    TRY(begin_vocab(vocab, error));
    for (bool more;; vocab->count++) {
        TRY(next_entry(&more, &entry, bpe, vocab, error));
        if (!more)
            break;
        vocab->bytes += kept_bytes(entry.bytes);
        vocab->largest = entry.number > vocab->largest ? entry.number : vocab->largest;
    }
    if (vocab->count == 0)
        return fail_byte(error, PLIM_BAD_DATA, vocab->path, 0, "the vocabulary is empty");
    /* The table of numbers must not cost more than the file that asks for it. */
    if (vocab->largest >= 2 * (int64_t)vocab->count + 1024)
        return fail_byte(error, PLIM_BAD_DATA, vocab->path, vocab->file_bytes, "number %lld in a vocabulary of %u",
                         (long long)vocab->largest, vocab->count);
    if (vocab->bytes > UINT32_MAX || vocab->count >= TABLE_MOST)
        return fail_at(error, PLIM_UNSUPPORTED, vocab->path, "a vocabulary of more than 4 GB");
    return PLIM_OK;
}

static plim_status take_words(struct bpe *bpe, const struct vocab *vocab, plim_error *error)
{
    struct bpe want = {.byte_count = vocab->bytes, .size = (uint32_t)vocab->largest + 1};
    want.whole_bytes = ((uint64_t)want.size + 7) / 8;
    want.words.count = table_entries(vocab->count);
    TRY(budget_need(bpe->budget, words_cost(&want), vocab->path, vocab->count, "tokens", error));
    TRY(take_array(&bpe->start, bpe, want.size, sizeof *bpe->start, error));
    bpe->size = want.size;
    TRY(take_array(&bpe->whole, bpe, want.whole_bytes, 1, error));
    bpe->whole_bytes = want.whole_bytes;
    TRY(take_array(&bpe->bytes, bpe, want.byte_count, 1, error));
    bpe->byte_count = want.byte_count;
    return take_table(&bpe->words, bpe, vocab->count, bpe->size, error);
}

static plim_status keep_token(struct bpe *bpe, uint64_t *used, const struct entry *entry, const char *path,
                              plim_error *error)
{
    if (entry->number >= bpe->size || kept_bytes(entry->bytes) > bpe->byte_count - *used)
        return fail_byte(error, PLIM_BAD_DATA, path, entry->at, "the file is being written to while it is read");
    if (bpe->start[entry->number])
        return fail_byte(error, PLIM_BAD_DATA, path, entry->number_at, "number %lld twice", (long long)entry->number);
    uint8_t *to = bpe->bytes + *used;
    bpe->start[entry->number] = (uint32_t)*used;
    *used += kept_bytes(entry->bytes);
    *to++ = entry->bytes < LONG_TOKEN ? (uint8_t)entry->bytes : LONG_TOKEN;
    if (entry->bytes >= LONG_TOKEN)
        to = (uint8_t *)memcpy(to, &entry->bytes, sizeof entry->bytes) + sizeof entry->bytes;
    memcpy(to, entry->text, entry->bytes);
    return PLIM_OK;
}

static plim_status keep_tokens(struct bpe *bpe, struct vocab *vocab, plim_error *error)
{
    struct entry entry = {0};
    uint64_t used = 1;
    TRY(begin_vocab(vocab, error));
    for (bool more;;) {
        TRY(next_entry(&more, &entry, bpe, vocab, error));
        if (!more)
            return PLIM_OK;
        TRY(keep_token(bpe, &used, &entry, vocab->path, error));
    }
}

static plim_status index_tokens(struct bpe *bpe, const char *path, plim_error *error)
{
    for (int byte = 0; byte < 256; byte++)
        bpe->byte_token[byte] = NO_TOKEN;
    for (uint32_t token = 0; token < bpe->size; token++) {
        TRY(budget_go_on(bpe->budget, error));
        if (bpe->start[token] == 0)
            continue;
        uint32_t count;
        const uint8_t *bytes = token_text(&count, bpe, token);
        uint64_t hash = hash_farm(bytes, count), at = word_entry(bpe, bytes, count, hash);
        if (bpe->words.entry[at])
            return fail_at(error, PLIM_BAD_DATA, path, "byte 0: numbers %u and %u are the same token",
                           table_number(&bpe->words, bpe->words.entry[at]), token);
        table_put(&bpe->words, at, hash, token);
        if (count == 1)
            bpe->byte_token[*bytes] = token;
    }
    return PLIM_OK;
}

static plim_status read_vocab(struct bpe *bpe, struct file *file, uint64_t bytes, plim_error *error)
{
    struct vocab vocab = {.path = file_path(file), .file_bytes = bytes};
    TRY(json_file_open(&vocab.json, bpe->budget, TAG_PIPELINE, file, error));
    plim_status status = count_entries(&vocab, bpe, error);
    if (status == PLIM_OK)
        status = take_words(bpe, &vocab, error);
    if (status == PLIM_OK)
        status = keep_tokens(bpe, &vocab, error);
    json_file_close(&vocab.json);
    return status == PLIM_OK ? index_tokens(bpe, file_path(file), error) : status;
}

/* ---- merges.txt ---- */

/* The next line that is a merge; NULL at the end. */
static plim_status next_merge(char **line, size_t *bytes, uint64_t *at, struct file_window *window, plim_error *error)
{
    for (;;) {
        TRY(file_window_line(line, bytes, at, window, error));
        bool version = *line && *at == 0 && *bytes >= 8 && memcmp(*line, "#version", 8) == 0;
        if (!*line || (*bytes && !version))
            return PLIM_OK;
    }
}

/* "left right", `at` byte of the file. The text is overwritten. */
static plim_status parse_merge(struct merge *out, struct bpe *bpe, char *line, uint64_t bytes, const char **wrong)
{
    char *blank = memchr(line, ' ', bytes);
    uint64_t left_bytes = blank ? (uint64_t)(blank - line) : 0;
    *wrong = "a merge is two tokens with a blank between them";
    if (!blank || left_bytes == 0 || left_bytes + 1 == bytes || memchr(blank + 1, ' ', bytes - left_bytes - 1))
        return PLIM_BAD_DATA;
    left_bytes = token_bytes((uint8_t *)line, bpe, line, left_bytes);
    uint64_t right_bytes =
        token_bytes((uint8_t *)line + left_bytes, bpe, blank + 1, bytes - (uint64_t)(blank + 1 - line));
    out->left = find_word(bpe, (uint8_t *)line, left_bytes);
    out->right = find_word(bpe, (uint8_t *)line + left_bytes, right_bytes);
    out->merged = find_word(bpe, (uint8_t *)line, left_bytes + right_bytes);
    *wrong = out->left == NO_TOKEN    ? "the left token of this merge is not in the vocabulary"
             : out->right == NO_TOKEN ? "the right token of this merge is not in the vocabulary"
                                      : "the result of this merge is not in the vocabulary";
    bool known = out->left != NO_TOKEN && out->right != NO_TOKEN && out->merged != NO_TOKEN;
    return known ? PLIM_OK : PLIM_BAD_DATA;
}

static plim_status add_merge(struct bpe *bpe, uint32_t rank, char *line, uint64_t bytes, const char **wrong)
{
    struct merge merge;
    TRY(parse_merge(&merge, bpe, line, bytes, wrong));
    uint64_t hash = pair_hash(merge.left, merge.right), at = pair_entry(bpe, merge.left, merge.right, hash);
    *wrong = bpe->pairs.entry[at] ? "this merge is there twice" : "the file is being written to while it is read";
    if (bpe->pairs.entry[at] || rank >= bpe->merge_count)
        return PLIM_BAD_DATA;
    bpe->merge[rank] = merge;
    table_put(&bpe->pairs, at, hash, rank);
    return PLIM_OK;
}

static plim_status take_merges(struct bpe *bpe, uint64_t count, const char *path, plim_error *error)
{
    struct bpe want = {.merge_count = count};
    want.pairs.count = table_entries(count);
    if (count >= TABLE_MOST)
        return fail_at(error, PLIM_UNSUPPORTED, path, "more than %llu merges", (unsigned long long)TABLE_MOST);
    TRY(budget_need(bpe->budget, merges_cost(&want), path, count, "merges", error));
    TRY(take_array(&bpe->merge, bpe, count, sizeof *bpe->merge, error));
    bpe->merge_count = count;
    return take_table(&bpe->pairs, bpe, count, count, error);
}

static plim_status read_lines(struct bpe *bpe, struct file_window *window, uint64_t file_bytes, plim_error *error)
{
    char *line;
    const char *wrong;
    size_t bytes;
    uint64_t count = 0, at = 0;
    for (file_window_set(window, 0, file_bytes);; count++) {
        TRY(next_merge(&line, &bytes, &at, window, error));
        if (!line)
            break;
    }
    TRY(take_merges(bpe, count, file_path(window->file), error));
    file_window_set(window, 0, file_bytes);
    for (uint32_t rank = 0;; rank++) {
        TRY(next_merge(&line, &bytes, &at, window, error));
        if (!line)
            return PLIM_OK;
        if (add_merge(bpe, rank, line, bytes, &wrong) != PLIM_OK)
            return fail_byte(error, PLIM_BAD_DATA, file_path(window->file), at, "%s", wrong);
    }
}

static plim_status read_merges(struct bpe *bpe, struct file *file, uint64_t bytes, plim_error *error)
{
    struct file_window window;
    TRY(file_window_open(&window, bpe->budget, TAG_PIPELINE, file, error));
    plim_status status = read_lines(bpe, &window, bytes, error);
    file_window_close(&window);
    return status;
}

/* ---- making ---- */

/* Which tokens merging makes of their own bytes. Long ones are left to merging: nobody meets them. */
static plim_status find_whole(struct bpe *bpe, plim_error *error)
{
    for (uint32_t token = 0; token < bpe->size; token++) {
        TRY(budget_go_on(bpe->budget, error));
        uint32_t tokens[SHORT_PIECE], bytes = 0;
        const uint8_t *text = bpe->start[token] ? token_text(&bytes, bpe, token) : NULL;
        bool known = bytes > 0 && bytes <= SHORT_PIECE;
        for (uint32_t i = 0; known && i < bytes; i++)
            known = (tokens[i] = bpe->byte_token[text[i]]) != NO_TOKEN;
        if (known && bpe_merge_short(tokens, bpe, bytes) == 1 && tokens[0] == token)
            bpe->whole[token / 8] |= (uint8_t)(1u << token % 8);
    }
    return PLIM_OK;
}

static plim_status read_file(struct bpe *bpe, const char *path,
                             plim_status (*parse)(struct bpe *bpe, struct file *file, uint64_t bytes,
                                                  plim_error *error),
                             plim_error *error)
{
    struct file *file;
    uint64_t bytes;
    TRY(file_open(&file, bpe->budget, path, FILE_READ, error));
    plim_status status = file_size(&bytes, file, error);
    if (status == PLIM_OK)
        status = parse(bpe, file, bytes, error);
    file_close(file);
    return status;
}

plim_status bpe_make(struct bpe **out, struct budget *budget, const char *vocab_path, const char *merges_path,
                     plim_error *error)
{
    struct bpe *bpe;
    TRY(budget_alloc(&bpe, budget, TAG_PIPELINE, sizeof *bpe, error));
    bpe->budget = budget;
    name_bytes(bpe);
    plim_status status = read_file(bpe, vocab_path, read_vocab, error);
    if (status == PLIM_OK)
        status = read_file(bpe, merges_path, read_merges, error);
    if (status == PLIM_OK)
        status = find_whole(bpe, error);
    return OPENED(out, bpe, bpe_free, status);
}
