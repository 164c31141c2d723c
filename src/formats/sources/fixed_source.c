/* fixed_source.c - files of records of one size as a source: a column of strings.

   Raw files that are read one after another are rows: records by number. Others are a stream. */
#include <string.h>

#include "base/numbers/checked.h"
#include "formats/sources/line_source.h"
#include "formats/tables/rows.h"

#define MOST_ROOM ((uint64_t)256 * 1024)

struct fixed_source {
    struct file_source files;
    struct fixed_layout layout;
    /* By index: */
    struct fixed_records *open[FIXED_MOST_FILES];
    int64_t first[FIXED_MOST_FILES + 1]; /* number of its first record; one more at the end */
};

/* ---- as a stream ---- */

static plim_status open_fixed(void **out, struct file_source *base, struct budget *budget, const char *path,
                              plim_error *error)
{
    const struct fixed_source *source = (const struct fixed_source *)base;
    struct fixed_records *records;
    TRY(fixed_records_open(&records, budget, path, &source->layout, base->compression, error));
    *out = records;
    return PLIM_OK;
}

static void close_fixed(void *file)
{
    fixed_records_close(file);
}

/* `count` strings of one size, one behind the other. */
static void refer(const struct row_target *target, int64_t row, const uint8_t *data, uint64_t bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        struct string string = {data + (uint64_t)i * bytes, bytes};
        memcpy((char *)target->to[0] + (uint64_t)(row + i) * target->stride[0], &string, sizeof string);
    }
}

/* How many records the value buffer has place for. */
static int64_t places(struct value_buffer *values, uint64_t bytes, int64_t most)
{
    uint64_t fit = value_buffer_left(values) / bytes;
    if (fit == 0)
        value_buffer_refuse(values, bytes);
    return fit < (uint64_t)most ? (int64_t)fit : most;
}

static plim_status next_fixed(int64_t *got, struct file_source *base, void *file, int64_t most,
                              const struct row_target *target, plim_error *error)
{
    uint64_t bytes = ((struct fixed_source *)base)->layout.record_bytes;
    int64_t fit = places(target->values, bytes, most);
    uint8_t *to = target->values->bytes + target->values->used;
    *got = 0;
    if (fit == 0)
        return PLIM_OK;
    TRY(fixed_records_next(got, file, to, fit, error));
    target->values->used += (uint64_t)*got * bytes;
    refer(target, 0, to, bytes, *got);
    source_count_read(&base->base, (uint64_t)*got * bytes);
    return PLIM_OK;
}

static uint64_t byte_of(const struct fixed_source *source, int64_t record)
{
    return source->layout.header_bytes + (uint64_t)record * source->layout.record_bytes;
}

static bool find_fixed(uint64_t *byte, struct file_source *base, const char *path, int64_t record)
{
    (void)path;
    *byte = byte_of((const struct fixed_source *)base, record);
    return true;
}

static const struct file_format fixed_format = {.source_bytes = sizeof(struct fixed_source),
                                                .open = open_fixed,
                                                .close = close_fixed,
                                                .next = next_fixed,
                                                .find = find_fixed};

/* ---- by index ---- */

static int64_t file_of(const struct fixed_source *source, int64_t record)
{
    return file_source_file_of(source->first, file_list_count(source->files.base.files), record);
}

/* Records of one file, from index[*done] on, as many as follow there and fit. */
static plim_status read_file(int64_t *done, struct fixed_source *source, const int64_t *index, int64_t count,
                             const struct row_target *target, plim_error *error)
{
    enum { MOST_RUN = 256 };
    int64_t local[MOST_RUN], some = 0;
    uint64_t bytes = source->layout.record_bytes;
    int64_t file = file_of(source, index[0]);
    int64_t fit = places(target->values, bytes, count < MOST_RUN ? count : MOST_RUN);
    while (some < fit && index[some] >= source->first[file] && index[some] < source->first[file + 1]) {
        local[some] = index[some] - source->first[file];
        some++;
    }
    const struct rows rows = {.file = fixed_records_file(source->open[file]),
                              .at = source->layout.header_bytes,
                              .row_bytes = bytes,
                              .swap = 1};
    uint8_t *to = target->values->bytes + target->values->used;
    TRY(rows_read(&rows, local, some, to, bytes, error));
    target->values->used += (uint64_t)some * bytes;
    refer(target, *done, to, bytes, some);
    *done += some;
    return PLIM_OK;
}

