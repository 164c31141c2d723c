/* room.h - a bounded piece of memory into which values of unforeseen size are put, one after another.

   Whoever fills a room is given it, never grows it. When a value does not fit, room_take says NULL and the room
   remembers how large it would have to be: its owner hands on what is there, empties it and asks again, and a
   value that does not fit into an empty room is an error that can name the size. */
#ifndef BASE_MEMORY_ROOM_H
#define BASE_MEMORY_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROOM_ALIGNMENT 64

struct room {
    uint8_t *bytes;
    uint64_t capacity, used;
    uint64_t wanted; /* the capacity that the last refused value needed in a room emptied to its mark; 0: none was */
};

static inline void room_init(struct room *room, void *bytes, uint64_t capacity)
{
    *room = (struct room){.bytes = (uint8_t *)bytes, .capacity = capacity};
}

static inline void room_empty(struct room *room)
{
    room->used = room->wanted = 0;
}

static inline uint64_t room_left(const struct room *room)
{
    return room->capacity - room->used;
}

static inline void *room_refuse(struct room *room, uint64_t bytes)
{
    room->wanted = bytes > UINT64_MAX - room->used ? UINT64_MAX : room->used + bytes;
    return NULL;
}

/* For strings and the like: no alignment, no gaps. Not zeroed. */
static inline void *room_take_bytes(struct room *room, uint64_t bytes)
{
    if (bytes > room_left(room))
        return room_refuse(room, bytes);
    uint8_t *taken = room->bytes + room->used;
    room->used += bytes;
    return taken;
}

/* For numbers: aligned to ROOM_ALIGNMENT (the room's bytes are). Not zeroed. */
static inline void *room_take(struct room *room, uint64_t bytes)
{
    uint64_t gap = -room->used & (ROOM_ALIGNMENT - 1);
    if (gap > room_left(room) || bytes > room_left(room) - gap)
        return room_refuse(room, bytes > UINT64_MAX - gap ? UINT64_MAX : gap + bytes);
    room->used += gap + bytes;
    return room->bytes + room->used - bytes;
}

#endif
