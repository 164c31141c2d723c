/* text_split.h - tf.strings: a text into pieces that refer to its bytes, without blanks around, as a number. */
#ifndef PIPELINE_TEXT_TEXT_SPLIT_H
#define PIPELINE_TEXT_TEXT_SPLIT_H

#include "base/memory/value_buffer.h"
#include "graph/tensor.h"

struct splitter {
    const uint8_t *at, *end;
    const uint8_t *separator; /* NULL: white space (ASCII), runs of it as one, none at the ends */
    uint64_t separator_bytes;
    bool over;
};

/* separator == "" or NULL: white space. It is borrowed. With a separator, an empty text is one empty piece. */
void splitter_init(struct splitter *splitter, const struct string *text, const char *separator);
bool splitter_next(struct string *piece, struct splitter *splitter);

/* All pieces, as an array in the value buffer; false when the value buffer is full (values->wanted tells). */
bool text_split(struct string **pieces, int64_t *count, const struct string *text, const char *separator,
                struct value_buffer *values);

/* ASCII white space. */
static inline bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The text without white space at its ends. */
struct string text_stripped(const struct string *text);
/* The text as a whole number from -most - 1 to most: a sign, digits, nothing else. */
bool text_whole_number(int64_t *out, const struct string *text, int64_t most);

#endif
