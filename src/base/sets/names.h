/* names.h - numbers by name: a hash table in an arena, at most half full. */
#ifndef BASE_SETS_NAMES_H
#define BASE_SETS_NAMES_H

#include "base/memory/arena.h"

struct names_entry {
    const char *name; /* the caller's; NULL: free */
    int number;
};

struct names {
    struct arena *arena;
    struct names_entry *entry;
    int count, capacity; /* capacity: a power of two */
    uint64_t steps;      /* entries that were looked at */
};

/* Takes nothing yet. */
void names_init(struct names *names, struct arena *arena);
/* The number of that name, or -1. */
int names_find(struct names *names, const char *name);
/* Names must not be there yet. False: the arena refuses. */
bool names_add(struct names *names, const char *name, int number);

#endif
