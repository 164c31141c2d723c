/* bpe.c - byte-level BPE: merges the bytes of pieces to tokens. */
#include <stdio.h>

#include "base/numbers/checked.h"
#include "pipeline/text/bpe_tables.h"

/* ---- merging ---- */

/* A symbol of a piece: a token, and its neighbours. */
struct symbol {
    uint32_t token;
    uint32_t before, after; /* places, or NO_TOKEN */
};

/* The smallest comes first: rank, then place. When the tokens there are others by now, it is void. */
struct candidate {
    uint32_t rank, at;
    uint32_t merged, right;
};

static bool comes_first(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(struct candidate *heap, uint64_t *count, struct candidate entry)
{
    uint64_t at = (*count)++;
    for (; at > 0 && comes_first(&entry, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = entry;
}

static struct candidate heap_pop(struct candidate *heap, uint64_t *count)
{
    struct candidate top = heap[0], entry = heap[--*count];
    uint64_t at = 0;
    for (uint64_t child; (child = 2 * at + 1) < *count; at = child) {
        if (child + 1 < *count && comes_first(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_first(&heap[child], &entry))
            break;
        heap[at] = heap[child];
    }
    heap[at] = entry;
    return top;
}

static void offer_pair(struct candidate *heap, uint64_t *count, const struct bpe *bpe, const struct symbol *symbols,
                       uint32_t at)
{
    uint32_t after = symbols[at].after;
    if (after == NO_TOKEN)
        return;
    uint32_t rank = find_pair(bpe, symbols[at].token, symbols[after].token);
    if (rank != NO_RANK)
        heap_push(heap, count, (struct candidate){rank, at, bpe->merge[rank].merged, symbols[after].token});
}

/* A long piece, in n log n. Each merge takes a symbol away and offers two pairs: 3 n candidates at most. */
static uint32_t merge_long(struct symbol *symbols, struct candidate *heap, const struct bpe *bpe, uint32_t count)
{
    uint64_t candidates = 0;
    for (uint32_t i = 0; i < count; i++) {
        symbols[i].before = i ? i - 1 : NO_TOKEN;
        symbols[i].after = i + 1 < count ? i + 1 : NO_TOKEN;
    }
    for (uint32_t i = 0; i < count; i++)
        offer_pair(heap, &candidates, bpe, symbols, i);
    while (candidates) {
        struct candidate best = heap_pop(heap, &candidates);
        struct symbol *left = &symbols[best.at];
        if (left->token == NO_TOKEN || left->after == NO_TOKEN || symbols[left->after].token != best.right)
            continue;
        if (bpe->merge[best.rank].left != left->token)
            continue;
        struct symbol *right = &symbols[left->after];
        left->token = best.merged;
        right->token = NO_TOKEN;
        left->after = right->after;
        if (right->after != NO_TOKEN)
            symbols[right->after].before = best.at;
        offer_pair(heap, &candidates, bpe, symbols, best.at);
        if (left->before != NO_TOKEN)
            offer_pair(heap, &candidates, bpe, symbols, left->before);
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        if (symbols[i].token != NO_TOKEN)
            symbols[left++].token = symbols[i].token;
    return left;
}

/* rank[i] is that of tokens i and i + 1. */
uint32_t bpe_merge_short(uint32_t *tokens, const struct bpe *bpe, uint32_t count)
{
    uint32_t rank[SHORT_PIECE];
    for (uint32_t i = 0; i + 1 < count; i++)
        rank[i] = find_pair(bpe, tokens[i], tokens[i + 1]);
    for (;;) {
        uint32_t best = 0, best_rank = NO_RANK;
        for (uint32_t i = 0; i + 1 < count; i++)
            if (rank[i] < best_rank) {
                best_rank = rank[i];
                best = i;
            }
        if (best_rank == NO_RANK)
            return count;
        tokens[best] = bpe->merge[best_rank].merged;
        count--;
        memmove(&tokens[best + 1], &tokens[best + 2], (count - best - 1) * sizeof *tokens);
        memmove(&rank[best], &rank[best + 1], (count - best - 1) * sizeof *rank);
        if (best + 1 < count)
            rank[best] = find_pair(bpe, tokens[best], tokens[best + 1]);
        if (best > 0)
            rank[best - 1] = find_pair(bpe, tokens[best - 1], tokens[best]);
    }
}

/* ---- texts ---- */

struct output {
    void *numbers;
    enum type type;
    uint64_t count;
};

static inline void put_token(struct output *out, uint32_t token)
{
    if (out->type == TYPE_I32)
        ((int32_t *)out->numbers)[out->count++] = (int32_t)token;
    else
        ((int64_t *)out->numbers)[out->count++] = (int64_t)token;
}

static plim_status no_token(uint8_t byte, plim_error *error)
{
    return fail(error, PLIM_BAD_DATA, "the vocabulary has no token for byte 0x%02x of the text", byte);
}

static plim_status encode_short(struct output *out, const struct bpe *bpe, const uint8_t *piece, uint32_t bytes,
                                plim_error *error)
{
    uint32_t tokens[SHORT_PIECE];
    for (uint32_t i = 0; i < bytes; i++)
        if ((tokens[i] = bpe->byte_token[piece[i]]) == NO_TOKEN)
            return no_token(piece[i], error);
    uint32_t count = bpe_merge_short(tokens, bpe, bytes);
    for (uint32_t i = 0; i < count; i++)
        put_token(out, tokens[i]);
    return PLIM_OK;
}

static plim_status encode_long(bool *full, struct output *out, const struct bpe *bpe, const uint8_t *piece,
                               uint64_t bytes, struct value_buffer *values, plim_error *error)
{
    uint64_t used = values->used;
    if (bytes >= NO_TOKEN / 4)
        return fail(error, PLIM_BAD_DATA, "a word of %llu bytes", (unsigned long long)bytes);
    struct symbol *symbols = value_buffer_take(values, bytes * sizeof *symbols);
    struct candidate *heap = symbols ? value_buffer_take(values, 3 * bytes * sizeof *heap) : NULL;
    *full = !heap;
    plim_status status = PLIM_OK;
    for (uint64_t i = 0; heap && i < bytes && status == PLIM_OK; i++)
        if ((symbols[i].token = bpe->byte_token[piece[i]]) == NO_TOKEN)
            status = no_token(piece[i], error);
    if (heap && status == PLIM_OK) {
        uint32_t count = merge_long(symbols, heap, bpe, (uint32_t)bytes);
        for (uint32_t i = 0; i < count; i++)
            put_token(out, symbols[i].token);
    }
    values->used = used;
    return status;
}

static plim_status encode_piece(bool *full, struct output *out, const struct bpe *bpe, const uint8_t *piece,
                                uint64_t bytes, struct value_buffer *values, plim_error *error)
{
    uint32_t token = find_word(bpe, piece, bytes);
    if (token != NO_TOKEN && token_is_whole(bpe, token))
        put_token(out, token);
    else if (bytes <= SHORT_PIECE)
        return encode_short(out, bpe, piece, (uint32_t)bytes, error);
    else
        return encode_long(full, out, bpe, piece, bytes, values, error);
    return PLIM_OK;
}

plim_status bpe_encode(struct bpe_tokens *tokens, const struct bpe *bpe, const struct string *text, enum type type,
                       struct value_buffer *values, plim_error *error)
{
    uint64_t used = values->used, most, size = type_bytes(type);
    if (!mul_u64(&most, text->bytes, size))
        most = UINT64_MAX;
    struct output out = {.numbers = value_buffer_take(values, most), .type = type};
    plim_status status = PLIM_OK;
    bool full = !out.numbers;
    for (uint64_t at = 0, piece; !full && status == PLIM_OK && at < text->bytes; at += piece) {
        piece = bpe_piece(text->data + at, text->bytes - at);
        status = encode_piece(&full, &out, bpe, text->data + at, piece, values, error);
    }
    *tokens = (struct bpe_tokens){.numbers = out.numbers, .count = (int64_t)out.count, .full = full};
    if (full || status != PLIM_OK) {
        values->used = used;
        return status;
    }
    values->used -= most - out.count * size; /* there are fewer tokens than bytes */
    return PLIM_OK;
}
