/* packed.h - elements that a stage keeps: all columns of one side by side, so that it lies on few cache lines and
   pages, and what its rows refer to as one run of bytes.

   A packed row is: the element's index, its epoch, then each column at a multiple of 8 bytes. */
#ifndef PIPELINE_STAGES_KEEP_PACKED_H
#define PIPELINE_STAGES_KEEP_PACKED_H

#include "pipeline/core/chunk.h"

struct packed {
    const struct spec *spec;
    uint64_t at[MOST_COLUMNS]; /* where a column begins */
    uint64_t bytes;            /* of a row: a multiple of 8 */
};

void packed_lay(struct packed *out, const struct spec *spec);
void packed_put(const struct packed *packed, uint8_t *to, const struct chunk *from, int64_t row);
/* Over row `row` of the chunk. */
void packed_get(const struct packed *packed, struct chunk *to, int64_t row, const uint8_t *from);

/* The values of a row piece by piece, always in the same order: whoever stores them says where pieces go to or come
   from. */
struct mover {
    void (*move)(struct mover *mover, void *piece, uint64_t bytes);
};
/* All pieces together. */
uint64_t values_bytes(const struct chunk *chunk, int64_t row);
/* What they take in a value buffer at most: gaps between them included. */
uint64_t values_buffer_bytes(const struct chunk *chunk, int64_t row);
void values_put(struct mover *mover, const struct chunk *from, int64_t row);
/* Into the chunk's buffer; the row refers to them there. The caller has made sure that as many bytes are left as
   values_buffer_bytes() said when they were put. */
void values_get(struct mover *mover, struct chunk *to, int64_t row);

#endif
