/* store.h - elements that a stage keeps, in lists of its own: added and given up in any order.

   Values lie one behind the other in a buffer; those of elements that were given up are gaps. When the buffer is full,
   what is still there moves to a second room of the same size. */
#ifndef PIPELINE_STAGES_KEEP_STORE_H
#define PIPELINE_STAGES_KEEP_STORE_H

#include "pipeline/core/chunk.h"

struct store {
    struct chunk elements;     /* row numbers are the names of elements; count is not used */
    struct value_buffer other; /* what values move to */
    int64_t *next;             /* for the lists of whoever keeps elements; of free rows the next free one */
    bool *used;
    int64_t vacant;  /* the first free row; -1: none */
    uint64_t values; /* bytes of values that are still there, at most */
    uint64_t wanted; /* what a store would need that an element did not fit into: of values, or 0 when rows ran out */
};

/* value_bytes is for the values of all elements that are kept at one time; 0 where there are none. */
uint64_t store_bytes(const struct spec *spec, int64_t rows, uint64_t value_bytes);
void store_lay(struct store *store, void *block, const struct spec *spec, int64_t rows, uint64_t value_bytes);
void store_clear(struct store *store);
/* Copies a row with its values; -1: there is no room for it. What elements refer to may move. */
int64_t store_add(struct store *store, const struct chunk *from, int64_t row);
/* What it refers to stays where it is until the next store_add. */
void store_give(struct store *store, int64_t element);

#endif
