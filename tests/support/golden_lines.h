/* golden_lines.h - golden files of tab-separated fields, with strings in hex. */
#ifndef GOLDEN_LINES_H
#define GOLDEN_LINES_H

#include "format_files.h"

#include "graph/tensor.h"

#define GOLDEN_LINE   16384
#define GOLDEN_FIELDS 16
#define GOLDEN_WORDS  128

struct golden {
    FILE *in;
    char line[GOLDEN_LINE];
    char *field[GOLDEN_FIELDS];
    int count;
    uint8_t bytes[GOLDEN_LINE]; /* of the words of this line, each with a NUL */
    size_t used;
};

static inline void golden_open(struct golden *golden, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/%s", name);
    golden->in = fopen(path, "r");
    assert_non_null(golden->in);
}

static inline bool golden_next(struct golden *golden)
{
    golden->count = 0;
    golden->used = 0;
    if (!fgets(golden->line, sizeof golden->line, golden->in))
        return false;
    golden->line[strcspn(golden->line, "\n")] = '\0';
    for (char *at = golden->line; at; golden->count++) {
        assert_true(golden->count < GOLDEN_FIELDS);
        golden->field[golden->count] = at;
        at = strchr(at, '\t');
        if (at)
            *at++ = '\0';
    }
    return true;
}

/* "6162,,63,": the strings, in this line's bytes. */
static inline int golden_words(struct string *out, struct golden *golden, const char *hex)
{
    int count = 0;
    for (; *hex; count++, hex++) {
        assert_true(count < GOLDEN_WORDS);
        out[count] = (struct string){.data = golden->bytes + golden->used};
        for (; *hex != ','; hex += 2) {
            unsigned byte;
            assert_int_equal(sscanf(hex, "%2x", &byte), 1);
            golden->bytes[golden->used++] = (uint8_t)byte;
            out[count].bytes++;
        }
        golden->bytes[golden->used++] = 0;
    }
    return count;
}

static inline int64_t golden_numbers(int64_t *out, int64_t most, const char *text)
{
    int64_t count = 0;
    for (int at; sscanf(text, "%lld%n", (long long *)&out[count], &at) == 1; text += at) {
        count++;
        assert_true(count < most);
    }
    return count;
}

#endif
