/* gzip.c - a gzip stream over zlib, with its memory from the budget.

   Invariants: 1. no more than most_bytes are ever given out; 2. the end of the
   stream is reported only after zlib has checked the member's CRC and length. */
#include "formats/gzip.h"

#include <zlib.h>

#include "formats/cursor.h"

/* Room before each of zlib's blocks for its size: zfree is not told it. */
#define BLOCK_HEAD 64

struct gzip {
    struct budget *budget;
    struct file *file;
    uint8_t *buffer;
    size_t buffer_bytes;
    uint64_t file_bytes, next; /* size of the file; first byte not yet in the buffer */
    uint64_t most_bytes, given;
    z_stream stream;
    bool ready, ended, refused;
};

static void *zlib_take(void *context, unsigned items, unsigned size)
{
    struct gzip *gzip = context;
    size_t bytes = (size_t)items * size + BLOCK_HEAD;
    char *block = budget_take(gzip->budget, TAG_FORMATS, bytes);
    if (!block) {
        gzip->refused = true;
        return NULL;
    }
    *(size_t *)block = bytes;
    return block + BLOCK_HEAD;
}

static void zlib_give(void *context, void *address)
{
    struct gzip *gzip = context;
    char *block = (char *)address - BLOCK_HEAD;
    budget_give(gzip->budget, TAG_FORMATS, block, *(size_t *)block);
}

/* Window bits 15, and 16 more for gzip framing only. */
static plim_status start_zlib(struct gzip *gzip, plim_error *error)
{
    gzip->stream.zalloc = zlib_take;
    gzip->stream.zfree = zlib_give;
    gzip->stream.opaque = gzip;
    int result = inflateInit2(&gzip->stream, 15 + 16);
    if (result == Z_OK) {
        gzip->ready = true;
        return PLIM_OK;
    }
    if (gzip->refused)
        return budget_refused(gzip->budget, TAG_FORMATS, GZIP_STATE_BYTES, error);
    return fail(error, PLIM_INTERNAL, "zlib cannot start (%d)", result);
}

plim_status gzip_open(struct gzip **out, struct budget *budget, struct file *file, size_t buffer_bytes,
                      uint64_t most_bytes, plim_error *error)
{
    uint64_t file_bytes;
    TRY(file_size(&file_bytes, file, error));
    struct gzip *gzip = budget_take(budget, TAG_FORMATS, sizeof *gzip);
    if (!gzip)
        return budget_refused(budget, TAG_FORMATS, sizeof *gzip, error);
    gzip->budget = budget;
    gzip->file = file;
    gzip->file_bytes = file_bytes;
    gzip->most_bytes = most_bytes;
    gzip->buffer_bytes = buffer_bytes;
    gzip->buffer = budget_take(budget, TAG_FORMATS, buffer_bytes);
    plim_status status =
        gzip->buffer ? start_zlib(gzip, error) : budget_refused(budget, TAG_FORMATS, buffer_bytes, error);
    if (status != PLIM_OK) {
        gzip_close(gzip);
        return status;
    }
    *out = gzip;
    return PLIM_OK;
}

void gzip_close(struct gzip *gzip)
{
    if (!gzip)
        return;
    if (gzip->ready)
        inflateEnd(&gzip->stream);
    budget_give(gzip->budget, TAG_FORMATS, gzip->buffer, gzip->buffer_bytes);
    budget_give(gzip->budget, TAG_FORMATS, gzip, sizeof *gzip);
}

uint64_t gzip_at(const struct gzip *gzip)
{
    return gzip->next - gzip->stream.avail_in;
}

static plim_status fill(struct gzip *gzip, plim_error *error)
{
    uint64_t left = gzip->file_bytes - gzip->next;
    size_t bytes = left < gzip->buffer_bytes ? (size_t)left : gzip->buffer_bytes;
    TRY(file_read(gzip->file, gzip->next, gzip->buffer, bytes, error));
    gzip->next += bytes;
    gzip->stream.next_in = gzip->buffer;
    gzip->stream.avail_in = (unsigned)bytes;
    return PLIM_OK;
}

/* After the end of a member: the end of the file, or another member. */
static plim_status next_member(struct gzip *gzip, plim_error *error)
{
    if (gzip_at(gzip) == gzip->file_bytes) {
        gzip->ended = true;
        return PLIM_OK;
    }
    if (!gzip->stream.avail_in)
        TRY(fill(gzip, error));
    if (gzip->stream.next_in[0] != 0x1f)
        return fail_byte(error, PLIM_BAD_DATA, file_path(gzip->file), gzip_at(gzip),
                         "bytes that are not gzip follow the compressed data");
    if (inflateReset(&gzip->stream) != Z_OK)
        return fail(error, PLIM_INTERNAL, "zlib cannot start again");
    return PLIM_OK;
}

/* One call of zlib: takes some input, gives some output. */
static plim_status pump(struct gzip *gzip, plim_error *error)
{
    z_stream *stream = &gzip->stream;
    const char *path = file_path(gzip->file);
    if (!stream->avail_in && gzip->next < gzip->file_bytes)
        TRY(fill(gzip, error));
    if (!stream->avail_in)
        return fail_byte(error, PLIM_BAD_DATA, path, gzip->file_bytes, "the gzip file ends inside its data");
    int result = inflate(stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
        return next_member(gzip, error);
    if (result == Z_OK || result == Z_BUF_ERROR)
        return PLIM_OK;
    if (result == Z_MEM_ERROR && gzip->refused)
        return budget_refused(gzip->budget, TAG_FORMATS, GZIP_STATE_BYTES, error);
    return fail_byte(error, PLIM_BAD_DATA, path, gzip_at(gzip), "bad gzip data: %s",
                     stream->msg ? stream->msg : "it needs a dictionary");
}

plim_status gzip_read(size_t *got, struct gzip *gzip, void *to, size_t bytes, plim_error *error)
{
    size_t done = 0;
    while (done < bytes && !gzip->ended) {
        /* One byte past the cap is asked for, so that too much is seen and not merely cut. */
        uint64_t allowed = gzip->most_bytes - gzip->given;
        uint8_t extra;
        size_t want = bytes - done < allowed ? bytes - done : (size_t)allowed;
        if (want > UINT32_MAX)
            want = UINT32_MAX;
        gzip->stream.next_out = want ? (uint8_t *)to + done : &extra;
        gzip->stream.avail_out = want ? (unsigned)want : 1;
        unsigned before = gzip->stream.avail_out;
        TRY(pump(gzip, error));
        size_t made = before - gzip->stream.avail_out;
        if (made && !want)
            return fail_byte(error, PLIM_BAD_DATA, file_path(gzip->file), gzip_at(gzip),
                             "unpacks to more than the %llu bytes that its header declares",
                             (unsigned long long)gzip->most_bytes);
        done += made;
        gzip->given += made;
    }
    *got = done;
    return PLIM_OK;
}
