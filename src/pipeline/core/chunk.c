/* chunk.c - some elements on their way: rows by column, and a value buffer for what the rows refer to. */
#include "pipeline/core/chunk.h"

#include <string.h>

#include "base/numbers/checked.h"

/* ---- laying out ---- */

uint64_t rows_area(int64_t rows, uint64_t row_bytes)
{
    uint64_t bytes;
    return mul_u64(&bytes, (uint64_t)rows, row_bytes) ? round_up(bytes, VALUE_ALIGNMENT) : UINT64_MAX;
}

uint64_t chunk_bytes(const struct spec *spec, int64_t rows, uint64_t value_bytes)
{
    uint64_t bytes = round_up(value_bytes, VALUE_ALIGNMENT);
    for (int c = 0; c < spec->column_count; c++)
        bytes = add_most(bytes, rows_area(rows, spec->column[c].bytes));
    bytes = add_most(bytes, rows_area(rows, sizeof(int64_t)));
    return add_most(bytes, rows_area(rows, sizeof(uint64_t)));
}

void chunk_lay(struct chunk *chunk, void *block, const struct spec *spec, int64_t rows, uint64_t value_bytes)
{
    uint8_t *at = block;
    *chunk = (struct chunk){.spec = spec, .capacity = rows};
    for (int c = 0; c < spec->column_count; c++) {
        chunk->column[c] = at;
        at += rows_area(rows, spec->column[c].bytes);
    }
    chunk->index = (int64_t *)at;
    at += rows_area(rows, sizeof(int64_t));
    chunk->epoch = (uint64_t *)at;
    at += rows_area(rows, sizeof(uint64_t));
    value_buffer_init(&chunk->values, at, round_up(value_bytes, VALUE_ALIGNMENT));
}

void chunk_pointers(struct row_pointers *out, const struct chunk *chunk)
{
    for (int c = 0; c < chunk->spec->column_count; c++) {
        out->row[c] = chunk->column[c];
        out->stride[c] = chunk->spec->column[c].bytes;
    }
}

void chunk_number(struct chunk *chunk, int64_t first, uint64_t epoch)
{
    for (int64_t i = 0; i < chunk->count; i++) {
        chunk->index[i] = first + i;
        chunk->epoch[i] = epoch;
    }
}

/* ---- values ---- */

struct shape value_shape(const struct column *column, const void *row)
{
    if (!column_is_variable(column))
        return column->shape;
    struct cell cell;
    memcpy(&cell, row, sizeof cell);
    return shape_of(column->shape.rank, cell.dim);
}

int64_t value_count(const struct column *column, const void *row)
{
    struct shape shape = value_shape(column, row);
    return shape_count(&shape);
}

/* The strings of a row, wherever they lie. */
static struct string *row_strings(const struct column *column, void *row)
{
    return column_is_variable(column) ? ((struct cell *)row)->data : row;
}

uint64_t value_bytes(const struct column *column, const void *row)
{
    if (!column_has_values(column))
        return 0;
    int64_t count = value_count(column, row);
    bool variable = column_is_variable(column);
    uint64_t bytes = variable ? (uint64_t)count * type_bytes(column->type) + VALUE_ALIGNMENT : 0;
    if (column->type != TYPE_STRING)
        return bytes;
    const struct string *strings = row_strings(column, (void *)(uintptr_t)row);
    for (int64_t i = 0; i < count; i++)
        bytes += strings[i].bytes;
    return bytes;
}

/* Where a value buffer that is filled up to `used` would be filled to with this value. */
static uint64_t value_end(uint64_t used, const struct column *column, const void *row)
{
    if (!column_has_values(column))
        return used;
    uint64_t bytes = value_bytes(column, row);
    return column_is_variable(column) ? add_most(round_up(used, VALUE_ALIGNMENT), bytes - VALUE_ALIGNMENT)
                                      : add_most(used, bytes);
}

static void own_strings(struct value_buffer *values, struct string *strings, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        void *copy = value_buffer_take_bytes(values, strings[i].bytes); /* there is room: value_own has looked */
        if (strings[i].bytes)
            memcpy(copy, strings[i].data, strings[i].bytes);
        strings[i].data = copy;
    }
}

