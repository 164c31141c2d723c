/* source_text.h - sources by their words in a job file, and what they give as Python would print it. */
#ifndef TESTS_SOURCE_TEXT_H
#define TESTS_SOURCE_TEXT_H

#include "stream_text.h"

#include <stdlib.h>
#include <unistd.h>

#include "api/api.h"

static inline const char *folder(void)
{
    static char path[3072];
    snprintf(path, sizeof path, TESTS_FOLDER "/golden");
    return path;
}

/* The words of a source with @ for tests/golden. */
static inline const char *words(const char *text)
{
    static char out[16384];
    size_t at = 0;
    for (; *text && at < sizeof out - 4096; text++)
        at += (size_t)(*text == '@' ? snprintf(out + at, sizeof out - at, "%s", folder())
                                    : snprintf(out + at, sizeof out - at, "%c", *text));
    out[at] = 0;
    return out;
}

static const char *asked; /* the words that make() reads */

static inline struct dataset *make(struct budget *budget)
{
    plim_budget outer = {.inner = budget};
    return inside(plim_dataset_read(&outer, words(asked), SEED));
}

static inline int64_t count_elements(const char *text)
{
    int depth = 0;
    int64_t count = text[1] != ']';
    bool quoted = false;
    for (; *text; text++) {
        quoted ^= *text == '\'';
        depth += !quoted && (*text == '[' || *text == '(');
        depth -= !quoted && (*text == ']' || *text == ')');
        count += depth == 1 && *text == ',' && !quoted;
    }
    return count;
}

static inline void expect(const char *text, const char *elements)
{
    asked = text;
    expect_elements(make, elements, count_elements(elements));
}

/* What is written under this name in a file of golden orders. */
static inline void expect_from(const char *orders, const char *text, const char *name)
{
    static char line[16384];
    char path[4096];
    size_t length = strlen(name);
    snprintf(path, sizeof path, "%s/%s", folder(), orders);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            fclose(file);
            line[strcspn(line, "\n")] = 0;
            expect(text, line + length + 1);
            return;
        }
    fail_msg("no golden order '%s'", name);
}

/* What tf.data printed. */
static inline void expect_golden(const char *text, const char *name)
{
    expect_from("sources/order.txt", text, name);
}

static inline void refused(const char *text, plim_status status, const char *what)
{
    struct budget *budget = open_budget();
    asked = text;
    struct dataset *dataset = make(budget);
    plim_error error = {0};
    assert_int_equal(dataset_error(dataset, &error), status);
    if (!strstr(error.message, what) && !strstr(error.hint, what))
        fail_msg("%s: '%s' is not in '%s' (%s)", text, what, error.message, error.hint);
    assert_true(error.where[0] != 0);
    dataset_unref(dataset);
    close_budget(budget);
}

static inline const char *scratch_path(const char *name)
{
    static char path[4096];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/plim_words_%ld_%s", base ? base : "/tmp", (long)getpid(), name);
    return path;
}

static inline const char *write_bytes(const char *name, const void *data, size_t bytes)
{
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
    return path;
}

/* The elements up to the first error, and that error's text. */
static inline void run_to_error(struct paper *paper, plim_error *error, const char *text)
{
    struct budget *budget = open_budget();
    struct runner runner;
    asked = text;
    struct dataset *dataset = make(budget);
    *paper = (struct paper){0};
    if (dataset_error(dataset, error) != PLIM_OK)
        fail_msg("%s: %s", error->where, error->message);
    run_open(&runner, dataset, budget, 16);
    assert_int_equal(stream_rewind(runner.stream, 0, NULL), PLIM_OK);
    plim_status status;
    while ((status = stream_pull(runner.stream, &runner.chunk, INT64_MAX, error)) == PLIM_OK && runner.chunk.count)
        for (int64_t i = 0; i < runner.chunk.count; i++) {
            print(paper, " ");
            print_row(paper, &runner.chunk, i);
        }
    if (status == PLIM_OK)
        *error = (plim_error){0};
    run_close(&runner);
    dataset_unref(dataset);
    close_budget(budget);
}

#endif
