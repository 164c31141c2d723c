/* tar_source.c - tar files in WebDataset's convention as a source.

   Strings go straight into the buffer. What is made into numbers is read into a buffer of the file's own first, sized
   for the columns that were asked for: a larger member is an error. */
#include "formats/sources/tar_source.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/tables/csv_reader.h"
#include "formats/tables/npy_header.h"
#include "formats/tables/rows.h"

#define SAMPLE_BYTES ((size_t)1024 * 1024)
#define CLASS_BYTES  64
#define HEADER_BYTES 4096 /* of an npy file's header, which numpy makes 128 bytes long */

struct tar_source {
    struct file_source files;
    size_t sample_bytes, small_bytes;
    char *texts; /* of the columns */
    size_t texts_bytes;
    int column_count;
    struct tar_column column[MOST_COLUMNS];
};

struct tar_file {
    struct budget *budget;
    struct wds *wds;
    const struct wds_sample *sample;
    bool waiting; /* the sample was found and has not been given: the value buffer was full */
    size_t small_bytes;
    uint8_t *small; /* what becomes numbers */
    char header[HEADER_BYTES];
};

/* ---- opening ---- */

static void close_tar(void *closed)
{
    struct tar_file *file = closed;
    wds_close(file->wds);
    budget_give(file->budget, TAG_FORMATS, file->small, file->small_bytes);
    budget_give(file->budget, TAG_FORMATS, file, sizeof *file);
}

static plim_status open_tar(void **out, struct file_source *base, struct budget *budget, const char *path,
                            plim_error *error)
{
    const struct tar_source *source = (const struct tar_source *)base;
    struct tar_file *file;
    TRY(budget_alloc(&file, budget, TAG_FORMATS, sizeof *file, error));
    file->budget = budget;
    file->small_bytes = source->small_bytes;
    file->small = budget_take(budget, TAG_FORMATS, file->small_bytes);
    return OPENED(out, file, close_tar,
                  file->small ? wds_open(&file->wds, budget, path, base->compression, source->sample_bytes, error)
                              : budget_refused(budget, TAG_FORMATS, file->small_bytes, error));
}

/* ---- a column of a sample ---- */

static plim_status bad_field(struct tar_file *file, const struct tar_column *column, plim_error *error,
                             const char *what)
{
    return byte_stream_fail(wds_stream(file->wds), file->sample->begin_at, error, "sample '%.160s': .%.60s %s",
                            file->sample->key, column->extensions, what);
}

static plim_status missing_field(struct tar_file *file, const struct tar_column *column, void *row, uint64_t bytes,
                                 plim_error *error)
{
    if (!column->optional)
        return hint(error, bad_field(file, column, error, "is missing"), "give the column a default");
    if (column->content == TAR_BYTES)
        memcpy(row, &(struct string){(const uint8_t *)column->text, strlen(column->text)}, sizeof(struct string));
    else if (column->content == TAR_CLASS)
        memcpy(row, &column->whole, sizeof column->whole);
    else
        memset(row, 0, bytes);
    return PLIM_OK;
}

/* Digits, perhaps with a sign, and blanks around them. */
static bool parse_class(int64_t *out, struct string text)
{
    static const char blanks[] = " \t\r\n";
    for (; text.bytes && memchr(blanks, text.data[0], sizeof blanks - 1); text.bytes--)
        text.data++;
    while (text.bytes && memchr(blanks, text.data[text.bytes - 1], sizeof blanks - 1))
        text.bytes--;
    return csv_whole(out, text);
}

static plim_status read_memory(void *context, void *to, size_t bytes, plim_error *error)
{
    struct string *left = context;
    (void)error;
    memcpy(to, left->data, bytes);
    left->data += bytes;
    return PLIM_OK;
}

static plim_status take_array(struct tar_file *file, const struct tar_column *column, struct string text, void *row,
                              plim_error *error)
{
    struct string left = text;
    struct npy_bytes bytes = {.read = read_memory,
                              .context = &left,
                              .path = file_path(wds_stream(file->wds)->file),
                              .present = text.bytes,
                              .text = file->header,
                              .text_bytes = sizeof file->header};
    struct npy_header header;
    plim_error why = {0};
    if (npy_header_parse(&header, &bytes, file->budget, &why) != PLIM_OK)
        return bad_field(file, column, error, why.message);
    if (header.type != column->type || header.fortran || !shape_equal(&header.shape, &column->shape)) {
        char what[256], is[64], asked[64];
        shape_text(is, sizeof is, &header.shape, false);
        shape_text(asked, sizeof asked, &column->shape, false);
        snprintf(what, sizeof what, "is %s %s%s; asked for was %s %s", type_name(header.type), is,
                 header.fortran ? " in Fortran order" : "", type_name(column->type), asked);
        return bad_field(file, column, error, what);
    }
    memcpy(row, text.data + header.at, (size_t)header.data_bytes);
    if (header.big_endian)
        swap_elements(row, header.data_bytes, (uint32_t)type_bytes(header.type));
    return PLIM_OK;
}

