/* zlib_memory.h - zlib's own memory from the budget. */
#ifndef FORMATS_CONTAINERS_ZLIB_MEMORY_H
#define FORMATS_CONTAINERS_ZLIB_MEMORY_H

#include <zlib.h>

#include "base/memory/budget.h"

struct zlib_memory {
    struct budget *budget;
    bool refused; /* the budget said no: zlib itself says only that there is no memory */
};

/* The stream will take its memory from `memory`, whose budget is set: before zlib's own init function. */
void zlib_memory_use(struct zlib_memory *memory, z_stream *stream);

#endif
