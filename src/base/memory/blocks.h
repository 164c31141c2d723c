/* blocks.h - small blocks for the budget, and for nobody else.

   Not malloc: what malloc keeps for itself after a free shows in its figures and
   in the process's, and a run must be able to show that nothing grew. Sizes are in steps
   of 64 bytes; each has a list of free blocks; memory is mapped in chunks and
   given back when the budget ends. The caller locks. */
#ifndef BASE_MEMORY_BLOCKS_H
#define BASE_MEMORY_BLOCKS_H

#include <stddef.h>

#define BLOCKS_MOST 4096 /* bytes of the largest block */
#define BLOCKS_STEP 64

struct blocks {
    void *free[BLOCKS_MOST / BLOCKS_STEP]; /* by size; each begins with the next */
    void *chunks;                          /* each begins with the one before */
    char *at, *end;                        /* rest of the newest chunk */
};

/* Zeroed, aligned to 64; NULL when the system has no memory. bytes <= BLOCKS_MOST. */
void *blocks_take(struct blocks *blocks, size_t bytes);
void blocks_give(struct blocks *blocks, void *block, size_t bytes);
/* Every block is gone afterwards; `blocks` itself may have been one of them. */
void blocks_release(struct blocks *blocks);

#endif
