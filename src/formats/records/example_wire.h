/* example_wire.h - protobuf's wire format, as much of it as examples need; every read is checked against the end. */
#ifndef FORMATS_RECORDS_EXAMPLE_WIRE_H
#define FORMATS_RECORDS_EXAMPLE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "graph/tensor.h"

/* Bytes that are still to be read. p == NULL: there is no such thing. */
struct wire {
    const uint8_t *p, *end;
};

#define WIRE_VARINT  0
#define WIRE_FIXED64 1
#define WIRE_PIECE   2 /* a length and so many bytes */
#define WIRE_FIXED32 5

#define TAG_OF(field, wire) ((field) << 3 | (wire))

static inline uint64_t wire_left(const struct wire *span)
{
    return (uint64_t)(span->end - span->p);
}

bool wire_long_varint(uint64_t *out, struct wire *span);
/* Passes over the value of a field that nobody knows; false for groups and for what is no field. */
bool wire_skip(struct wire *span, uint64_t tag);

static inline bool wire_varint(uint64_t *out, struct wire *span)
{
    const uint8_t *p = span->p;
    if (span->end - p >= 2) { /* lengths of up to 16 KiB */
        if (p[0] < 0x80) {
            *out = p[0];
            span->p = p + 1;
            return true;
        }
        if (p[1] < 0x80) {
            *out = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
            span->p = p + 2;
            return true;
        }
    }
    return wire_long_varint(out, span);
}

static inline bool wire_piece(struct wire *out, struct wire *span)
{
    uint64_t bytes;
    if (!wire_varint(&bytes, span) || bytes > wire_left(span))
        return false;
    *out = (struct wire){span->p, span->p + bytes};
    span->p += bytes;
    return true;
}

/* The values of one kind of list, in pieces: floats and varints come packed or one by one, strings one by one. */
struct wire_list {
    enum type type; /* TYPE_F32, TYPE_I64, TYPE_STRING */
    struct wire bytes;
};

/* What nearly all features are: one list, packed in one piece. False: it must be looked at more closely. */
static inline bool wire_list_is_one_piece(enum type *type, struct wire *values, struct wire feature)
{
    struct wire list;
    if (feature.p == feature.end || (*feature.p != TAG_OF(2, WIRE_PIECE) && *feature.p != TAG_OF(3, WIRE_PIECE)))
        return false;
    *type = *feature.p++ == TAG_OF(2, WIRE_PIECE) ? TYPE_F32 : TYPE_I64;
    if (!wire_piece(&list, &feature) || feature.p != feature.end || list.p == list.end ||
        *list.p++ != TAG_OF(1, WIRE_PIECE))
        return false;
    return wire_piece(values, &list) && list.p == list.end;
}

/* What a serialized Feature holds; *out has p == NULL when it has no kind. False: it is not one. */
bool wire_list_find(struct wire_list *out, struct wire feature);
/* How many values; false: the bytes are no list. */
bool wire_list_count(uint64_t *count, const struct wire_list *list);
/* All of them to `to`, which has room for wire_list_count; false: a varint is too long. */
bool wire_list_values(void *to, const struct wire_list *list);

#endif
