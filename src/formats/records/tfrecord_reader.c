/* tfrecord_reader.c - the records of one TFRecord file, one after another. */
#include "base/memory/budget_alloc.h"
#include "base/numbers/checked.h"
#include "formats/files/cursor.h"
#include "formats/records/tfrecord_reader_inside.h"

#define FIND_MOST    1000000             /* records that are hopped over to find the place of one */
#define INPUT_BYTES  ((size_t)64 * 1024) /* of compressed data */
#define BUFFER_LEAST ((size_t)4096)
#define EFFORT_LEAST ((uint64_t)16 * 1024 * 1024)
/* The open file's own struct, its path included. */
#define FILE_BYTES ((uint64_t)8192)

/* ---- opening ------------------------------------------------------------- */

static size_t buffer_size(size_t bytes)
{
    return bytes < BUFFER_LEAST ? BUFFER_LEAST : bytes;
}

uint64_t tfrecord_reader_cost(size_t buffer_bytes)
{
    return budget_charge(sizeof(struct tfrecord_reader)) + budget_charge(buffer_size(buffer_bytes)) + FILE_BYTES +
           GZIP_STATE_BYTES + budget_charge(INPUT_BYTES);
}

static plim_status fill(struct tfrecord_reader *reader, plim_error *error);

static plim_status start_unpacking(struct tfrecord_reader *reader, enum deflate_frame frame, plim_error *error)
{
    const struct deflated whole = {.file = reader->file, .bytes = reader->total, .frame = frame};
    return gzip_open_part(&reader->gzip, reader->budget, &whole, INPUT_BYTES, UINT64_MAX, error);
}

/* A first record of 376 bytes whose length is damaged begins as zlib does: what does not unpack is not zlib. */
static plim_status try_zlib(struct tfrecord_reader *reader, plim_error *error)
{
    TRY(start_unpacking(reader, DEFLATE_ZLIB, error));
    plim_status status = fill(reader, error);
    if (status != PLIM_BAD_DATA)
        return status;
    gzip_close(reader->gzip);
    reader->gzip = NULL;
    return PLIM_OK;
}

static plim_status detect(struct tfrecord_reader *reader, plim_error *error)
{
    uint8_t head[RECORD_HEAD_BYTES];
    size_t got;
    TRY(file_read_some(&got, reader->file, 0, head, sizeof head, error));
    if (got == sizeof head && record_head_holds(head))
        return PLIM_OK;
    if (got >= 3 && memcmp(head, "\x1f\x8b\x08", 3) == 0)
        return start_unpacking(reader, DEFLATE_GZIP, error);
    if (got >= 2 && (head[0] & 15) == 8 && head[0] >> 4 <= 7 && (head[0] << 8 | head[1]) % 31 == 0)
        return try_zlib(reader, error);
    return PLIM_OK;
}

static plim_status start(struct tfrecord_reader *reader, const char *path, plim_error *error)
{
    TRY(budget_alloc(&reader->buffer, reader->budget, TAG_FORMATS, reader->buffer_bytes, error));
    TRY(file_open(&reader->file, reader->budget, path, FILE_READ, error));
    TRY(file_size(&reader->total, reader->file, error));
    file_expect_sequential(reader->file);
    reader->effort = EFFORT_LEAST + (reader->total < UINT64_MAX / 16 ? 8 * reader->total : UINT64_MAX / 2);
    return detect(reader, error);
}

plim_status tfrecord_reader_open(struct tfrecord_reader **out, struct budget *budget, const char *path,
                                 size_t buffer_bytes, plim_error *error)
{
    struct tfrecord_reader *reader;
    TRY(budget_alloc(&reader, budget, TAG_FORMATS, sizeof *reader, error));
    reader->budget = budget;
    reader->buffer_bytes = buffer_size(buffer_bytes);
    return OPENED(out, reader, tfrecord_reader_close, start(reader, path, error));
}

void tfrecord_reader_close(struct tfrecord_reader *reader)
{
    if (!reader)
        return;
    gzip_close(reader->gzip);
    file_close(reader->file);
    budget_give(reader->budget, TAG_FORMATS, reader->buffer, reader->buffer_bytes);
    budget_give(reader->budget, TAG_FORMATS, reader, sizeof *reader);
}

