/* safetensors.c - reads safetensors files.

   The header is read whole and stays: names and notes are its own bytes, made
   into strings in place. Invariants after opening: 1. entries tile the data with no hole,
   no overlap and nothing behind; 2. names are unique; 3. tables are at most
   TABLE_RATIO times as large as the header, and TABLE_SLACK_BYTES. */
#include "formats/weights/safetensors.h"

#include <string.h>

#include "base/memory/budget_alloc.h"
#include "base/memory/budget_need.h"
#include "base/memory/budget_stop.h"
#include "base/numbers/checked.h"
#include "base/numbers/digest.h"
#include "base/text/json.h"
#include "base/text/json_count.h"
#include "formats/files/cursor.h"
#include "formats/files/heapsort.h"

#define TABLE_SLACK_BYTES   ((uint64_t)512 * 1024) /* small headers are refused with what is wrong in them */
#define TABLE_RATIO         3
#define DIGEST_BUFFER_BYTES 16384
#define NOTES               "__metadata__"

/* The shortest that a header says of a tensor and of a note. The first has no comma, and the braces around all. */
#define LEAST_ENTRY "\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,0]},"
#define LEAST_NOTE  "\"\":\"\","

struct note {
    const char *key, *value;
};

#define ENTRY_BYTES (sizeof(struct safetensors_entry) + sizeof(uint32_t))
_Static_assert(ENTRY_BYTES <= TABLE_RATIO * (sizeof LEAST_ENTRY - 1), "a whole entry pays for its place in the tables");
_Static_assert(sizeof(struct note) <= TABLE_RATIO * (sizeof LEAST_NOTE - 1), "a note pays for its place");

struct safetensors {
    struct budget *budget;
    struct file *file;
    uint64_t file_bytes;
    char *header;
    size_t header_bytes;
    struct safetensors_entry *entry; /* in the header's order */
    uint32_t *order;                 /* of entries, by name */
    struct note *note;
    uint32_t count, note_count;
};

static uint64_t data_start(const struct safetensors *file)
{
    return 8 + (uint64_t)file->header_bytes;
}

/* PLIM_BAD_DATA at a byte of the header. */
#define bad_header(file, error, at, ...)                                                                               \
    fail_byte(error, PLIM_BAD_DATA, file_path((file)->file), 8 + (uint64_t)(at), __VA_ARGS__)

/* The next token; errors get the byte of the file instead of the header's. */
static plim_status next(struct json_token *token, struct json_reader *reader, const struct safetensors *file,
                        plim_error *error)
{
    plim_error inner = {0};
    TRY(budget_may_transfer(file->budget, error));
    if (json_next(token, reader, &inner) == PLIM_OK)
        return PLIM_OK;
    const char *what = strstr(inner.message, ": ");
    return bad_header(file, error, reader->at, "the header is not JSON: %s", what ? what + 2 : inner.message);
}

static plim_status next_is(enum json_kind kind, const char *what, struct json_token *token, struct json_reader *reader,
                           const struct safetensors *file, plim_error *error)
{
    TRY(next(token, reader, file, error));
    return token->kind == kind ? PLIM_OK : bad_header(file, error, token->at, "%s was expected", what);
}

static bool is_notes(const struct json_token *token)
{
    return json_is(token->key, token->key_bytes, NOTES);
}

/* ---- first pass: how many ---------------------------------------------- */

static plim_status count_notes(struct safetensors *file, struct json_reader *reader, plim_error *error)
{
    struct json_token token;
    for (;;) {
        TRY(next(&token, reader, file, error));
        if (token.kind == JSON_OBJECT_END)
            return PLIM_OK;
        if (token.kind != JSON_STRING)
            return bad_header(file, error, token.at, "a value of __metadata__ is not a string");
        file->note_count++;
    }
}

static plim_status pass_entry(struct safetensors *file, struct json_reader *reader, plim_error *error)
{
    int outside = reader->depth - 1;
    struct json_token token;
    while (reader->depth > outside)
        TRY(next(&token, reader, file, error));
    file->count++;
    return PLIM_OK;
}

