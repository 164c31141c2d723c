/* zlib_memory.c - zlib's own memory from the budget. */
#include "formats/containers/zlib_memory.h"

/* Room before each of zlib's blocks for its size: zfree is not told it. */
#define BLOCK_HEAD 64

static void *zlib_take(void *memory, unsigned items, unsigned size)
{
    struct zlib_memory *from = memory;
    size_t bytes = (size_t)items * size + BLOCK_HEAD;
    char *block = budget_take(from->budget, TAG_FORMATS, bytes);
    if (!block) {
        from->refused = true;
        return NULL;
    }
    *(size_t *)block = bytes;
    return block + BLOCK_HEAD;
}

static void zlib_give(void *memory, void *address)
{
    struct zlib_memory *from = memory;
    char *block = (char *)address - BLOCK_HEAD;
    budget_give(from->budget, TAG_FORMATS, block, *(size_t *)block);
}

void zlib_memory_use(struct zlib_memory *memory, z_stream *stream)
{
    stream->zalloc = zlib_take;
    stream->zfree = zlib_give;
    stream->opaque = memory;
}
