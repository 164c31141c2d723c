/* csv_open.c - opening and closing CSV files. */
#include <string.h>

#include "formats/tables/csv_reader.h"

static plim_status check_options(const char *path, const struct csv_options *options, plim_error *error)
{
    if (options->delimiter && strchr("\n\r\"", options->delimiter))
        return fail_at(error, PLIM_BAD_JOB, path, "a line end or a quote cannot be the delimiter");
    if (options->column_count < 0 || options->column_count > CSV_MOST_COLUMNS)
        return fail_at(error, PLIM_BAD_JOB, path, "%lld columns: up to %d are possible",
                       (long long)options->column_count, CSV_MOST_COLUMNS);
    for (int64_t c = 0; c < options->column_count; c++) {
        enum type type = options->columns[c].type;
        if (type != TYPE_I32 && type != TYPE_I64 && type != TYPE_F32 && type != TYPE_F64 && type != TYPE_STRING) {
            fail_at(error, PLIM_BAD_JOB, path, "column %lld: type %s is not possible in CSV", (long long)c,
                    type_name(type));
            return hint(error, PLIM_BAD_JOB, "int32, int64, float32, float64 and string are");
        }
        if (options->select && (options->select[c] < 0 || (c && options->select[c] <= options->select[c - 1])))
            return fail_at(error, PLIM_BAD_JOB, path, "selected columns must be increasing numbers from 0 on");
    }
    return PLIM_OK;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) : 0;
}

/* A text of the options, kept at *at. */
static struct string keep(char **at, const char *text)
{
    size_t bytes = text_bytes(text);
    struct string kept = {(const uint8_t *)*at, bytes};
    if (bytes)
        memcpy(*at, text, bytes);
    *at += bytes;
    return kept;
}

static void copy_columns(struct csv *csv, const struct csv_options *options)
{
    char *at = csv->texts;
    csv->na = keep(&at, options->na_value);
    for (int64_t c = 0; c < csv->column_count; c++) {
        const struct csv_column *column = &options->columns[c];
        struct column_rule *rule = &csv->rule[c];
        rule->type = column->type;
        rule->required = column->required;
        if (rule->type == TYPE_I32)
            rule->missing.i32 = (int32_t)column->whole;
        else if (rule->type == TYPE_I64)
            rule->missing.i64 = column->whole;
        else if (rule->type == TYPE_F32)
            rule->missing.f32 = (float)column->real;
        else if (rule->type == TYPE_F64)
            rule->missing.f64 = column->real;
        else
            rule->text = keep(&at, column->text);
        if (csv->select)
            csv->select[c] = options->select[c];
    }
}

/* How fields are told apart. A number may be read at once, unless the delimiter could be a part of it or the NA value
   could be one. */
static void set_rules(struct csv *csv, const struct csv_options *options)
{
    static const char numeric[] = "0123456789+-.eE";
    csv->delimiter = options->delimiter ? options->delimiter : ',';
    csv->quotes = !options->no_quotes;
    csv->special[(unsigned char)csv->delimiter] = csv->special['\n'] = csv->special['\r'] = true;
    csv->special['"'] |= csv->quotes;
    csv->plain = !memchr(numeric, csv->delimiter, sizeof numeric - 1) &&
                 !(csv->na.bytes && memchr(numeric, csv->na.data[0], sizeof numeric - 1));
}

static plim_status take_blocks(struct csv *csv, const struct csv_options *options, plim_error *error)
{
    size_t count = (size_t)options->column_count;
    csv->column_count = options->column_count;
    csv->texts_bytes = text_bytes(options->na_value);
    for (size_t c = 0; c < count; c++)
        csv->texts_bytes += text_bytes(options->columns[c].text);
    csv->capacity = options->buffer_bytes ? options->buffer_bytes : CSV_BUFFER_BYTES;
    csv->texts = budget_take(csv->budget, TAG_FORMATS, csv->texts_bytes);
    csv->rule = budget_take_array(csv->budget, TAG_FORMATS, count, sizeof *csv->rule);
    if (options->select)
        csv->select = budget_take_array(csv->budget, TAG_FORMATS, count, sizeof *csv->select);
    csv->buffer = budget_take(csv->budget, TAG_FORMATS, csv->capacity + CSV_PAD_BYTES);
    if (!csv->texts || !csv->rule || (options->select && !csv->select) || !csv->buffer)
        return budget_refused(csv->budget, TAG_FORMATS, csv->capacity, error);
    return PLIM_OK;
}

static plim_status begin(struct csv *csv, const char *path, const struct csv_options *options, plim_error *error)
{
    TRY(take_blocks(csv, options, error));
    copy_columns(csv, options);
    set_rules(csv, options);
    TRY(byte_stream_open(&csv->stream, csv->budget, path, options->compression, error));
    if (!options->header)
        return PLIM_OK;
    /* As a record of columns that nobody asked for: quotes in it count. */
    int64_t fields, *none = &fields, *select = csv->select, count = csv->column_count;
    csv->select = none;
    csv->column_count = 0;
    csv->record = -1;
    plim_status status = csv_pass(&fields, csv, error);
    csv->select = select;
    csv->column_count = count;
    if (status == PLIM_OK && fields == 0)
        return byte_stream_fail(csv->stream, 0, error, "the file is empty: it lacks its header");
    return status;
}

plim_status csv_open(struct csv **out, struct budget *budget, const char *path, const struct csv_options *options,
                     plim_error *error)
{
    TRY(check_options(path, options, error));
    struct csv *csv = budget_take(budget, TAG_FORMATS, sizeof *csv);
    if (!csv)
        return budget_refused(budget, TAG_FORMATS, sizeof *csv, error);
    csv->budget = budget;
    plim_status status = begin(csv, path, options, error);
    if (status == PLIM_OK)
        *out = csv;
    else
        csv_close(csv);
    return status;
}

uint64_t csv_cost(const struct csv_options *options)
{
    size_t count = (size_t)options->column_count, texts = text_bytes(options->na_value);
    size_t buffer = options->buffer_bytes ? options->buffer_bytes : CSV_BUFFER_BYTES;
    for (size_t c = 0; c < count; c++)
        texts += text_bytes(options->columns[c].text);
    return budget_charge(sizeof(struct csv)) + budget_charge(texts) +
           budget_charge(count * sizeof(struct column_rule)) +
           (options->select ? budget_charge(count * sizeof(int64_t)) : 0) + budget_charge(buffer + CSV_PAD_BYTES) +
           byte_stream_cost(options->compression);
}

void csv_close(struct csv *csv)
{
    if (!csv)
        return;
    struct budget *budget = csv->budget;
    size_t count = (size_t)csv->column_count;
    byte_stream_close(csv->stream);
    budget_give(budget, TAG_FORMATS, csv->buffer, csv->capacity + CSV_PAD_BYTES);
    budget_give(budget, TAG_FORMATS, csv->select, count * sizeof *csv->select);
    budget_give(budget, TAG_FORMATS, csv->rule, count * sizeof *csv->rule);
    budget_give(budget, TAG_FORMATS, csv->texts, csv->texts_bytes);
    budget_give(budget, TAG_FORMATS, csv, sizeof *csv);
}
