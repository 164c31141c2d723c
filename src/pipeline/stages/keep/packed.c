/* packed.c - elements that a stage keeps: all columns of one side by side, values as one run of bytes. */
#include "pipeline/stages/keep/packed.h"

#include <string.h>

#include "base/numbers/checked.h"

#define COLUMNS_AT (sizeof(int64_t) + sizeof(uint64_t))

void packed_lay(struct packed *out, const struct spec *spec)
{
    *out = (struct packed){.spec = spec, .bytes = COLUMNS_AT};
    for (int c = 0; c < spec->column_count; c++) {
        out->at[c] = out->bytes;
        out->bytes = add_most(out->bytes, round_up(spec->column[c].bytes, 8));
    }
}

void packed_put(const struct packed *packed, uint8_t *to, const struct chunk *from, int64_t row)
{
    memcpy(to, &from->index[row], sizeof(int64_t));
    memcpy(to + sizeof(int64_t), &from->epoch[row], sizeof(uint64_t));
    for (int c = 0; c < packed->spec->column_count; c++)
        memcpy(to + packed->at[c], chunk_row(from, c, row), packed->spec->column[c].bytes);
}

void packed_get(const struct packed *packed, struct chunk *to, int64_t row, const uint8_t *from)
{
    memcpy(&to->index[row], from, sizeof(int64_t));
    memcpy(&to->epoch[row], from + sizeof(int64_t), sizeof(uint64_t));
    for (int c = 0; c < packed->spec->column_count; c++)
        memcpy(chunk_row(to, c, row), from + packed->at[c], packed->spec->column[c].bytes);
}

/* ---- values ---- */

struct counter {
    struct mover mover;
    uint64_t bytes;
};

static void count_piece(struct mover *mover, void *piece, uint64_t bytes)
{
    (void)piece;
    ((struct counter *)mover)->bytes += bytes;
}

uint64_t values_bytes(const struct chunk *chunk, int64_t row)
{
    struct counter counter = {.mover = {count_piece}};
    values_put(&counter.mover, chunk, row);
    return counter.bytes;
}

uint64_t values_buffer_bytes(const struct chunk *chunk, int64_t row)
{
    uint64_t bytes = 0;
    for (int c = 0; c < chunk->spec->column_count; c++)
        bytes += value_bytes(&chunk->spec->column[c], chunk_row(chunk, c, row));
    return bytes;
}

/* The row's array of strings, and before it, where it lies elsewhere, the array itself. */
static void put_value(struct mover *mover, const struct column *column, void *row)
{
    int64_t count = value_count(column, row);
    bool variable = column_is_variable(column);
    void *data = variable ? ((struct cell *)row)->data : row;
    if (variable)
        mover->move(mover, data, (uint64_t)count * type_bytes(column->type));
    for (int64_t i = 0; column->type == TYPE_STRING && i < count; i++) {
        struct string *string = (struct string *)data + i;
        mover->move(mover, (void *)(uintptr_t)string->data, string->bytes);
    }
}

void values_put(struct mover *mover, const struct chunk *from, int64_t row)
{
    for (int c = 0; c < from->spec->column_count; c++)
        if (column_has_values(&from->spec->column[c]))
            put_value(mover, &from->spec->column[c], chunk_row(from, c, row));
}

static void get_value(struct mover *mover, struct value_buffer *values, const struct column *column, void *row)
{
    int64_t count = value_count(column, row);
    bool variable = column_is_variable(column);
    void *data = row;
    if (variable) {
        uint64_t bytes = (uint64_t)count * type_bytes(column->type);
        data = ((struct cell *)row)->data = value_buffer_take(values, bytes);
        mover->move(mover, data, bytes);
    }
    for (int64_t i = 0; column->type == TYPE_STRING && i < count; i++) {
        struct string *string = (struct string *)data + i;
        void *bytes = value_buffer_take_bytes(values, string->bytes);
        mover->move(mover, bytes, string->bytes);
        string->data = bytes;
    }
}

void values_get(struct mover *mover, struct chunk *to, int64_t row)
{
    for (int c = 0; c < to->spec->column_count; c++)
        if (column_has_values(&to->spec->column[c]))
            get_value(mover, &to->values, &to->spec->column[c], chunk_row(to, c, row));
}
