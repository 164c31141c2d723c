/* csv.c - one pass over a buffer: fields are found, parsed and put into place without a copy.

   Invariants: 1. what is left in the buffer begins with a record; 2. behind it stand
   line ends, so that no field and no number runs past it; 3. a record that reaches `end` before the file does is begun
   again when more is there: nothing of it has been given. */
#include "formats/tables/csv_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/decimal.h"

#define SHOWN_BYTES 40

/* What is wrong with a record: the first thing. */
struct trouble {
    const char *what; /* NULL: nothing is wrong */
    int64_t column;   /* -1: the record as a whole */
    const char *at;   /* in the buffer */
    struct string shown;
};

enum outcome { RECORD_GOOD, RECORD_BAD, RECORD_CUT, RECORD_FULL };

/* One record on its way. */
struct parse {
    struct csv *csv;
    void *const *to;
    const uint64_t *stride;
    struct value_buffer *values;
    int64_t row;
    int64_t fields; /* of the record */
    struct trouble trouble;
    bool cut, full;
};

static void complain(struct parse *parse, const char *what, int64_t column, const char *at, struct string shown)
{
    if (!parse->trouble.what)
        parse->trouble = (struct trouble){.what = what, .column = column, .at = at, .shown = shown};
}

/* ---- values ------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct string csv_trim(struct string field)
{
    while (field.bytes && is_blank((char)field.data[0])) {
        field.data++;
        field.bytes--;
    }
    while (field.bytes && is_blank((char)field.data[field.bytes - 1]))
        field.bytes--;
    return field;
}

/* [+-]digits at text; the first byte behind them, or NULL when there are none or they do not fit. */
static const char *scan_whole(int64_t *out, const char *text, const char *end)
{
    bool negative = text < end && *text == '-';
    text += negative || (text < end && *text == '+');
    const char *first = text;
    uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;
    for (unsigned digit; text < end && (digit = (unsigned)(unsigned char)*text - '0') < 10; text++) {
        if (value > (UINT64_MAX - 9) / 10)
            return NULL;
        value = value * 10 + digit;
    }
    if (text == first || value > most)
        return NULL;
    *out = (int64_t)(negative ? 0 - value : value);
    return text;
}

bool csv_whole(int64_t *out, struct string text)
{
    const char *end = (const char *)text.data + text.bytes;
    return text.bytes && scan_whole(out, (const char *)text.data, end) == end;
}

static bool put_whole(void *to, enum type type, int64_t value)
{
    if (type == TYPE_I64) {
        memcpy(to, &value, sizeof value);
        return true;
    }
    int32_t narrow = (int32_t)value;
    memcpy(to, &narrow, sizeof narrow);
    return narrow == value;
}

static bool put_number(void *to, enum type type, struct string field)
{
    struct string text = csv_trim(field);
    int64_t whole;
    double wide;
    float narrow;
    if (type == TYPE_F64 && decimal_double(&wide, (const char *)text.data, text.bytes)) {
        memcpy(to, &wide, sizeof wide);
        return true;
    }
    if (type == TYPE_F32 && decimal_float(&narrow, (const char *)text.data, text.bytes)) {
        memcpy(to, &narrow, sizeof narrow);
        return true;
    }
    return (type == TYPE_I32 || type == TYPE_I64) && csv_whole(&whole, text) && put_whole(to, type, whole);
}

static const char *not_valid(enum type type)
{
    return type == TYPE_I32   ? "is not a valid int32: "
           : type == TYPE_I64 ? "is not a valid int64: "
           : type == TYPE_F32 ? "is not a valid float: "
                              : "is not a valid double: ";
}

static bool same(struct string a, struct string b)
{
    return a.bytes == b.bytes && memcmp(a.data, b.data, a.bytes) == 0;
}