static plim_status count_entries(struct safetensors *file, plim_error *error)
{
    struct json_reader reader;
    struct json_token token;
    bool noted = false;
    json_read_init(&reader, file->header, file->header_bytes);
    TRY(next_is(JSON_OBJECT, "an object", &token, &reader, file, error));
    for (;;) {
        TRY(next(&token, &reader, file, error));
        if (token.kind == JSON_OBJECT_END)
            break;
        if (token.kind != JSON_OBJECT)
            return bad_header(file, error, token.at, "an entry of the header is not an object");
        if (!is_notes(&token)) {
            TRY(pass_entry(file, &reader, error));
            continue;
        }
        if (noted)
            return bad_header(file, error, token.at, "__metadata__ is there twice");
        noted = true;
        TRY(count_notes(file, &reader, error));
    }
    return next_is(JSON_END, "the end of the header", &token, &reader, file, error);
}

/* ---- second pass: what ------------------------------------------------- */

/* Unescapes in place, which cannot grow, and ends it with a NUL where the
   closing quote was. The reader is past it. */
static plim_status make_string(const char **out, struct safetensors *file, const char *raw, size_t bytes,
                               plim_error *error)
{
    char *start = file->header + (raw - file->header);
    if (!json_unescape(start, bytes + 1, start, bytes))
        return bad_header(file, error, raw - file->header, "a string of the header has a bad escape");
    *out = start;
    return PLIM_OK;
}

struct raw_entry {
    bool has_type, has_shape, has_offsets;
    int64_t begin, end;
    const struct json_token *name; /* of the entry, for messages */
};

#define SHOWN(token) (int)((token)->key_bytes < 64 ? (token)->key_bytes : 64), (token)->key

static plim_status read_type(struct safetensors_entry *entry, struct raw_entry *raw, const struct json_token *token,
                             const struct safetensors *file, plim_error *error)
{
    if (token->kind != JSON_STRING)
        return bad_header(file, error, token->at, "dtype is not a string");
    for (int type = 0; type < TYPE_COUNT; type++)
        if (json_is(token->text, token->text_bytes, type_safetensors_name((enum type)type))) {
            entry->type = (enum type)type;
            raw->has_type = true;
            return PLIM_OK;
        }
    return bad_header(file, error, token->at, "tensor '%.*s' has the element type %.*s, which is not supported",
                      SHOWN(raw->name), (int)(token->text_bytes < 32 ? token->text_bytes : 32), token->text);
}

static plim_status read_shape(struct safetensors_entry *entry, struct json_reader *reader,
                              const struct safetensors *file, plim_error *error)
{
    struct json_token token;
    for (;;) {
        int64_t length;
        TRY(next(&token, reader, file, error));
        if (token.kind == JSON_ARRAY_END)
            return PLIM_OK;
        if (!json_whole(&length, &token))
            return bad_header(file, error, token.at, "an axis of a shape is not a whole number");
        if (entry->shape.rank == MOST_AXES)
            return bad_header(file, error, token.at, "more than %d axes are not supported", MOST_AXES);
        entry->shape.dim[entry->shape.rank++] = length;
    }
}

static plim_status read_offsets(struct raw_entry *raw, struct json_reader *reader, const struct safetensors *file,
                                plim_error *error)
{
    struct json_token token;
    int64_t *const offsets[] = {&raw->begin, &raw->end};
    for (int i = 0; i < 2; i++) {
        TRY(next(&token, reader, file, error));
        if (!json_whole(offsets[i], &token))
            return bad_header(file, error, token.at, "data_offsets are not two whole numbers");
    }
    return next_is(JSON_ARRAY_END, "the end of data_offsets", &token, reader, file, error);
}

