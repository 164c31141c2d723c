/* offset_set.h - who lies where: stretches of bytes that do not share any, by the offset where they begin.
   The offsets that there can be are known before: each operation takes log n, whatever comes and goes. */
#ifndef PLAN_OFFSET_SET_H
#define PLAN_OFFSET_SET_H

#include "base/sets/number_set.h"

struct stretch {
    uint64_t offset, bytes;
    int owner;
};

struct offset_set {
    struct stretch *stretch; /* by offset, each offset once */
    int count;
    struct number_set there; /* which of them are */
};

/* offset: so many of them, in any order, some several times; sorted here. False: the arena refuses. */
bool offset_set_init(struct offset_set *set, struct arena *arena, uint64_t *offset, int count);
/* One that shares a byte of offset..offset+bytes-1, the first; or NULL. */
const struct stretch *offset_set_meet(const struct offset_set *set, uint64_t offset, uint64_t bytes);
/* The offset is one of those known; nothing meets it. */
void offset_set_add(struct offset_set *set, uint64_t offset, uint64_t bytes, int owner);
/* One that offset_set_meet told. */
void offset_set_remove(struct offset_set *set, const struct stretch *stretch);

#endif