/* The content of a text field in the value buffer; doubled quotes become one. */
static bool put_text(struct string *out, struct string field, bool doubled, struct parse *parse)
{
    uint8_t *to = value_buffer_take_bytes(parse->values, field.bytes);
    if (!to) {
        parse->full = true;
        return false;
    }
    uint64_t kept = 0;
    if (!doubled) {
        memcpy(to, field.data, field.bytes);
        kept = field.bytes;
    }
    for (uint64_t i = 0; doubled && i < field.bytes; i++) {
        to[kept++] = field.data[i];
        i += field.data[i] == '"';
    }
    parse->values->used -= field.bytes - kept;
    *out = (struct string){to, kept};
    return true;
}

static void put_missing(void *to, const struct csv_column *column, struct parse *parse)
{
    float narrow = (float)column->real;
    const char *stated = column->text ? column->text : "";
    struct string text = {(const uint8_t *)stated, strlen(stated)};
    if (column->type == TYPE_F32)
        memcpy(to, &narrow, sizeof narrow);
    else if (column->type == TYPE_F64)
        memcpy(to, &column->real, sizeof column->real);
    else if (column->type != TYPE_STRING)
        put_whole(to, column->type, column->whole);
    else if (put_text(&text, text, false, parse))
        memcpy(to, &text, sizeof text);
}

static void put_field(struct parse *parse, int64_t column, struct string field, bool doubled)
{
    const struct csv_column *rule = &parse->csv->column[column];
    char *to = (char *)parse->to[column] + (uint64_t)parse->row * parse->stride[column];
    if (rule->type == TYPE_STRING && doubled && !put_text(&field, field, true, parse))
        return;
    if (field.bytes == 0 || same(field, parse->csv->na)) {
        if (rule->required)
            complain(parse, "is required but missing in record!", column, NULL, (struct string){0});
        else
            put_missing(to, rule, parse);
    } else if (rule->type != TYPE_STRING) {
        if (!put_number(to, rule->type, field))
            complain(parse, not_valid(rule->type), column, NULL, field);
    } else if (doubled || put_text(&field, field, false, parse)) {
        memcpy(to, &field, sizeof field);
    }
}

/* ---- fields --------------------------------------------------------------- */

/* A number that ends where its field does: the usual case. NULL: look closer. */
static inline const char *fast_number(struct parse *parse, int64_t column, const char *at)
{
    const struct csv *csv = parse->csv;
    enum type type = csv->column[column].type;
    char *to = (char *)parse->to[column] + (uint64_t)parse->row * parse->stride[column];
    struct decimal decimal;
    const char *behind;
    if (type == TYPE_F32 || type == TYPE_F64) {
        behind = decimal_scan(&decimal, at);
        if (behind == at || (*behind != csv->delimiter && *behind != '\n' && *behind != '\r'))
            return NULL;
        double wide;
        float narrow;
        if (type == TYPE_F32 && decimal_to_float(&narrow, &decimal))
            memcpy(to, &narrow, sizeof narrow);
        else if (type == TYPE_F64 && decimal_to_double(&wide, &decimal))
            memcpy(to, &wide, sizeof wide);
        else
            return NULL;
        return behind;
    }
    int64_t whole;
    behind = scan_whole(&whole, at, csv->in.bytes + csv->in.end);
    if (!behind || (*behind != csv->delimiter && *behind != '\n' && *behind != '\r'))
        return NULL;
    return put_whole(to, type, whole) ? behind : NULL;
}