/* One of dtype, shape and data_offsets, each once. */
static plim_status read_field(struct safetensors_entry *entry, struct raw_entry *raw, const struct json_token *token,
                              struct json_reader *reader, const struct safetensors *file, plim_error *error)
{
    if (json_is(token->key, token->key_bytes, "dtype") && !raw->has_type)
        return read_type(entry, raw, token, file, error);
    if (json_is(token->key, token->key_bytes, "shape") && !raw->has_shape && token->kind == JSON_ARRAY) {
        raw->has_shape = true;
        return read_shape(entry, reader, file, error);
    }
    if (json_is(token->key, token->key_bytes, "data_offsets") && !raw->has_offsets && token->kind == JSON_ARRAY) {
        raw->has_offsets = true;
        return read_offsets(raw, reader, file, error);
    }
    return bad_header(file, error, token->at,
                      "tensor '%.*s' has a key '%.*s' that is unknown, twice there or of a wrong type",
                      SHOWN(raw->name), SHOWN(token));
}

static plim_status check_entry(struct safetensors_entry *entry, const struct raw_entry *raw,
                               const struct safetensors *file, plim_error *error)
{
    uint64_t bytes, data_bytes = file->file_bytes - data_start(file);
    size_t at = raw->name->at;
    if (!raw->has_type || !raw->has_shape || !raw->has_offsets)
        return bad_header(file, error, at, "tensor '%.*s' lacks %s", SHOWN(raw->name),
                          !raw->has_type    ? "dtype"
                          : !raw->has_shape ? "shape"
                                            : "data_offsets");
    if (raw->begin > raw->end || (uint64_t)raw->end > data_bytes)
        return bad_header(file, error, at, "tensor '%.*s' has bytes %lld to %lld of %llu", SHOWN(raw->name),
                          (long long)raw->begin, (long long)raw->end, (unsigned long long)data_bytes);
    if (!shape_bytes(&bytes, &entry->shape, entry->type) || bytes != (uint64_t)(raw->end - raw->begin))
        return bad_header(file, error, at, "tensor '%.*s' has %lld bytes, which its shape and dtype do not give",
                          SHOWN(raw->name), (long long)(raw->end - raw->begin));
    entry->offset = data_start(file) + (uint64_t)raw->begin;
    entry->bytes = bytes;
    return PLIM_OK;
}

static plim_status read_entry(struct safetensors_entry *entry, const struct json_token *name,
                              struct json_reader *reader, struct safetensors *file, plim_error *error)
{
    struct raw_entry raw = {.name = name};
    struct json_token token;
    for (;;) {
        TRY(next(&token, reader, file, error));
        if (token.kind == JSON_OBJECT_END)
            break;
        TRY(read_field(entry, &raw, &token, reader, file, error));
    }
    TRY(check_entry(entry, &raw, file, error));
    return make_string(&entry->name, file, name->key, name->key_bytes, error);
}

static plim_status read_notes(struct safetensors *file, struct json_reader *reader, plim_error *error)
{
    struct json_token token;
    for (uint32_t i = 0; i < file->note_count; i++) {
        TRY(next(&token, reader, file, error));
        TRY(make_string(&file->note[i].key, file, token.key, token.key_bytes, error));
        TRY(make_string(&file->note[i].value, file, token.text, token.text_bytes, error));
    }
    return next(&token, reader, file, error);
}

/* The first pass found the header well-formed: only what it did not look at is checked. */
static plim_status read_entries(struct safetensors *file, plim_error *error)
{
    struct json_reader reader;
    struct json_token token;
    uint32_t i = 0;
    json_read_init(&reader, file->header, file->header_bytes);
    TRY(next(&token, &reader, file, error));
    for (;;) {
        TRY(next(&token, &reader, file, error));
        if (token.kind == JSON_OBJECT_END)
            return PLIM_OK;
        if (is_notes(&token))
            TRY(read_notes(file, &reader, error));
        else
            TRY(read_entry(&file->entry[i++], &token, &reader, file, error));
    }
}

/* ---- the whole: tiling and names ---------------------------------------- */

static bool offset_before(const void *context, uint32_t a, uint32_t b)
{
    const struct safetensors_entry *entry = context;
    return entry[a].offset != entry[b].offset ? entry[a].offset < entry[b].offset : entry[a].bytes < entry[b].bytes;
}

static bool name_before(const void *context, uint32_t a, uint32_t b)
{
    const struct safetensors_entry *entry = context;
    return strcmp(entry[a].name, entry[b].name) < 0;
}