const char *tfrecord_reader_path(const struct tfrecord_reader *reader)
{
    return file_path(reader->file);
}

bool tfrecord_reader_is_packed(const struct tfrecord_reader *reader)
{
    return reader->gzip != NULL;
}

void tfrecord_reader_progress(uint64_t *done, uint64_t *total, const struct tfrecord_reader *reader)
{
    *done = reader->gzip ? gzip_at(reader->gzip) : reader->at;
    *total = reader->total;
}

/* ---- bytes --------------------------------------------------------------- */

/* The next bytes of the file behind `behind` more of them. */
static plim_status fetch(size_t *got, struct tfrecord_reader *reader, uint8_t *to, size_t bytes, uint64_t behind,
                         plim_error *error)
{
    if (reader->gzip)
        return gzip_read_some(got, reader->gzip, to, bytes, error);
    uint64_t from = reader->at + behind, left = reader->total - from;
    size_t wanted = left < bytes ? (size_t)left : bytes;
    TRY(file_read_some(got, reader->file, from, to, wanted, error));
    if (*got == wanted)
        return PLIM_OK;
    return fail_byte(error, PLIM_IO, file_path(reader->file), from + *got,
                     "the file ends here, and had %llu bytes when it was opened: it was cut while it was read",
                     (unsigned long long)reader->total);
}

static plim_status fill(struct tfrecord_reader *reader, plim_error *error)
{
    size_t keep = reader_held(reader), got;
    if (reader->begin)
        memmove(reader->buffer, reader_cursor(reader), keep);
    reader->begin = 0;
    reader->end = keep;
    TRY(fetch(&got, reader, reader->buffer + keep, reader->buffer_bytes - keep, keep, error));
    reader->end += got;
    reader->ended = got == 0;
    return PLIM_OK;
}

plim_status reader_want(struct tfrecord_reader *reader, size_t bytes, plim_error *error)
{
    while (reader_held(reader) < bytes && !reader->ended)
        TRY(fill(reader, error));
    return PLIM_OK;
}

void reader_jump(struct tfrecord_reader *reader, uint64_t to)
{
    uint64_t first = reader->at - reader->begin;
    bool inside = to >= first && to - first <= reader->end;
    reader->begin = inside ? (size_t)(to - first) : 0;
    reader->end = inside ? reader->end : 0;
    reader->at = to;
    reader->ended = inside && reader->ended;
}

plim_status reader_advance(bool *there, struct tfrecord_reader *reader, uint64_t bytes, plim_error *error)
{
    *there = true;
    if (!reader->gzip) {
        *there = bytes <= reader->total - reader->at;
        reader_jump(reader, *there ? reader->at + bytes : reader->total);
        return PLIM_OK;
    }
    while (bytes > reader_held(reader) && !reader->ended) {
        bytes -= reader_held(reader);
        reader_pass(reader, reader_held(reader));
        TRY(fill(reader, error));
    }
    *there = bytes <= reader_held(reader);
    reader_pass(reader, *there ? (size_t)bytes : reader_held(reader));
    return PLIM_OK;
}

/* ---- errors ---------------------------------------------------------------- */

static const char *whose(const struct tfrecord_reader *reader)
{
    return reader->gzip ? " (a byte of the unpacked data)" : "";
}

static plim_status ends_inside(const struct tfrecord_reader *reader, uint64_t at, uint64_t missing, plim_error *error)
{
    return fail_byte(error, PLIM_BAD_DATA, tfrecord_reader_path(reader), at,
                     "record %lld%s: the file ends inside it, %llu bytes too early", (long long)reader->record,
                     whose(reader), (unsigned long long)missing);
}

static plim_status bad_head(const struct tfrecord_reader *reader, plim_error *error)
{
    const uint8_t *head = reader_cursor(reader);
    fail_byte(error, PLIM_BAD_DATA, tfrecord_reader_path(reader), reader->at,
              "record %lld%s: checksum of its length 0x%08x stored, 0x%08x computed", (long long)reader->record,
              whose(reader), stored_checksum(head + 8), crc32c_mask(crc32c(0, head, 8)));
    if (reader->at == 0 && !reader->gzip)
        return hint(error, PLIM_BAD_DATA, "it is the first one: this may be no TFRecord file");
    return PLIM_BAD_DATA;
}

