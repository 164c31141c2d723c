/* format_files.h - what the tests of formats share: small files in a folder of
   their own, budgets that are checked, and the sweep over damaged files. */
#ifndef FORMAT_FILES_H
#define FORMAT_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/memory/budget.h"

#define SLACK_BYTES ((uint64_t)1024 * 1024)

/* The current folder is the build's: on a disk, as scratch files need. */
static char folder[64] = "formats-XXXXXX";

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails when a test left a file behind */
}

static inline const char *path_of(const char *name)
{
    static char path[4][128];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static inline const char *write_file(const char *name, const void *data, size_t bytes)
{
    const char *path = path_of(name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
    return path;
}

static inline struct budget *new_budget(void)
{
    struct budget *budget;
    assert_int_equal(budget_make(&budget, (uint64_t)256 << 20, NULL), PLIM_OK);
    return budget;
}

/* Nothing may be held any more but the budget's own block. */
static inline void end_budget(struct budget *budget)
{
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_FORMATS], 0);
    assert_int_equal(budget_usage(budget).now_by_tag[TAG_CHECKPOINT], 0);
    budget_free(budget);
}

/* Opens, reads and closes a file; returns the first error. */
typedef plim_status try_file(struct budget *budget, const char *path, plim_error *error);

/* One damaged file: no crash, no more memory than it pays for, an error of the right kind that names it. */
static inline plim_status try_damaged(try_file *try_it, const void *data, size_t bytes)
{
    const char *path = write_file("damaged", data, bytes);
    struct budget *budget = new_budget();
    plim_error error = {0};
    plim_status status = try_it(budget, path, &error);
    assert_true(budget_usage(budget).peak <= bytes + SLACK_BYTES);
    end_budget(budget);
    if (status != PLIM_OK) {
        assert_true(status == PLIM_BAD_DATA || status == PLIM_UNSUPPORTED);
        assert_int_equal(error.code, status);
        assert_non_null(strstr(error.where, "damaged"));
        assert_true(strstr(error.where, ": byte ") || strstr(error.message, "byte"));
    }
    unlink(path);
    return status;
}

/* Cut at every byte: always an error. Every bit turned: an error or not. Returns how many of those were errors. */
static inline int sweep(try_file *try_it, const void *seed, size_t bytes)
{
    int errors = 0;
    uint8_t *copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, seed, bytes);
    assert_int_equal(try_damaged(try_it, copy, bytes), PLIM_OK);
    for (size_t cut = 0; cut < bytes; cut++)
        assert_int_not_equal(try_damaged(try_it, copy, cut), PLIM_OK);
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        errors += try_damaged(try_it, copy, bytes) != PLIM_OK;
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(copy);
    return errors;
}

#endif