/* What becomes numbers, by way of the file's own buffer. */
static plim_status take_number(struct tar_file *file, const struct tar_column *column, void *row, uint64_t bytes,
                               plim_error *error)
{
    struct value_buffer own;
    struct string text;
    bool fits;
    int64_t value;
    value_buffer_init(&own, file->small, file->small_bytes);
    TRY(wds_take(&fits, &text, file->wds, column->extensions, &own, error));
    if (!fits)
        return bad_field(file, column, error, "is larger than what was asked for");
    if (!text.data)
        return missing_field(file, column, row, bytes, error);
    if (column->content == TAR_ARRAY)
        return take_array(file, column, text, row, error);
    if (!parse_class(&value, text))
        return bad_field(file, column, error, "is no whole number");
    memcpy(row, &value, sizeof value);
    return PLIM_OK;
}

static plim_status take_bytes(bool *fits, struct tar_file *file, const struct tar_column *column, void *row,
                              struct value_buffer *values, plim_error *error)
{
    struct string text;
    TRY(wds_take(fits, &text, file->wds, column->extensions, values, error));
    if (!*fits)
        return PLIM_OK;
    if (!text.data)
        return missing_field(file, column, row, sizeof text, error);
    memcpy(row, &text, sizeof text);
    return PLIM_OK;
}

/* The whole sample into row `row`; *fits false: the value buffer is full, and is as before. */
static plim_status take_sample(bool *fits, struct tar_source *source, struct tar_file *file, int64_t row,
                               const struct row_target *target, plim_error *error)
{
    const struct spec *spec = &source->files.base.spec;
    uint64_t used = target->values ? target->values->used : 0;
    plim_status status = PLIM_OK;
    *fits = true;
    for (int c = 0; c < source->column_count && status == PLIM_OK && *fits; c++) {
        const struct tar_column *column = &source->column[c];
        void *to = (char *)target->to[c] + (uint64_t)row * target->stride[c];
        status = column->content == TAR_BYTES ? take_bytes(fits, file, column, to, target->values, error)
                                              : take_number(file, column, to, spec->column[c].bytes, error);
    }
    if (target->values && (status != PLIM_OK || !*fits))
        target->values->used = used;
    return status;
}

/* One sample a call: what is wrong with the next one is found when it is asked for. */
static plim_status next_tar(int64_t *got, struct file_source *base, void *opened, int64_t most,
                            const struct row_target *target, plim_error *error)
{
    struct tar_file *file = opened;
    bool fits, more = true;
    uint64_t bytes = 512;
    (void)most;
    *got = 0;
    if (!file->waiting)
        TRY(wds_next(&more, &file->sample, file->wds, error));
    if (!more)
        return PLIM_OK;
    file->waiting = false;
    TRY(take_sample(&fits, (struct tar_source *)base, file, 0, target, error));
    file->waiting = !fits;
    if (!fits)
        return PLIM_OK;
    for (int i = 0; i < file->sample->field_count; i++)
        bytes += file->sample->field[i].bytes + 512;
    source_count_read(&base->base, bytes);
    *got = 1;
    return PLIM_OK;
}

static plim_status skip_tar(int64_t *passed, void *opened, int64_t count, plim_error *error)
{
    struct tar_file *file = opened;
    bool more = true;
    *passed = 0;
    if (file->waiting && count > 0) {
        file->waiting = false;
        ++*passed;
    }
    while (*passed < count && more) {
        TRY(wds_next(&more, &file->sample, file->wds, error));
        *passed += more;
    }
    return PLIM_OK;
}

static const struct file_format tar_format = {.source_bytes = sizeof(struct tar_source),
                                              .open = open_tar,
                                              .close = close_tar,
                                              .next = next_tar,
                                              .skip = skip_tar};

/* ---- the source ---- */

static void free_tar(struct source *base)
{
    struct tar_source *source = (struct tar_source *)base;
    budget_give(base->budget, TAG_FORMATS, source->texts, source->texts_bytes);
}

static const struct source_type tar_type = {
    .name = "tar", FILE_SOURCE_READER, .reader_skip = file_source_skip, .close = free_tar};

