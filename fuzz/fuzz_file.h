/* fuzz_file.h - a fuzz input as a file that the parsers can open. */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory/budget.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A parser may take the input's own size and this, and no more. The limit is
   higher, so that taking more is seen and not merely refused. */
#define FUZZ_SLACK_BYTES ((uint64_t)1024 * 1024)
#define FUZZ_LIMIT_BYTES ((uint64_t)64 * 1024 * 1024)

struct fuzz_file {
    int descriptor;
    char path[40];
};

/* False when the system refuses: nothing to test then. */
static inline int fuzz_file_open(struct fuzz_file *file, const uint8_t *data, size_t bytes)
{
    file->descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    if (file->descriptor < 0)
        return 0;
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->descriptor);
    if (write(file->descriptor, data, bytes) == (ssize_t)bytes)
        return 1;
    close(file->descriptor);
    return 0;
}

/* Frees the budget; stops when a parser took too much, asked for too much or kept something. */
static inline void fuzz_budget_free(struct budget *budget, size_t bytes, plim_status status)
{
    struct budget_usage usage = budget_usage(budget);
    if (usage.peak > bytes + FUZZ_SLACK_BYTES || status == PLIM_OVER_BUDGET || status == PLIM_INTERNAL)
        abort();
    budget_free(budget); /* asserts that it is empty */
}

static inline void fuzz_file_close(struct fuzz_file *file)
{
    close(file->descriptor);
}

/* One input as a file, read under a budget. */
static inline int fuzz_as_file(const uint8_t *data, size_t bytes,
                               plim_status (*read)(struct budget *budget, const char *path))
{
    struct budget *budget;
    struct fuzz_file file;
    if (!fuzz_file_open(&file, data, bytes))
        return 0;
    if (budget_make(&budget, bytes + FUZZ_LIMIT_BYTES, NULL) == PLIM_OK)
        fuzz_budget_free(budget, bytes, read(budget, file.path));
    fuzz_file_close(&file);
    return 0;
}

#endif
