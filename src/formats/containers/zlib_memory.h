/* zlib_memory.h - zlib's own memory from the budget: what to give a z_stream as zalloc, zfree and opaque. */
#ifndef FORMATS_CONTAINERS_ZLIB_MEMORY_H
#define FORMATS_CONTAINERS_ZLIB_MEMORY_H

#include "base/memory/budget.h"

struct zlib_memory {
    struct budget *budget;
    bool refused; /* the budget said no: zlib itself says only that there is no memory */
};

void *zlib_take(void *memory, unsigned items, unsigned size);
void zlib_give(void *memory, void *address);

#endif