static plim_status copy_columns(struct tar_source *source, const struct tar_column *columns, plim_error *error)
{
    struct budget *budget = source->files.base.budget;
    for (int c = 0; c < source->column_count; c++)
        source->texts_bytes += strlen(columns[c].extensions) + (columns[c].text ? strlen(columns[c].text) : 0) + 2;
    TRY(budget_alloc(&source->texts, budget, TAG_FORMATS, source->texts_bytes, error));
    char *at = source->texts;
    for (int c = 0; c < source->column_count; c++) {
        source->column[c] = columns[c];
        source->column[c].extensions = text_keep(&at, columns[c].extensions);
        source->column[c].text = text_keep(&at, columns[c].text ? columns[c].text : "");
    }
    return PLIM_OK;
}

static plim_status add_columns(struct tar_source *source, plim_error *error)
{
    struct spec *spec = &source->files.base.spec;
    source->small_bytes = CLASS_BYTES;
    for (int c = 0; c < source->column_count; c++) {
        const struct tar_column *column = &source->column[c];
        static const struct shape scalar = {0};
        bool array = column->content == TAR_ARRAY;
        enum type type = array ? column->type : column->content == TAR_CLASS ? TYPE_I64 : TYPE_STRING;
        if (spec_find(spec, column->name) >= 0)
            return fail(error, PLIM_BAD_JOB, "tar: a second column '%.64s'", column->name);
        TRY(spec_add(spec, column->name, type, array ? &column->shape : &scalar, error));
        uint64_t bytes = add_most(spec->column[c].bytes, HEADER_BYTES + 16);
        if (array && (type == TYPE_STRING || bytes > INT32_MAX))
            return fail(error, PLIM_BAD_JOB, "tar: column '%.64s': no such array", column->name);
        if (array && bytes > source->small_bytes)
            source->small_bytes = (size_t)bytes;
    }
    return PLIM_OK;
}

static plim_status fill(struct tar_source *source, const struct tar_column *columns, enum compression compression,
                        plim_error *error)
{
    struct file_source *files = &source->files;
    if (source->column_count < 1 || source->column_count > MOST_COLUMNS)
        return fail(error, PLIM_BAD_JOB, "tar: %d columns: 1 to %d are possible", source->column_count, MOST_COLUMNS);
    TRY(copy_columns(source, columns, error));
    TRY(add_columns(source, error));
    TRY(file_source_find_compression(files, compression, error));
    file_source_cost(files, budget_charge(sizeof(struct tar_file)) + budget_charge(source->small_bytes) +
                                wds_cost(files->compression, source->sample_bytes));
    if (spec_has_values(&files->base.spec))
        files->base.value_bytes = source->sample_bytes;
    return PLIM_OK;
}

static size_t sample_bytes(const struct file_choice *choice)
{
    return choice->buffer_bytes ? choice->buffer_bytes : SAMPLE_BYTES;
}

plim_status tar_source_open(struct source **out, struct budget *budget, const struct file_choice *choice,
                            const struct tar_column *columns, int column_count, plim_error *error)
{
    struct file_source *base;
    TRY(file_source_make(&base, &tar_type, &tar_format, budget, choice, error));
    struct tar_source *source = (struct tar_source *)base;
    source->column_count = column_count;
    source->sample_bytes = sample_bytes(choice);
    return source_opened(out, &base->base, fill(source, columns, choice->compression, error));
}

plim_status tar_first_extensions(struct string out[MOST_COLUMNS], int *count, struct budget *budget,
                                 const struct file_choice *choice, struct value_buffer *values, plim_error *error)
{
    char path[FILE_PATH_MOST + 1];
    struct wds *wds;
    const struct wds_sample *sample = NULL;
    bool more = false;
    file_list_path(path, choice->files, 0);
    TRY(wds_open(&wds, budget, path, choice->compression, sample_bytes(choice), error));
    plim_status status = wds_next(&more, &sample, wds, error);
    if (status == PLIM_OK && !more)
        status = fail_at(error, PLIM_BAD_DATA, path, "holds no sample: no member has a name and an extension");
    *count = 0;
    for (int i = 0; status == PLIM_OK && i < sample->field_count && i < MOST_COLUMNS; i++) {
        size_t bytes = strlen(sample->field[i].extension) + 1;
        char *kept = value_buffer_take_bytes(values, bytes);
        if (!kept)
            break;
        memcpy(kept, sample->field[i].extension, bytes);
        out[(*count)++] = (struct string){(const uint8_t *)kept, bytes - 1};
    }
    wds_close(wds);
    return status;
}
