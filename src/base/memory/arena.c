/* arena.c - blocks in a chain, filled from the front.
   What is larger than a block gets one of its own, put behind the last, so
   that the rest of the last is still used. */
#include "base/memory/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/checked.h"

#define ALIGNMENT   16
#define FIRST_BYTES ((size_t)16 * 1024)
#define MOST_BYTES  ((size_t)256 * 1024)
#define SAME_BLOCKS                                                                                                    \
    16 /* of one size; then they double: a large arena is not a thousand blocks, a small one wastes little */

struct arena_block {
    struct arena_block *previous;
    size_t bytes, used; /* with this header */
};

#define HEADER_BYTES ((size_t)round_up(sizeof(struct arena_block), ALIGNMENT))

void arena_init(struct arena *arena, struct budget *budget, enum tag tag)
{
    *arena = (struct arena){.budget = budget, .tag = tag, .block_bytes = FIRST_BYTES};
}

void arena_release(struct arena *arena)
{
    for (struct arena_block *block = arena->last, *previous; block; block = previous) {
        previous = block->previous;
        budget_give(arena->budget, arena->tag, block, block->bytes);
    }
    arena->last = NULL;
}

static void grow(struct arena *arena)
{
    if (++arena->blocks < SAME_BLOCKS || arena->block_bytes < FIRST_BYTES || arena->block_bytes >= MOST_BYTES)
        return;
    arena->block_bytes *= 2;
    arena->blocks = 0;
}

static struct arena_block *add_block(struct arena *arena, size_t bytes)
{
    bool large = bytes > arena->block_bytes;
    size_t block_bytes = large ? bytes : arena->block_bytes;
    struct arena_block *block = budget_take(arena->budget, arena->tag, block_bytes);
    if (!block) {
        arena->refused_bytes = block_bytes;
        return NULL;
    }
    block->bytes = block_bytes;
    block->used = HEADER_BYTES;
    if (large && arena->last) {
        block->previous = arena->last->previous;
        arena->last->previous = block;
    } else {
        block->previous = arena->last;
        arena->last = block;
        grow(arena);
    }
    return block;
}

void *arena_take(struct arena *arena, size_t bytes)
{
    uint64_t rounded = round_up(bytes ? bytes : 1, ALIGNMENT), with_header;
    if (!add_u64(&with_header, rounded, HEADER_BYTES) || with_header > SIZE_MAX / 2) {
        arena->refused_bytes = SIZE_MAX;
        return NULL;
    }
    struct arena_block *block = arena->last;
    if (!block || rounded > block->bytes - block->used)
        block = add_block(arena, with_header);
    if (!block)
        return NULL;
    void *start = (char *)block + block->used;
    block->used += rounded;
    return start;
}

plim_status arena_refused(const struct arena *arena, plim_error *error)
{
    size_t bytes = arena->refused_bytes ? arena->refused_bytes : arena->block_bytes;
    return budget_refused(arena->budget, arena->tag, bytes, error);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    uint64_t bytes;
    if (mul_u64(&bytes, count, size))
        return arena_take(arena, bytes);
    arena->refused_bytes = SIZE_MAX;
    return NULL;
}

char *arena_string(struct arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = arena_take(arena, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = length < 0 ? NULL : arena_take(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(list, format);
    vsnprintf(text, (size_t)length + 1, format, list);
    va_end(list);
    return text;
}
