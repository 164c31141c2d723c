/* npy_header.c - the header of an npy file: versions 1.0, 2.0 and 3.0.

   "\x93NUMPY", two bytes of version, the header's length (u16, or u32 from 2.0), and
   a dict in Python's spelling:
   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
   Only this grammar is known here: nothing is evaluated. */
#include "formats/tables/npy_header.h"

#include <string.h>

#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "formats/files/cursor.h"

#define HEADER_MOST 65535

struct dict {
    bool has_descr, has_order, has_shape, fortran;
};

struct descr {
    const char *code; /* after the byte order */
    enum type type;
};

static const struct descr descrs[] = {{"f4", TYPE_F32}, {"f8", TYPE_F64}, {"f2", TYPE_F16},
                                      {"u1", TYPE_U8},  {"i1", TYPE_I8},  {"i2", TYPE_I16},
                                      {"i4", TYPE_I32}, {"i8", TYPE_I64}, {"b1", TYPE_BOOL}};

/* A quoted string without escapes, in place. */
static bool quoted(const char **out, size_t *bytes, struct cursor *cursor)
{
    if (!cursor_left(cursor))
        return false;
    uint8_t quote = cursor->data[cursor->at];
    if (quote != '\'' && quote != '"')
        return false;
    const uint8_t *start = cursor->data + cursor->at + 1;
    const uint8_t *end = memchr(start, quote, cursor_left(cursor) - 1);
    if (!end || memchr(start, '\\', (size_t)(end - start)))
        return false;
    *out = (const char *)start;
    *bytes = (size_t)(end - start);
    cursor->at += *bytes + 2;
    return true;
}

/* Only what prints goes into a message. */
static void printable(char *out, size_t capacity, const char *text, size_t bytes)
{
    size_t n = 0;
    for (; n < bytes && n + 1 < capacity; n++)
        out[n] = text[n] >= ' ' && text[n] < 127 ? text[n] : '?';
    out[n] = 0;
}

static plim_status unsupported(const struct cursor *cursor, uint64_t at, const char *text, size_t bytes,
                               plim_error *error)
{
    char shown[40];
    printable(shown, sizeof shown, text, bytes);
    fail_byte(error, PLIM_BAD_DATA, cursor->path, at, "element type '%s' is not supported", shown);
    return hint(error, PLIM_BAD_DATA,
                "save it as float32, int32, int64 or uint8, say: numpy.save(path, a.astype('float32'))");
}

static plim_status parse_descr(struct npy_header *header, struct cursor *cursor, plim_error *error)
{
    const char *text;
    size_t bytes;
    uint64_t at = cursor->base + cursor->at;
    if (cursor_literal(cursor, "["))
        return unsupported(cursor, at, "structured", 10, error);
    if (!quoted(&text, &bytes, cursor))
        return cursor_fail(cursor, error, "descr is not a string");
    if (bytes < 2 || !memchr("<>|=", text[0], 4))
        return unsupported(cursor, at, text, bytes, error);
    for (size_t i = 0; i < COUNT(descrs); i++)
        if (bytes == 3 && memcmp(text + 1, descrs[i].code, 2) == 0) {
            header->type = descrs[i].type;
            header->big_endian = text[0] == '>';
            return PLIM_OK;
        }
    return unsupported(cursor, at, text, bytes, error);
}

static plim_status parse_order(struct dict *dict, struct cursor *cursor, plim_error *error)
{
    dict->fortran = cursor_literal(cursor, "True");
    if (!dict->fortran && !cursor_literal(cursor, "False"))
        return cursor_fail(cursor, error, "fortran_order is neither True nor False");
    return PLIM_OK;
}

static plim_status parse_axis(struct shape *shape, struct cursor *cursor, plim_error *error)
{
    int64_t length;
    if (shape->rank == MOST_AXES)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, cursor->base + cursor->at,
                         "more than %d axes are not supported", MOST_AXES);
    if (!cursor_whole(&length, cursor))
        return cursor_fail(cursor, error, "the shape is not a tuple of whole numbers");
    cursor_literal(cursor, "L"); /* as Python 2 wrote them */
    shape->dim[shape->rank++] = length;
    return PLIM_OK;
}

