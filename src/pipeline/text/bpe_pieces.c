/* bpe_pieces.c - cuts texts as GPT-2's pattern does, without a pattern:
   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#include <string.h>

#include "base/numbers/count.h"
#include "base/text/json.h"
#include "pipeline/text/bpe.h"

enum character_class { CLASS_OTHER, CLASS_LETTER, CLASS_NUMBER, CLASS_SPACE };

static const uint32_t classes[] = {
#define CLASS(first, kind) (uint32_t)(first) << 2 | CLASS_##kind,
#include "pipeline/text/unicode_classes.def"
#undef CLASS
};

static enum character_class class_of(uint32_t code)
{
    size_t low = 0, high = COUNT(classes);
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (classes[middle] >> 2 <= code)
            low = middle;
        else
            high = middle;
    }
    return (enum character_class)(classes[low] & 3);
}

/* The class of the character at p, and its bytes. A byte that is not UTF-8 is a character of its own, and other. */
static inline enum character_class next_class(uint64_t *length, const uint8_t *p, uint64_t left)
{
    *length = 1;
    if (*p < 0x80) {
        if ((*p | 32) >= 'a' && (*p | 32) <= 'z')
            return CLASS_LETTER;
        if (*p >= '0' && *p <= '9')
            return CLASS_NUMBER;
        return *p == ' ' || (*p >= '\t' && *p <= '\r') ? CLASS_SPACE : CLASS_OTHER;
    }
    uint64_t bytes = json_utf8_length((const char *)p, left);
    if (bytes == 0)
        return CLASS_OTHER;
    uint32_t code = p[0] & (0xff >> (bytes + 1));
    for (uint64_t i = 1; i < bytes; i++)
        code = code << 6 | (p[i] & 0x3f);
    *length = bytes;
    return class_of(code);
}

static uint64_t contraction(const uint8_t *p, uint64_t left)
{
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (size_t i = 0; i < COUNT(ends); i++) {
        size_t bytes = strlen(ends[i]);
        if (left > bytes && memcmp(p + 1, ends[i], bytes) == 0)
            return bytes + 1;
    }
    return 0;
}

/* How far characters of one class go on. */
static uint64_t run_of(enum character_class kind, const uint8_t *text, uint64_t bytes, uint64_t at)
{
    uint64_t length;
    while (at < bytes && next_class(&length, text + at, bytes - at) == kind)
        at += length;
    return at;
}

/* All of the white space at the end of a text; else all but its last character, which is left for the word that
   follows, unless it is the only one. */
static uint64_t space_piece(const uint8_t *text, uint64_t bytes)
{
    uint64_t at = 0, last = 0, length;
    while (at < bytes && next_class(&length, text + at, bytes - at) == CLASS_SPACE) {
        last = at;
        at += length;
    }
    return at == bytes || last == 0 ? at : last;
}

uint64_t bpe_piece(const uint8_t *text, uint64_t bytes)
{
    uint64_t length, blank = text[0] == ' ' && bytes > 1;
    if (text[0] == '\'') {
        uint64_t found = contraction(text, bytes);
        if (found)
            return found;
    }
    enum character_class kind = next_class(&length, text + blank, bytes - blank);
    if (kind == CLASS_SPACE)
        return space_piece(text, bytes);
    return run_of(kind, text, bytes, blank + length);
}
