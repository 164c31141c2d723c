/* record_writer.c - writes a TFRecord file, compressed if need be. */
#include "formats/records/record_writer.h"

#include <zlib.h>

#include "base/memory/budget_alloc.h"
#include "formats/containers/zlib_memory.h"
#include "formats/files/partial_file.h"
#include "formats/records/record_frame.h"

/* What zlib has made goes through this on its way. */
#define PACKED_BYTES ((size_t)16 * 1024)
/* deflate's state: windows of 2 * 32 KiB, tables and output of its own, with the value buffer before each block. */
#define DEFLATE_STATE_BYTES ((uint64_t)320 * 1024)

struct record_writer {
    struct budget *budget;
    struct partial_file file;
    int64_t count;
    struct zlib_memory memory;
    z_stream stream;
    uint8_t *packed; /* NULL: raw */
    bool deflating, finished;
    plim_status failed;
};

uint64_t record_writer_cost(enum record_packing packing)
{
    return budget_charge(sizeof(struct record_writer)) + PARTIAL_FILE_BYTES +
           (packing == RECORDS_RAW ? 0 : DEFLATE_STATE_BYTES + PACKED_BYTES);
}

/* ---- opening and closing -------------------------------------------------- */

/* At zlib's default level, which is TensorFlow's. */
static plim_status start_zlib(struct record_writer *writer, enum record_packing packing, plim_error *error)
{
    TRY(budget_alloc(&writer->packed, writer->budget, TAG_FORMATS, PACKED_BYTES, error));
    writer->memory.budget = writer->budget;
    zlib_memory_use(&writer->memory, &writer->stream);
    int bits = packing == RECORDS_GZIP ? 15 + 16 : 15;
    int result = deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY);
    writer->deflating = result == Z_OK;
    if (writer->memory.refused)
        return budget_refused(writer->budget, TAG_FORMATS, DEFLATE_STATE_BYTES, error);
    return writer->deflating ? PLIM_OK : fail(error, PLIM_INTERNAL, "zlib cannot start (%d)", result);
}

plim_status record_writer_open(struct record_writer **out, struct budget *budget, const char *path,
                               enum record_packing packing, plim_error *error)
{
    struct record_writer *writer;
    TRY(budget_alloc(&writer, budget, TAG_FORMATS, sizeof *writer, error));
    writer->budget = budget;
    plim_status status = packing == RECORDS_RAW ? PLIM_OK : start_zlib(writer, packing, error);
    if (status == PLIM_OK)
        status = partial_open(&writer->file, budget, path, error);
    return OPENED(out, writer, record_writer_close, status);
}

void record_writer_close(struct record_writer *writer)
{
    if (!writer)
        return;
    partial_abandon(&writer->file);
    if (writer->deflating)
        deflateEnd(&writer->stream);
    budget_give(writer->budget, TAG_FORMATS, writer->packed, PACKED_BYTES);
    budget_give(writer->budget, TAG_FORMATS, writer, sizeof *writer);
}

int64_t record_writer_count(const struct record_writer *writer)
{
    return writer->count;
}

/* ---- bytes ---------------------------------------------------------------- */

/* Everything that zlib makes of its input now; of the end too, with Z_FINISH. */
static plim_status deflate_all(struct record_writer *writer, int flush, plim_error *error)
{
    int result;
    do {
        writer->stream.next_out = writer->packed;
        writer->stream.avail_out = PACKED_BYTES;
        result = deflate(&writer->stream, flush);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return fail(error, PLIM_INTERNAL, "zlib cannot compress (%d)", result);
        TRY(partial_put(&writer->file, writer->packed, PACKED_BYTES - writer->stream.avail_out, error));
    } while (writer->stream.avail_in || (flush == Z_FINISH && result != Z_STREAM_END));
    return PLIM_OK;
}

static plim_status write_bytes(struct record_writer *writer, const void *data, uint64_t bytes, plim_error *error)
{
    if (!writer->packed)
        return partial_put(&writer->file, data, bytes, error);
    for (const uint8_t *p = data; bytes > 0;) {
        unsigned step = bytes < UINT32_MAX / 2 ? (unsigned)bytes : UINT32_MAX / 2;
        writer->stream.next_in = (uint8_t *)p;
        writer->stream.avail_in = step;
        TRY(deflate_all(writer, Z_NO_FLUSH, error));
        p += step;
        bytes -= step;
    }
    return PLIM_OK;
}

/* ---- records -------------------------------------------------------------- */

/* Remembers a failure and takes the partial file away at once. */
static plim_status note_failure(struct record_writer *writer, plim_status status)
{
    if (status != PLIM_OK) {
        writer->failed = status;
        partial_abandon(&writer->file);
    }
    return status;
}

static plim_status check_usable(const struct record_writer *writer, plim_error *error)
{
    if (writer->failed)
        return fail(error, writer->failed, "writing these records failed before");
    return writer->finished ? fail(error, PLIM_INTERNAL, "these records are written already") : PLIM_OK;
}

static plim_status add(struct record_writer *writer, const void *data, uint64_t bytes, plim_error *error)
{
    uint8_t head[RECORD_HEAD_BYTES];
    record_head_write(head, bytes);
    uint32_t foot = crc32c_mask(crc32c(0, data, bytes));
    TRY(write_bytes(writer, head, sizeof head, error));
    TRY(write_bytes(writer, data, bytes, error));
    TRY(write_bytes(writer, &foot, sizeof foot, error));
    writer->count++;
    return PLIM_OK;
}

plim_status record_writer_add(struct record_writer *writer, const void *data, uint64_t bytes, plim_error *error)
{
    TRY(check_usable(writer, error));
    return note_failure(writer, add(writer, data, bytes, error));
}

plim_status record_writer_finish(struct record_writer *writer, plim_error *error)
{
    TRY(check_usable(writer, error));
    if (writer->packed)
        TRY(note_failure(writer, deflate_all(writer, Z_FINISH, error)));
    TRY(note_failure(writer, partial_commit(&writer->file, error)));
    writer->finished = true;
    return PLIM_OK;
}