static plim_status check_tiling(struct safetensors *file, plim_error *error)
{
    uint64_t at = data_start(file);
    const char *path = file_path(file->file);
    sort_indices(file->order, file->count, offset_before, file->entry, file->budget);
    TRY(budget_may_transfer(file->budget, error));
    for (uint32_t i = 0; i < file->count; i++) {
        const struct safetensors_entry *entry = &file->entry[file->order[i]];
        if (entry->offset != at)
            return fail_byte(error, PLIM_BAD_DATA, path, at, "%s tensor '%.64s'",
                             entry->offset > at ? "a hole before" : "another tensor overlaps with", entry->name);
        at += entry->bytes;
    }
    if (at != file->file_bytes)
        return fail_byte(error, PLIM_BAD_DATA, path, at, "%llu bytes belong to no tensor",
                         (unsigned long long)(file->file_bytes - at));
    return PLIM_OK;
}

static plim_status check_names(struct safetensors *file, plim_error *error)
{
    sort_indices(file->order, file->count, name_before, file->entry, file->budget);
    TRY(budget_may_transfer(file->budget, error));
    for (uint32_t i = 1; i < file->count; i++) {
        const char *name = file->entry[file->order[i]].name;
        if (strcmp(file->entry[file->order[i - 1]].name, name) == 0)
            return bad_header(file, error, name - file->header, "two tensors have the name '%.64s'", name);
    }
    return PLIM_OK;
}

static plim_status take_tables(struct safetensors *file, plim_error *error)
{
    file->entry = budget_take_array(file->budget, TAG_FORMATS, file->count, sizeof file->entry[0]);
    file->order = budget_take_array(file->budget, TAG_FORMATS, file->count, sizeof file->order[0]);
    file->note = budget_take_array(file->budget, TAG_FORMATS, file->note_count, sizeof file->note[0]);
    if (!file->entry || !file->order || !file->note)
        return budget_refused(file->budget, TAG_FORMATS,
                              (uint64_t)file->count * ENTRY_BYTES + (uint64_t)file->note_count * sizeof file->note[0],
                              error);
    return PLIM_OK;
}

/* ---- opening and reading ------------------------------------------------- */

/* What header and tables will take, counted before the header is read. One that cannot be good is refused whatever the
   budget is, so that no budget is asked for that would not do. */
static plim_status check_room(struct safetensors *file, uint64_t header_bytes, plim_error *error)
{
    struct json_count count = {.name = NOTES};
    const char *path = file_path(file->file);
    TRY(json_count_file(&count, file->file, 8, header_bytes, error));
    uint64_t tensors = count.objects, notes = count.keys_of_named, note_bytes = notes * sizeof file->note[0];
    if (tensors * ENTRY_BYTES + note_bytes > TABLE_RATIO * header_bytes + TABLE_SLACK_BYTES)
        return fail_byte(error, PLIM_BAD_DATA, path, 8,
                         "%llu tensors and %llu notes cannot be described in a header of %llu bytes",
                         (unsigned long long)tensors, (unsigned long long)notes, (unsigned long long)header_bytes);
    uint64_t bytes = budget_charge(header_bytes) + budget_charge(tensors * sizeof file->entry[0]) +
                     budget_charge(tensors * sizeof file->order[0]) + budget_charge(note_bytes);
    return budget_need(file->budget, bytes, path, tensors > notes ? tensors : notes,
                       tensors > notes ? "tensors" : "notes", error);
}

static plim_status read_header(struct safetensors *file, plim_error *error)
{
    uint8_t prefix[8];
    size_t got;
    uint64_t length;
    struct cursor cursor;
    const char *path = file_path(file->file);
    TRY(file_size(&file->file_bytes, file->file, error));
    TRY(file_read_some(&got, file->file, 0, prefix, sizeof prefix, error));
    cursor_init(&cursor, prefix, got, path, 0);
    if (!cursor_le(&length, &cursor, 8))
        return fail_byte(error, PLIM_BAD_DATA, path, got, "the file ends inside the length of its header");
    if (length > SAFETENSORS_HEADER_MOST)
        return fail_byte(error, PLIM_BAD_DATA, path, 0, "a header of %llu bytes: at most %d are accepted",
                         (unsigned long long)length, SAFETENSORS_HEADER_MOST);
    if (file->file_bytes < 8 || length > file->file_bytes - 8)
        return fail_byte(error, PLIM_BAD_DATA, path, file->file_bytes, "the file ends inside its header of %llu bytes",
                         (unsigned long long)length);
    TRY(check_room(file, length, error));
    TRY(budget_alloc(&file->header, file->budget, TAG_FORMATS, length, error));
    file->header_bytes = length;
    return file_read(file->file, 8, file->header, length, error);
}

