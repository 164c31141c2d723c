/* value_buffer.h - a bounded piece of memory into which values of unforeseen size are put, one after another.

   Whoever fills a value buffer is given it, never grows it. When a value does not fit, value_buffer_take returns NULL
   and the buffer remembers how large it would have to be: its owner hands on what is there, empties it and asks again.
   A value that does not fit into an empty buffer is an error that can name the size. */
#ifndef BASE_MEMORY_VALUE_BUFFER_H
#define BASE_MEMORY_VALUE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_ALIGNMENT 64

struct value_buffer {
    uint8_t *bytes;
    uint64_t capacity, used;
    uint64_t wanted; /* the capacity that the last refused value needed in a buffer emptied to its mark; 0: none was */
};

static inline void value_buffer_init(struct value_buffer *values, void *bytes, uint64_t capacity)
{
    *values = (struct value_buffer){.bytes = (uint8_t *)bytes, .capacity = capacity};
}

static inline void value_buffer_empty(struct value_buffer *values)
{
    values->used = values->wanted = 0;
}

static inline uint64_t value_buffer_left(const struct value_buffer *values)
{
    return values->capacity - values->used;
}

static inline void *value_buffer_refuse(struct value_buffer *values, uint64_t bytes)
{
    values->wanted = bytes > UINT64_MAX - values->used ? UINT64_MAX : values->used + bytes;
    return NULL;
}

/* For strings and the like: no alignment, no gaps. Not zeroed. */
static inline void *value_buffer_take_bytes(struct value_buffer *values, uint64_t bytes)
{
    if (bytes > value_buffer_left(values))
        return value_buffer_refuse(values, bytes);
    uint8_t *taken = values->bytes + values->used;
    values->used += bytes;
    return taken;
}

/* For numbers: aligned to VALUE_ALIGNMENT (the value buffer's bytes are). Not zeroed. */
static inline void *value_buffer_take(struct value_buffer *values, uint64_t bytes)
{
    uint64_t gap = -values->used & (VALUE_ALIGNMENT - 1);
    if (gap > value_buffer_left(values) || bytes > value_buffer_left(values) - gap)
        return value_buffer_refuse(values, bytes > UINT64_MAX - gap ? UINT64_MAX : gap + bytes);
    values->used += gap + bytes;
    return values->bytes + values->used - bytes;
}

#endif
