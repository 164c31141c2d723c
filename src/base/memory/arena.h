/* arena.h - many small blocks that are freed together.
   Graph, plan, model and job are arenas: built, frozen, freed whole. */
#ifndef BASE_MEMORY_ARENA_H
#define BASE_MEMORY_ARENA_H

#include "base/memory/budget.h"

struct arena_block;

struct arena {
    struct budget *budget;
    enum tag tag;
    size_t block_bytes; /* size of the next block: 16 KiB unless set, more in large arenas */
    int blocks;         /* of this size so far */
    struct arena_block *last;
    size_t refused_bytes; /* of the last block that was not to be had */
};

/* Takes nothing yet. */
void arena_init(struct arena *arena, struct budget *budget, enum tag tag);
void arena_release(struct arena *arena);
/* Zeroed, aligned to 16; NULL when the budget refuses. */
void *arena_take(struct arena *arena, size_t bytes);
/* The error to return when it said NULL, as budget_refused: of the block that was asked for. */
plim_status arena_refused(const struct arena *arena, plim_error *error);
void *arena_array(struct arena *arena, size_t count, size_t size);
char *arena_string(struct arena *arena, const char *text);
__attribute__((format(printf, 2, 3))) char *arena_format(struct arena *arena, const char *format, ...);

#endif
