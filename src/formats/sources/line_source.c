/* line_source.c - files of lines as a source: a column of strings. */
#include "formats/sources/line_source.h"

#include <string.h>

#include "formats/tables/rows.h"

#define MOST_AT_ONCE 256
#define LEAST_ROOM   ((uint64_t)256 * 1024)

struct line_source {
    struct file_source files;
    size_t buffer_bytes;
};

static plim_status open_lines(void **out, struct file_source *base, struct budget *budget, const char *path,
                              plim_error *error)
{
    const struct line_source *source = (const struct line_source *)base;
    struct lines *lines;
    TRY(lines_open(&lines, budget, path, base->compression, source->buffer_bytes, error));
    *out = lines;
    return PLIM_OK;
}

static void close_lines(void *file)
{
    lines_close(file);
}

/* Lines of a file by itself stay in its buffer. */
static plim_status next_lines(int64_t *got, struct file_source *source, void *file, int64_t most,
                              const struct row_target *target, plim_error *error)
{
    struct string lines[MOST_AT_ONCE];
    int64_t count = most < MOST_AT_ONCE ? most : MOST_AT_ONCE;
    TRY(lines_read(got, file, lines, count, source->turns > 1 ? target->values : NULL, error));
    uint64_t bytes = target_put_strings(target, lines, *got) + (uint64_t)*got; /* with their ends */
    source_count_read(&source->base, bytes);
    return PLIM_OK;
}

static plim_status skip_lines(int64_t *passed, void *file, int64_t count, plim_error *error)
{
    struct string lines[MOST_AT_ONCE];
    int64_t got = 1;
    for (*passed = 0; *passed < count && got; *passed += got) {
        int64_t left = count - *passed;
        got = 0;
        TRY(lines_read(&got, file, lines, left < MOST_AT_ONCE ? left : MOST_AT_ONCE, NULL, error));
    }
    return PLIM_OK;
}

static const struct file_format line_format = {.source_bytes = sizeof(struct line_source),
                                               .open = open_lines,
                                               .close = close_lines,
                                               .next = next_lines,
                                               .skip = skip_lines};
static const struct source_type line_type = {.name = "text", FILE_SOURCE_READER, .reader_skip = file_source_skip};

static plim_status fill(struct line_source *source, enum compression compression, plim_error *error)
{
    struct file_source *files = &source->files;
    TRY(spec_add(&files->base.spec, "line", TYPE_STRING, &(struct shape){0}, error));
    TRY(file_source_find_compression(files, compression, error));
    file_source_cost(files, lines_cost(files->compression, source->buffer_bytes));
    files->base.value_bytes = source->buffer_bytes > LEAST_ROOM ? source->buffer_bytes : LEAST_ROOM;
    return PLIM_OK;
}

plim_status lines_source_open(struct source **out, struct budget *budget, const struct file_choice *choice,
                              plim_error *error)
{
    struct file_source *base;
    TRY(file_source_make(&base, &line_type, &line_format, budget, choice, error));
    struct line_source *source = (struct line_source *)base;
    source->buffer_bytes = choice->buffer_bytes ? choice->buffer_bytes : LINES_BUFFER_BYTES;
    return source_opened(out, &base->base, fill(source, choice->compression, error));
}