static plim_status bad_data(const struct tfrecord_reader *reader, uint64_t at, const uint8_t *data, uint64_t bytes,
                            const uint8_t *foot, plim_error *error)
{
    return fail_byte(error, PLIM_BAD_DATA, tfrecord_reader_path(reader), at,
                     "record %lld%s: checksum of its %llu bytes 0x%08x stored, 0x%08x computed",
                     (long long)reader->record, whose(reader), (unsigned long long)bytes, stored_checksum(foot),
                     crc32c_mask(crc32c(0, data, bytes)));
}

plim_status tfrecord_reader_too_large(const struct tfrecord_reader *reader, plim_error *error)
{
    uint64_t bytes = reader_held(reader) >= RECORD_HEAD_BYTES ? record_length(reader_cursor(reader)) : 0;
    fail_byte(error, PLIM_OVER_BUDGET, tfrecord_reader_path(reader), reader->at,
              "record %lld%s has %llu bytes: more than there is room for", (long long)reader->record, whose(reader),
              (unsigned long long)bytes);
    return hint(error, PLIM_OVER_BUDGET, "a larger budget makes room for it");
}

/* ---- records ---------------------------------------------------------------- */

/* The record at the cursor, if it lies whole in the buffer and its checksums hold. The way of nearly all records. */
static inline bool take_whole(struct string *record, struct tfrecord_reader *reader)
{
    const uint8_t *head = reader_cursor(reader), *data = head + RECORD_HEAD_BYTES;
    size_t there = reader_held(reader);
    if (there < RECORD_FRAME_BYTES || !record_head_holds(head))
        return false;
    uint64_t bytes = record_length(head);
    if (bytes > there - RECORD_FRAME_BYTES || !record_checksum_holds(data, bytes, data + bytes))
        return false;
    *record = (struct string){.data = data, .bytes = bytes};
    reader_pass(reader, RECORD_FRAME_BYTES + (size_t)bytes);
    reader->record++;
    return true;
}

enum ahead { AHEAD_END, AHEAD_WHOLE, AHEAD_LARGE };

/* The head of the next record, checked. */
static plim_status look_at_head(bool *end, struct tfrecord_reader *reader, plim_error *error)
{
    TRY(reader_want(reader, RECORD_HEAD_BYTES, error));
    size_t there = reader_held(reader);
    *end = there == 0;
    if (*end)
        return PLIM_OK;
    if (there < RECORD_HEAD_BYTES)
        return ends_inside(reader, reader->at + there, RECORD_HEAD_BYTES - there, error);
    if (!record_head_holds(reader_cursor(reader)))
        return bad_head(reader, error);
    uint64_t left = reader->total - reader->at - RECORD_HEAD_BYTES, bytes = record_length(reader_cursor(reader));
    if (!reader->gzip && (left < RECORD_FOOT_BYTES || bytes > left - RECORD_FOOT_BYTES))
        return ends_inside(reader, reader->total, add_most(bytes, RECORD_FOOT_BYTES) - left, error);
    return PLIM_OK;
}

/* What comes next, in the buffer if it fits there. */
static plim_status look_ahead(enum ahead *ahead, struct tfrecord_reader *reader, plim_error *error)
{
    bool end;
    TRY(look_at_head(&end, reader, error));
    *ahead = end ? AHEAD_END : AHEAD_LARGE;
    if (end || record_length(reader_cursor(reader)) > reader->buffer_bytes - RECORD_FRAME_BYTES)
        return PLIM_OK;
    size_t bytes = RECORD_FRAME_BYTES + (size_t)record_length(reader_cursor(reader));
    TRY(reader_want(reader, bytes, error));
    if (reader_held(reader) < bytes)
        return ends_inside(reader, reader->at + reader_held(reader), bytes - reader_held(reader), error);
    *ahead = AHEAD_WHOLE;
    return PLIM_OK;
}

static plim_status checksum_failed(const struct tfrecord_reader *reader, plim_error *error)
{
    const uint8_t *data = reader_cursor(reader) + RECORD_HEAD_BYTES;
    uint64_t bytes = record_length(reader_cursor(reader));
    return bad_data(reader, reader->at, data, bytes, data + bytes, error);
}

