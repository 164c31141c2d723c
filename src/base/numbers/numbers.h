/* numbers.h - numbers with a decimal point, whatever the locale of the host.
   Everything that is read from files, or written for others to read, goes
   through here: a host with a decimal comma must not change it. */
#ifndef BASE_NUMBERS_NUMBERS_H
#define BASE_NUMBERS_NUMBERS_H

#include <stdarg.h>
#include <stddef.h>

/* As strtod, strtof and snprintf do in the C locale. Nothing is allocated. */
double number_parse(const char *text, char **end);
float number_parse_float(const char *text, char **end);
__attribute__((format(printf, 3, 4))) int number_print(char *out, size_t capacity, const char *format, ...);
__attribute__((format(printf, 3, 0))) int number_print_list(char *out, size_t capacity, const char *format,
                                                            va_list list);

#endif
