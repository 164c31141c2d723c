/* fuzz_source.h - reads a few elements of a source that opened. */
#ifndef FUZZ_SOURCE_H
#define FUZZ_SOURCE_H

#include <stdlib.h>

#include "formats/source.h"
#include "fuzz_file.h"

#define ELEMENT_MOST ((uint64_t)1024 * 1024)

/* The first, the last, and the middle ones together. */
static inline plim_status fuzz_source_read(struct source *source)
{
    int64_t index[4] = {0, source->count - 1, source->count / 2, source->count / 2};
    if (source->spec.element_bytes > ELEMENT_MOST)
        return PLIM_OK;
    if (index[3] + 1 < source->count)
        index[3]++;
    void *to[MOST_COLUMNS];
    uint64_t stride[MOST_COLUMNS];
    for (int c = 0; c < source->spec.column_count; c++) {
        stride[c] = source->spec.column[c].bytes;
        to[c] = malloc(4 * stride[c]);
        if (!to[c])
            abort();
    }
    plim_status status = source->type->read(source, index, 4, to, stride, NULL);
    for (int c = 0; c < source->spec.column_count; c++)
        free(to[c]);
    return status;
}

#endif
