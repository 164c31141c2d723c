/* number_set.h - which of the numbers 0..count-1 are in a set, and the next one from any on: a bit each, and a bit for
   each word of the level below. */
#ifndef BASE_SETS_NUMBER_SET_H
#define BASE_SETS_NUMBER_SET_H

#include "base/memory/arena.h"

#define NUMBER_SET_LEVELS 6 /* of 64: more numbers than an int has */

struct number_set {
    uint64_t *level[NUMBER_SET_LEVELS]; /* [0]: a bit a number */
    int levels;
    int count;
};

/* Empty. False: the arena refuses. */
bool number_set_init(struct number_set *set, struct arena *arena, int count);
void number_set_add(struct number_set *set, int number);
void number_set_remove(struct number_set *set, int number);
/* The least that is not below `from` (the largest that is not above it); -1: none. `from` may lie outside. */
int number_set_next(const struct number_set *set, int from);
int number_set_previous(const struct number_set *set, int from);

#endif