static plim_status open_file(struct safetensors *file, const char *path, plim_error *error)
{
    TRY(file_open(&file->file, file->budget, path, FILE_READ, error));
    TRY(read_header(file, error));
    if (file->header_bytes == 0 || file->header[0] != '{')
        return bad_header(file, error, 0, "the header does not begin with '{'");
    TRY(count_entries(file, error));
    TRY(take_tables(file, error));
    TRY(read_entries(file, error));
    TRY(check_tiling(file, error));
    return check_names(file, error);
}

plim_status safetensors_open(struct safetensors **out, struct budget *budget, const char *path, plim_error *error)
{
    struct safetensors *file;
    TRY(budget_alloc(&file, budget, TAG_FORMATS, sizeof *file, error));
    file->budget = budget;
    return OPENED(out, file, safetensors_close, open_file(file, path, error));
}

void safetensors_close(struct safetensors *file)
{
    if (!file)
        return;
    budget_give(file->budget, TAG_FORMATS, file->entry, file->count * sizeof file->entry[0]);
    budget_give(file->budget, TAG_FORMATS, file->order, file->count * sizeof file->order[0]);
    budget_give(file->budget, TAG_FORMATS, file->note, file->note_count * sizeof file->note[0]);
    budget_give(file->budget, TAG_FORMATS, file->header, file->header_bytes);
    file_close(file->file);
    budget_give(file->budget, TAG_FORMATS, file, sizeof *file);
}

int safetensors_count(const struct safetensors *file)
{
    return (int)file->count;
}

const struct safetensors_entry *safetensors_at(const struct safetensors *file, int i)
{
    return i >= 0 && (uint32_t)i < file->count ? &file->entry[i] : NULL;
}

const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name)
{
    uint32_t low = 0, high = file->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct safetensors_entry *entry = &file->entry[file->order[middle]];
        int order = strcmp(name, entry->name);
        if (order == 0)
            return entry;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    for (uint32_t i = 0; i < file->note_count; i++)
        if (strcmp(file->note[i].key, key) == 0)
            return file->note[i].value;
    return NULL;
}

plim_status safetensors_read(struct safetensors *file, const struct safetensors_entry *entry, uint64_t from, void *to,
                             uint64_t bytes, plim_error *error)
{
    if (from > entry->bytes || bytes > entry->bytes - from)
        return fail(error, PLIM_INTERNAL, "tensor '%.64s': %llu bytes from %llu of %llu", entry->name,
                    (unsigned long long)bytes, (unsigned long long)from, (unsigned long long)entry->bytes);
    return file_read(file->file, entry->offset + from, to, bytes, error);
}

plim_status safetensors_digest(uint8_t digest[32], struct safetensors *file, uint64_t tail, plim_error *error)
{
    char buffer[DIGEST_BUFFER_BYTES];
    struct sha256 sha;
    if (tail > file->file_bytes)
        return fail(error, PLIM_INTERNAL, "digest without the last %llu bytes of %llu", (unsigned long long)tail,
                    (unsigned long long)file->file_bytes);
    sha256_init(&sha);
    for (uint64_t at = 0, end = file->file_bytes - tail; at < end;) {
        size_t bytes = end - at < sizeof buffer ? (size_t)(end - at) : sizeof buffer;
        TRY(file_read(file->file, at, buffer, bytes, error));
        sha256_add(&sha, buffer, bytes);
        at += bytes;
    }
    sha256_end(&sha, digest);
    return PLIM_OK;
}
