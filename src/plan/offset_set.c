/* offset_set.c - the offsets are sorted once; a set of numbers says which of them are in the set. */
#include "plan/offset_set.h"

#include <stdlib.h>

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

bool offset_set_init(struct offset_set *set, struct arena *arena, uint64_t *offset, int count)
{
    int kept = 0;
    if (count)
        qsort(offset, (size_t)count, sizeof *offset, by_value);
    for (int i = 0; i < count; i++)
        if (i == 0 || offset[i] != offset[kept - 1])
            offset[kept++] = offset[i];
    *set = (struct offset_set){.interval = arena_array(arena, (size_t)kept, sizeof *set->interval), .count = kept};
    for (int i = 0; set->interval && i < kept; i++)
        set->interval[i].offset = offset[i];
    return set->interval && number_set_init(&set->there, arena, kept);
}

/* The number of the last interval that begins at or before the offset, in the set or not; -1: none. */
static int number_of(const struct offset_set *set, uint64_t offset)
{
    int low = 0, high = set->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (set->interval[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

const struct interval *offset_set_overlap(const struct offset_set *set, uint64_t offset, uint64_t bytes)
{
    int number = number_of(set, offset);
    int before = number_set_previous(&set->there, number), behind = number_set_next(&set->there, number + 1);
    if (before >= 0 && set->interval[before].offset + set->interval[before].bytes > offset)
        return &set->interval[before];
    return behind >= 0 && set->interval[behind].offset < offset + bytes ? &set->interval[behind] : NULL;
}

void offset_set_add(struct offset_set *set, uint64_t offset, uint64_t bytes, int owner)
{
    int number = number_of(set, offset);
    set->interval[number].bytes = bytes;
    set->interval[number].owner = owner;
    number_set_add(&set->there, number);
}

void offset_set_remove(struct offset_set *set, const struct interval *interval)
{
    number_set_remove(&set->there, (int)(interval - set->interval));
}
