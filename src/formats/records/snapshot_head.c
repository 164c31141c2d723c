/* snapshot_head.c - the head of a snapshot: what its rows are. Hostile: everything is checked against the file. */
#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "base/text/json.h"
#include "formats/files/cursor.h"
#include "formats/records/snapshot.h"
#include "formats/tables/rows.h"

#define MOST_HEAD_BYTES ((uint64_t)1024 * 1024)
#define MAGIC_BYTES     8
#define JSON_AT         16

static const char magic[MAGIC_BYTES + 1] = "PLIMSNP1";

uint64_t snapshot_columns(uint64_t at[MOST_COLUMNS], const struct spec *spec)
{
    uint64_t bytes = 0;
    for (int c = 0; c < spec->column_count; c++) {
        at[c] = bytes;
        bytes = add_most(bytes, round_up(spec->column[c].bytes, 8));
    }
    return bytes;
}

/* A name of 63 bytes as JSON, six extents, and the words around them. */
#define MOST_COLUMN_BYTES ((uint64_t)640)
#define MOST_OTHER_BYTES  ((uint64_t)256)

uint64_t snapshot_disk(const struct spec *spec, int64_t count)
{
    uint64_t at[MOST_COLUMNS], rows, head = MOST_OTHER_BYTES + (uint64_t)spec->column_count * MOST_COLUMN_BYTES;
    return mul_u64(&rows, snapshot_columns(at, spec), (uint64_t)count) ? add_most(head, rows) : UINT64_MAX;
}

/* ---- writing ---- */

static void write_column(struct json_writer *json, const struct column *column)
{
    json_object(json, NULL);
    json_string(json, "name", column->name);
    json_string(json, "type", column->type == TYPE_STRING ? "string" : type_name(column->type));
    json_array(json, "shape");
    for (int i = 0; i < column->shape.rank; i++)
        json_int(json, NULL, column->shape.dim[i]);
    json_end_array(json);
    json_end_object(json);
}

static void write_json(struct text *text, const struct snapshot_head *head)
{
    struct json_writer json;
    json_init(&json, text);
    json_object(&json, NULL);
    json_int(&json, "count", head->count);
    json_uint(&json, "values_bytes", head->values_bytes);
    json_string(&json, "digest", head->digest);
    json_array(&json, "columns");
    for (int c = 0; c < head->spec.column_count; c++)
        write_column(&json, &head->spec.column[c]);
    json_end_array(&json);
    json_end_object(&json);
}

/* Room for the longest numbers: the rows are there before their count is known. */
static uint64_t head_bytes(size_t json_bytes)
{
    return round_up(JSON_AT + json_bytes + 40, 64);
}

/* In the caller's memory: a head of 64 columns is less than SNAPSHOT_HEAD_BYTES, whatever their names are. */
static struct text text_in(void *work)
{
    return (struct text){.data = work, .capacity = SNAPSHOT_HEAD_BYTES};
}

plim_status snapshot_head_write(struct snapshot_head *head, struct file *file, void *work, plim_error *error)
{
    struct snapshot_head shortest = *head;
    uint8_t begin[JSON_AT];
    shortest.count = 0;
    shortest.values_bytes = 0;
    struct text text = text_in(work);
    write_json(&text, &shortest);
    head->rows_at = head_bytes(text.length);
    text = text_in(work);
    write_json(&text, head);
    memset(text.data + text.length, ' ', head->rows_at - JSON_AT - text.length);
    memcpy(begin, magic, MAGIC_BYTES);
    memcpy(begin + MAGIC_BYTES, &head->rows_at, sizeof head->rows_at);
    TRY(file_write(file, 0, begin, sizeof begin, error));
    return file_write(file, JSON_AT, text.data, head->rows_at - JSON_AT, error);
}

/* ---- reading ---- */

struct head_reader {
    struct json_reader json;
    const char *path;
};

static plim_status bad(const struct head_reader *reader, const struct json_token *token, const char *what,
                       plim_error *error)
{
    return fail_byte(error, PLIM_BAD_DATA, reader->path, JSON_AT + token->at, "%s", what);
}

static plim_status next(struct json_token *token, struct head_reader *reader, plim_error *error)
{
    plim_status status = json_next(token, &reader->json, error);
    return status == PLIM_OK ? PLIM_OK : error_at(error, status, reader->path);
}

static bool is_key(const struct json_token *token, const char *key)
{
    return token->key && json_is(token->key, token->key_bytes, key);
}

static plim_status read_shape(struct shape *shape, struct head_reader *reader, const struct json_token *start,
                              plim_error *error)
{
    struct json_token token;
    if (start->kind != JSON_ARRAY)
        return bad(reader, start, "'shape' is no list", error);
    for (;;) {
        TRY(next(&token, reader, error));
        if (token.kind == JSON_ARRAY_END)
            return PLIM_OK;
        if (token.kind != JSON_NUMBER || shape->rank >= MOST_AXES)
            return bad(reader, &token, "'shape' is no list of at most 6 numbers", error);
        if (json_is(token.text, token.text_bytes, "-1"))
            shape->dim[shape->rank++] = -1;
        else if (!json_whole(&shape->dim[shape->rank++], &token))
            return bad(reader, &token, "'shape' has a number that is no extent", error);
    }
}

static plim_status read_text(char *out, size_t capacity, struct head_reader *reader, const struct json_token *token,
                             plim_error *error)
{
    if (token->kind != JSON_STRING || !json_unescape(out, capacity, token->text, token->text_bytes))
        return bad(reader, token, "no text, or a longer one than there can be", error);
    return PLIM_OK;
}

