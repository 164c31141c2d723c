/* record_source.c - TFRecord files as a source: a column of strings, a record each.

   As a stream: files one after another, or several in turns (file_source.h). By index: where every file has its index
   beside it. */
#include "formats/sources/record_source.h"

#include <string.h>

#include "base/memory/budget_alloc.h"
#include "formats/records/record_index.h"
#include "formats/records/tfrecord_reader.h"
#include "formats/tables/rows.h"

/* A file in turn with others is read in smaller steps: there may be many. */
#define TURN_BUFFER_BYTES ((size_t)64 * 1024)
#define MOST_AT_ONCE      256
#define RECORDS_ROOM      ((uint64_t)512 * 1024)

struct record_source {
    struct file_source files;
    /* By index: */
    struct record_index **index; /* of each file */
    int64_t *first;              /* number of its first record; one more at the end */
    uint64_t index_bytes;
};

/* ---- one file ---- */

static size_t buffer_bytes(const struct file_source *source)
{
    return source->turns > 1 ? TURN_BUFFER_BYTES : RECORD_BUFFER_BYTES;
}

static plim_status open_records(void **out, struct file_source *source, struct budget *budget, const char *path,
                                plim_error *error)
{
    struct tfrecord_reader *file;
    TRY(tfrecord_reader_open(&file, budget, path, buffer_bytes(source), error));
    *out = file;
    return PLIM_OK;
}

static void close_records(void *file)
{
    tfrecord_reader_close(file);
}

/* Records of files in turns are copied, for the next one of a file moves its buffer. */
static plim_status next_records(int64_t *got, struct file_source *source, void *file, int64_t most,
                                const struct row_target *target, plim_error *error)
{
    struct string records[MOST_AT_ONCE];
    int64_t count = most < MOST_AT_ONCE ? most : MOST_AT_ONCE;
    TRY(source->turns > 1 ? tfrecord_reader_copy(got, records, file, count, target->values, error)
                          : tfrecord_reader_read(got, records, file, count, target->values, error));
    uint64_t bytes = target_put_strings(target, records, *got) + (uint64_t)*got * 16; /* with their frames */
    source_count_read(&source->base, bytes);
    return PLIM_OK;
}

static plim_status skip_records(int64_t *passed, void *file, int64_t count, plim_error *error)
{
    return tfrecord_reader_skip(passed, file, count, error);
}

static bool pass_record(void *file)
{
    uint64_t skipped;
    return tfrecord_reader_resync(&skipped, file, NULL) == PLIM_OK;
}

static bool find_record(uint64_t *byte, struct file_source *source, const char *path, int64_t record)
{
    return record_find(byte, source->base.budget, path, record);
}

static const struct file_format record_format = {.source_bytes = sizeof(struct record_source),
                                                 .open = open_records,
                                                 .close = close_records,
                                                 .next = next_records,
                                                 .skip = skip_records,
                                                 .pass = pass_record,
                                                 .find = find_record};

/* ---- by index ---- */

static int64_t file_of(const struct record_source *source, int64_t record)
{
    return file_source_file_of(source->first, file_list_count(source->files.base.files), record);
}

static plim_status records_read(int64_t *done, struct source *base, const int64_t *index, int64_t count,
                                const struct row_target *target, plim_error *error)
{
    struct record_source *source = (struct record_source *)base;
    uint64_t total = 0;
    TRY(source_check(base, index, count, error));
    for (*done = 0; *done < count; (*done)++) {
        int64_t file = file_of(source, index[*done]);
        struct record_place place = {.record = index[*done] - source->first[file]};
        uint64_t bytes;
        struct string record;
        TRY(record_index_find(&place.byte, &bytes, source->index[file], place.record, error));
        TRY(record_read_at(&record, record_index_data(source->index[file]), &place, bytes, target->values, error));
        if (!record.data)
            break;
        memcpy((char *)target->to[0] + (uint64_t)*done * target->stride[0], &record, sizeof record);
        total += bytes + 16;
    }
    if (*done)
        target->values->wanted = 0;
    source_count_read(base, total);
    return PLIM_OK;
}

static bool records_describe(char out[256], const struct source *base, int64_t index, const char *column)
{
    const struct record_source *source = (const struct record_source *)base;
    int64_t file = file_of(source, index), number = index - source->first[file];
    uint64_t at, bytes;
    (void)column;
    if (record_index_find(&at, &bytes, source->index[file], number, NULL) != PLIM_OK)
        at = SOURCE_BYTE_UNKNOWN;
    file_source_place(out, &source->files, file, number, at);
    return true;
}

static plim_status open_index(struct record_source *source, plim_error *error)
{
    struct budget *budget = source->files.base.budget;
    int64_t files = file_list_count(source->files.base.files);
    char path[FILE_PATH_MOST + 1];
    source->index_bytes = (uint64_t)files * sizeof *source->index + ((uint64_t)files + 1) * sizeof *source->first;
    TRY(budget_alloc(&source->index, budget, TAG_FORMATS, source->index_bytes, error));
    source->first = (int64_t *)(source->index + files);
    for (int64_t i = 0; i < files; i++) {
        file_list_path(path, source->files.base.files, i);
        plim_status status = record_index_open(&source->index[i], budget, path, NULL, RECORD_INDEX_FRAMES, error);
        if (status != PLIM_OK)
            return hint(error, status, "plim data index '%s'", path);
        source->first[i + 1] = source->first[i] + record_index_count(source->index[i]);
    }
    source->files.base.count = source->first[files];
    return PLIM_OK;
}

/* ---- the source ---- */

static void free_records(struct source *base)
{
    struct record_source *source = (struct record_source *)base;
    for (int64_t i = 0; source->index && i < file_list_count(source->files.base.files); i++)
        record_index_close(source->index[i]);
    budget_give(base->budget, TAG_FORMATS, source->index, source->index_bytes);
}

static const struct source_type stream_type = {.index_advice = "`plim data index FILE` once",
                                               .name = "tfrecord",
                                               FILE_SOURCE_READER,
                                               .reader_skip = file_source_skip,
                                               .close = free_records};
static const struct source_type indexed_type = {
    .name = "tfrecord", .read_values = records_read, .describe = records_describe, SOURCE_FILES, .close = free_records};

static plim_status fill(struct record_source *source, const struct record_options *options, plim_error *error)
{
    struct source *base = &source->files.base;
    TRY(spec_add(&base->spec, "record", TYPE_STRING, &(struct shape){0}, error));
    base->value_bytes = RECORDS_ROOM;
    file_source_cost(&source->files, tfrecord_reader_cost(buffer_bytes(&source->files)));
    return options->indexed ? open_index(source, error) : PLIM_OK;
}

plim_status records_source_open(struct source **out, struct budget *budget, struct file_list *files,
                                const struct record_options *options, plim_error *error)
{
    struct file_source *source;
    const struct file_choice choice = {.files = files, .turns = options->turns};
    TRY(file_source_make(&source, options->indexed ? &indexed_type : &stream_type, &record_format, budget, &choice,
                         error));
    return source_opened(out, &source->base, fill((struct record_source *)source, options, error));
}
