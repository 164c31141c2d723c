/* fuzz_bpe.c - any bytes as a vocabulary, merges and a text, a line of '=' between them: read, encoded, decoded. */
#include <string.h>

#include "fuzz_file.h"
#include "pipeline/text/bpe_tables.h"

#define ROOM_BYTES ((size_t)1 << 18)

static const uint8_t *next_part(const uint8_t **at, size_t *bytes, size_t *part_bytes)
{
    const uint8_t *part = *at, *end = *bytes ? memmem(*at, *bytes, "\n=\n", 3) : NULL;
    *part_bytes = end ? (size_t)(end - part) + 1 : *bytes;
    *at = end ? end + 3 : part + *bytes;
    *bytes -= (size_t)(*at - part);
    return part;
}

/* What comes back must be the text. */
static void use(const struct bpe *bpe, const uint8_t *data, size_t bytes)
{
    static _Alignas(64) uint8_t block[ROOM_BYTES];
    struct value_buffer values;
    struct string text = {data, bytes};
    struct bpe_tokens tokens;
    value_buffer_init(&values, block, sizeof block);
    if (bpe_encode(&tokens, bpe, &text, TYPE_I64, &values, NULL) != PLIM_OK || tokens.full)
        return;
    uint64_t at = 0;
    for (int64_t i = 0; i < tokens.count; i++) { /* the tokens' bytes are the text */
        uint32_t token_bytes;
        const uint8_t *token = token_text(&token_bytes, bpe, (uint32_t)((const int64_t *)tokens.numbers)[i]);
        if (token_bytes > bytes - at || memcmp(data + at, token, token_bytes) != 0)
            abort();
        at += token_bytes;
    }
    if (at != bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct budget *budget;
    struct fuzz_file vocab, merges;
    struct bpe *bpe;
    size_t vocab_bytes, merges_bytes, whole = bytes;
    const uint8_t *vocab_data = next_part(&data, &bytes, &vocab_bytes);
    const uint8_t *merges_data = next_part(&data, &bytes, &merges_bytes);
    if (!fuzz_file_open(&vocab, vocab_data, vocab_bytes))
        return 0;
    if (fuzz_file_open(&merges, merges_data, merges_bytes)) {
        if (budget_make(&budget, whole + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK) {
            plim_status status = bpe_make(&bpe, budget, vocab.path, merges.path, NULL);
            if (status == PLIM_OK) {
                use(bpe, data, bytes);
                bpe_free(bpe);
            }
            fuzz_budget_free(budget, whole, status);
        }
        fuzz_file_close(&merges);
    }
    fuzz_file_close(&vocab);
    return 0;
}