bool value_own(struct value_buffer *values, const struct column *column, void *row)
{
    if (!column_has_values(column))
        return true;
    uint64_t end = value_end(values->used, column, row);
    if (end > values->capacity) {
        value_buffer_refuse(values, end - values->used);
        return false;
    }
    int64_t count = value_count(column, row);
    if (column_is_variable(column)) {
        struct cell *cell = row;
        uint64_t bytes = (uint64_t)count * type_bytes(column->type);
        void *copy = value_buffer_take(values, bytes);
        if (bytes)
            memcpy(copy, cell->data, bytes);
        cell->data = copy;
    }
    if (column->type == TYPE_STRING)
        own_strings(values, row_strings(column, row), count);
    return true;
}

/* ---- rows ---- */

void chunk_append_row(struct chunk *chunk, const struct chunk *other, int64_t from)
{
    int64_t row = chunk->count++;
    for (int c = 0; c < chunk->spec->column_count; c++)
        memcpy(chunk_row(chunk, c, row), chunk_row(other, c, from), chunk->spec->column[c].bytes);
    chunk->index[row] = other->index[from];
    chunk->epoch[row] = other->epoch[from];
}

/* Values of a row into our value buffer; on failure the value buffer is as it was. */
static bool own_row(struct chunk *chunk, int64_t row)
{
    uint64_t end = chunk->values.used;
    for (int c = 0; c < chunk->spec->column_count; c++)
        end = value_end(end, &chunk->spec->column[c], chunk_row(chunk, c, row));
    if (end > chunk->values.capacity) {
        value_buffer_refuse(&chunk->values, end - chunk->values.used);
        return false;
    }
    for (int c = 0; c < chunk->spec->column_count; c++)
        value_own(&chunk->values, &chunk->spec->column[c], chunk_row(chunk, c, row));
    return true;
}

bool chunk_append(struct chunk *chunk, const struct chunk *other, int64_t from)
{
    if (chunk->count == chunk->capacity)
        return false;
    chunk_append_row(chunk, other, from);
    if (!spec_has_values(chunk->spec) || own_row(chunk, chunk->count - 1))
        return true;
    chunk->count--;
    return false;
}

void chunk_move(struct chunk *chunk, int64_t to, int64_t from)
{
    if (to == from)
        return;
    for (int c = 0; c < chunk->spec->column_count; c++)
        memcpy(chunk_row(chunk, c, to), chunk_row(chunk, c, from), chunk->spec->column[c].bytes);
    chunk->index[to] = chunk->index[from];
    chunk->epoch[to] = chunk->epoch[from];
}

static bool inside(const struct value_buffer *values, const void *data)
{
    return (const uint8_t *)data >= values->bytes && (const uint8_t *)data < values->bytes + values->capacity;
}

/* All of it: a cell may lie in the value buffer, and its strings elsewhere. */
static bool value_inside(const struct value_buffer *values, const struct column *column, void *row)
{
    if (!column_has_values(column))
        return true;
    int64_t count = value_count(column, row);
    if (column_is_variable(column) && count && !inside(values, ((struct cell *)row)->data))
        return false;
    const struct string *strings = column->type == TYPE_STRING ? row_strings(column, row) : NULL;
    for (int64_t i = 0; strings && i < count; i++)
        if (strings[i].bytes && !inside(values, strings[i].data))
            return false;
    return true;
}

/* A source that has put its values into our value buffer already is not asked to do so twice. */
static bool row_inside(const struct chunk *chunk, int64_t row)
{
    for (int c = 0; c < chunk->spec->column_count; c++)
        if (!value_inside(&chunk->values, &chunk->spec->column[c], chunk_row(chunk, c, row)))
            return false;
    return true;
}

bool chunk_own(struct chunk *chunk)
{
    for (int64_t row = 0; spec_has_values(chunk->spec) && row < chunk->count; row++)
        if (!row_inside(chunk, row) && !own_row(chunk, row))
            return false;
    return true;
}
