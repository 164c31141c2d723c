/* cursor.h - the one bounds-checked way to read bytes of a file's header.

   A cursor never goes past its end: a read that does not fit returns false and
   leaves cursor and output alone. Every parser of the formats reads through it. */
#ifndef FORMATS_FILES_CURSOR_H
#define FORMATS_FILES_CURSOR_H

#include "base/status.h"

struct cursor {
    const uint8_t *data;
    size_t bytes, at;
    const char *path; /* for errors */
    uint64_t base;    /* byte of the file that data[0] is */
};

/* An unsigned number of 1 to 8 bytes, the least significant first. */
static inline uint64_t read_le(const uint8_t *data, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | data[i];
    return value;
}

/* path is borrowed. */
void cursor_init(struct cursor *cursor, const void *data, size_t bytes, const char *path, uint64_t base);
size_t cursor_left(const struct cursor *cursor);
/* The next bytes, in place. */
bool cursor_take(const uint8_t **out, struct cursor *cursor, size_t bytes);
bool cursor_u8(uint8_t *out, struct cursor *cursor);
/* As read_le. */
bool cursor_le(uint64_t *out, struct cursor *cursor, int bytes);

/* For headers that are text. */
void cursor_spaces(struct cursor *cursor);                    /* passes over blanks, tabs, line ends */
bool cursor_literal(struct cursor *cursor, const char *text); /* passes over exactly this */
/* Digits of a whole number < 2^63. */
bool cursor_whole(int64_t *out, struct cursor *cursor);

/* "FILE: byte N" as the place; a long path keeps its end. */
__attribute__((format(printf, 5, 6))) plim_status fail_byte(plim_error *error, plim_status code, const char *path,
                                                            uint64_t byte, const char *format, ...);
/* PLIM_BAD_DATA at the cursor. */
#define cursor_fail(cursor, error, ...)                                                                                \
    fail_byte(error, PLIM_BAD_DATA, (cursor)->path, (cursor)->base + (cursor)->at, __VA_ARGS__)

#endif
