/* min_tree.h - a row of keys, and the first of them in a range that is at most a bound: both in log n. */
#ifndef BASE_SETS_MIN_TREE_H
#define BASE_SETS_MIN_TREE_H

#include "base/memory/arena.h"

#define LEAST_NONE INT64_MAX /* of a place without a key */

/* A tournament tree: key[1] is the least of all, those of places begin at key[leaves]. */
struct min_tree {
    int64_t *key;
    int leaves; /* a power of two */
};

/* All places are without a key. False: the arena refuses. */
bool min_tree_init(struct min_tree *tree, struct arena *arena, int places);
void min_tree_set(struct min_tree *tree, int place, int64_t key);
/* The first place of begin..end-1 whose key is at most `most` (below LEAST_NONE); -1: none. */
int min_tree_first(const struct min_tree *tree, int begin, int end, int64_t most);

#endif
