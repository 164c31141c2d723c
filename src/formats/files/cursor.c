/* cursor.c - bounds-checked reading of header bytes, and errors that name the byte. */
#include "formats/files/cursor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cursor_init(struct cursor *cursor, const void *data, size_t bytes, const char *path, uint64_t base)
{
    *cursor = (struct cursor){.data = data, .bytes = bytes, .path = path, .base = base};
}

size_t cursor_left(const struct cursor *cursor)
{
    return cursor->bytes - cursor->at;
}

bool cursor_take(const uint8_t **out, struct cursor *cursor, size_t bytes)
{
    if (bytes > cursor_left(cursor))
        return false;
    *out = cursor->data + cursor->at;
    cursor->at += bytes;
    return true;
}

bool cursor_u8(uint8_t *out, struct cursor *cursor)
{
    const uint8_t *p;
    if (!cursor_take(&p, cursor, 1))
        return false;
    *out = p[0];
    return true;
}

bool cursor_le(uint64_t *out, struct cursor *cursor, int bytes)
{
    const uint8_t *p;
    if (!cursor_take(&p, cursor, (size_t)bytes))
        return false;
    *out = read_le(p, bytes);
    return true;
}

void cursor_spaces(struct cursor *cursor)
{
    while (cursor->at < cursor->bytes && memchr(" \t\r\n", cursor->data[cursor->at], 4))
        cursor->at++;
}

bool cursor_literal(struct cursor *cursor, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes > cursor_left(cursor) || memcmp(cursor->data + cursor->at, text, bytes) != 0)
        return false;
    cursor->at += bytes;
    return true;
}

bool cursor_whole(int64_t *out, struct cursor *cursor)
{
    int64_t value = 0;
    size_t at = cursor->at;
    for (; at < cursor->bytes && cursor->data[at] >= '0' && cursor->data[at] <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, cursor->data[at] - '0', &value))
            return false;
    if (at == cursor->at)
        return false;
    *out = value;
    cursor->at = at;
    return true;
}

plim_status fail_byte(plim_error *error, plim_status code, const char *path, uint64_t byte, const char *format, ...)
{
    char message[512], where[256];
    size_t length = strlen(path), most = 200;
    const char *dots = length > most ? "..." : "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(where, sizeof where, "%s%s: byte %llu", dots, length > most ? path + length - most : path,
             (unsigned long long)byte);
    return fail_at(error, code, where, "%s", message);
}