/* (), (3,) or (3, 4); a comma after the last is fine. */
static plim_status parse_shape(struct shape *shape, struct cursor *cursor, plim_error *error)
{
    bool comma = true;
    if (!cursor_literal(cursor, "("))
        return cursor_fail(cursor, error, "the shape is not a tuple");
    for (;;) {
        cursor_spaces(cursor);
        if (cursor_literal(cursor, ")"))
            break;
        if (!comma)
            return cursor_fail(cursor, error, "the shape lacks a comma");
        TRY(parse_axis(shape, cursor, error));
        cursor_spaces(cursor);
        comma = cursor_literal(cursor, ",");
    }
    if (shape->rank == 1 && !comma)
        return cursor_fail(cursor, error, "the shape is not a tuple");
    return PLIM_OK;
}

static bool is(const char *text, size_t bytes, const char *word)
{
    return bytes == strlen(word) && memcmp(text, word, bytes) == 0;
}

static plim_status parse_pair(struct npy_header *header, struct dict *dict, struct cursor *cursor, plim_error *error)
{
    const char *key;
    size_t bytes, at = cursor->at;
    if (!quoted(&key, &bytes, cursor))
        return cursor_fail(cursor, error, "a key of the header is not a string");
    bool *seen = is(key, bytes, "descr")           ? &dict->has_descr
                 : is(key, bytes, "fortran_order") ? &dict->has_order
                 : is(key, bytes, "shape")         ? &dict->has_shape
                                                   : NULL;
    if (!seen || *seen) {
        cursor->at = at;
        return cursor_fail(cursor, error, "the header has %s", seen ? "a key twice" : "an unknown key");
    }
    *seen = true;
    cursor_spaces(cursor);
    if (!cursor_literal(cursor, ":"))
        return cursor_fail(cursor, error, "the header lacks a colon");
    cursor_spaces(cursor);
    if (seen == &dict->has_descr)
        return parse_descr(header, cursor, error);
    return seen == &dict->has_order ? parse_order(dict, cursor, error) : parse_shape(&header->shape, cursor, error);
}

static plim_status parse_dict(struct npy_header *header, struct dict *dict, struct cursor *cursor, plim_error *error)
{
    bool comma = true;
    cursor_spaces(cursor);
    if (!cursor_literal(cursor, "{"))
        return cursor_fail(cursor, error, "the header is not a dict");
    for (;;) {
        cursor_spaces(cursor);
        if (cursor_literal(cursor, "}"))
            break;
        if (!comma)
            return cursor_fail(cursor, error, "the header lacks a comma");
        TRY(parse_pair(header, dict, cursor, error));
        cursor_spaces(cursor);
        comma = cursor_literal(cursor, ",");
    }
    cursor_spaces(cursor);
    if (cursor_left(cursor))
        return cursor_fail(cursor, error, "something follows the dict in the header");
    if (!dict->has_descr || !dict->has_order || !dict->has_shape)
        return cursor_fail(cursor, error, "the header lacks %s",
                           !dict->has_descr   ? "descr"
                           : !dict->has_order ? "fortran_order"
                                              : "shape");
    return PLIM_OK;
}

/* What the header says against what we can do, and against the bytes present: the array ends at `end`. */
static plim_status check_header(struct npy_header *header, const struct npy_bytes *bytes, plim_error *error)
{
    char text[96];
    const char *path = bytes->path;
    uint64_t said = bytes->base + 10, end = bytes->base + bytes->present;
    shape_text(text, sizeof text, &header->shape, false);
    if (header->shape.rank == 0)
        return fail_byte(error, PLIM_BAD_DATA, path, said, "a single number has no elements to iterate over");
    for (int i = 0; i < header->shape.rank; i++)
        if (header->shape.dim[i] == 0)
            return fail_byte(error, PLIM_BAD_DATA, path, said, "the file holds no elements: its shape is %s", text);
    if (!shape_bytes(&header->data_bytes, &header->shape, header->type) || header->data_bytes > end - header->at)
        return fail_byte(error, PLIM_BAD_DATA, path, end, "the file ends here; its header declares %s of %s", text,
                         type_name(header->type));
    if (header->data_bytes < end - header->at)
        return fail_byte(error, PLIM_BAD_DATA, path, header->at + header->data_bytes,
                         "%llu bytes more than the header declares",
                         (unsigned long long)(end - header->at - header->data_bytes));
    return PLIM_OK;
}

