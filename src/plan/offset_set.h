/* offset_set.h - a set of intervals of bytes that do not overlap, by the offset where they begin.
   All offsets that can occur are known in advance, so each operation takes log n steps. */
#ifndef PLAN_OFFSET_SET_H
#define PLAN_OFFSET_SET_H

#include "base/sets/number_set.h"

struct interval {
    uint64_t offset, bytes;
    int owner;
};

struct offset_set {
    struct interval *interval; /* one per offset, sorted */
    int count;
    struct number_set there; /* which of them are in the set */
};

/* offset: all that can occur, in any order, with repetitions; this sorts them. False: the arena refuses. */
bool offset_set_init(struct offset_set *set, struct arena *arena, uint64_t *offset, int count);
/* The first interval that shares a byte with offset..offset+bytes-1, or NULL. */
const struct interval *offset_set_overlap(const struct offset_set *set, uint64_t offset, uint64_t bytes);
/* The offset must be one of those of offset_set_init, and no interval may overlap it. */
void offset_set_add(struct offset_set *set, uint64_t offset, uint64_t bytes, int owner);
/* interval: from offset_set_overlap. */
void offset_set_remove(struct offset_set *set, const struct interval *interval);

#endif