/* Both return the byte that ends the field: a delimiter or the end of a line, or `end` of the buffer. */
static const char *quoted_field(struct parse *parse, int64_t column, const char *at)
{
    const struct csv *csv = parse->csv;
    const char *end = csv->in.bytes + csv->in.end, *from = at + 1, *quote = from;
    bool doubled = false, bad = false;
    for (;; quote++) {
        quote = memchr(quote, '"', (size_t)(end - quote));
        if (!quote) {
            complain(parse, "reached the end of the file without closing the quoted field", column, at,
                     (struct string){0});
            parse->cut = true;
            return end;
        }
        const char *next = quote + 1; /* at `end` stands a line end */
        if (*next == csv->delimiter || *next == '\n' || *next == '\r')
            break;
        doubled = true;
        if (*next != '"')
            complain(parse, "a quote inside a quoted field has to be doubled", column, quote, (struct string){0});
        bad = bad || *next != '"';
        quote = next;
    }
    if (column >= 0 && !bad)
        put_field(parse, column, (struct string){(const uint8_t *)from, (uint64_t)(quote - from)}, doubled);
    return quote + 1;
}

static const char *plain_field(struct parse *parse, int64_t column, const char *at)
{
    const struct csv *csv = parse->csv;
    const char *behind = at;
    for (;; behind++) {
        while (!csv->special[(unsigned char)*behind])
            behind++;
        if (*behind != '"' || !csv->quotes)
            break;
        complain(parse, "a field without quotes around it cannot have quotes inside", column, behind,
                 (struct string){0});
    }
    if (column >= 0)
        put_field(parse, column, (struct string){(const uint8_t *)at, (uint64_t)(behind - at)}, false);
    return behind;
}

static const char *field_at(struct parse *parse, int64_t column, const char *at)
{
    const struct csv *csv = parse->csv;
    if (column >= 0 && csv->plain && csv->column[column].type != TYPE_STRING) {
        const char *behind = fast_number(parse, column, at);
        if (behind)
            return behind;
    }
    bool was_well = !parse->trouble.what;
    const char *behind = csv->quotes && *at == '"' ? quoted_field(parse, column, at) : plain_field(parse, column, at);
    if (was_well && parse->trouble.what && !parse->trouble.at)
        parse->trouble.at = at;
    return behind;
}

/* ---- records ---------------------------------------------------------------- */

/* Behind the end of the line at `at`. False: the buffer ends before that is known. */
static bool pass_line_end(const char **at, const struct csv *csv)
{
    const char *end = csv->in.bytes + csv->in.end;
    bool pair = **at == '\r';
    if (*at + pair >= end && !csv->in.at_end)
        return false;
    if (*at < end)
        ++*at;
    if (pair && *at < end && **at == '\n')
        ++*at;
    return true;
}

static const char too_many[] = "has more fields than there are columns", too_few[] = "has fewer fields than columns";

/* The record at `next`; *behind is the one after it. */
static enum outcome parse_record(const char **behind, struct parse *parse)
{
    struct csv *csv = parse->csv;
    const char *at = csv->in.bytes + csv->in.next, *start = at;
    int64_t column = 0, field = 0;
    for (;; field++, at++) {
        bool wanted = csv->select ? column < csv->column_count && csv->select[column] == field : true;
        if (wanted && column == csv->column_count) {
            complain(parse, too_many, -1, at, (struct string){0});
            wanted = false;
        }
        at = field_at(parse, wanted ? column : -1, at);
        if (parse->full)
            return RECORD_FULL;
        column += wanted;
        if (*at != csv->delimiter || at == csv->in.bytes + csv->in.end)
            break;
    }
    if ((parse->cut && !csv->in.at_end) || !pass_line_end(&at, csv))
        return RECORD_CUT;
    if (column < csv->column_count)
        complain(parse, too_few, -1, start, (struct string){0});
    *behind = at;
    parse->fields = field + 1;
    return parse->trouble.what ? RECORD_BAD : RECORD_GOOD;
}

static int64_t count_lines(const char *text, size_t bytes)
{
    int64_t lines = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    return lines;
}

