/* names.c - open addressing by FNV-1a. */
#include "base/sets/names.h"

#include <string.h>

#include "base/numbers/hash.h"

#define FIRST_CAPACITY 64

static struct names_slot *slot_of(struct names *names, const char *name)
{
    uint64_t hash = fnv1a_text(name);
    uint64_t mask = (uint64_t)names->capacity - 1, place = (hash ^ hash >> 32) & mask;
    names->steps++;
    while (names->slot[place].name && strcmp(names->slot[place].name, name) != 0) {
        place = (place + 1) & mask;
        names->steps++;
    }
    return &names->slot[place];
}

void names_init(struct names *names, struct arena *arena)
{
    *names = (struct names){.arena = arena};
}

int names_find(struct names *names, const char *name)
{
    const struct names_slot *slot = names->capacity ? slot_of(names, name) : NULL;
    return slot && slot->name ? slot->number : -1;
}

static bool grow(struct names *names)
{
    struct names larger = {.arena = names->arena, .count = names->count, .steps = names->steps};
    larger.capacity = names->capacity ? 2 * names->capacity : FIRST_CAPACITY;
    larger.slot = arena_array(names->arena, (size_t)larger.capacity, sizeof *larger.slot);
    if (!larger.slot)
        return false;
    for (int i = 0; i < names->capacity; i++)
        if (names->slot[i].name)
            *slot_of(&larger, names->slot[i].name) = names->slot[i];
    *names = larger;
    return true;
}

bool names_add(struct names *names, const char *name, int number)
{
    if (2 * names->count >= names->capacity && !grow(names))
        return false;
    *slot_of(names, name) = (struct names_slot){name, number};
    names->count++;
    return true;
}
