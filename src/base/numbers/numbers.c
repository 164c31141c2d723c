/* numbers.c - numbers with a decimal point, whatever the locale of the host.

   The locale is changed for this thread alone, and changed back: the host's
   threads see nothing of it. */
#include "base/numbers/numbers.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* The C library's own C locale: glibc and musl allocate nothing for it. */
struct plain {
    locale_t here, before;
};

static struct plain plain_begin(void)
{
    struct plain plain = {.here = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    plain.before = uselocale(plain.here); /* (locale_t)0 would leave it as it is */
    return plain;
}

static void plain_end(struct plain plain)
{
    uselocale(plain.before);
    if (plain.here != (locale_t)0)
        freelocale(plain.here);
}

double number_parse(const char *text, char **end)
{
    struct plain plain = plain_begin();
    double value = strtod(text, end);
    plain_end(plain);
    return value;
}

float number_parse_float(const char *text, char **end)
{
    struct plain plain = plain_begin();
    float value = strtof(text, end);
    plain_end(plain);
    return value;
}

int number_print_list(char *out, size_t capacity, const char *format, va_list list)
{
    struct plain plain = plain_begin();
    int length = vsnprintf(out, capacity, format, list);
    plain_end(plain);
    return length;
}

int number_print(char *out, size_t capacity, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = number_print_list(out, capacity, format, list);
    va_end(list);
    return length;
}
