/* text_vectorize.c - a text into the numbers of its tokens.

   The text is first written anew into the buffer: standardised, its tokens with one blank between them. An n-gram is
   then a piece of it, blanks included, as Keras joins them; nothing more is copied. */
#include "pipeline/text/text_vectorize.h"

#include <string.h>

#include "base/numbers/count.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "pipeline/text/text_split.h"

/* ---- words of job files ---- */

/* Which of the names it is; NULL is the first. */
static plim_status choose(int *out, const char *what, const char *name, const char *const *names, int count,
                          plim_error *error)
{
    for (*out = 0; *out < count; ++*out)
        if (strcmp(name ? name : names[0], names[*out]) == 0)
            return PLIM_OK;
    const char *near = text_nearest(name, names, (size_t)count);
    fail(error, PLIM_BAD_JOB, "unknown %s '%s'", what, name);
    return near ? hint(error, PLIM_BAD_JOB, "did you mean '%s'?", near) : PLIM_BAD_JOB;
}

plim_status text_standardize_from_name(struct text_vectorizer *vectorizer, const char *name, plim_error *error)
{
    static const char *const names[] = {"lower_and_strip_punctuation", "lower", "strip_punctuation", "none"};
    int which = 0;
    TRY(choose(&which, "standardize", name, names, COUNT(names), error));
    vectorizer->lower = which < 2;
    vectorizer->strip_punctuation = which % 2 == 0;
    return PLIM_OK;
}

plim_status text_split_from_name(struct text_vectorizer *vectorizer, const char *name, plim_error *error)
{
    static const char *const names[] = {"whitespace", "character", "none"};
    int which = 0;
    TRY(choose(&which, "split", name, names, COUNT(names), error));
    vectorizer->split = (enum text_split_by)which;
    return PLIM_OK;
}

plim_status text_ngrams_up_to(struct text_vectorizer *vectorizer, int64_t width, plim_error *error)
{
    if (width < 1 || width > MOST_NGRAMS)
        return fail(error, PLIM_BAD_JOB, "ngrams must be from 1 to %d", MOST_NGRAMS);
    vectorizer->ngram_count = (int)width;
    for (int i = 0; i < width; i++)
        vectorizer->ngram[i] = i + 1;
    return PLIM_OK;
}

plim_status text_vectorizer_check(const struct text_vectorizer *vectorizer, plim_error *error)
{
    for (int i = 0; i < vectorizer->ngram_count; i++)
        if (vectorizer->ngram[i] < 1 || vectorizer->ngram[i] > MOST_NGRAM_WIDTH)
            return fail(error, PLIM_BAD_JOB, "ngrams must be from 1 to %d", MOST_NGRAM_WIDTH);
    if (vectorizer->output == CATEGORY_ONE_HOT)
        return fail(error, PLIM_UNSUPPORTED, "output_mode 'one_hot' is not offered for texts: multi_hot or count");
    if (vectorizer->output != CATEGORY_INT && vectorizer->output_sequence_length)
        return fail(error, PLIM_BAD_JOB, "output_sequence_length goes with output_mode 'int' only");
    if (vectorizer->split == SPLIT_NONE && (vectorizer->output_sequence_length || vectorizer->ngram_count))
        return fail(error, PLIM_UNSUPPORTED, "split 'none' makes one token: neither ngrams nor output_sequence_length");
    return PLIM_OK;
}

struct vocabulary_options text_vocabulary_options(const struct text_vectorizer *vectorizer)
{
    return (struct vocabulary_options){.num_oov_indices = 1, .mask_token = "", .output = vectorizer->output};
}

/* ---- the text, written anew ---- */

