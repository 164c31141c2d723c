/* decimal.h - decimal text to floating point, rounded as the standard has it. */
#ifndef BASE_NUMBERS_DECIMAL_H
#define BASE_NUMBERS_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The whole text as strtod has it in the C locale (inf, nan and hexadecimal too), without blanks; false when it is
   no number, or longer than 1,000 bytes. Nothing is allocated. */
bool decimal_double(double *out, const char *text, size_t bytes);
bool decimal_float(float *out, const char *text, size_t bytes);

/* ---- for readers of much text, in two steps -------------------------------- */

/* +-digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
    bool negative;
    bool many; /* there were more digits than fit: this does not determine the number */
};

/* So many bytes behind a text must be readable, the first of them no part of a number. */
#define DECIMAL_PAD 8

/* False when decimal_double has to say: rare. */
bool decimal_to_double(double *out, const struct decimal *decimal);
bool decimal_to_float(float *out, const struct decimal *decimal);

static inline bool eight_digits(uint64_t word)
{
    return (((word & 0xf0f0f0f0f0f0f0f0) | (((word + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4))) ==
           0x3333333333333333;
}

/* Little-endian: the first digit is the lowest byte. Pairs, then fours, then all eight. */
static inline uint32_t eight_value(uint64_t word)
{
    word = (word & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    word = (word & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    return (uint32_t)((word & 0x0000ffff0000ffff) * 42949672960001 >> 32);
}

/* Adds digits at text to *value; returns the first byte that is none. */
static inline const char *scan_digits(uint64_t *value, const char *text)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (uint64_t word; memcpy(&word, text, sizeof word), eight_digits(word); text += 8)
        *value = *value * 100000000 + eight_value(word);
#endif
    for (unsigned digit; (digit = (unsigned)(unsigned char)*text - '0') < 10; text++)
        *value = *value * 10 + digit;
    return text;
}

/* e+12 at text, if it is one: adds it to the exponent and returns the first byte behind, or text itself. */
static inline const char *scan_exponent(int *exponent, const char *text)
{
    const char *at = text + 1;
    bool negative = *at == '-';
    at += negative || *at == '+';
    if ((unsigned)(unsigned char)*at - '0' >= 10)
        return text;
    int value = 0;
    for (unsigned digit; (digit = (unsigned)(unsigned char)*at - '0') < 10; at++)
        value = value < 100000 ? value * 10 + (int)digit : value;
    *exponent += negative ? -value : value;
    return at;
}

/* [+-]digits[.digits][e[+-]digits] at text. Returns the first byte behind it; text itself when there is no digit. */
static inline const char *decimal_scan(struct decimal *out, const char *text)
{
    const char *at = text;
    uint64_t digits = 0;
    int exponent = 0;
    bool negative = *at == '-';
    at += negative || *at == '+';
    const char *first = at, *end = at = scan_digits(&digits, at);
    ptrdiff_t count = end - first;
    if (*at == '.') {
        at = scan_digits(&digits, at + 1);
        exponent = -(int)(at - end - 1);
        count += at - end - 1;
    }
    if (count == 0)
        return text;
    /* Zeros in front are digits that take no room; they are rarely many. */
    if (count > 19)
        for (const char *zero = first; zero < at && (*zero == '0' || *zero == '.'); zero++)
            count -= *zero == '0';
    if (*at == 'e' || *at == 'E')
        at = scan_exponent(&exponent, at);
    *out = (struct decimal){.digits = digits, .exponent = exponent, .negative = negative, .many = count > 19};
    return at;
}

#endif