static plim_status bad_record(const struct csv *csv, const struct trouble *trouble, plim_error *error)
{
    char shown[SHOWN_BYTES + 1], column[64] = "";
    size_t bytes = trouble->shown.bytes < SHOWN_BYTES ? (size_t)trouble->shown.bytes : SHOWN_BYTES;
    for (size_t i = 0; i < bytes; i++)
        shown[i] = trouble->shown.data[i] ? (char)trouble->shown.data[i] : '?'; /* an error's text ends at a NUL */
    shown[bytes] = 0;
    if (trouble->column >= 0)
        snprintf(column, sizeof column, "field %lld ", (long long)trouble->column);
    int64_t line = 1 + csv->lines + count_lines(csv->in.bytes, (size_t)(trouble->at - csv->in.bytes));
    return byte_stream_fail(csv->in.stream, csv->in.base + (uint64_t)(trouble->at - csv->in.bytes), error,
                            "line %lld, record %lld: %s%s%s", (long long)line, (long long)csv->record, column,
                            trouble->what, shown);
}

static plim_status refill(struct csv *csv, plim_error *error)
{
    if (csv->in.end - csv->in.next == csv->in.capacity) {
        byte_stream_fail(csv->in.stream, csv->in.base, error, "record %lld is longer than %zu bytes",
                         (long long)csv->record, csv->in.capacity);
        return hint(error, PLIM_BAD_DATA, "is a quote not closed? Otherwise give the reader a larger buffer");
    }
    csv->lines += count_lines(csv->in.bytes, csv->in.next);
    plim_status status = read_buffer_fill(&csv->in, error);
    memset(csv->in.bytes + csv->in.end, '\n', CSV_PAD_BYTES);
    return status;
}

/* One record, with as much reading as it takes. RECORD_CUT: the file has ended. */
static plim_status next_record(enum outcome *outcome, const char **behind, struct parse *parse, plim_error *error)
{
    struct csv *csv = parse->csv;
    uint64_t used = parse->values ? parse->values->used : 0;
    for (;;) {
        *outcome = RECORD_CUT;
        parse->trouble = (struct trouble){0};
        parse->cut = parse->full = false;
        if (csv->in.next < csv->in.end)
            *outcome = parse_record(behind, parse);
        if (*outcome != RECORD_GOOD && parse->values)
            parse->values->used = used;
        if (*outcome != RECORD_CUT || csv->in.at_end)
            return PLIM_OK;
        TRY(refill(csv, error));
    }
}

static void step(struct csv *csv, const char *behind)
{
    csv->in.next = (size_t)(behind - csv->in.bytes);
    csv->record++;
}

plim_status csv_read(int64_t *got, struct csv *csv, int64_t most, const struct row_target *target, plim_error *error)
{
    struct parse parse = {.csv = csv, .to = target->to, .stride = target->stride, .values = target->values};
    if (parse.values)
        parse.values->wanted = 0;
    for (; parse.row < most; parse.row++) {
        enum outcome outcome;
        const char *behind;
        plim_status status = next_record(&outcome, &behind, &parse, parse.row ? NULL : error);
        /* What goes wrong behind good records waits for the next call. */
        if (status != PLIM_OK && parse.row == 0)
            return read_buffer_give_up(&csv->in, status);
        if (status == PLIM_OK && outcome == RECORD_BAD && parse.row == 0) {
            status = bad_record(csv, &parse.trouble, error);
            step(csv, behind);
            return status;
        }
        if (status != PLIM_OK || outcome != RECORD_GOOD)
            break;
        step(csv, behind);
    }
    *got = parse.row;
    return PLIM_OK;
}

plim_status csv_pass(int64_t *fields, struct csv *csv, plim_error *error)
{
    struct parse parse = {.csv = csv};
    enum outcome outcome;
    const char *behind;
    TRY(next_record(&outcome, &behind, &parse, error));
    *fields = 0;
    if (outcome == RECORD_CUT)
        return PLIM_OK;
    *fields = parse.fields;
    plim_status status = outcome == RECORD_BAD ? bad_record(csv, &parse.trouble, error) : PLIM_OK;
    step(csv, behind);
    return status;
}

uint64_t csv_at(const struct csv *csv)
{
    return csv->in.base + csv->in.next;
}
