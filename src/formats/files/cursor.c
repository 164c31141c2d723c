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

/* `bytes` of them, the least significant first. */
static bool little_endian(uint64_t *out, struct cursor *cursor, size_t bytes)
{
    const uint8_t *p;
    if (!cursor_take(&p, cursor, bytes))
        return false;
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | p[i];
    *out = value;
    return true;
}

bool cursor_u16_le(uint16_t *out, struct cursor *cursor)
{
    uint64_t value;
    if (!little_endian(&value, cursor, 2))
        return false;
    *out = (uint16_t)value;
    return true;
}

bool cursor_u32_le(uint32_t *out, struct cursor *cursor)
{
    uint64_t value;
    if (!little_endian(&value, cursor, 4))
        return false;
    *out = (uint32_t)value;
    return true;
}

bool cursor_u64_le(uint64_t *out, struct cursor *cursor)
{
    return little_endian(out, cursor, 8);
}

bool cursor_u32_be(uint32_t *out, struct cursor *cursor)
{
    uint32_t value;
    if (!cursor_u32_le(&value, cursor))
        return false;
    *out = __builtin_bswap32(value);
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

static plim_status fail_byte_list(plim_error *error, plim_status code, const char *path, uint64_t byte,
                                  const char *format, va_list arguments)
{
    char message[512], where[256];
    size_t length = strlen(path), most = 200;
    const char *dots = length > most ? "..." : "";
    vsnprintf(message, sizeof message, format, arguments);
    snprintf(where, sizeof where, "%s%s: byte %llu", dots, length > most ? path + length - most : path,
             (unsigned long long)byte);
    return fail_at(error, code, where, "%s", message);
}

plim_status fail_byte(plim_error *error, plim_status code, const char *path, uint64_t byte, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    plim_status status = fail_byte_list(error, code, path, byte, format, arguments);
    va_end(arguments);
    return status;
}

plim_status cursor_fail(const struct cursor *cursor, plim_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    plim_status status =
        fail_byte_list(error, PLIM_BAD_DATA, cursor->path, cursor->base + cursor->at, format, arguments);
    va_end(arguments);
    return status;
}
