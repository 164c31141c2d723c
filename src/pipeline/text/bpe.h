/* bpe.h - byte-level BPE as GPT-2 has it: vocab.json and merges.txt, texts to token numbers.

   A text is cut into pieces by GPT-2's pattern (contractions, words, numbers, the rest, white space); in a piece the
   pair of neighbours that stands first in merges.txt is merged, the leftmost first, until none is left. Bytes that
   are not UTF-8 are kept as they are. Special tokens are not looked for in texts. Read-only once made. */
#ifndef PIPELINE_TEXT_BPE_H
#define PIPELINE_TEXT_BPE_H

#include "base/memory/budget.h"
#include "base/memory/value_buffer.h"
#include "graph/tensor.h"

struct bpe;

/* Errors name file and byte. */
plim_status bpe_make(struct bpe **out, struct budget *budget, const char *vocab_path, const char *merges_path,
                     plim_error *error);
void bpe_free(struct bpe *bpe);
/* Its tokens and merges in their order, for a digest of what a pipeline reads. */
struct sha256;
void bpe_content(struct sha256 *sha, const struct bpe *bpe);
struct bpe_tokens {
    void *numbers;
    int64_t count;
    bool full; /* the buffer is too small (values->wanted tells), and nothing was done */
};
/* The numbers of a text, TYPE_I32 or TYPE_I64, in the buffer: 8 bytes a byte of text, and 60 a byte of its longest
   piece and a little, are enough. PLIM_BAD_DATA: a byte of the text has no token. */
plim_status bpe_encode(struct bpe_tokens *tokens, const struct bpe *bpe, const struct string *text, enum type type,
                       struct value_buffer *values, plim_error *error);
/* Bytes of the first piece of a text (bytes > 0), by GPT-2's pattern. */
uint64_t bpe_piece(const uint8_t *text, uint64_t bytes);

#endif
