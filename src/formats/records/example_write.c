/* example_write.c - columns into a serialized tf.train.Example. */
#include "base/numbers/checked.h"
#include "formats/records/example.h"
#include "formats/records/example_wire.h"

/* Sizes of one feature's messages, from the inside out. */
struct sizes {
    uint64_t packed;  /* the values; of strings, the whole list */
    uint64_t list;    /* FloatList, Int64List, BytesList */
    uint64_t feature; /* Feature */
    uint64_t entry;   /* of the map */
    uint64_t name;
};

static uint64_t varint_bytes(uint64_t value)
{
    uint64_t bytes = 1;
    for (; value >= 0x80; value >>= 7)
        bytes++;
    return bytes;
}

/* Tag, length and so many bytes. */
static uint64_t piece_bytes(uint64_t bytes)
{
    return 1 + varint_bytes(bytes) + bytes;
}

static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

static uint8_t *put_piece(uint8_t *to, int field, uint64_t bytes)
{
    *to++ = (uint8_t)TAG_OF(field, WIRE_PIECE);
    return put_varint(to, bytes);
}

/* 1: BytesList, 2: FloatList, 3: Int64List. */
static int field_of(enum type type)
{
    return type == TYPE_STRING ? 1 : type_is_float(type) ? 2 : 3;
}

static uint64_t integer(const struct example_column *column, int64_t i)
{
    int64_t value;
    if (column->type != TYPE_I64)
        return (uint64_t)(int64_t)element_get(column->data, column->type, i);
    memcpy(&value, (const uint8_t *)column->data + 8 * i, sizeof value);
    return (uint64_t)value;
}

static struct sizes measure(const struct example_column *column)
{
    struct sizes sizes = {.name = strlen(column->name)};
    const struct string *strings = column->data;
    int field = field_of(column->type);
    if (field == 2)
        sizes.packed = 4 * (uint64_t)column->count;
    for (int64_t i = 0; field != 2 && i < column->count; i++)
        sizes.packed =
            add_most(sizes.packed, field == 1 ? piece_bytes(strings[i].bytes) : varint_bytes(integer(column, i)));
    sizes.list = field == 1 || column->count == 0 ? sizes.packed : piece_bytes(sizes.packed);
    sizes.feature = piece_bytes(sizes.list);
    sizes.entry = piece_bytes(sizes.name) + piece_bytes(sizes.feature);
    return sizes;
}

static uint8_t *put_values(uint8_t *to, const struct example_column *column)
{
    const struct string *strings = column->data;
    for (int64_t i = 0; i < column->count; i++)
        if (column->type == TYPE_STRING) {
            to = put_piece(to, 1, strings[i].bytes);
            if (strings[i].bytes)
                memcpy(to, strings[i].data, strings[i].bytes);
            to += strings[i].bytes;
        } else if (type_is_float(column->type)) {
            float value = (float)element_get(column->data, column->type, i);
            memcpy(to, &value, sizeof value);
            to += sizeof value;
        } else {
            to = put_varint(to, integer(column, i));
        }
    return to;
}

static uint8_t *put_entry(uint8_t *to, const struct example_column *column, const struct sizes *sizes)
{
    to = put_piece(to, 1, sizes->entry);
    to = put_piece(to, 1, sizes->name);
    memcpy(to, column->name, sizes->name);
    to = put_piece(to + sizes->name, 2, sizes->feature);
    to = put_piece(to, field_of(column->type), sizes->list);
    if (column->type != TYPE_STRING && column->count)
        to = put_piece(to, 1, sizes->packed);
    if (column->type != TYPE_F32)
        return put_values(to, column);
    if (column->count)
        memcpy(to, column->data, sizes->packed);
    return to + sizes->packed;
}

plim_status example_write(struct string *out, const struct example_column *columns, int count,
                          struct value_buffer *values, plim_error *error)
{
    struct sizes sizes[MOST_FEATURES];
    uint64_t features = 0;
    if (count < 0 || count > MOST_FEATURES)
        return fail(error, PLIM_BAD_JOB, "%d features: at most %d are possible", count, MOST_FEATURES);
    *out = (struct string){0};
    values->wanted = 0;
    for (int i = 0; i < count; i++) {
        sizes[i] = measure(&columns[i]);
        features += piece_bytes(sizes[i].entry);
    }
    uint64_t bytes = piece_bytes(features);
    uint8_t *to = value_buffer_take_bytes(values, bytes);
    if (!to)
        return PLIM_OK;
    *out = (struct string){.data = to, .bytes = bytes};
    to = put_piece(to, 1, features);
    for (int i = 0; i < count; i++)
        to = put_entry(to, &columns[i], &sizes[i]);
    return PLIM_OK;
}
