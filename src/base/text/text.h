/* text.h - text into a buffer that grows under the budget, sizes for people,
   and the nearest right word. */
#ifndef BASE_TEXT_TEXT_H
#define BASE_TEXT_TEXT_H

#include "base/memory/budget.h"

/* A growing buffer. A failed append marks it; text_failed tells at the end,
   so that builders need no check a line. */
struct text {
    struct budget *budget;
    enum tag tag;
    char *data; /* always NUL-terminated once something was added */
    size_t length, capacity;
    bool failed;
};

void text_init(struct text *text, struct budget *budget, enum tag tag);
void text_release(struct text *text);
void text_clear(struct text *text);
/* Room for so many bytes and the NUL, taken at once: a text that grows by itself takes up to three times its length
   while it moves. */
void text_reserve(struct text *text, size_t bytes);
__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);
void text_add_bytes(struct text *text, const char *bytes, size_t count);

/* "48.0 MiB"; at most 15 characters. */
void text_size(char out[16], uint64_t bytes);
/* Characters of UTF-8, as a terminal counts them; wide ones count as one. */
int text_columns(const char *text);
/* The words, or as many of their characters as fit, with an ellipsis. */
void text_add_cut(struct text *text, const char *words, int columns);
/* The text, or its end behind "...", from the start of a character, in at most `room` bytes with the NUL (at least 8):
   of a long path the end tells most. */
void text_end(char *out, size_t room, const char *text);
/* How many of the bytes are whole characters: less than all where the last one of UTF-8 was cut. */
size_t text_whole(const char *text, size_t bytes);
/* "12,345,678"; for people. */
void text_count(char out[32], int64_t value);
/* "48MiB", "48 MB", "1.5GiB", "1048576"; false when it is none of these. */
bool text_parse_size(uint64_t *bytes, const char *text);
/* "16": a size without a unit and below 64 KiB. Whoever writes it means another unit. */
bool text_lacks_unit(const char *text);
/* Of `count` words the one nearest to `word`, or NULL when none is near. */
const char *text_nearest(const char *word, const char *const *words, size_t count);

#endif
