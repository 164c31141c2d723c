/* min_tree.c - a tournament tree in an array: the children of k are 2k and 2k + 1. */
#include "base/sets/min_tree.h"

bool min_tree_init(struct min_tree *tree, struct arena *arena, int places)
{
    tree->leaves = 1;
    while (tree->leaves < places)
        tree->leaves *= 2;
    tree->key = arena_array(arena, 2 * (size_t)tree->leaves, sizeof *tree->key);
    for (int i = 0; tree->key && i < 2 * tree->leaves; i++)
        tree->key[i] = LEAST_NONE;
    return tree->key != NULL;
}

void min_tree_set(struct min_tree *tree, int place, int64_t key)
{
    int64_t *all = tree->key;
    int at = tree->leaves + place;
    all[at] = key;
    for (at /= 2; at > 0; at /= 2) {
        int64_t least = all[2 * at] < all[2 * at + 1] ? all[2 * at] : all[2 * at + 1];
        if (all[at] == least)
            return;
        all[at] = least;
    }
}

int min_tree_first(const struct min_tree *tree, int begin, int end, int64_t most)
{
    unsigned at = (unsigned)(tree->leaves + begin);
    if (begin >= end)
        return -1;
    for (;;) {
        while (at % 2 == 0) /* the largest subtree that begins here */
            at /= 2;
        if (tree->key[at] <= most)
            break;
        at++;
        if ((at & (at - 1)) == 0) /* behind the last place */
            return -1;
    }
    while (at < (unsigned)tree->leaves) {
        at *= 2;
        at += tree->key[at] > most;
    }
    int place = (int)at - tree->leaves;
    return place < end ? place : -1;
}