/* `bytes` from `behind` the cursor on, out of the buffer and then out of the file; fewer at its end. */
static plim_status gather(uint64_t *got, struct tfrecord_reader *reader, uint8_t *to, uint64_t bytes, uint64_t behind,
                          plim_error *error)
{
    uint64_t done = 0;
    if (behind < reader_held(reader)) {
        done = reader_held(reader) - behind < bytes ? reader_held(reader) - behind : bytes;
        memcpy(to, reader_cursor(reader) + behind, (size_t)done);
    }
    while (done < bytes) {
        size_t step;
        TRY(fetch(&step, reader, to + done, (size_t)(bytes - done), behind + done, error));
        if (step == 0)
            break;
        done += step;
    }
    *got = done;
    return PLIM_OK;
}

/* A record larger than the buffer: its data at `to`. */
static plim_status gather_large(struct tfrecord_reader *reader, uint8_t *to, uint64_t bytes, plim_error *error)
{
    uint8_t foot[RECORD_FOOT_BYTES];
    uint64_t got, got_foot = 0, at = reader->at;
    TRY(gather(&got, reader, to, bytes, RECORD_HEAD_BYTES, error));
    if (got == bytes)
        TRY(gather(&got_foot, reader, foot, sizeof foot, RECORD_HEAD_BYTES + bytes, error));
    if (got_foot < sizeof foot)
        return ends_inside(reader, at + RECORD_HEAD_BYTES + got + got_foot, bytes - got + sizeof foot - got_foot,
                           error);
    if (!record_checksum_holds(to, bytes, foot))
        return bad_data(reader, at, to, bytes, foot, error);
    return PLIM_OK;
}

static plim_status read_large(struct string *record, struct tfrecord_reader *reader, struct value_buffer *values,
                              plim_error *error)
{
    uint64_t bytes = record_length(reader_cursor(reader)), before = values ? values->used : 0;
    if (!values)
        return tfrecord_reader_too_large(reader, error);
    uint8_t *to = value_buffer_take_bytes(values, bytes);
    if (!to)
        return PLIM_OK;
    plim_status status = gather_large(reader, to, bytes, error);
    if (reader->gzip || status == PLIM_OK) {
        reader->at += RECORD_FRAME_BYTES + bytes;
        reader->begin = reader->end = 0;
    }
    if (status != PLIM_OK) {
        values->used = before;
        reader->passed = reader->gzip != NULL;
        return status;
    }
    *record = (struct string){.data = to, .bytes = bytes};
    reader->record++;
    return PLIM_OK;
}

static int64_t take_many(struct string *records, struct tfrecord_reader *reader, int64_t most)
{
    int64_t n = 0;
    while (n < most && take_whole(&records[n], reader))
        n++;
    return n;
}

plim_status tfrecord_reader_read(int64_t *count, struct string *records, struct tfrecord_reader *reader, int64_t most,
                                 struct value_buffer *values, plim_error *error)
{
    enum ahead ahead;
    struct string large = {0};
    if (values)
        values->wanted = 0;
    int64_t n = take_many(records, reader, most);
    if (n == 0 && most > 0) {
        TRY(look_ahead(&ahead, reader, error));
        if (ahead == AHEAD_LARGE)
            TRY(read_large(&large, reader, values, error));
        else if (ahead == AHEAD_WHOLE && (n = take_many(records, reader, most)) == 0)
            return checksum_failed(reader, error);
        if (large.data)
            records[n++] = large;
    }
    *count = n;
    return PLIM_OK;
}

/* The last `count` records that were given in place come again. */
static void put_back(struct tfrecord_reader *reader, const struct string *records, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        reader->begin -= RECORD_FRAME_BYTES + (size_t)records[i].bytes;
        reader->at -= RECORD_FRAME_BYTES + records[i].bytes;
        reader->record--;
    }
}

