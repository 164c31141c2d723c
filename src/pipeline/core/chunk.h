/* chunk.h - some elements on their way: rows by column, and a value buffer for what the rows refer to. */
#ifndef PIPELINE_CORE_CHUNK_H
#define PIPELINE_CORE_CHUNK_H

#include "formats/source.h"

struct chunk {
    const struct spec *spec;
    int64_t count, capacity;       /* rows */
    uint8_t *column[MOST_COLUMNS]; /* row 0; row i lies spec->column[c].bytes * i further on */
    int64_t *index;                /* which element each row is: what random functions and errors go by */
    uint64_t *epoch;
    struct value_buffer values;
};

/* Rows side by side, up to a multiple of VALUE_ALIGNMENT. UINT64_MAX: more than can be counted. */
uint64_t rows_area(int64_t rows, uint64_t row_bytes);
/* One block for all of it: how large, and laid out in it. UINT64_MAX: more than can be counted. */
uint64_t chunk_bytes(const struct spec *spec, int64_t rows, uint64_t value_bytes);
void chunk_lay(struct chunk *chunk, void *block, const struct spec *spec, int64_t rows, uint64_t value_bytes);

static inline uint8_t *chunk_row(const struct chunk *chunk, int column, int64_t row)
{
    return chunk->column[column] + (uint64_t)row * chunk->spec->column[column].bytes;
}

/* Where the rows of each column begin, and how far one lies behind the other: as sources and functions want it. */
struct row_pointers {
    void *row[MOST_COLUMNS];
    uint64_t stride[MOST_COLUMNS];
};
void chunk_pointers(struct row_pointers *out, const struct chunk *chunk);
/* Elements first.. of this epoch: rows of a stage that numbers anew. */
void chunk_number(struct chunk *chunk, int64_t first, uint64_t epoch);

/* Bytes behind a row: of one value, and what copying them takes in a value buffer at most. */
uint64_t value_bytes(const struct column *column, const void *row);
/* Copies what the row refers to into the buffer and lets it refer there; false, and nothing changed in the row, when
   the value buffer is full. */
bool value_own(struct value_buffer *values, const struct column *column, void *row);
/* The elements in a row: of a cell its own extents, else the column's. */
int64_t value_count(const struct column *column, const void *row);
/* The shape of this row's value. */
struct shape value_shape(const struct column *column, const void *row);

/* Row `from` of another chunk of the same spec behind our last one, with what it refers to; false when there is no
   room left. */
bool chunk_append(struct chunk *chunk, const struct chunk *other, int64_t from);
/* The same without the values: the row refers to what it referred to. There must be a row left. */
void chunk_append_row(struct chunk *chunk, const struct chunk *other, int64_t from);
/* Row `from` over row `to`, both of this chunk: values stay where they are. */
void chunk_move(struct chunk *chunk, int64_t to, int64_t from);
/* Everything that rows refer to is in our own value buffer from now on; false when it does not fit. */
bool chunk_own(struct chunk *chunk);

#endif