static plim_status read_column(struct spec *spec, struct head_reader *reader, const struct json_token *start,
                               plim_error *error)
{
    char name[64] = "", type_text[32] = "";
    struct shape shape = {0};
    struct json_token token;
    enum type type;
    if (start->kind != JSON_OBJECT)
        return bad(reader, start, "a column is no object", error);
    for (;;) {
        TRY(next(&token, reader, error));
        if (token.kind == JSON_OBJECT_END)
            break;
        if (is_key(&token, "name"))
            TRY(read_text(name, sizeof name, reader, &token, error));
        else if (is_key(&token, "type"))
            TRY(read_text(type_text, sizeof type_text, reader, &token, error));
        else if (is_key(&token, "shape"))
            TRY(read_shape(&shape, reader, &token, error));
        else
            return bad(reader, &token, "unknown key of a column", error);
    }
    if (!name[0] || spec_find(spec, name) >= 0)
        return bad(reader, start, "a column has no name of its own", error);
    if (!type_of_column(&type, type_text))
        return bad(reader, start, "a column's type is none", error);
    plim_status status = spec_add(spec, name, type, &shape, error);
    return status == PLIM_OK ? PLIM_OK : bad(reader, start, "a column cannot be so", error);
}

static plim_status read_columns(struct spec *spec, struct head_reader *reader, const struct json_token *start,
                                plim_error *error)
{
    struct json_token token;
    if (start->kind != JSON_ARRAY || spec->column_count)
        return bad(reader, start, "'columns' is no list", error);
    for (;;) {
        TRY(next(&token, reader, error));
        if (token.kind == JSON_ARRAY_END)
            return PLIM_OK;
        TRY(read_column(spec, reader, &token, error));
    }
}

static plim_status read_entry(struct snapshot_head *out, struct head_reader *reader, const struct json_token *token,
                              plim_error *error)
{
    int64_t bytes = 0;
    if (is_key(token, "columns"))
        return read_columns(&out->spec, reader, token, error);
    if (is_key(token, "digest"))
        return read_text(out->digest, sizeof out->digest, reader, token, error);
    bool values = is_key(token, "values_bytes");
    if (!values && !is_key(token, "count"))
        return bad(reader, token, "unknown key", error);
    if (token->kind != JSON_NUMBER || !json_whole(values ? &bytes : &out->count, token))
        return bad(reader, token, "expected a whole number", error);
    if (values)
        out->values_bytes = (uint64_t)bytes;
    return PLIM_OK;
}

static plim_status read_json(struct snapshot_head *out, struct head_reader *reader, plim_error *error)
{
    struct json_token token;
    out->count = -1;
    TRY(next(&token, reader, error));
    if (token.kind != JSON_OBJECT)
        return bad(reader, &token, "the head is no JSON object", error);
    for (;;) {
        TRY(next(&token, reader, error));
        if (token.kind == JSON_OBJECT_END)
            break;
        TRY(read_entry(out, reader, &token, error));
    }
    TRY(next(&token, reader, error));
    if (token.kind != JSON_END || out->count < 0 || !out->spec.column_count)
        return bad(reader, &token, "the head lacks its count or its columns", error);
    return PLIM_OK;
}

/* The rows that it speaks of are there. */
static plim_status check_rows(const struct snapshot_head *head, const char *path, uint64_t size, plim_error *error)
{
    uint64_t at[MOST_COLUMNS], bytes;
    if (snapshot_columns(at, &head->spec) == 0)
        return fail_at(error, PLIM_BAD_DATA, path, "rows of no bytes");
    if (mul_u64(&bytes, (uint64_t)head->count, snapshot_columns(at, &head->spec)) && bytes <= size - head->rows_at)
        return PLIM_OK;
    return fail_at(error, PLIM_BAD_DATA, path, "%lld rows from byte %llu on do not fit into its %llu bytes",
                   (long long)head->count, (unsigned long long)head->rows_at, (unsigned long long)size);
}

plim_status snapshot_head_read(struct snapshot_head *out, struct file *file, struct budget *budget, plim_error *error)
{
    uint8_t begin[JSON_AT];
    uint64_t size;
    const char *path = file_path(file);
    *out = (struct snapshot_head){0};
    TRY(file_size(&size, file, error));
    if (size < sizeof begin)
        return fail_at(error, PLIM_BAD_DATA, path, "no snapshot: %llu bytes", (unsigned long long)size);
    TRY(file_read(file, 0, begin, sizeof begin, error));
    memcpy(&out->rows_at, begin + MAGIC_BYTES, sizeof out->rows_at);
    if (memcmp(begin, magic, MAGIC_BYTES) != 0)
        return fail_at(error, PLIM_BAD_DATA, path, "byte 0: no snapshot: it does not begin with '%s'", magic);
    if (out->rows_at < JSON_AT || out->rows_at > size || out->rows_at > MOST_HEAD_BYTES)
        return fail_at(error, PLIM_BAD_DATA, path, "byte 8: a head of %llu bytes", (unsigned long long)out->rows_at);
    size_t bytes = (size_t)(out->rows_at - JSON_AT);
    char *text;
    TRY(budget_alloc(&text, budget, TAG_FORMATS, bytes, error));
    struct head_reader reader = {.path = path};
    plim_status status = file_read(file, JSON_AT, text, bytes, error);
    json_read_init(&reader.json, text, bytes);
    if (status == PLIM_OK)
        status = read_json(out, &reader, error);
    budget_give(budget, TAG_FORMATS, text, bytes);
    return status == PLIM_OK ? check_rows(out, path, size, error) : status;
}
