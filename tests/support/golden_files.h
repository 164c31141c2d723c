/* golden_files.h - files that others wrote (tests/golden/containers), and their words in hexadecimal. */
#ifndef GOLDEN_FILES_H
#define GOLDEN_FILES_H

#include "format_files.h"

/* tests/golden/containers/NAME, found from this file's own name. */
static inline const char *golden(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/containers/%s", name);
    return path;
}

/* The whole file with a NUL behind it; to be freed. */
static inline char *load_golden(const char *name, size_t *bytes)
{
    FILE *file = fopen(golden(name), "rb");
    assert_non_null(file);
    char *data = malloc((size_t)1 << 20);
    assert_non_null(data);
    *bytes = fread(data, 1, ((size_t)1 << 20) - 1, file);
    data[*bytes] = 0;
    fclose(file);
    return data;
}

/* Bytes of hexadecimal digits; "-" is none. */
static inline size_t unhex(uint8_t *out, const char *text)
{
    size_t bytes = 0;
    for (unsigned value; text[0] != '-' && sscanf(text, "%2x", &value) == 1; text += 2)
        out[bytes++] = (uint8_t)value;
    return bytes;
}

static inline void add_hex(char *out, size_t capacity, const void *data, size_t bytes)
{
    size_t length = strlen(out);
    if (bytes == 0)
        snprintf(out + length, capacity - length, "-");
    for (size_t i = 0; i < bytes; i++)
        snprintf(out + length + 2 * i, capacity - length - 2 * i, "%02x", ((const uint8_t *)data)[i]);
}

#endif
