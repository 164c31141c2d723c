/* write_buffer.h - small pieces gathered into large writes, from one end of a file to the other. */
#ifndef FORMATS_FILES_WRITE_BUFFER_H
#define FORMATS_FILES_WRITE_BUFFER_H

#include "base/files/file.h"

struct write_buffer {
    struct file *file;
    uint8_t *bytes;
    size_t capacity, held;
    uint64_t at;      /* of the file: where the buffer goes */
    bool drop;        /* pages that were written are flushed and dropped as it goes: they never pile up */
    uint64_t dropped; /* first byte that was not */
};

plim_status write_buffer_put(struct write_buffer *out, const void *data, uint64_t bytes, plim_error *error);
plim_status write_buffer_flush(struct write_buffer *out, plim_error *error);

#endif
