/* vocabulary.h - tokens to numbers: keras.layers.StringLookup and IntegerLookup with a given vocabulary.

   Numbers are, with CATEGORY_INT: 0 the mask token where there is one, then the out-of-vocabulary ones, then the tokens
   in their order; with the others the mask token has none (CATEGORY_NONE). Out of vocabulary: the only number there is
   for it, or one of several by hash (strings: FarmHash, or SipHash with a salt; whole numbers: modulo, or the hash of
   their decimal text). Read-only once made. */
#ifndef PIPELINE_TEXT_VOCABULARY_H
#define PIPELINE_TEXT_VOCABULARY_H

#include "base/memory/budget.h"
#include "pipeline/text/categories.h"
#include "pipeline/text/hashing.h"

struct vocabulary;

struct vocabulary_options {
    bool integers;           /* IntegerLookup: tokens are decimal int64 */
    int64_t num_oov_indices; /* Keras's default is 1; 0: what is not in the vocabulary is PLIM_BAD_DATA */
    const char *mask_token;  /* NULL: none */
    const char *oov_token;   /* NULL: "[UNK]", or "-1"; only looked for at the head of a list */
    bool hash_integers;      /* oov_method: farmhash */
    struct hash_salt salt;
    enum category_output output;
    int64_t max_tokens; /* 0: any number */
    bool pad_to_max_tokens;
};

/* A token a line, as TensorFlow reads them: \r\n or \n, no line empty, none twice, none of more than FILE_WINDOW_ITEM
   bytes. Errors name file and byte. A file that takes more than the budget has left is refused before anything is taken
   for it. */
plim_status vocabulary_make_from_file(struct vocabulary **out, struct budget *budget, const char *path,
                                      const struct vocabulary_options *options, plim_error *error);
/* The mask and oov tokens may stand at the head of the list, as get_vocabulary() gives them. Errors
   are PLIM_BAD_JOB. */
plim_status vocabulary_make_from_list(struct vocabulary **out, struct budget *budget, const char *const *tokens,
                                      int64_t count, const struct vocabulary_options *options, plim_error *error);
void vocabulary_free(struct vocabulary *vocabulary);
/* Its tokens in their order, for a digest of what a pipeline reads. */
struct sha256;
void vocabulary_content(struct sha256 *sha, const struct vocabulary *vocabulary);

/* How many numbers there are: the depth of one_hot and the like. */
int64_t vocabulary_size(const struct vocabulary *vocabulary);
/* -1: not in the vocabulary, and there is no number for that. */
int64_t vocabulary_find(const struct vocabulary *vocabulary, const void *token, uint64_t bytes);
/* A row of tokens: strings, or whole numbers. */
struct token_row {
    const void *values;
    enum type type;
    struct shape shape;
};
/* Into its output (category_shape with vocabulary_size): int64, as Keras has it, whatever the mode. */
plim_status vocabulary_row(void *to, enum type to_type, const struct vocabulary *vocabulary,
                           const struct token_row *tokens, plim_error *error);

#endif
