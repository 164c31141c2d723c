/* byte_stream.c - the bytes of a file in order, unpacked where the file is gzip or zlib. */
#include "formats/containers/byte_stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory/budget_alloc.h"
#include "formats/containers/gzip.h"
#include "formats/files/cursor.h"

#define INPUT_BYTES ((size_t)64 * 1024)
#define PROBE_BYTES 1024
#define SKIP_BYTES  4096
/* The file's own struct, with the longest path. */
#define FILE_STRUCT_BYTES ((uint64_t)8192)

static plim_status start_unpacking(struct byte_stream *stream, plim_error *error)
{
    struct deflated whole = {.file = stream->file, .frame = stream->frame};
    uint64_t most;
    TRY(file_size(&whole.bytes, stream->file, error));
    most = whole.bytes > UINT64_MAX / GZIP_MOST_RATIO ? UINT64_MAX : whole.bytes * GZIP_MOST_RATIO;
    gzip_close(stream->gzip);
    stream->gzip = NULL;
    stream->at = 0;
    return gzip_open_part(&stream->gzip, stream->budget, &whole, INPUT_BYTES, most, error);
}

static bool has_zlib_mark(const uint8_t *head, size_t bytes)
{
    return bytes >= 2 && (head[0] & 15) == 8 && head[0] >> 4 <= 7 && (head[0] << 8 | head[1]) % 31 == 0 &&
           !(head[1] & 0x20);
}

bool byte_stream_may_be(enum compression compression, const uint8_t *head, size_t bytes)
{
    static const uint8_t gzip[] = {0x1f, 0x8b, 8};
    size_t some = bytes < sizeof gzip ? bytes : sizeof gzip;
    bool same = memcmp(head, gzip, some) == 0;
    if (compression == COMPRESSION_NONE)
        return some < sizeof gzip || !same;
    if (compression == COMPRESSION_GZIP)
        return same; /* what was cut within it is damaged */
    return compression == COMPRESSION_AUTO || bytes < 2 || has_zlib_mark(head, bytes);
}

/* Text may begin with the two bytes that mark zlib ("x^2"): what does not unpack is not zlib. */
static plim_status looks_like_zlib(bool *out, struct byte_stream *stream, const uint8_t *head, size_t bytes,
                                   plim_error *error)
{
    uint8_t probe[PROBE_BYTES];
    size_t got;
    *out = false;
    if (!has_zlib_mark(head, bytes))
        return PLIM_OK;
    stream->frame = DEFLATE_ZLIB;
    TRY(start_unpacking(stream, error));
    plim_status status = gzip_read(&got, stream->gzip, probe, sizeof probe, error);
    *out = status == PLIM_OK;
    return status == PLIM_BAD_DATA ? PLIM_OK : status;
}

static plim_status choose(enum compression *kind, struct byte_stream *stream, plim_error *error)
{
    uint8_t head[3];
    size_t got;
    bool zlib;
    TRY(file_read_some(&got, stream->file, 0, head, sizeof head, error));
    if (!byte_stream_may_be(COMPRESSION_NONE, head, got)) {
        *kind = COMPRESSION_GZIP;
        return PLIM_OK;
    }
    TRY(looks_like_zlib(&zlib, stream, head, got, error));
    *kind = zlib ? COMPRESSION_ZLIB : COMPRESSION_NONE;
    return PLIM_OK;
}

static plim_status start(struct byte_stream *stream, const char *path, enum compression kind, plim_error *error)
{
    TRY(file_open(&stream->file, stream->budget, path, FILE_READ, error));
    TRY(file_size(&stream->size, stream->file, error));
    if (kind == COMPRESSION_AUTO)
        TRY(choose(&kind, stream, error));
    stream->frame = kind == COMPRESSION_ZLIB ? DEFLATE_ZLIB : DEFLATE_GZIP;
    stream->packed = kind != COMPRESSION_NONE;
    if (stream->packed)
        return start_unpacking(stream, error);
    gzip_close(stream->gzip);
    stream->gzip = NULL;
    return PLIM_OK;
}

plim_status byte_stream_open(struct byte_stream **out, struct budget *budget, const char *path,
                             enum compression compression, plim_error *error)
{
    struct byte_stream *stream;
    TRY(budget_alloc(&stream, budget, TAG_FORMATS, sizeof *stream, error));
    stream->budget = budget;
    return OPENED(out, stream, byte_stream_close, start(stream, path, compression, error));
}