plim_status tfrecord_reader_copy(int64_t *count, struct string *records, struct tfrecord_reader *reader, int64_t most,
                                 struct value_buffer *values, plim_error *error)
{
    uint64_t before = values->used;
    TRY(tfrecord_reader_read(count, records, reader, most, values, error));
    if (values->used != before) /* one that is larger than the reader's buffer: it is there already */
        return PLIM_OK;
    for (int64_t i = 0; i < *count; i++) {
        uint8_t *to = value_buffer_take_bytes(values, records[i].bytes);
        if (!to) {
            put_back(reader, records + i, *count - i);
            *count = i;
            break;
        }
        records[i].data = memcpy(to, records[i].data, (size_t)records[i].bytes);
    }
    return PLIM_OK;
}

/* ---- places ------------------------------------------------------------------ */

plim_status tfrecord_reader_skip(int64_t *skipped, struct tfrecord_reader *reader, int64_t count, plim_error *error)
{
    *skipped = 0;
    while (*skipped < count) {
        bool end, there;
        TRY(look_at_head(&end, reader, error));
        if (end)
            break;
        uint64_t bytes = record_length(reader_cursor(reader));
        if (bytes > UINT64_MAX - RECORD_FRAME_BYTES - reader->at)
            return ends_inside(reader, reader->at, bytes, error);
        TRY(reader_advance(&there, reader, RECORD_FRAME_BYTES + bytes, error));
        if (!there)
            return ends_inside(reader, reader->at, 1, error);
        reader->record++;
        ++*skipped;
    }
    return PLIM_OK;
}

struct record_place tfrecord_reader_tell(const struct tfrecord_reader *reader)
{
    return (struct record_place){.byte = reader->at, .record = reader->record};
}

static bool hop(uint64_t *byte, struct file *file, int64_t records)
{
    uint8_t head[RECORD_HEAD_BYTES];
    *byte = 0;
    for (; records > 0; records--) {
        uint64_t length;
        if (file_read(file, *byte, head, sizeof head, NULL) != PLIM_OK || !record_head_holds(head))
            return false;
        length = record_length(head);
        if (length > INT64_MAX - RECORD_FRAME_BYTES - *byte)
            return false;
        *byte += length + RECORD_FRAME_BYTES;
    }
    return true;
}

bool record_find(uint64_t *byte, struct budget *budget, const char *path, int64_t record)
{
    struct file *file;
    uint8_t head[RECORD_HEAD_BYTES];
    if (record > FIND_MOST || file_open(&file, budget, path, FILE_READ, NULL) != PLIM_OK)
        return false;
    bool raw = file_read(file, 0, head, sizeof head, NULL) == PLIM_OK && record_head_holds(head);
    bool found = raw && hop(byte, file, record);
    file_close(file);
    return found;
}

/* ---- one record by its place ------------------------------------------------------ */

plim_status record_read_at(struct string *record, struct file *file, const struct record_place *place, uint64_t bytes,
                           struct value_buffer *values, plim_error *error)
{
    *record = (struct string){0};
    values->wanted = 0;
    if (bytes > INT64_MAX - RECORD_FRAME_BYTES)
        return fail_byte(error, PLIM_BAD_DATA, file_path(file), place->byte, "record %lld: no file has %llu bytes",
                         (long long)place->record, (unsigned long long)bytes);
    uint8_t *head = value_buffer_take_bytes(values, RECORD_FRAME_BYTES + bytes);
    if (!head)
        return PLIM_OK;
    plim_status status = file_read(file, place->byte, head, (size_t)bytes + RECORD_FRAME_BYTES, error);
    uint8_t *data = head + RECORD_HEAD_BYTES;
    if (status == PLIM_OK && (!record_head_holds(head) || record_length(head) != bytes))
        status = fail_byte(error, PLIM_BAD_DATA, file_path(file), place->byte,
                           "record %lld: no length of %llu with its checksum is here", (long long)place->record,
                           (unsigned long long)bytes);
    if (status == PLIM_OK && !record_checksum_holds(data, bytes, data + bytes))
        status = fail_byte(error, PLIM_BAD_DATA, file_path(file), place->byte,
                           "record %lld: checksum of its %llu bytes 0x%08x stored, 0x%08x computed",
                           (long long)place->record, (unsigned long long)bytes, stored_checksum(data + bytes),
                           crc32c_mask(crc32c(0, data, bytes)));
    if (status != PLIM_OK) {
        values->used -= RECORD_FRAME_BYTES + bytes;
        return status;
    }
    *record = (struct string){.data = data, .bytes = bytes};
    return PLIM_OK;
}
