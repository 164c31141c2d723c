/* text_split.c - tf.strings.split: a text into pieces that refer to its bytes. */
#include "pipeline/text/text_split.h"

#include <string.h>

#include "base/numbers/checked.h"

void splitter_init(struct splitter *splitter, const struct string *text, const char *separator)
{
    static const uint8_t nothing;
    const uint8_t *data = text->bytes ? text->data : &nothing;
    *splitter = (struct splitter){.at = data, .end = data + text->bytes};
    if (separator && *separator) {
        splitter->separator = (const uint8_t *)separator;
        splitter->separator_bytes = strlen(separator);
    }
}

static bool next_by_space(struct string *piece, struct splitter *s)
{
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
    if (s->at == s->end)
        return false;
    piece->data = s->at;
    while (s->at < s->end && !is_blank(*s->at))
        s->at++;
    piece->bytes = (uint64_t)(s->at - piece->data);
    return true;
}

bool splitter_next(struct string *piece, struct splitter *s)
{
    if (!s->separator)
        return next_by_space(piece, s);
    if (s->over)
        return false;
    const uint8_t *found = memmem(s->at, (size_t)(s->end - s->at), s->separator, s->separator_bytes);
    s->over = !found;
    *piece = (struct string){.data = s->at, .bytes = (uint64_t)((found ? found : s->end) - s->at)};
    s->at = found ? found + s->separator_bytes : s->end;
    return true;
}

bool text_split(struct string **pieces, int64_t *count, const struct string *text, const char *separator,
                struct value_buffer *values)
{
    struct splitter splitter;
    struct string piece;
    uint64_t n = 0;
    splitter_init(&splitter, text, separator);
    while (splitter_next(&piece, &splitter))
        n++;
    struct string *out = value_buffer_take(values, n * sizeof *out);
    if (!out)
        return false;
    splitter_init(&splitter, text, separator);
    for (uint64_t i = 0; i < n; i++)
        splitter_next(&out[i], &splitter);
    *pieces = out;
    *count = (int64_t)n;
    return true;
}

struct string text_stripped(const struct string *text)
{
    struct string rest = *text;
    while (rest.bytes && is_blank(rest.data[rest.bytes - 1]))
        rest.bytes--;
    while (rest.bytes && is_blank(rest.data[0]))
        rest.data++, rest.bytes--;
    return rest;
}

bool text_whole_number(int64_t *out, const struct string *text, int64_t most)
{
    bool negative = text->bytes && text->data[0] == '-', sign = negative || (text->bytes && text->data[0] == '+');
    uint64_t value = 0, largest = (uint64_t)most + negative;
    for (uint64_t i = sign; i < text->bytes; i++) {
        unsigned digit = text->data[i] - (unsigned)'0';
        if (digit > 9 || !mul_u64(&value, value, 10) || !add_u64(&value, value, digit) || value > largest)
            return false;
    }
    *out = (int64_t)(negative ? 0 - value : value);
    return text->bytes > (uint64_t)sign;
}
