/* example_wire.c - protobuf's wire format, as much of it as examples need. */
#include "formats/records/example_wire.h"

bool wire_long_varint(uint64_t *out, struct wire *span)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && span->p < span->end; shift += 7) {
        uint8_t byte = *span->p++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

bool wire_skip(struct wire *span, uint64_t tag)
{
    uint64_t value;
    struct wire piece;
    if (tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    switch (tag & 7) {
    case WIRE_VARINT:
        return wire_varint(&value, span);
    case WIRE_PIECE:
        return wire_piece(&piece, span);
    case WIRE_FIXED64:
    case WIRE_FIXED32: {
        size_t bytes = (tag & 7) == WIRE_FIXED64 ? 8 : 4;
        if (bytes > wire_left(span))
            return false;
        span->p += bytes;
        return true;
    }
    default:
        return false; /* groups, and what there is not */
    }
}

/* ---- lists --------------------------------------------------------------- */

/* A list of another kind than the one before replaces it, as a oneof has it. */
bool wire_list_find(struct wire_list *out, struct wire feature)
{
    static const enum type types[] = {[1] = TYPE_STRING, [2] = TYPE_F32, [3] = TYPE_I64};
    out->bytes = (struct wire){0};
    while (feature.p < feature.end) {
        uint64_t tag;
        if (!wire_varint(&tag, &feature))
            return false;
        if (tag == TAG_OF(1, WIRE_PIECE) || tag == TAG_OF(2, WIRE_PIECE) || tag == TAG_OF(3, WIRE_PIECE)) {
            if (!wire_piece(&out->bytes, &feature))
                return false;
            out->type = types[tag >> 3];
        } else if (!wire_skip(&feature, tag)) {
            return false;
        }
    }
    return true;
}

/* The next values: packed ones, or the bytes of one. *out has p == NULL at the end. */
static inline bool next_piece(struct wire *out, struct wire *list, enum type type)
{
    while (list->p < list->end) {
        uint64_t tag, value;
        if (!wire_varint(&tag, list))
            return false;
        if (tag == TAG_OF(1, WIRE_PIECE))
            return wire_piece(out, list);
        *out = (struct wire){list->p, list->p};
        bool single =
            (tag == TAG_OF(1, WIRE_FIXED32) && type == TYPE_F32) || (tag == TAG_OF(1, WIRE_VARINT) && type == TYPE_I64);
        if (!(single && tag == TAG_OF(1, WIRE_VARINT) ? wire_varint(&value, list) : wire_skip(list, tag)))
            return false;
        out->end = list->p;
        if (single)
            return true;
    }
    *out = (struct wire){0};
    return true;
}

/* A varint ends with a byte below 128. */
static uint64_t count_varints(struct wire span)
{
    uint64_t count = 0;
    for (; span.p < span.end; span.p++)
        count += *span.p < 0x80;
    return count;
}

bool wire_list_count(uint64_t *count, const struct wire_list *list)
{
    struct wire rest = list->bytes, piece;
    uint64_t total = 0;
    for (;;) {
        if (!next_piece(&piece, &rest, list->type))
            return false;
        if (!piece.p)
            break;
        uint64_t bytes = wire_left(&piece);
        if (list->type == TYPE_STRING)
            total++;
        else if (list->type == TYPE_F32 ? bytes % 4 != 0 : bytes > 0 && piece.end[-1] >= 0x80)
            return false;
        else
            total += list->type == TYPE_F32 ? bytes / 4 : count_varints(piece);
    }
    *count = total;
    return true;
}

static bool put_varints(uint8_t **to, struct wire piece)
{
    while (piece.p < piece.end) {
        uint64_t value;
        if (!wire_varint(&value, &piece))
            return false;
        memcpy(*to, &value, sizeof value);
        *to += sizeof value;
    }
    return true;
}

bool wire_list_values(void *to, const struct wire_list *list)
{
    struct wire rest = list->bytes, piece;
    for (uint8_t *out = to;;) {
        if (!next_piece(&piece, &rest, list->type))
            return false;
        if (!piece.p)
            return true;
        uint64_t bytes = wire_left(&piece);
        if (list->type == TYPE_F32) {
            memcpy(out, piece.p, bytes);
            out += bytes;
        } else if (list->type == TYPE_STRING) {
            memcpy(out, &(struct string){.data = piece.p, .bytes = bytes}, sizeof(struct string));
            out += sizeof(struct string);
        } else if (!put_varints(&out, piece)) {
            return false;
        }
    }
}
