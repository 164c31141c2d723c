/* npy_header.c - the header of an npy file: versions 1.0, 2.0 and 3.0.

   "\x93NUMPY", two bytes of version, the header's length (u16, or u32 from 2.0), and
   a dict in Python's spelling:
   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
   Only this grammar is known here: nothing is evaluated. */
#include "formats/npy_header.h"

#include <string.h>

#include "base/checked.h"
#include "formats/cursor.h"

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
    fail_byte(error, PLIM_UNSUPPORTED, cursor->path, at, "element type '%s' is not supported", shown);
    return hint(error, PLIM_UNSUPPORTED,
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
    for (size_t i = 0; i < sizeof descrs / sizeof descrs[0]; i++)
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
        return fail_byte(error, PLIM_UNSUPPORTED, cursor->path, cursor->base + cursor->at,
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

/* What the header says against what we can do, and against the bytes present. */
static plim_status check_header(struct npy_header *header, const struct dict *dict, const char *path, uint64_t present,
                                plim_error *error)
{
    char text[96];
    shape_text(text, sizeof text, &header->shape, false);
    if (header->shape.rank == 0)
        return fail_byte(error, PLIM_BAD_DATA, path, 10, "a single number has no elements to iterate over");
    for (int i = 0; i < header->shape.rank; i++)
        if (header->shape.dim[i] == 0)
            return fail_byte(error, PLIM_BAD_DATA, path, 10, "the file holds no elements: its shape is %s", text);
    if (dict->fortran && header->shape.rank > 1) {
        fail_byte(error, PLIM_UNSUPPORTED, path, 10, "Fortran order is not supported");
        return hint(error, PLIM_UNSUPPORTED, "numpy.save(path, numpy.ascontiguousarray(a)) writes C order");
    }
    if (!shape_bytes(&header->data_bytes, &header->shape, header->type) || header->data_bytes > present - header->at)
        return fail_byte(error, PLIM_BAD_DATA, path, present, "the file ends here; its header declares %s of %s", text,
                         type_name(header->type));
    if (header->data_bytes < present - header->at)
        return fail_byte(error, PLIM_BAD_DATA, path, header->at + header->data_bytes,
                         "%llu bytes more than the header declares",
                         (unsigned long long)(present - header->at - header->data_bytes));
    return PLIM_OK;
}

/* Magic, version and the header's length; leaves the cursor after them. */
static plim_status parse_preamble(uint32_t *length, struct cursor *cursor, uint64_t present, plim_error *error)
{
    uint8_t major, minor;
    uint16_t short_length;
    if (!cursor_literal(cursor, "\x93NUMPY"))
        return cursor_fail(cursor, error, "not an npy file");
    if (!cursor_u8(&major, cursor) || !cursor_u8(&minor, cursor))
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, present, "the file ends inside its header");
    if (major < 1 || major > 3 || minor != 0)
        return fail_byte(error, PLIM_UNSUPPORTED, cursor->path, 6, "npy version %d.%d is not known", major, minor);
    bool whole = major == 1 ? cursor_u16_le(&short_length, cursor) : cursor_u32_le(length, cursor);
    if (!whole)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, present, "the file ends inside its header");
    if (major == 1)
        *length = short_length;
    if (*length > present - cursor->at)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, present, "the file ends inside its header of %u bytes",
                         *length);
    if (*length > HEADER_MOST)
        return fail_byte(error, PLIM_BAD_DATA, cursor->path, 8, "a header of %u bytes: at most %d are accepted",
                         *length, HEADER_MOST);
    return PLIM_OK;
}

plim_status npy_header_read(struct npy_header *out, struct file *file, struct budget *budget, plim_error *error)
{
    uint8_t preamble[12];
    size_t got;
    uint64_t present;
    uint32_t length;
    struct cursor cursor;
    TRY(file_size(&present, file, error));
    TRY(file_read_some(&got, file, 0, preamble, sizeof preamble, error));
    cursor_init(&cursor, preamble, got, file_path(file), 0);
    TRY(parse_preamble(&length, &cursor, present, error));
    struct npy_header header = {.at = cursor.at + length};
    struct dict dict = {0};
    char *text = budget_take(budget, TAG_FORMATS, length);
    if (!text)
        return budget_refused(budget, TAG_FORMATS, length, error);
    plim_status status = file_read(file, cursor.at, text, length, error);
    cursor_init(&cursor, text, length, file_path(file), cursor.at);
    if (status == PLIM_OK)
        status = parse_dict(&header, &dict, &cursor, error);
    if (status == PLIM_OK)
        status = check_header(&header, &dict, file_path(file), present, error);
    budget_give(budget, TAG_FORMATS, text, length);
    if (status == PLIM_OK)
        *out = header;
    return status;
}
