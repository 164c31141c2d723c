/* message.c - see message.h.

   Behind each text that has a precision a mark is printed, of bytes that UTF-8 has not: a first part of a character
   before it was cut there. The mark is taken out again. */
#include "base/text/message.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/numbers.h"
#include "base/text/text.h"

#define MARK       "\xff\xff\x01"
#define MARK_BYTES 3

/* The format with a mark behind each %.60s and %.*s. */
static void mark_cuts(char *out, size_t capacity, const char *format)
{
    size_t used = 0;
    while (*format && used + MARK_BYTES + 1 < capacity) {
        size_t length = 1, head;
        if (*format == '%') {
            length += strspn(format + 1, "-+ #0123456789");
            head = length;
            if (format[length] == '.')
                length += 1 + strspn(format + length + 1, "*0123456789");
            length += format[length] != '\0';
            if (used + length + MARK_BYTES + 1 >= capacity)
                break;
            memcpy(out + used, format, length);
            used += length;
            if (format[head] == '.' && format[length - 1] == 's') {
                memcpy(out + used, MARK, MARK_BYTES);
                used += MARK_BYTES;
            }
        } else {
            out[used++] = *format;
        }
        format += length;
    }
    out[used] = '\0';
}

static size_t take_marks(char *text)
{
    size_t used = 0, at = 0, length = strlen(text);
    while (at < length) {
        if (strncmp(text + at, MARK, MARK_BYTES) == 0) {
            used = text_whole(text, used);
            at += MARK_BYTES;
        } else {
            text[used++] = text[at++];
        }
    }
    text[used] = '\0';
    return used;
}

int message_print_list(char *out, size_t capacity, const char *format, va_list list)
{
    char marked[MESSAGE_MOST], made[MESSAGE_MOST + 1];
    mark_cuts(marked, sizeof marked, format);
    number_print_list(made, sizeof made, marked, list);
    size_t length = take_marks(made), kept = length;
    if (kept >= capacity)
        kept = capacity ? text_whole(made, capacity - 1) : 0;
    if (capacity) {
        memcpy(out, made, kept);
        out[kept] = '\0';
    }
    return (int)length;
}

int message_print(char *out, size_t capacity, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = message_print_list(out, capacity, format, list);
    va_end(list);
    return length;
}
