/* csv_open.c - opening and closing CSV files. */
#include <string.h>

#include "base/memory/budget_alloc.h"
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

/* How fields are told apart. A number may be read at once, unless the delimiter could be a part of it or the NA value
   could be one. */
static void set_rules(struct csv *csv, const struct csv_options *options)
{
    static const char numeric[] = "0123456789+-.eE";
    csv->delimiter = options->delimiter ? options->delimiter : ',';
    csv->quotes = !options->no_quotes;
    csv->column_count = options->column_count;
    csv->column = options->columns;
    csv->select = options->select;
    if (options->na_value)
        csv->na = (struct string){(const uint8_t *)options->na_value, strlen(options->na_value)};
    csv->special[(unsigned char)csv->delimiter] = csv->special['\n'] = csv->special['\r'] = true;
    csv->special['"'] |= csv->quotes;
    csv->plain = !memchr(numeric, csv->delimiter, sizeof numeric - 1) &&
                 !(csv->na.bytes && memchr(numeric, csv->na.data[0], sizeof numeric - 1));
}

static size_t capacity_of(const struct csv_options *options)
{
    return options->buffer_bytes ? options->buffer_bytes : CSV_BUFFER_BYTES;
}

static plim_status begin(struct csv *csv, const char *path, const struct csv_options *options, plim_error *error)
{
    csv->in.capacity = capacity_of(options);
    TRY(budget_alloc(&csv->in.bytes, csv->budget, TAG_FORMATS, csv->in.capacity + CSV_PAD_BYTES, error));
    set_rules(csv, options);
    TRY(byte_stream_open(&csv->in.stream, csv->budget, path, options->compression, error));
    if (!options->header)
        return PLIM_OK;
    /* As a record of columns that nobody asked for: quotes in it count. */
    const int64_t *select = csv->select;
    int64_t fields, count = csv->column_count;
    csv->select = &fields;
    csv->column_count = 0;
    csv->record = -1;
    plim_status status = csv_pass(&fields, csv, error);
    csv->select = select;
    csv->column_count = count;
    if (status == PLIM_OK && fields == 0)
        return byte_stream_fail(csv->in.stream, 0, error, "the file is empty: it lacks its header");
    return status;
}

plim_status csv_open(struct csv **out, struct budget *budget, const char *path, const struct csv_options *options,
                     plim_error *error)
{
    TRY(check_options(path, options, error));
    struct csv *csv;
    TRY(budget_alloc(&csv, budget, TAG_FORMATS, sizeof *csv, error));
    csv->budget = budget;
    return OPENED(out, csv, csv_close, begin(csv, path, options, error));
}

uint64_t csv_cost(const struct csv_options *options)
{
    return budget_charge(sizeof(struct csv)) + budget_charge(capacity_of(options) + CSV_PAD_BYTES) +
           byte_stream_cost(options->compression);
}

void csv_close(struct csv *csv)
{
    if (!csv)
        return;
    byte_stream_close(csv->in.stream);
    budget_give(csv->budget, TAG_FORMATS, csv->in.bytes, csv->in.capacity + CSV_PAD_BYTES);
    budget_give(csv->budget, TAG_FORMATS, csv, sizeof *csv);
}
