/* text_split.c - tf.strings.split: a text into pieces that refer to its bytes. */
#include "pipeline/text/text_split.h"

#include <string.h>

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

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
    while (s->at < s->end && is_space(*s->at))
        s->at++;
    if (s->at == s->end)
        return false;
    piece->data = s->at;
    while (s->at < s->end && !is_space(*s->at))
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
                struct room *room)
{
    struct splitter splitter;
    struct string piece;
    uint64_t n = 0;
    splitter_init(&splitter, text, separator);
    while (splitter_next(&piece, &splitter))
        n++;
    struct string *out = room_take(room, n * sizeof *out);
    if (!out)
        return false;
    splitter_init(&splitter, text, separator);
    for (uint64_t i = 0; i < n; i++)
        splitter_next(&out[i], &splitter);
    *pieces = out;
    *count = (int64_t)n;
    return true;
}
