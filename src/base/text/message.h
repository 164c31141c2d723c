/* message.h - snprintf for what people read: texts are cut between characters. */
#ifndef BASE_TEXT_MESSAGE_H
#define BASE_TEXT_MESSAGE_H

#include <stdarg.h>
#include <stddef.h>

/* As number_print and number_print_list, but where a precision (%.60s) or the capacity cuts a text in the middle of a
   UTF-8 character, that character is left out. Of at most MESSAGE_MOST bytes. */
#define MESSAGE_MOST 1536
__attribute__((format(printf, 3, 4))) int message_print(char *out, size_t capacity, const char *format, ...);
__attribute__((format(printf, 3, 0))) int message_print_list(char *out, size_t capacity, const char *format,
                                                             va_list list);

#endif
