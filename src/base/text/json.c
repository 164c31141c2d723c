/* json.c - reads JSON without a tree.

   It looks at each byte of the buffer at most twice and never past its end;
   it keeps one bit a level. Byte offsets are in messages, not in the error's
   place: the caller knows the file. */
#include "base/text/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/checked.h"

/* No overlong forms, no surrogates, nothing above U+10FFFF: the ranges are the
   Unicode standard's table 3-7. */
size_t json_utf8_length(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    if (bytes == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > bytes)
        return 0;
    unsigned low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return length;
}

__attribute__((format(printf, 4, 5))) static plim_status wrong(const struct json_reader *reader, plim_error *error,
                                                               size_t at, const char *format, ...)
{
    char what[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return fail(error, PLIM_BAD_DATA, "byte %llu: %s", (unsigned long long)(reader->base + at), what);
}

void json_read_init(struct json_reader *reader, const char *data, size_t bytes)
{
    memset(reader, 0, sizeof *reader);
    reader->data = data;
    reader->bytes = bytes;
}

/* The next byte, or -1 at the end. */
static int peek(const struct json_reader *reader)
{
    return reader->at < reader->bytes ? (unsigned char)reader->data[reader->at] : -1;
}

static bool accept(struct json_reader *reader, char c)
{
    if (peek(reader) != c)
        return false;
    reader->at++;
    return true;
}

static void skip_space(struct json_reader *reader)
{
    int c;
    while ((c = peek(reader)) == ' ' || c == '\t' || c == '\n' || c == '\r')
        reader->at++;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The code unit of four hexadecimal digits, or -1. */
static int32_t hex_four(const char *p, size_t bytes)
{
    int32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = i < bytes ? hex_digit(p[i]) : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Passes over an escape whose backslash was read. */
static bool pass_escape(struct json_reader *reader)
{
    int c = peek(reader);
    if (c < 0 || c == 0 || strchr("\"\\/bfnrtu", c) == NULL)
        return false;
    reader->at++;
    if (c == 'u' && hex_four(reader->data + reader->at, reader->bytes - reader->at) < 0)
        return false;
    reader->at += c == 'u' ? 4 : 0;
    return true;
}

/* The bytes between the quotes, checked. */
static plim_status read_string(const char **text, size_t *bytes, struct json_reader *reader, plim_error *error)
{
    size_t start = reader->at;
    if (!accept(reader, '"'))
        return wrong(reader, error, reader->at, "a string was expected");
    for (;;) {
        const char *p = reader->data + reader->at;
        size_t length = json_utf8_length(p, reader->bytes - reader->at);
        if (peek(reader) < 0)
            return wrong(reader, error, start, "the string that begins here has no end");
        if (length == 0)
            return wrong(reader, error, reader->at, "not UTF-8");
        if ((unsigned char)*p < 0x20)
            return wrong(reader, error, reader->at, "a control character in a string must be escaped");
        reader->at += length;
        if (*p == '"')
            break;
        if (*p == '\\' && !pass_escape(reader))
            return wrong(reader, error, reader->at, "bad escape in a string");
    }
    *text = reader->data + start + 1;
    *bytes = reader->at - start - 2;
    return PLIM_OK;
}

static size_t pass_digits(struct json_reader *reader)
{
    size_t start = reader->at;
    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->at++;
    return reader->at - start;
}

/* -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static bool pass_number(struct json_reader *reader)
{
    accept(reader, '-');
    if (!accept(reader, '0') && pass_digits(reader) == 0)
        return false;
    if (accept(reader, '.') && pass_digits(reader) == 0)
        return false;
    if (accept(reader, 'e') || accept(reader, 'E')) {
        if (!accept(reader, '-'))
            accept(reader, '+');
        return pass_digits(reader) > 0;
    }
    return true;
}

static bool pass_word(struct json_reader *reader, const char *word)
{
    size_t length = strlen(word);
    if (reader->bytes - reader->at < length || memcmp(reader->data + reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static plim_status enter_container(struct json_token *token, struct json_reader *reader, bool object, plim_error *error)
{
    if (reader->depth == JSON_DEPTH)
        return wrong(reader, error, reader->at, "more than %d levels", JSON_DEPTH);
    uint64_t bit = 1ull << reader->depth;
    reader->in_object = object ? reader->in_object | bit : reader->in_object & ~bit;
    reader->depth++;
    reader->at++;
    reader->after_value = false;
    token->kind = object ? JSON_OBJECT : JSON_ARRAY;
    return PLIM_OK;
}

static plim_status read_scalar(struct json_token *token, struct json_reader *reader, plim_error *error)
{
    int c = peek(reader);
    token->text = reader->data + reader->at;
    if (c == '-' || (c >= '0' && c <= '9')) {
        token->kind = JSON_NUMBER;
        if (!pass_number(reader))
            return wrong(reader, error, reader->at, "bad number");
    } else if (pass_word(reader, "true")) {
        token->kind = JSON_TRUE;
    } else if (pass_word(reader, "false")) {
        token->kind = JSON_FALSE;
    } else if (pass_word(reader, "null")) {
        token->kind = JSON_NULL;
    } else {
        return wrong(reader, error, reader->at, c < 0 ? "it ends where a value was expected" : "a value was expected");
    }
    token->text_bytes = (size_t)(reader->data + reader->at - token->text);
    return PLIM_OK;
}

static plim_status read_value(struct json_token *token, struct json_reader *reader, plim_error *error)
{
    int c = peek(reader);
    token->at = reader->base + reader->at;
    if (c == '{' || c == '[')
        return enter_container(token, reader, c == '{', error);
    token->kind = JSON_STRING;
    if (c == '"')
        TRY(read_string(&token->text, &token->text_bytes, reader, error));
    else
        TRY(read_scalar(token, reader, error));
    reader->after_value = true;
    return PLIM_OK;
}

static plim_status read_key(struct json_token *token, struct json_reader *reader, plim_error *error)
{
    TRY(read_string(&token->key, &token->key_bytes, reader, error));
    skip_space(reader);
    if (!accept(reader, ':'))
        return wrong(reader, error, reader->at, "':' was expected after a key");
    skip_space(reader);
    return PLIM_OK;
}

/* Before or after the one value at the top. */
static plim_status next_at_top(struct json_token *token, struct json_reader *reader, plim_error *error)
{
    if (!reader->started) {
        reader->started = true;
        return read_value(token, reader, error);
    }
    if (!reader->after_value || peek(reader) >= 0)
        return wrong(reader, error, reader->at, "nothing may follow the value");
    token->kind = JSON_END;
    token->at = reader->base + reader->at;
    return PLIM_OK;
}

plim_status json_next(struct json_token *token, struct json_reader *reader, plim_error *error)
{
    struct json_token found = {0};
    skip_space(reader);
    if (reader->depth == 0) {
        TRY(next_at_top(&found, reader, error));
        *token = found;
        return PLIM_OK;
    }
    bool object = reader->in_object >> (reader->depth - 1) & 1;
    char close = object ? '}' : ']';
    found.at = reader->base + reader->at;
    if (accept(reader, close)) {
        found.kind = object ? JSON_OBJECT_END : JSON_ARRAY_END;
        reader->depth--;
        reader->after_value = true;
        *token = found;
        return PLIM_OK;
    }
    if (reader->after_value) {
        if (!accept(reader, ','))
            return wrong(reader, error, reader->at, "',' or '%c' was expected", close);
        skip_space(reader);
    }
    if (object)
        TRY(read_key(&found, reader, error));
    TRY(read_value(&found, reader, error));
    *token = found;
    return PLIM_OK;
}

plim_status json_skip(struct json_reader *reader, const struct json_token *start, plim_error *error)
{
    if (start->kind != JSON_OBJECT && start->kind != JSON_ARRAY)
        return PLIM_OK;
    int outside = reader->depth - 1;
    while (reader->depth > outside) {
        struct json_token token;
        TRY(json_next(&token, reader, error));
    }
    return PLIM_OK;
}

/* ---- what tokens mean ------------------------------------------------ */

static size_t utf8_put(char out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((length == 2 ? 0xc0 : length == 3 ? 0xe0 : 0xf0) | c);
    return length;
}

/* \uXXXX, or a pair of them for what lies above U+FFFF. U+0000 is refused:
   our strings end with it. */
static size_t unescape_unit(char out[4], const char **raw, const char *end)
{
    int32_t unit = hex_four(*raw, (size_t)(end - *raw));
    if (unit <= 0 || (unit >= 0xdc00 && unit < 0xe000))
        return 0;
    *raw += 4;
    if (unit < 0xd800 || unit >= 0xe000)
        return utf8_put(out, (uint32_t)unit);
    if (end - *raw < 6 || (*raw)[0] != '\\' || (*raw)[1] != 'u')
        return 0;
    int32_t low = hex_four(*raw + 2, 4);
    if (low < 0xdc00 || low >= 0xe000)
        return 0;
    *raw += 6;
    return utf8_put(out, 0x10000u + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
}

/* One byte or escape of a raw string into at most 4 bytes; 0 when bad. */
static size_t unescape_one(char out[4], const char **raw, const char *end)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    out[0] = *(*raw)++;
    if (out[0] != '\\')
        return out[0] != 0;
    if (*raw == end || **raw == 0)
        return 0;
    char c = *(*raw)++;
    if (c == 'u')
        return unescape_unit(out, raw, end);
    const char *name = strchr(names, c);
    if (name == NULL)
        return 0;
    out[0] = values[name - names];
    return 1;
}

bool json_unescape(char *out, size_t capacity, const char *raw, size_t raw_bytes)
{
    const char *end = raw + raw_bytes;
    size_t used = 0;
    while (raw < end) {
        char bytes[4];
        size_t count = unescape_one(bytes, &raw, end);
        if (count == 0 || used + count >= capacity)
            return false;
        memcpy(out + used, bytes, count);
        used += count;
    }
    if (used >= capacity)
        return false;
    out[used] = 0;
    return true;
}

bool json_is(const char *raw, size_t raw_bytes, const char *text)
{
    const char *end = raw + raw_bytes;
    while (raw < end) {
        char bytes[4];
        size_t count = unescape_one(bytes, &raw, end);
        if (count == 0 || strncmp(text, bytes, count) != 0)
            return false;
        text += count;
    }
    return *text == 0;
}

/* Digits with a point in them as value * 10^scale; the zeros at the end of
   the digits go into the scale. False when value does not fit. */
static bool significant(uint64_t *value, int64_t *scale, const char **text, const char *end)
{
    bool after_point = false;
    int64_t zeros = 0;
    *value = 0;
    *scale = 0;
    for (; *text < end && **text != 'e' && **text != 'E'; (*text)++) {
        char c = **text;
        if (c == '.') {
            after_point = true;
            continue;
        }
        *scale -= after_point;
        zeros++;
        for (; c != '0' && zeros > 0; zeros--)
            if (!mul_u64(value, *value, 10))
                return false;
        if (c != '0' && !add_u64(value, *value, (uint64_t)(c - '0')))
            return false;
    }
    *scale += zeros;
    return true;
}

/* [eE][+-]?digits, held within +-10^9; 0 when there is none. */
static int64_t exponent(const char *text, const char *end)
{
    int64_t value = 0, sign = 1;
    if (text == end)
        return 0;
    text++;
    if (*text == '-' || *text == '+')
        sign = *text++ == '-' ? -1 : 1;
    for (; text < end; text++)
        value = value < 100000000 ? value * 10 + (*text - '0') : 1000000000;
    return sign * value;
}

/* Exact: 1e3 and 2.50e1 are whole, 9007199254740992.5 is not. */
bool json_whole(int64_t *out, const struct json_token *token)
{
    uint64_t value;
    int64_t scale;
    if (token->kind != JSON_NUMBER)
        return false;
    const char *text = token->text, *end = token->text + token->text_bytes;
    bool negative = *text == '-';
    text += negative;
    if (!significant(&value, &scale, &text, end))
        return false;
    scale += exponent(text, end);
    if (value != 0 && (scale < 0 || negative))
        return false;
    for (; value != 0 && scale > 0; scale--)
        if (!mul_u64(&value, value, 10))
            return false;
    if (value > INT64_MAX)
        return false;
    *out = (int64_t)value;
    return true;
}
