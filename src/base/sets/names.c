/* names.c - open addressing by FNV-1a. */
#include "base/sets/names.h"

#include <string.h>

#include "base/numbers/hash.h"

#define FIRST_CAPACITY 64

static struct names_entry *entry_of(struct names *names, const char *name)
{
    uint64_t hash = fnv1a_text(name);
    uint64_t mask = (uint64_t)names->capacity - 1, place = (hash ^ hash >> 32) & mask;
    names->steps++;
    while (names->entry[place].name && strcmp(names->entry[place].name, name) != 0) {
        place = (place + 1) & mask;
        names->steps++;
    }
    return &names->entry[place];
}

void names_init(struct names *names, struct arena *arena)
{
    *names = (struct names){.arena = arena};
}

int names_find(struct names *names, const char *name)
{
    const struct names_entry *entry = names->capacity ? entry_of(names, name) : NULL;
    return entry && entry->name ? entry->number : -1;
}

static bool grow(struct names *names)
{
    struct names larger = {.arena = names->arena, .count = names->count, .steps = names->steps};
    larger.capacity = names->capacity ? 2 * names->capacity : FIRST_CAPACITY;
    larger.entry = arena_array(names->arena, (size_t)larger.capacity, sizeof *larger.entry);
    if (!larger.entry)
        return false;
    for (int i = 0; i < names->capacity; i++)
        if (names->entry[i].name)
            *entry_of(&larger, names->entry[i].name) = names->entry[i];
    *names = larger;
    return true;
}

bool names_add(struct names *names, const char *name, int number)
{
    if (2 * names->count >= names->capacity && !grow(names))
        return false;
    *entry_of(names, name) = (struct names_entry){name, number};
    names->count++;
    return true;
}
