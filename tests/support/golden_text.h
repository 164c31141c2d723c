/* golden_text.h - compares a text with a golden file, tests/golden/NAME, and prints where they differ.

   GOLDEN=write in the environment writes the file instead: read the difference before you keep it. */
#ifndef GOLDEN_TEXT_H
#define GOLDEN_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN_CONTEXT 3  /* lines before and after the difference */
#define GOLDEN_SHOWN   40 /* lines of each side of it at most */

/* Lines of a text, as far as they are left. */
struct golden_lines {
    const char *begin, *end;
};

static inline const char *golden_line_end(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

static inline const char *golden_line_before(const char *begin, const char *at)
{
    if (at > begin)
        at--;
    while (at > begin && at[-1] != '\n')
        at--;
    return at;
}

static inline void golden_print(char mark, struct golden_lines lines, int most)
{
    for (int shown = 0; lines.begin < lines.end; shown++) {
        const char *end = golden_line_end(lines.begin);
        if (shown == most) {
            print_error("%c...\n", mark);
            return;
        }
        int length = (int)(end - lines.begin) - (end > lines.begin && end[-1] == '\n');
        print_error("%c%.*s\n", mark, length, lines.begin);
        lines.begin = end;
    }
}

/* Cuts the lines off that both texts begin and end with: what is left of each is all that differs. */
static inline void golden_differ(struct golden_lines *a, struct golden_lines *b)
{
    while (a->begin < a->end && b->begin < b->end) {
        const char *end = golden_line_end(a->begin);
        size_t bytes = (size_t)(end - a->begin);
        if ((size_t)(b->end - b->begin) < bytes || memcmp(a->begin, b->begin, bytes) != 0)
            break;
        a->begin += bytes;
        b->begin += bytes;
    }
    while (a->begin < a->end && b->begin < b->end) {
        const char *x = golden_line_before(a->begin, a->end), *y = golden_line_before(b->begin, b->end);
        if (a->end - x != b->end - y || memcmp(x, y, (size_t)(a->end - x)) != 0)
            break;
        a->end = x;
        b->end = y;
    }
}

/* As `diff -u` of one hunk: lines of the file with -, lines of the text with +. */
static inline void golden_diff(const char *path, const char *expected, const char *text)
{
    struct golden_lines a = {expected, expected + strlen(expected)}, b = {text, text + strlen(text)};
    golden_differ(&a, &b);
    struct golden_lines before = {a.begin, a.begin}, after = {a.end, a.end};
    int line = 1;
    for (const char *c = expected; c < a.begin; c++)
        line += *c == '\n';
    for (int i = 0; i < GOLDEN_CONTEXT; i++) {
        before.begin = golden_line_before(expected, before.begin);
        after.end = golden_line_end(after.end);
    }
    print_error("--- %s:%d\n+++ the text of this run\n", path, line);
    golden_print(' ', before, GOLDEN_CONTEXT);
    golden_print('-', a, GOLDEN_SHOWN);
    golden_print('+', b, GOLDEN_SHOWN);
    golden_print(' ', after, GOLDEN_CONTEXT);
}

static inline void compare_golden(const char *name, const char *text)
{
    static char expected[65536];
    char path[1024];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden/%s", name);
    bool write = getenv("GOLDEN") && strcmp(getenv("GOLDEN"), "write") == 0;
    FILE *file = fopen(path, write ? "wb" : "rb");
    if (!file)
        fail_msg("%s is not there", path);
    if (write) {
        fputs(text, file);
        fclose(file);
        return;
    }
    size_t bytes = fread(expected, 1, sizeof expected - 1, file);
    fclose(file);
    expected[bytes] = '\0';
    if (strcmp(expected, text) == 0)
        return;
    golden_diff(path, expected, text);
    fail_msg("%s differs; GOLDEN=write writes it anew", path);
}

#endif
