/* zip_stream.c - members of a zip file in order, with their checksums; arrays of npz files. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/memory/budget_alloc.h"
#include "formats/containers/gzip.h"
#include "formats/containers/zip.h"
#include "formats/files/cursor.h"
#include "formats/files/scratch_file.h"

#define INPUT_BYTES ((size_t)32 * 1024)

struct zip_stream {
    struct zip *zip;
    struct gzip *gzip; /* NULL: stored */
    struct zip_member member;
    uint64_t given;
    uint32_t crc;
};

plim_status zip_stream_open(struct zip_stream **out, struct zip *zip, const struct zip_member *member,
                            plim_error *error)
{
    struct zip_stream *stream;
    TRY(budget_alloc(&stream, zip->budget, TAG_FORMATS, sizeof *stream, error));
    stream->zip = zip;
    stream->member = *member;
    stream->crc = (uint32_t)crc32(0, NULL, 0);
    plim_status status = zip_locate(&stream->member, zip, error);
    const struct deflated packed = {
        .file = zip->file, .at = stream->member.at, .bytes = member->packed_bytes, .frame = DEFLATE_RAW};
    if (status == PLIM_OK && member->method)
        status = gzip_open_part(&stream->gzip, zip->budget, &packed, INPUT_BYTES, member->bytes, error);
    return OPENED(out, stream, zip_stream_close, status);
}

void zip_stream_close(struct zip_stream *stream)
{
    if (!stream)
        return;
    gzip_close(stream->gzip);
    budget_give(stream->zip->budget, TAG_FORMATS, stream, sizeof *stream);
}

static plim_status damaged(const struct zip_stream *stream, plim_error *error, const char *what)
{
    return fail_byte(error, PLIM_BAD_DATA, file_path(stream->zip->file), stream->member.header_at, "%.200s: %s",
                     stream->member.name, what);
}

/* Behind the last byte: nothing more may come, and the checksum must be right. */
static plim_status check_end(struct zip_stream *stream, plim_error *error)
{
    uint8_t extra;
    size_t got = 0;
    if (stream->gzip)
        TRY(gzip_read(&got, stream->gzip, &extra, 1, error));
    if (got)
        return damaged(stream, error, "unpacks to more bytes than the directory declares");
    if (stream->crc != stream->member.crc)
        return damaged(stream, error, "the checksum of its bytes is not the directory's");
    return PLIM_OK;
}

plim_status zip_stream_read(size_t *got, struct zip_stream *stream, void *to, size_t bytes, plim_error *error)
{
    uint64_t left = stream->member.bytes - stream->given;
    size_t want = bytes < left ? bytes : (size_t)left, done = want;
    if (stream->gzip)
        TRY(gzip_read(&done, stream->gzip, to, want, error));
    else
        TRY(file_read(stream->zip->file, stream->member.at + stream->given, to, want, error));
    if (done < want)
        return damaged(stream, error, "unpacks to fewer bytes than the directory declares");
    for (size_t at = 0; at < done;) { /* zlib counts in 32 bits */
        size_t step = done - at < (size_t)1 << 30 ? done - at : (size_t)1 << 30;
        stream->crc = (uint32_t)crc32(stream->crc, (const uint8_t *)to + at, (unsigned)step);
        at += step;
    }
    stream->given += done;
    if (stream->given == stream->member.bytes && (done || bytes))
        TRY(check_end(stream, error));
    *got = done;
    return PLIM_OK;
}

plim_status zip_read(struct zip *zip, const struct zip_member *member, void *to, plim_error *error)
{
    struct zip_stream *stream;
    size_t got;
    TRY(zip_stream_open(&stream, zip, member, error));
    /* Asking for one more would be asking beyond: an empty member is checked by a read of one byte that gives none. */
    uint8_t none;
    plim_status status = member->bytes ? zip_stream_read(&got, stream, to, (size_t)member->bytes, error)
                                       : zip_stream_read(&got, stream, &none, 1, error);
    zip_stream_close(stream);
    return status;
}

static plim_status next_bytes(size_t *got, void *context, void *to, size_t bytes, plim_error *error)
{
    return zip_stream_read(got, context, to, bytes, error);
}

plim_status zip_unpack(struct zip *zip, const struct zip_member *member, struct file *to, uint64_t at,
                       plim_error *error)
{
    struct zip_stream *stream;
    uint64_t written;
    TRY(zip_stream_open(&stream, zip, member, error));
    const struct scratch_input input = {.more = next_bytes, .context = stream};
    plim_status status = scratch_fill(&written, to, at, zip->budget, &input, error);
    zip_stream_close(stream);
    return status;
}

/* ---- npz ---------------------------------------------------------------------- */

static plim_status read_unpacked(void *context, void *to, size_t bytes, plim_error *error)
{
    struct zip_stream *stream = context;
    size_t got;
    TRY(zip_stream_read(&got, stream, to, bytes, error));
    return got == bytes ? PLIM_OK : damaged(stream, error, "ends inside its header");
}

static plim_status read_header(struct npz_array *array, struct zip *zip, plim_error *error)
{
    struct zip_member *member = &array->member;
    struct zip_stream *stream;
    if (npz_is_stored(array))
        return npy_header_read_part(&array->header, zip->file, member->at, member->bytes, zip->budget, error);
    TRY(zip_stream_open(&stream, zip, member, error));
    struct npy_bytes bytes = {
        .read = read_unpacked, .context = stream, .path = file_path(zip->file), .present = member->bytes};
    plim_status status = npy_header_parse(&array->header, &bytes, zip->budget, error);
    zip_stream_close(stream);
    return status;
}

static bool is_array(struct npz_array *array)
{
    size_t bytes = strlen(array->member.name);
    if (bytes < 4 || memcmp(array->member.name + bytes - 4, ".npy", 4) != 0)
        return false;
    array->name_bytes = bytes - 4;
    return true;
}

plim_status npz_next(bool *more, struct npz_array *out, struct zip_position *position, struct zip *zip,
                     plim_error *error)
{
    do {
        TRY(zip_next(more, &out->member, position, zip, error));
        if (!*more)
            return PLIM_OK;
    } while (!is_array(out));
    TRY(zip_locate(&out->member, zip, error));
    return read_header(out, zip, error);
}

plim_status npz_find(struct npz_array *out, struct zip *zip, const char *name, plim_error *error)
{
    char whole[ZIP_NAME_MOST + 1];
    int bytes = snprintf(whole, sizeof whole, "%s.npy", name);
    if (bytes < 0 || (size_t)bytes >= sizeof whole)
        return fail_at(error, PLIM_BAD_JOB, file_path(zip->file), "a name of more than %d bytes", ZIP_NAME_MOST - 4);
    TRY(zip_find(&out->member, zip, whole, error));
    out->name_bytes = (size_t)bytes - 4;
    return read_header(out, zip, error);
}