static plim_status read_fixed(int64_t *done, struct source *base, const int64_t *index, int64_t count,
                              const struct row_target *target, plim_error *error)
{
    struct fixed_source *source = (struct fixed_source *)base;
    TRY(source_check(base, index, count, error));
    target->values->wanted = 0;
    for (*done = 0; *done < count && !target->values->wanted;)
        TRY(read_file(done, source, index + *done, count - *done, target, error));
    if (*done)
        target->values->wanted = 0;
    source_count_read(base, (uint64_t)*done * source->layout.record_bytes);
    return PLIM_OK;
}

static bool fixed_describe(char out[256], const struct source *base, int64_t index, const char *column)
{
    const struct fixed_source *source = (const struct fixed_source *)base;
    int64_t file = file_of(source, index), record = index - source->first[file];
    (void)column;
    file_source_place(out, &source->files, file, record, byte_of(source, record));
    return true;
}

/* ---- the source ---- */

static void free_fixed(struct source *base)
{
    struct fixed_source *source = (struct fixed_source *)base;
    for (int i = 0; i < FIXED_MOST_FILES; i++)
        fixed_records_close(source->open[i]);
}

static const struct source_type stream_type = {.name = "fixed_length", FILE_SOURCE_READER, .close = free_fixed};
static const struct source_type indexed_type = {
    .name = "fixed_length", .read_values = read_fixed, .describe = fixed_describe, SOURCE_FILES, .close = free_fixed};

static plim_status open_all(struct fixed_source *source, plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    void *file;
    for (int i = 0; i < (int)file_list_count(source->files.base.files); i++) {
        file_list_path(path, source->files.base.files, i);
        TRY(file_source_check_packing(&source->files, source->files.base.budget, path, error));
        TRY(open_fixed(&file, &source->files, source->files.base.budget, path, error));
        source->open[i] = file;
        file_expect_random(fixed_records_file(file));
        source->first[i + 1] = source->first[i] + fixed_records_count(file);
    }
    source->files.base.count = source->first[file_list_count(source->files.base.files)];
    source->files.base.type = &indexed_type;
    return PLIM_OK;
}

static plim_status fill(struct fixed_source *source, enum compression compression, plim_error *error)
{
    struct file_source *files = &source->files;
    uint64_t bytes = source->layout.record_bytes;
    if (bytes == 0 || bytes > INT64_MAX / 4)
        return fail(error, PLIM_BAD_JOB, "fixed_length: record_bytes must be at least 1");
    TRY(spec_add(&files->base.spec, "record", TYPE_STRING, &(struct shape){0}, error));
    TRY(file_source_find_compression(files, compression, error));
    file_source_cost(files, fixed_records_cost(&source->layout, files->compression));
    files->base.value_bytes = bytes * 256 < MOST_ROOM ? bytes * 256 : bytes > MOST_ROOM ? bytes : MOST_ROOM;
    bool in_order = files->turns == 1 && !files->options.shuffle_files;
    if (files->compression == COMPRESSION_NONE && in_order && file_list_count(files->base.files) <= FIXED_MOST_FILES)
        return open_all(source, error);
    return PLIM_OK;
}

plim_status fixed_source_open(struct source **out, struct budget *budget, const struct file_choice *choice,
                              const struct fixed_layout *layout, plim_error *error)
{
    struct file_source *base;
    TRY(file_source_make(&base, &stream_type, &fixed_format, budget, choice, error));
    struct fixed_source *source = (struct fixed_source *)base;
    source->layout = *layout;
    return source_opened(out, &base->base, fill(source, choice->compression, error));
}
