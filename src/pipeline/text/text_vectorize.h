/* text_vectorize.h - keras.layers.TextVectorization with a given vocabulary: a text into the numbers of its tokens.

   Standardise (ASCII letters lowered, ASCII punctuation dropped), split, join neighbours to n-grams, look up. Number 0
   pads, 1 is out of vocabulary, with int; with multi_hot and count 0 is out of vocabulary. */
#ifndef PIPELINE_TEXT_TEXT_VECTORIZE_H
#define PIPELINE_TEXT_TEXT_VECTORIZE_H

#include "base/memory/value_buffer.h"
#include "pipeline/text/vocabulary.h"

#define MOST_NGRAMS      8  /* different widths */
#define MOST_NGRAM_WIDTH 16 /* tokens in one */

enum text_split_by { SPLIT_WHITESPACE, SPLIT_CHARACTER, SPLIT_NONE };

struct text_vectorizer {
    const struct vocabulary *vocabulary; /* made with text_vocabulary_options */
    bool lower, strip_punctuation;
    enum text_split_by split;
    int ngram_count; /* 0: tokens alone */
    int ngram[MOST_NGRAMS];
    enum category_output output;
    int64_t output_sequence_length; /* 0: as many as there are */
};

/* Keras's words; NULL is its default, "none" its None. PLIM_BAD_JOB without a place. */
plim_status text_standardize_from_name(struct text_vectorizer *vectorizer, const char *name, plim_error *error);
plim_status text_split_from_name(struct text_vectorizer *vectorizer, const char *name, plim_error *error);
/* ngrams: 2 is the widths 1 and 2. */
plim_status text_ngrams_up_to(struct text_vectorizer *vectorizer, int64_t width, plim_error *error);
/* What does not go together. */
plim_status text_vectorizer_check(const struct text_vectorizer *vectorizer, plim_error *error);
/* What Keras makes its vocabulary with. */
struct vocabulary_options text_vocabulary_options(const struct text_vectorizer *vectorizer);

/* Whether a row of the output is of fixed shape, and which. */
bool text_vectorizer_shape(struct shape *out, const struct text_vectorizer *vectorizer);
/* A text into a row of fixed shape, elements TYPE_I64 or TYPE_I32 (multi_hot, count: TYPE_F32 too). The buffer is used
   and left as it was. *full: it is too small (values->wanted tells), nothing was done. */
void text_vectorize_row(bool *full, void *to, enum type to_type, const struct text_vectorizer *vectorizer,
                        const struct string *text, struct value_buffer *values);
/* A text into as many numbers as it has tokens, in the value buffer; false when the value buffer is full. */
bool text_vectorize(int64_t **numbers, int64_t *count, const struct text_vectorizer *vectorizer,
                    const struct string *text, struct value_buffer *values);

#endif