void byte_stream_close(struct byte_stream *stream)
{
    if (!stream)
        return;
    gzip_close(stream->gzip);
    file_close(stream->file);
    budget_give(stream->budget, TAG_FORMATS, stream, sizeof *stream);
}

/* A file that somebody cuts while we read it would else look like one that ends here. */
static plim_status check_end(const struct byte_stream *stream, plim_error *error)
{
    if (stream->at >= stream->size)
        return PLIM_OK;
    return fail_byte(error, PLIM_IO, file_path(stream->file), stream->at,
                     "the file ends here, and had %llu bytes when it was opened: it was cut while it was read",
                     (unsigned long long)stream->size);
}

plim_status byte_stream_read(size_t *got, struct byte_stream *stream, void *to, size_t bytes, plim_error *error)
{
    if (stream->packed)
        TRY(gzip_read(got, stream->gzip, to, bytes, error));
    else
        TRY(file_read_some(got, stream->file, stream->at, to, bytes, error));
    stream->at += *got;
    return *got < bytes && !stream->packed ? check_end(stream, error) : PLIM_OK;
}

plim_status byte_stream_read_some(size_t *got, struct byte_stream *stream, void *to, size_t bytes, plim_error *error)
{
    if (!stream->packed)
        return byte_stream_read(got, stream, to, bytes, error);
    TRY(gzip_read_some(got, stream->gzip, to, bytes, error));
    stream->at += *got;
    return PLIM_OK;
}

static plim_status beyond(const struct byte_stream *stream, uint64_t position, plim_error *error)
{
    return byte_stream_fail(stream, stream->at, error, "the data end here; position %llu lies beyond",
                            (unsigned long long)position);
}

static plim_status seek_raw(struct byte_stream *stream, uint64_t position, plim_error *error)
{
    uint64_t bytes;
    TRY(file_size(&bytes, stream->file, error));
    stream->at = bytes < position ? bytes : position;
    return bytes < position ? beyond(stream, position, error) : PLIM_OK;
}

plim_status byte_stream_seek(struct byte_stream *stream, uint64_t position, plim_error *error)
{
    uint8_t passed[SKIP_BYTES];
    if (position == stream->at)
        return PLIM_OK;
    if (!stream->packed)
        return seek_raw(stream, position, error);
    if (position < stream->at)
        return fail(error, PLIM_INTERNAL, "a compressed stream is not read again from byte %llu",
                    (unsigned long long)position);
    while (stream->at < position) {
        uint64_t left = position - stream->at;
        size_t got, step = left < sizeof passed ? (size_t)left : sizeof passed;
        TRY(byte_stream_read(&got, stream, passed, step, error));
        if (got < step)
            return beyond(stream, position, error);
    }
    return PLIM_OK;
}

enum compression byte_stream_compression(const struct byte_stream *stream)
{
    if (!stream->packed)
        return COMPRESSION_NONE;
    return stream->frame == DEFLATE_ZLIB ? COMPRESSION_ZLIB : COMPRESSION_GZIP;
}

uint64_t byte_stream_cost(enum compression compression)
{
    uint64_t own = budget_charge(sizeof(struct byte_stream)) + FILE_STRUCT_BYTES;
    return compression == COMPRESSION_NONE ? own : own + BYTE_STREAM_PACKED_BYTES;
}

plim_status byte_stream_fail(const struct byte_stream *stream, uint64_t position, plim_error *error, const char *format,
                             ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return fail_byte(error, PLIM_BAD_DATA, file_path(stream->file), position, "%s%s",
                     stream->packed ? "(of the unpacked data) " : "", message);
}

/* ---- through a buffer ---- */

plim_status read_buffer_fill(struct read_buffer *buffer, plim_error *error)
{
    size_t left = buffer->end - buffer->next, got;
    memmove(buffer->bytes, buffer->bytes + buffer->next, left);
    buffer->base += buffer->next;
    buffer->next = 0;
    buffer->end = left;
    TRY(byte_stream_read_some(&got, buffer->stream, buffer->bytes + left, buffer->capacity - left, error));
    buffer->at_end = got == 0;
    buffer->end += got;
    return PLIM_OK;
}

plim_status read_buffer_give_up(struct read_buffer *buffer, plim_status status)
{
    if (status == PLIM_BAD_DATA) {
        buffer->next = buffer->end;
        buffer->at_end = true;
    }
    return status;
}
