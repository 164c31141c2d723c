/* element_text.c - one element in short form, as people look at it. Bytes may be anything: what is shown of them is
   printable, and a record is called an Example only when all of it reads as one. */
#include "job/data/element_text.h"

#include "formats/records/example_wire.h"
#include "pipeline/core/chunk.h"

#define MOST_VALUES        6
#define MOST_LETTERS       40
#define MOST_FEATURE_LINES 64

/* ---- values ---- */

static void bytes_text(struct text *out, const struct string *string)
{
    uint64_t shown = string->bytes < MOST_LETTERS ? string->bytes : MOST_LETTERS;
    text_add(out, "'");
    for (uint64_t i = 0; i < shown; i++) {
        uint8_t c = string->data[i];
        text_add(out, c >= 0x20 && c < 0x7f && c != '\'' && c != '\\' ? "%c" : "\\x%02x", c);
    }
    text_add(out, "'%s", shown < string->bytes ? "..." : "");
    if (shown < string->bytes)
        text_add(out, " (%llu bytes)", (unsigned long long)string->bytes);
}

static void value_text(struct text *out, enum type type, const void *data, int64_t i)
{
    if (type == TYPE_STRING)
        bytes_text(out, (const struct string *)data + i);
    else if (type == TYPE_I64)
        text_add(out, "%lld", (long long)((const int64_t *)data)[i]);
    else
        text_add(out, type_is_float(type) ? "%.6g" : "%.0f", element_get(data, type, i));
}

static void column_text(struct text *out, const struct column *column, const void *row)
{
    const void *data = column_is_variable(column) ? ((const struct cell *)row)->data : row;
    struct shape shape = value_shape(column, row);
    int64_t count = shape_count(&shape), shown = count < MOST_VALUES ? count : MOST_VALUES;
    char dims[64];
    text_add(out, "%s ", column->name);
    if (!shape.rank) {
        value_text(out, column->type, data, 0);
        return;
    }
    text_add(out, "[");
    for (int64_t i = 0; i < shown; i++) {
        text_add(out, i ? " " : "");
        value_text(out, column->type, data, i);
    }
    shape_text(dims, sizeof dims, &shape, false);
    text_add(out, "%s] %s", shown < count ? " ..." : "", dims);
}

void element_text(struct text *out, const struct spec *spec, void *const *row)
{
    for (int c = 0; c < spec->column_count; c++) {
        text_add(out, c ? "  " : "");
        column_text(out, &spec->column[c], row[c]);
    }
}

/* ---- Examples ---- */

/* The only field of `span`, number 1; false when there is anything else. */
static bool only_field(struct wire *out, struct wire span)
{
    uint64_t tag;
    return wire_varint(&tag, &span) && tag == TAG_OF(1, WIRE_PIECE) && wire_piece(out, &span) && span.p == span.end;
}

/* One entry of the map: {1: key, 2: feature}. */
static bool read_entry(struct wire *key, struct wire *feature, struct wire entry)
{
    uint64_t tag;
    *feature = *key = (struct wire){0};
    while (entry.p < entry.end) {
        if (!wire_varint(&tag, &entry))
            return false;
        if (tag == TAG_OF(1, WIRE_PIECE)   ? !wire_piece(key, &entry)
            : tag == TAG_OF(2, WIRE_PIECE) ? !wire_piece(feature, &entry)
                                           : true)
            return false;
    }
    return key->p && feature->p;
}

static void key_text(struct text *out, const struct wire *key)
{
    uint64_t bytes = wire_left(key) < MOST_LETTERS ? wire_left(key) : MOST_LETTERS;
    for (uint64_t i = 0; i < bytes; i++)
        text_add(out, key->p[i] >= 0x20 && key->p[i] < 0x7f ? "%c" : "\\x%02x", key->p[i]);
}

static bool feature_text(struct text *out, struct wire entry, int line)
{
    struct wire key, feature;
    struct wire_list list = {0};
    uint64_t count = 0;
    if (!read_entry(&key, &feature, entry) || !wire_list_find(&list, feature))
        return false;
    if (list.bytes.p && !wire_list_count(&count, &list))
        return false;
    text_add(out, line ? ", " : "");
    key_text(out, &key);
    if (!list.bytes.p)
        text_add(out, ": nothing");
    else if (count == 1)
        text_add(out, ": %s", type_name(list.type));
    else
        text_add(out, ": '%s[%llu]'", type_name(list.type), (unsigned long long)count);
    return true;
}

void example_text(struct text *out, const struct string *record)
{
    struct wire features, entry, span = {record->data, record->data + record->bytes};
    struct text lines;
    bool good = record->bytes && only_field(&features, span);
    text_init(&lines, out->budget, out->tag);
    for (int line = 0; good && features.p < features.end; line++) {
        uint64_t tag;
        good = wire_varint(&tag, &features) && tag == TAG_OF(1, WIRE_PIECE) && wire_piece(&entry, &features) &&
               line < MOST_FEATURE_LINES && feature_text(&lines, entry, line);
    }
    if (good && lines.data)
        text_add(out, "{%s}", lines.data);
    out->failed |= lines.failed;
    text_release(&lines);
}
