/* csv_infer.c - the names of a CSV file's columns, and their types, found by looking. */
#include <math.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/count.h"
#include "base/numbers/decimal.h"
#include "formats/tables/csv_reader.h"

/* A file whose fields are all read as text, a record at a time. */
struct text_file {
    const struct csv_probe *probe;
    struct csv *csv;
    int64_t count;
    struct csv_column *columns; /* one block: columns, places, strides */
    void **to;
    uint64_t *stride;
};

static size_t text_table_bytes(const struct text_file *file)
{
    return (size_t)file->count * (sizeof *file->columns + sizeof *file->to + sizeof *file->stride);
}

static void text_file_close(struct text_file *file)
{
    csv_close(file->csv);
    budget_give(file->probe->budget, TAG_FORMATS, file->columns, text_table_bytes(file));
}

/* Records go to out[0..count). */
static plim_status text_file_open(struct text_file *file, struct string *out, bool header, plim_error *error)
{
    size_t count = (size_t)file->count;
    TRY(budget_alloc(&file->columns, file->probe->budget, TAG_FORMATS, text_table_bytes(file), error));
    file->to = (void **)(file->columns + count);
    file->stride = (uint64_t *)(file->to + count);
    for (size_t c = 0; c < count; c++) {
        file->columns[c].type = TYPE_STRING;
        file->to[c] = &out[c];
    }
    struct csv_options as_text = *file->probe->options;
    as_text.columns = file->columns;
    as_text.column_count = file->count;
    as_text.select = NULL;
    as_text.header = header;
    as_text.na_value = NULL;
    return csv_open(&file->csv, file->probe->budget, file->probe->path, &as_text, error);
}

static plim_status text_file_next(bool *more, struct text_file *file, struct value_buffer *values, plim_error *error)
{
    int64_t got;
    const struct row_target target = {.to = file->to, .stride = file->stride, .values = values};
    TRY(csv_read(&got, file->csv, 1, &target, error));
    if (got == 0 && values->wanted)
        return byte_stream_fail(file->csv->in.stream, csv_at(file->csv), error, "a record's texts take over %llu bytes",
                                (unsigned long long)values->capacity);
    *more = got > 0;
    return PLIM_OK;
}

static plim_status count_fields(int64_t *count, const struct csv_probe *file, plim_error *error)
{
    int64_t none = 0, fields;
    struct csv *csv;
    struct csv_options bare = *file->options;
    bare.column_count = 0;
    bare.select = &none;
    bare.header = false;
    TRY(csv_open(&csv, file->budget, file->path, &bare, error));
    plim_status status = csv_pass(&fields, csv, error);
    if (status == PLIM_OK && fields == 0)
        status = byte_stream_fail(csv->in.stream, 0, error, "the file is empty: it lacks its header");
    if (status == PLIM_OK && fields > CSV_MOST_COLUMNS)
        status = byte_stream_fail(csv->in.stream, 0, error, "%lld fields: at most %d are possible", (long long)fields,
                                  CSV_MOST_COLUMNS);
    csv_close(csv);
    *count = fields;
    return status;
}

plim_status csv_names(struct string *out, int64_t *count, int64_t most, const struct csv_probe *file,
                      struct value_buffer *values, plim_error *error)
{
    struct text_file texts = {.probe = file};
    bool more;
    TRY(count_fields(&texts.count, file, error));
    if (texts.count > most)
        return fail_at(error, PLIM_BAD_DATA, file->path,
                       "the record at byte 0 has %lld fields: at most %lld are possible", (long long)texts.count,
                       (long long)most);
    plim_status status = text_file_open(&texts, out, false, error);
    if (status == PLIM_OK)
        status = text_file_next(&more, &texts, values, error);
    text_file_close(&texts);
    if (status == PLIM_OK)
        *count = texts.count;
    return status;
}

/* ---- types ------------------------------------------------------------------ */

static const enum type ladder[] = {TYPE_I32, TYPE_I64, TYPE_F32, TYPE_F64, TYPE_STRING};
enum { RUNGS = COUNT(ladder), UNKNOWN = RUNGS };

/* As Python's float() has it: no hexadecimal. Infinity and what is no number are texts. */
static bool is_real(struct string text, bool wide)
{
    double value = 0;
    float narrow = 0;
    const char *data = (const char *)text.data;
    if (memchr(data, 'x', text.bytes) || memchr(data, 'X', text.bytes) || memchr(data, '(', text.bytes))
        return false;
    if (wide ? !decimal_double(&value, data, text.bytes) : !decimal_float(&narrow, data, text.bytes))
        return false;
    return (wide ? value : (double)narrow) < (double)INFINITY;
}

/* The lowest rung on which the text can stand. */
static int rung_of(struct string field)
{
    int64_t value;
    struct string text = csv_trim(field);
    if (csv_whole(&value, text))
        return value == (int32_t)value ? 0 : 1;
    return is_real(text, false) ? 2 : is_real(text, true) ? 3 : 4;
}

static bool is_missing(struct string field, const char *na)
{
    return field.bytes == 0 || (na && field.bytes == strlen(na) && memcmp(field.data, na, field.bytes) == 0);
}

static plim_status climb(int *rung, int64_t rows, struct text_file *file, const struct string *row,
                         struct value_buffer *values, const char *na, plim_error *error)
{
    bool more;
    for (int64_t r = 0; rows == 0 || r < rows; r++) {
        value_buffer_empty(values);
        TRY(text_file_next(&more, file, values, error));
        if (!more)
            break;
        for (int64_t c = 0; c < file->count; c++) {
            int own = is_missing(row[c], na) ? UNKNOWN : rung_of(row[c]);
            if (own != UNKNOWN && (rung[c] == UNKNOWN || own > rung[c]))
                rung[c] = own;
        }
    }
    return PLIM_OK;
}

plim_status csv_infer(enum type *types, int64_t column_count, int64_t rows, const struct csv_probe *file,
                      plim_error *error)
{
    const struct csv_options *options = file->options;
    struct budget *budget = file->budget;
    size_t count = (size_t)column_count, most = options->buffer_bytes ? options->buffer_bytes : CSV_BUFFER_BYTES;
    if (column_count < 1 || column_count > CSV_MOST_COLUMNS)
        return fail_at(error, PLIM_BAD_JOB, file->path, "%lld columns: 1 to %d are possible", (long long)column_count,
                       CSV_MOST_COLUMNS);
    struct text_file texts = {.probe = file, .count = column_count};
    struct string *row = budget_take_array(budget, TAG_FORMATS, count, sizeof *row);
    int *rung = budget_take_array(budget, TAG_FORMATS, count, sizeof *rung);
    void *bytes = budget_take(budget, TAG_FORMATS, most);
    struct value_buffer values;
    value_buffer_init(&values, bytes, most);
    plim_status status = row && rung && bytes ? text_file_open(&texts, row, options->header, error)
                                              : budget_refused(budget, TAG_FORMATS, most, error);
    for (size_t c = 0; rung && c < count; c++)
        rung[c] = UNKNOWN;
    if (status == PLIM_OK)
        status = climb(rung, rows, &texts, row, &values, options->na_value, error);
    for (size_t c = 0; status == PLIM_OK && c < count; c++)
        types[c] = rung[c] == UNKNOWN ? TYPE_STRING : ladder[rung[c]];
    text_file_close(&texts);
    budget_give(budget, TAG_FORMATS, bytes, most);
    budget_give(budget, TAG_FORMATS, rung, count * sizeof *rung);
    budget_give(budget, TAG_FORMATS, row, count * sizeof *row);
    return status;
}
