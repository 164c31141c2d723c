/* store.c - elements that a stage keeps, in lists of its own: added and given up in any order. */
#include "pipeline/stages/keep/store.h"

#include <string.h>

#include "base/numbers/checked.h"

uint64_t store_bytes(const struct spec *spec, int64_t rows, uint64_t value_bytes)
{
    uint64_t bytes = add_most(chunk_bytes(spec, rows, value_bytes), round_up(value_bytes, VALUE_ALIGNMENT));
    return add_most(bytes, add_most(rows_area(rows, sizeof(int64_t)), rows_area(rows, sizeof(bool))));
}

void store_lay(struct store *store, void *block, const struct spec *spec, int64_t rows, uint64_t value_bytes)
{
    uint8_t *at = block;
    chunk_lay(&store->elements, at, spec, rows, value_bytes);
    at += chunk_bytes(spec, rows, value_bytes);
    value_buffer_init(&store->other, at, round_up(value_bytes, VALUE_ALIGNMENT));
    at += round_up(value_bytes, VALUE_ALIGNMENT);
    store->next = (int64_t *)at;
    at += rows_area(rows, sizeof(int64_t));
    store->used = (bool *)at;
    store_clear(store);
}

void store_clear(struct store *store)
{
    int64_t rows = store->elements.capacity;
    memset(store->used, 0, (size_t)rows * sizeof *store->used);
    for (int64_t i = 0; i < rows; i++)
        store->next[i] = i + 1 < rows ? i + 1 : -1;
    store->vacant = rows ? 0 : -1;
    store->values = 0;
    value_buffer_empty(&store->elements.values);
}

static uint64_t values_bytes(const struct chunk *chunk, int64_t row)
{
    uint64_t bytes = 0;
    for (int c = 0; c < chunk->spec->column_count; c++)
        bytes = add_most(bytes, value_bytes(&chunk->spec->column[c], chunk_row(chunk, c, row)));
    return bytes;
}

/* There is room for them: the caller has counted. */
static void own_values(struct chunk *chunk, struct value_buffer *values, int64_t row)
{
    for (int c = 0; c < chunk->spec->column_count; c++)
        value_own(values, &chunk->spec->column[c], chunk_row(chunk, c, row));
}

/* What is still there moves to the other room: no gaps any more. */
static void compact(struct store *store)
{
    struct value_buffer values = store->other;
    value_buffer_empty(&values);
    for (int64_t i = 0; i < store->elements.capacity; i++)
        if (store->used[i])
            own_values(&store->elements, &values, i);
    store->other = store->elements.values;
    store->elements.values = values;
}

int64_t store_add(struct store *store, const struct chunk *from, int64_t row)
{
    struct chunk *chunk = &store->elements;
    bool has_values = chunk->values.capacity > 0;
    uint64_t bytes = has_values ? values_bytes(from, row) : 0;
    int64_t element = store->vacant;
    store->wanted = 0;
    if (element < 0)
        return -1;
    if (bytes > chunk->values.capacity - store->values) {
        store->wanted = add_most(store->values, bytes);
        return -1;
    }
    if (bytes > value_buffer_left(&chunk->values))
        compact(store);
    for (int c = 0; c < chunk->spec->column_count; c++)
        memcpy(chunk_row(chunk, c, element), chunk_row(from, c, row), chunk->spec->column[c].bytes);
    if (has_values)
        own_values(chunk, &chunk->values, element);
    chunk->index[element] = from->index[row];
    chunk->epoch[element] = from->epoch[row];
    store->values += bytes;
    store->used[element] = true;
    store->vacant = store->next[element];
    store->next[element] = -1;
    return element;
}

void store_give(struct store *store, int64_t element)
{
    if (store->elements.values.capacity)
        store->values -= values_bytes(&store->elements, element);
    store->used[element] = false;
    store->next[element] = store->vacant;
    store->vacant = element;
}
