/* bpe.h - byte-level BPE as GPT-2 has it: vocab.json and merges.txt, texts to token numbers and back.

   A text is cut into pieces by GPT-2's pattern (contractions, words, numbers, the rest, white space); in a piece the
   pair of neighbours that stands first in merges.txt is merged, the leftmost first, until none is left. Bytes that
   are not UTF-8 are kept as they are. Special tokens are not looked for in texts. Read-only once made. */
#ifndef PIPELINE_TEXT_BPE_H
#define PIPELINE_TEXT_BPE_H

#include "base/memory/budget.h"
#include "base/memory/room.h"
#include "graph/tensor.h"

struct bpe;

/* Errors name file and byte. */
plim_status bpe_make(struct bpe **out, struct budget *budget, const char *vocab_path, const char *merges_path,
                     plim_error *error);
void bpe_free(struct bpe *bpe);
/* Its tokens and merges in their order, for a digest of what a pipeline reads. */
struct sha256;
void bpe_content(struct sha256 *sha, const struct bpe *bpe);
/* What it holds once it is made. */
uint64_t bpe_bytes(const struct bpe *bpe);
/* Largest token number + 1. */
int64_t bpe_size(const struct bpe *bpe);
/* -1 when there is no such token, as vocab.json writes it ("<|endoftext|>"). */
int64_t bpe_find(const struct bpe *bpe, const char *token);

/* The numbers of a text, TYPE_I32 or TYPE_I64, in the room. *full: the room is too small (room->wanted tells), and
   nothing was done; 8 bytes a byte of text, and 60 a byte of its longest piece and a little, are enough. PLIM_BAD_DATA:
   a byte of the text has no token. */
plim_status bpe_encode(bool *full, void **numbers, int64_t *count, const struct bpe *bpe, const struct string *text,
                       enum type type, struct room *room, plim_error *error);
/* And back, into the room. */
plim_status bpe_decode(bool *full, struct string *text, const struct bpe *bpe, const int64_t *numbers, int64_t count,
                       struct room *room, plim_error *error);

/* Bytes of the first piece of a text (bytes > 0), by GPT-2's pattern. */
uint64_t bpe_piece(const uint8_t *text, uint64_t bytes);

#endif