static inline bool is_punctuation(uint8_t c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

static inline uint8_t lowered(const struct text_vectorizer *vectorizer, uint8_t c)
{
    return vectorizer->lower && c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* Bytes of the text anew, at most. */
static uint64_t clean_bytes(const struct text_vectorizer *vectorizer, uint64_t bytes)
{
    if (vectorizer->split != SPLIT_CHARACTER)
        return bytes;
    return bytes > UINT64_MAX / 4 ? UINT64_MAX : 4 * bytes; /* a bad byte becomes U+FFFD, and a blank follows */
}

static uint64_t clean_words(uint8_t *to, const struct text_vectorizer *vectorizer, const struct string *text)
{
    uint8_t *start = to;
    bool blank = false, by_space = vectorizer->split == SPLIT_WHITESPACE;
    for (uint64_t i = 0; i < text->bytes; i++) {
        uint8_t c = text->data[i];
        if (vectorizer->strip_punctuation && is_punctuation(c))
            continue;
        if (by_space && is_blank(c)) {
            blank = to > start;
            continue;
        }
        if (blank)
            *to++ = ' ';
        blank = false;
        *to++ = lowered(vectorizer, c);
    }
    return (uint64_t)(to - start);
}

/* Bytes of a cut-off character, at most three, that TensorFlow replaces together: a good beginning. */
static uint64_t bad_bytes(const uint8_t *p, uint64_t left)
{
    static const uint8_t fill[3] = {0x80, 0x80, 0x80};
    uint64_t good = 1;
    for (uint64_t n = 2; n <= 3 && n <= left; n++) {
        char whole[4] = {0};
        size_t length = p[0] >= 0xf0 ? 4 : 3;
        if (p[0] < 0xe0 || n >= length)
            break;
        memcpy(whole, p, n);
        memcpy(whole + n, fill, length - n);
        if (json_utf8_length(whole, length) == 0)
            break;
        good = n;
    }
    return good;
}

static uint64_t clean_characters(uint8_t *to, const struct text_vectorizer *vectorizer, const struct string *text)
{
    uint8_t *start = to;
    for (uint64_t i = 0; i < text->bytes;) {
        const uint8_t *p = text->data + i;
        uint64_t length = json_utf8_length((const char *)p, text->bytes - i);
        if (length == 1 && vectorizer->strip_punctuation && is_punctuation(*p)) {
            i++;
            continue;
        }
        if (to > start)
            *to++ = ' ';
        if (length == 0) {
            i += bad_bytes(p, text->bytes - i);
            memcpy(to, "\xef\xbf\xbd", 3);
            to += 3;
            continue;
        }
        for (uint64_t b = 0; b < length; b++)
            *to++ = length == 1 ? lowered(vectorizer, p[b]) : p[b];
        i += length;
    }
    return (uint64_t)(to - start);
}

static uint64_t clean(uint8_t *to, const struct text_vectorizer *vectorizer, const struct string *text)
{
    return vectorizer->split == SPLIT_CHARACTER ? clean_characters(to, vectorizer, text)
                                                : clean_words(to, vectorizer, text);
}

/* ---- its tokens ---- */

/* Where the token that begins at `at` ends. */
static uint64_t token_end(const struct text_vectorizer *vectorizer, const uint8_t *text, uint64_t bytes, uint64_t at)
{
    if (vectorizer->split == SPLIT_NONE)
        return bytes;
    if (vectorizer->split == SPLIT_CHARACTER)
        return at + json_utf8_length((const char *)text + at, bytes - at);
    const uint8_t *blank = memchr(text + at, ' ', bytes - at);
    return blank ? (uint64_t)(blank - text) : bytes;
}

/* The numbers of all n-grams of one width go to the row (NULL: they are only counted), from *k on; at most `most` in
   all. */
static void each_ngram(int64_t *k, const struct text_vectorizer *vectorizer, const struct string *text, int width,
                       int64_t most, const struct category_row *row)
{
    uint64_t start[MOST_NGRAM_WIDTH], at = 0;
    bool one = vectorizer->split == SPLIT_NONE; /* an empty text is a token, too */
    for (int64_t token = 0; (at < text->bytes || one) && *k < most; token++) {
        uint64_t end = token_end(vectorizer, text->data, text->bytes, at);
        start[token % width] = at;
        if (token + 1 >= width) {
            uint64_t first = start[(token + 1) % width];
            int64_t number = row ? vocabulary_find(vectorizer->vocabulary, text->data + first, end - first) : 0;
            if (row)
                category_put(row, row->output == CATEGORY_INT ? *k : 0, &number, 1);
            ++*k;
        }
        one = false;
        at = end + 1; /* the blank */
    }
}

static int64_t each_number(const struct text_vectorizer *vectorizer, const struct string *text, int64_t most,
                           const struct category_row *row)
{
    int64_t k = 0;
    if (vectorizer->ngram_count == 0)
        each_ngram(&k, vectorizer, text, 1, most, row);
    for (int i = 0; i < vectorizer->ngram_count; i++)
        each_ngram(&k, vectorizer, text, vectorizer->ngram[i], most, row);
    return k;
}

/* ---- rows ---- */

bool text_vectorizer_shape(struct shape *out, const struct text_vectorizer *vectorizer)
{
    *out = (struct shape){.rank = 1};
    if (vectorizer->output != CATEGORY_INT) {
        out->dim[0] = vocabulary_size(vectorizer->vocabulary);
    } else if (vectorizer->split == SPLIT_NONE) {
        out->rank = 0;
    } else {
        out->dim[0] = vectorizer->output_sequence_length ? vectorizer->output_sequence_length : -1;
        return vectorizer->output_sequence_length > 0;
    }
    return true;
}

void text_vectorize_row(bool *full, void *to, enum type to_type, const struct text_vectorizer *vectorizer,
                        const struct string *text, struct value_buffer *values)
{
    struct shape shape;
    uint64_t used = values->used;
    uint8_t *copy = value_buffer_take_bytes(values, clean_bytes(vectorizer, text->bytes));
    *full = !copy;
    if (*full || !text_vectorizer_shape(&shape, vectorizer))
        return;
    struct category_row row = {
        .to = to, .type = to_type, .output = vectorizer->output, .depth = vocabulary_size(vectorizer->vocabulary)};
    category_begin(&row, &(struct shape){.rank = 1, .dim = {1}});
    int64_t most = vectorizer->output == CATEGORY_INT ? shape_count(&shape) : INT64_MAX;
    const struct string cleaned = {copy, clean(copy, vectorizer, text)};
    int64_t count = each_number(vectorizer, &cleaned, most, &row);
    size_t size = type_bytes(to_type);
    if (vectorizer->output == CATEGORY_INT)
        memset((uint8_t *)to + (size_t)count * size, 0, (size_t)(most - count) * size);
    values->used = used;
}

bool text_vectorize(int64_t **numbers, int64_t *count, const struct text_vectorizer *vectorizer,
                    const struct string *text, struct value_buffer *values)
{
    uint8_t *copy = value_buffer_take_bytes(values, clean_bytes(vectorizer, text->bytes));
    if (!copy)
        return false;
    const struct string cleaned = {copy, clean(copy, vectorizer, text)};
    int64_t most = vectorizer->output_sequence_length ? vectorizer->output_sequence_length : INT64_MAX;
    int64_t n = each_number(vectorizer, &cleaned, most, NULL);
    const struct category_row row = {
        .to = value_buffer_take(values, (uint64_t)n * sizeof **numbers), .type = TYPE_I64, .each = 1};
    if (!row.to)
        return false;
    each_number(vectorizer, &cleaned, most, &row);
    *numbers = row.to;
    *count = n;
    return true;
}
