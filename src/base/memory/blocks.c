/* blocks.c - small blocks from mapped chunks, by size. */
#include "base/memory/blocks.h"

#include <string.h>
#include <sys/mman.h>

#define CHUNK_BYTES ((size_t)64 * 1024)

static size_t class_of(size_t bytes)
{
    return bytes ? (bytes - 1) / BLOCKS_STEP : 0;
}

static int add_chunk(struct blocks *blocks)
{
    char *chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return 0;
    *(void **)chunk = blocks->chunks;
    blocks->chunks = chunk;
    blocks->at = chunk + BLOCKS_STEP;
    blocks->end = chunk + CHUNK_BYTES;
    return 1;
}

void *blocks_take(struct blocks *blocks, size_t bytes)
{
    size_t class = class_of(bytes), rounded = (class + 1) * BLOCKS_STEP;
    void *block = blocks->free[class];
    if (block) {
        blocks->free[class] = *(void **)block;
        return memset(block, 0, rounded);
    }
    if ((size_t)(blocks->end - blocks->at) < rounded && !add_chunk(blocks))
        return NULL;
    block = blocks->at;
    blocks->at += rounded;
    return memset(block, 0, rounded); /* touched now, as everything that is taken */
}

void blocks_give(struct blocks *blocks, void *block, size_t bytes)
{
    size_t class = class_of(bytes);
    *(void **)block = blocks->free[class];
    blocks->free[class] = block;
}

void blocks_release(struct blocks *blocks)
{
    void *chunk = blocks->chunks;
    while (chunk) {
        void *before = *(void **)chunk;
        munmap(chunk, CHUNK_BYTES);
        chunk = before;
    }
}