static plim_status ends_early(const struct npy_bytes *bytes, plim_error *error)
{
    return fail_byte(error, PLIM_BAD_DATA, bytes->path, bytes->base + bytes->present,
                     "the file ends inside its header");
}

/* Magic, version and the header's length; leaves the cursor after them. */
static plim_status parse_preamble(uint64_t *length, struct cursor *cursor, const struct npy_bytes *bytes,
                                  plim_error *error)
{
    uint8_t major, minor;
    if (!cursor_literal(cursor, "\x93NUMPY"))
        return cursor_fail(cursor, error, "not an npy file");
    if (!cursor_u8(&major, cursor) || !cursor_u8(&minor, cursor))
        return ends_early(bytes, error);
    if (major < 1 || major > 3 || minor != 0)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, bytes->base + 6, "npy version %d.%d is not known", major,
                         minor);
    if (!cursor_le(length, cursor, major == 1 ? 2 : 4))
        return ends_early(bytes, error);
    if (*length == 0)
        return cursor_fail(cursor, error, "a header of 0 bytes");
    if (*length > bytes->present - cursor->at)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, bytes->base + bytes->present,
                         "the file ends inside its header of %llu bytes", (unsigned long long)*length);
    if (*length > HEADER_MOST)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, bytes->base + 8,
                         "a header of %llu bytes: at most %d are accepted", (unsigned long long)*length, HEADER_MOST);
    return PLIM_OK;
}

/* Up to the header's length: 10 bytes, from version 2.0 on 12. */
static plim_status read_preamble(uint8_t preamble[12], size_t *got, const struct npy_bytes *bytes, plim_error *error)
{
    *got = bytes->present < 10 ? (size_t)bytes->present : 10;
    TRY(bytes->read(bytes->context, preamble, *got, error));
    if (*got < 10 || preamble[6] < 2 || bytes->present < 12)
        return PLIM_OK;
    *got = 12;
    return bytes->read(bytes->context, preamble + 10, 2, error);
}

plim_status npy_header_parse(struct npy_header *out, const struct npy_bytes *bytes, struct budget *budget,
                             plim_error *error)
{
    uint8_t preamble[12];
    size_t got;
    uint64_t length;
    struct cursor cursor;
    TRY(read_preamble(preamble, &got, bytes, error));
    cursor_init(&cursor, preamble, got, bytes->path, bytes->base);
    TRY(parse_preamble(&length, &cursor, bytes, error));
    struct npy_header header = {.at = bytes->base + cursor.at + length};
    struct dict dict = {0};
    bool fits = length <= bytes->text_bytes;
    char *text = fits ? bytes->text : budget_take(budget, TAG_FORMATS, length);
    if (!text)
        return budget_refused(budget, TAG_FORMATS, length, error);
    plim_status status = bytes->read(bytes->context, text, length, error);
    cursor_init(&cursor, text, length, bytes->path, bytes->base + cursor.at);
    if (status == PLIM_OK)
        status = parse_dict(&header, &dict, &cursor, error);
    if (status == PLIM_OK)
        status = check_header(&header, bytes, error);
    if (!fits)
        budget_give(budget, TAG_FORMATS, text, length);
    header.fortran = dict.fortran && header.shape.rank > 1;
    if (status == PLIM_OK)
        *out = header;
    return status;
}

struct file_part {
    struct file *file;
    uint64_t at;
};

static plim_status read_part(void *context, void *to, size_t bytes, plim_error *error)
{
    struct file_part *part = context;
    TRY(file_read(part->file, part->at, to, bytes, error));
    part->at += bytes;
    return PLIM_OK;
}

plim_status npy_header_read_part(struct npy_header *out, struct file *file, uint64_t at, uint64_t bytes,
                                 struct budget *budget, plim_error *error)
{
    struct file_part part = {file, at};
    struct npy_bytes array = {
        .read = read_part, .context = &part, .path = file_path(file), .base = at, .present = bytes};
    return npy_header_parse(out, &array, budget, error);
}

plim_status npy_header_read(struct npy_header *out, struct file *file, struct budget *budget, plim_error *error)
{
    uint64_t present;
    TRY(file_size(&present, file, error));
    return npy_header_read_part(out, file, 0, present, budget, error);
}
