/* write_buffer.c - small pieces gathered into large writes, from one end of a file to the other. */
#include "formats/files/write_buffer.h"

#include <string.h>

#include "base/numbers/minmax.h"

/* Written pages are flushed and dropped in steps of this, or of the buffer if that is more. */
#define DROP_BYTES ((uint64_t)1024 * 1024)

static plim_status write_out(struct write_buffer *out, const void *data, size_t bytes, plim_error *error)
{
    TRY(file_write(out->file, out->at, data, bytes, error));
    out->at += bytes;
    if (out->drop && out->at - out->dropped >= DROP_BYTES) {
        file_drop(out->file, out->dropped, out->at - out->dropped);
        out->dropped = out->at;
    }
    return PLIM_OK;
}

plim_status write_buffer_flush(struct write_buffer *out, plim_error *error)
{
    size_t bytes = out->held;
    out->held = 0;
    return bytes ? write_out(out, out->bytes, bytes, error) : PLIM_OK;
}

/* What fills the whole buffer goes past it, in its size. */
plim_status write_buffer_put(struct write_buffer *out, const void *data, uint64_t bytes, plim_error *error)
{
    for (const uint8_t *from = data; bytes;) {
        size_t piece = (size_t)min_u64(bytes, out->capacity - out->held);
        if (piece == out->capacity) {
            TRY(write_out(out, from, piece, error));
        } else {
            memcpy(out->bytes + out->held, from, piece);
            out->held += piece;
            if (out->held == out->capacity)
                TRY(write_buffer_flush(out, error));
        }
        from += piece;
        bytes -= piece;
    }
    return PLIM_OK;
}
