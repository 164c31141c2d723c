/* gzip.c - a gzip stream (or zlib's, or a bare one) over zlib, with its memory from the budget.

   Invariants: 1. no more than most_bytes are ever given out; 2. the end of the
   stream is reported only after zlib has checked the member's CRC and length. */
#include "formats/containers/gzip.h"

#include <zlib.h>

#include "base/memory/budget_alloc.h"
#include "formats/containers/zlib_memory.h"
#include "formats/files/cursor.h"

static const char *const frame_names[] = {[DEFLATE_GZIP] = "gzip", [DEFLATE_ZLIB] = "zlib", [DEFLATE_RAW] = "deflated"};

struct gzip {
    struct budget *budget;
    struct file *file;
    uint8_t *buffer;
    size_t buffer_bytes;
    enum deflate_frame frame;
    uint64_t file_bytes, next; /* where the data end in the file; first byte not yet in the buffer */
    uint64_t most_bytes, given;
    struct zlib_memory memory;
    z_stream stream;
    bool ready, ended;
};

static plim_status start_zlib(struct gzip *gzip, plim_error *error)
{
    /* A window of 15 bits; zlib says the framing with the same number. */
    static const int bits[] = {[DEFLATE_GZIP] = 15 + 16, [DEFLATE_ZLIB] = 15, [DEFLATE_RAW] = -15};
    zlib_memory_use(&gzip->memory, &gzip->stream);
    int result = inflateInit2(&gzip->stream, bits[gzip->frame]);
    if (result == Z_OK) {
        gzip->ready = true;
        return PLIM_OK;
    }
    if (gzip->memory.refused)
        return budget_refused(gzip->budget, TAG_FORMATS, GZIP_STATE_BYTES, error);
    return fail(error, PLIM_INTERNAL, "zlib cannot start (%d)", result);
}

plim_status gzip_open(struct gzip **out, struct budget *budget, struct file *file, size_t buffer_bytes,
                      uint64_t most_bytes, plim_error *error)
{
    struct deflated whole = {.file = file, .frame = DEFLATE_GZIP};
    TRY(file_size(&whole.bytes, file, error));
    return gzip_open_part(out, budget, &whole, buffer_bytes, most_bytes, error);
}

plim_status gzip_open_part(struct gzip **out, struct budget *budget, const struct deflated *part, size_t buffer_bytes,
                           uint64_t most_bytes, plim_error *error)
{
    struct gzip *gzip;
    TRY(budget_alloc(&gzip, budget, TAG_FORMATS, sizeof *gzip, error));
    gzip->budget = gzip->memory.budget = budget;
    gzip->file = part->file;
    gzip->frame = part->frame;
    gzip->next = part->at;
    gzip->file_bytes = part->at + part->bytes;
    gzip->most_bytes = most_bytes;
    gzip->buffer_bytes = buffer_bytes;
    gzip->buffer = budget_take(budget, TAG_FORMATS, buffer_bytes);
    return OPENED(out, gzip, gzip_close,
                  gzip->buffer ? start_zlib(gzip, error) : budget_refused(budget, TAG_FORMATS, buffer_bytes, error));
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
    if (gzip->frame != DEFLATE_GZIP || gzip->stream.next_in[0] != 0x1f)
        return fail_byte(error, PLIM_BAD_DATA, file_path(gzip->file), gzip_at(gzip),
                         "bytes that are not %s follow the compressed data", frame_names[gzip->frame]);
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
    /* Without input zlib may still have output: of bare data it takes the last byte early. */
    bool dry = !stream->avail_in;
    int result = inflate(stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
        return next_member(gzip, error);
    if (dry && result == Z_BUF_ERROR)
        return fail_byte(error, PLIM_BAD_DATA, path, gzip->file_bytes, "the %s data end too early",
                         frame_names[gzip->frame]);
    if (result == Z_OK || result == Z_BUF_ERROR)
        return PLIM_OK;
    if (result == Z_MEM_ERROR && gzip->memory.refused)
        return budget_refused(gzip->budget, TAG_FORMATS, GZIP_STATE_BYTES, error);
    return fail_byte(error, PLIM_BAD_DATA, path, gzip_at(gzip), "bad %s data: %s", frame_names[gzip->frame],
                     stream->msg ? stream->msg : "it needs a dictionary");
}

/* One call of zlib into [to, to + bytes); *made is set on failure, too. */
static plim_status step(size_t *made, struct gzip *gzip, uint8_t *to, size_t bytes, plim_error *error)
{
    /* One byte past the cap is asked for, so that too much is seen and not merely cut. */
    uint64_t allowed = gzip->most_bytes - gzip->given;
    uint8_t extra;
    size_t want = bytes < allowed ? bytes : (size_t)allowed;
    if (want > UINT32_MAX)
        want = UINT32_MAX;
    gzip->stream.next_out = want ? to : &extra;
    gzip->stream.avail_out = want ? (unsigned)want : 1;
    unsigned before = gzip->stream.avail_out;
    plim_status status = pump(gzip, error);
    *made = want ? before - gzip->stream.avail_out : 0;
    if (!want && gzip->stream.avail_out == 0)
        return fail_byte(error, PLIM_BAD_DATA, file_path(gzip->file), gzip_at(gzip),
                         "unpacks to more than the %llu bytes that it may", (unsigned long long)gzip->most_bytes);
    gzip->given += *made;
    return status;
}

/* As many as there are before the end or a failure; *done is set on failure, too. */
static plim_status unpack(size_t *done, struct gzip *gzip, uint8_t *to, size_t bytes, plim_error *error)
{
    plim_status status = PLIM_OK;
    size_t made;
    for (*done = 0; *done < bytes && !gzip->ended && status == PLIM_OK; *done += made)
        status = step(&made, gzip, to + *done, bytes - *done, error);
    return status;
}

plim_status gzip_read(size_t *got, struct gzip *gzip, void *to, size_t bytes, plim_error *error)
{
    size_t done;
    TRY(unpack(&done, gzip, to, bytes, error));
    *got = done;
    return PLIM_OK;
}

plim_status gzip_read_some(size_t *got, struct gzip *gzip, void *to, size_t bytes, plim_error *error)
{
    size_t done;
    plim_status status = unpack(&done, gzip, to, bytes, error);
    if (status != PLIM_OK && done == 0)
        return status;
    *got = done;
    return PLIM_OK;
}
