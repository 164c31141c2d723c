/* number_set.c - a tree of words of 64 bits: a bit of level k says that word k of the level below is not 0. */
#include "base/sets/number_set.h"

#define BITS 64

bool number_set_init(struct number_set *set, struct arena *arena, int count)
{
    size_t words = (size_t)count;
    *set = (struct number_set){.count = count};
    do {
        words = words / BITS + 1;
        set->level[set->levels] = arena_array(arena, words, sizeof(uint64_t));
        if (!set->level[set->levels])
            return false;
        set->levels++;
    } while (words > 1 && set->levels < NUMBER_SET_LEVELS);
    return true;
}

void number_set_add(struct number_set *set, int number)
{
    for (int k = 0; k < set->levels; k++, number /= BITS)
        set->level[k][number / BITS] |= 1ull << number % BITS;
}

void number_set_remove(struct number_set *set, int number)
{
    for (int k = 0; k < set->levels; k++, number /= BITS)
        if (set->level[k][number / BITS] &= ~(1ull << number % BITS))
            return;
}

/* Each level has room for a number behind its last: going up never passes its end. */
int number_set_next(const struct number_set *set, int from)
{
    int k = 0;
    from = from < 0 ? 0 : from;
    if (from >= set->count)
        return -1;
    for (; k < set->levels; k++) {
        uint64_t word = set->level[k][from / BITS] >> from % BITS;
        if (word) {
            from += __builtin_ctzll(word);
            break;
        }
        from = from / BITS + 1;
    }
    if (k == set->levels)
        return -1;
    for (; k > 0; k--)
        from = from * BITS + __builtin_ctzll(set->level[k - 1][from]);
    return from;
}

int number_set_previous(const struct number_set *set, int from)
{
    int k = 0;
    from = from >= set->count ? set->count - 1 : from;
    for (; k < set->levels && from >= 0; k++) {
        uint64_t word = set->level[k][from / BITS] << (BITS - 1 - from % BITS);
        if (word) {
            from -= __builtin_clzll(word);
            break;
        }
        from = from / BITS - 1;
    }
    if (k == set->levels || from < 0)
        return -1;
    for (; k > 0; k--)
        from = from * BITS + BITS - 1 - __builtin_clzll(set->level[k - 1][from]);
    return from;
}
