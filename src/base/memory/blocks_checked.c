/* blocks_checked.c - small blocks from malloc, where a sanitizer watches it:
   every block then has red zones, and a leak has a stack. */
#include "base/memory/blocks.h"

#include <stdlib.h>
#include <string.h>

static size_t rounded(size_t bytes)
{
    return bytes ? (bytes + BLOCKS_STEP - 1) / BLOCKS_STEP * BLOCKS_STEP : BLOCKS_STEP;
}

void *blocks_take(struct blocks *blocks, size_t bytes)
{
    void *block = aligned_alloc(BLOCKS_STEP, rounded(bytes));
    (void)blocks;
    return block ? memset(block, 0, rounded(bytes)) : NULL;
}

void blocks_give(struct blocks *blocks, void *block, size_t bytes)
{
    (void)blocks, (void)bytes;
    free(block);
}

void blocks_release(struct blocks *blocks)
{
    (void)blocks;
}
