/* record_file.c - the records of one TFRecord file, one after another. */
#include "base/numbers/checked.h"
#include "formats/files/cursor.h"
#include "formats/records/record_reader.h"

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

uint64_t record_file_cost(size_t buffer_bytes)
{
    return budget_charge(sizeof(struct record_file)) + budget_charge(buffer_size(buffer_bytes)) + FILE_BYTES +
           GZIP_STATE_BYTES + budget_charge(INPUT_BYTES);
}

static plim_status fill(struct record_file *reader, plim_error *error);

static plim_status start_unpacking(struct record_file *reader, enum deflate_frame frame, plim_error *error)
{
    return gzip_open_part(&reader->gzip, reader->budget, reader->file, 0, reader->total, frame, INPUT_BYTES, UINT64_MAX,
                          error);
}

/* A first record of 376 bytes whose length is damaged begins as zlib does: what does not unpack is not zlib. */
static plim_status try_zlib(struct record_file *reader, plim_error *error)
{
    TRY(start_unpacking(reader, DEFLATE_ZLIB, error));
    plim_status status = fill(reader, error);
    if (status != PLIM_BAD_DATA)
        return status;
    gzip_close(reader->gzip);
    reader->gzip = NULL;
    return PLIM_OK;
}

static plim_status detect(struct record_file *reader, plim_error *error)
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

static void give_effort(struct record_file *reader)
{
    uint64_t most = reader->total < UINT64_MAX / 16 ? 8 * reader->total : UINT64_MAX / 2;
    reader->effort = most + EFFORT_LEAST;
}

static plim_status start(struct record_file *reader, const char *path, plim_error *error)
{
    reader->buffer = budget_take(reader->budget, TAG_FORMATS, reader->buffer_bytes);
    if (!reader->buffer)
        return budget_refused(reader->budget, TAG_FORMATS, reader->buffer_bytes, error);
    TRY(file_open(&reader->file, reader->budget, path, FILE_READ, error));
    TRY(file_size(&reader->total, reader->file, error));
    file_expect_sequential(reader->file);
    give_effort(reader);
    return detect(reader, error);
}

plim_status record_file_open(struct record_file **out, struct budget *budget, const char *path, size_t buffer_bytes,
                             plim_error *error)
{
    struct record_file *reader = budget_take(budget, TAG_FORMATS, sizeof *reader);
    if (!reader)
        return budget_refused(budget, TAG_FORMATS, sizeof *reader, error);
    reader->budget = budget;
    reader->buffer_bytes = buffer_size(buffer_bytes);
    plim_status status = start(reader, path, error);
    if (status == PLIM_OK)
        *out = reader;
    else
        record_file_close(reader);
    return status;
}

void record_file_close(struct record_file *reader)
{
    if (!reader)
        return;
    gzip_close(reader->gzip);
    file_close(reader->file);
    budget_give(reader->budget, TAG_FORMATS, reader->buffer, reader->buffer_bytes);
    budget_give(reader->budget, TAG_FORMATS, reader, sizeof *reader);
}

const char *record_file_path(const struct record_file *reader)
{
    return file_path(reader->file);
}

bool record_file_is_packed(const struct record_file *reader)
{
    return reader->gzip != NULL;
}

void record_file_progress(uint64_t *done, uint64_t *total, const struct record_file *reader)
{
    *done = reader->gzip ? gzip_at(reader->gzip) : reader->at;
    *total = reader->total;
}

/* ---- bytes --------------------------------------------------------------- */

/* The next bytes of the file behind `behind` more of them. */
static plim_status fetch(size_t *got, struct record_file *reader, uint8_t *to, size_t bytes, uint64_t behind,
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

static plim_status fill(struct record_file *reader, plim_error *error)
{
    size_t keep = held(reader), got;
    if (reader->begin)
        memmove(reader->buffer, cursor_of(reader), keep);
    reader->begin = 0;
    reader->end = keep;
    TRY(fetch(&got, reader, reader->buffer + keep, reader->buffer_bytes - keep, keep, error));
    reader->end += got;
    reader->ended = got == 0;
    return PLIM_OK;
}

plim_status reader_want(struct record_file *reader, size_t bytes, plim_error *error)
{
    while (held(reader) < bytes && !reader->ended)
        TRY(fill(reader, error));
    return PLIM_OK;
}

void reader_jump(struct record_file *reader, uint64_t to)
{
    uint64_t first = reader->at - reader->begin;
    bool inside = to >= first && to - first <= reader->end;
    reader->begin = inside ? (size_t)(to - first) : 0;
    reader->end = inside ? reader->end : 0;
    reader->at = to;
    reader->ended = inside && reader->ended;
}

plim_status reader_advance(bool *there, struct record_file *reader, uint64_t bytes, plim_error *error)
{
    *there = true;
    if (!reader->gzip) {
        *there = bytes <= reader->total - reader->at;
        reader_jump(reader, *there ? reader->at + bytes : reader->total);
        return PLIM_OK;
    }
    while (bytes > held(reader) && !reader->ended) {
        bytes -= held(reader);
        pass(reader, held(reader));
        TRY(fill(reader, error));
    }
    *there = bytes <= held(reader);
    pass(reader, *there ? (size_t)bytes : held(reader));
    return PLIM_OK;
}

/* ---- errors ---------------------------------------------------------------- */

static const char *whose(const struct record_file *reader)
{
    return reader->gzip ? " (a byte of the unpacked data)" : "";
}

static plim_status ends_inside(const struct record_file *reader, uint64_t at, uint64_t missing, plim_error *error)
{
    return fail_byte(error, PLIM_BAD_DATA, record_file_path(reader), at,
                     "record %lld%s: the file ends inside it, %llu bytes too early", (long long)reader->record,
                     whose(reader), (unsigned long long)missing);
}

static plim_status bad_head(const struct record_file *reader, plim_error *error)
{
    const uint8_t *head = cursor_of(reader);
    fail_byte(error, PLIM_BAD_DATA, record_file_path(reader), reader->at,
              "record %lld%s: checksum of its length 0x%08x stored, 0x%08x computed", (long long)reader->record,
              whose(reader), stored_checksum(head + 8), crc32c_mask(crc32c(0, head, 8)));
    if (reader->at == 0 && !reader->gzip)
        return hint(error, PLIM_BAD_DATA, "it is the first one: this may be no TFRecord file");
    return PLIM_BAD_DATA;
}

static plim_status bad_data(const struct record_file *reader, uint64_t at, const uint8_t *data, uint64_t bytes,
                            const uint8_t *foot, plim_error *error)
{
    return fail_byte(error, PLIM_BAD_DATA, record_file_path(reader), at,
                     "record %lld%s: checksum of its %llu bytes 0x%08x stored, 0x%08x computed",
                     (long long)reader->record, whose(reader), (unsigned long long)bytes, stored_checksum(foot),
                     crc32c_mask(crc32c(0, data, bytes)));
}

plim_status record_file_too_large(const struct record_file *reader, plim_error *error)
{
    uint64_t bytes = held(reader) >= RECORD_HEAD_BYTES ? record_length(cursor_of(reader)) : 0;
    fail_byte(error, PLIM_OVER_BUDGET, record_file_path(reader), reader->at,
              "record %lld%s has %llu bytes: more than there is room for", (long long)reader->record, whose(reader),
              (unsigned long long)bytes);
    return hint(error, PLIM_OVER_BUDGET, "a larger budget makes room for it");
}

/* ---- records ---------------------------------------------------------------- */

/* The record at the cursor, if it lies whole in the buffer and its checksums hold. The way of nearly all records. */
static inline bool take_whole(struct string *record, struct record_file *reader)
{
    const uint8_t *head = cursor_of(reader), *data = head + RECORD_HEAD_BYTES;
    size_t there = held(reader);
    if (there < RECORD_FRAME_BYTES || !record_head_holds(head))
        return false;
    uint64_t bytes = record_length(head);
    if (bytes > there - RECORD_FRAME_BYTES || !record_checksum_holds(data, bytes, data + bytes))
        return false;
    *record = (struct string){.data = data, .bytes = bytes};
    pass(reader, RECORD_FRAME_BYTES + (size_t)bytes);
    reader->record++;
    return true;
}

enum ahead { AHEAD_END, AHEAD_WHOLE, AHEAD_LARGE };

/* The head of the next record, checked. */
static plim_status look_at_head(bool *end, struct record_file *reader, plim_error *error)
{
    TRY(reader_want(reader, RECORD_HEAD_BYTES, error));
    size_t there = held(reader);
    *end = there == 0;
    if (*end)
        return PLIM_OK;
    if (there < RECORD_HEAD_BYTES)
        return ends_inside(reader, reader->at + there, RECORD_HEAD_BYTES - there, error);
    if (!record_head_holds(cursor_of(reader)))
        return bad_head(reader, error);
    uint64_t left = reader->total - reader->at - RECORD_HEAD_BYTES, bytes = record_length(cursor_of(reader));
    if (!reader->gzip && (left < RECORD_FOOT_BYTES || bytes > left - RECORD_FOOT_BYTES))
        return ends_inside(reader, reader->total, add_most(bytes, RECORD_FOOT_BYTES) - left, error);
    return PLIM_OK;
}

/* What comes next, in the buffer if it fits there. */
static plim_status look_ahead(enum ahead *ahead, struct record_file *reader, plim_error *error)
{
    bool end;
    TRY(look_at_head(&end, reader, error));
    *ahead = end ? AHEAD_END : AHEAD_LARGE;
    if (end || record_length(cursor_of(reader)) > reader->buffer_bytes - RECORD_FRAME_BYTES)
        return PLIM_OK;
    size_t bytes = RECORD_FRAME_BYTES + (size_t)record_length(cursor_of(reader));
    TRY(reader_want(reader, bytes, error));
    if (held(reader) < bytes)
        return ends_inside(reader, reader->at + held(reader), bytes - held(reader), error);
    *ahead = AHEAD_WHOLE;
    return PLIM_OK;
}

static plim_status checksum_failed(const struct record_file *reader, plim_error *error)
{
    const uint8_t *data = cursor_of(reader) + RECORD_HEAD_BYTES;
    uint64_t bytes = record_length(cursor_of(reader));
    return bad_data(reader, reader->at, data, bytes, data + bytes, error);
}

/* `bytes` from `behind` the cursor on, out of the buffer and then out of the file; fewer at its end. */
static plim_status gather(uint64_t *got, struct record_file *reader, uint8_t *to, uint64_t bytes, uint64_t behind,
                          plim_error *error)
{
    uint64_t done = 0;
    if (behind < held(reader)) {
        done = held(reader) - behind < bytes ? held(reader) - behind : bytes;
        memcpy(to, cursor_of(reader) + behind, (size_t)done);
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
static plim_status gather_large(struct record_file *reader, uint8_t *to, uint64_t bytes, plim_error *error)
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

static plim_status read_large(struct string *record, struct record_file *reader, struct room *room, plim_error *error)
{
    uint64_t bytes = record_length(cursor_of(reader)), before = room ? room->used : 0;
    if (!room)
        return record_file_too_large(reader, error);
    uint8_t *to = room_take_bytes(room, bytes);
    if (!to)
        return PLIM_OK;
    plim_status status = gather_large(reader, to, bytes, error);
    if (reader->gzip || status == PLIM_OK) {
        reader->at += RECORD_FRAME_BYTES + bytes;
        reader->begin = reader->end = 0;
    }
    if (status != PLIM_OK) {
        room->used = before;
        reader->passed = reader->gzip != NULL;
        return status;
    }
    *record = (struct string){.data = to, .bytes = bytes};
    reader->record++;
    return PLIM_OK;
}

static int64_t take_many(struct string *records, struct record_file *reader, int64_t most)
{
    int64_t n = 0;
    while (n < most && take_whole(&records[n], reader))
        n++;
    return n;
}

plim_status record_file_read(int64_t *count, struct string *records, struct record_file *reader, int64_t most,
                             struct room *room, plim_error *error)
{
    enum ahead ahead;
    struct string large = {0};
    if (room)
        room->wanted = 0;
    int64_t n = take_many(records, reader, most);
    if (n == 0 && most > 0) {
        TRY(look_ahead(&ahead, reader, error));
        if (ahead == AHEAD_LARGE)
            TRY(read_large(&large, reader, room, error));
        else if (ahead == AHEAD_WHOLE && (n = take_many(records, reader, most)) == 0)
            return checksum_failed(reader, error);
        if (large.data)
            records[n++] = large;
    }
    *count = n;
    return PLIM_OK;
}

/* One record into the room; NULL data: the end, or no room, or a large record that is not the first of its call
   (an error in it must not lose those before it). */
static plim_status copy_one(struct string *record, struct record_file *reader, struct room *room, bool first,
                            plim_error *error)
{
    enum ahead ahead;
    struct string found;
    *record = (struct string){0};
    TRY(look_ahead(&ahead, reader, error));
    if (ahead == AHEAD_LARGE && first)
        return read_large(record, reader, room, error);
    if (ahead != AHEAD_WHOLE)
        return PLIM_OK;
    uint64_t bytes = record_length(cursor_of(reader));
    uint8_t *to = room_take_bytes(room, bytes);
    if (!to)
        return PLIM_OK;
    if (!take_whole(&found, reader)) {
        room->used -= bytes;
        return checksum_failed(reader, error);
    }
    memcpy(to, found.data, (size_t)bytes);
    *record = (struct string){.data = to, .bytes = bytes};
    return PLIM_OK;
}

plim_status record_file_copy(int64_t *count, struct string *records, struct record_file *reader, int64_t most,
                             struct room *room, plim_error *error)
{
    int64_t n = 0;
    room->wanted = 0;
    while (n < most) {
        plim_status status = copy_one(&records[n], reader, room, n == 0, error);
        if (status != PLIM_OK && n == 0)
            return status;
        if (status != PLIM_OK || !records[n].data)
            break;
        n++;
    }
    *count = n;
    return PLIM_OK;
}

plim_status record_file_next(struct string *record, uint64_t *at, struct record_file *reader, struct room *room,
                             plim_error *error)
{
    struct string found = {0};
    int64_t count = 0;
    uint64_t from = reader->at;
    if (room)
        TRY(record_file_copy(&count, &found, reader, 1, room, error));
    else
        TRY(record_file_read(&count, &found, reader, 1, NULL, error));
    if (at)
        *at = from;
    *record = count ? found : (struct string){0};
    return PLIM_OK;
}

/* ---- places ------------------------------------------------------------------ */

plim_status record_file_skip(int64_t *skipped, struct record_file *reader, int64_t count, plim_error *error)
{
    *skipped = 0;
    while (*skipped < count) {
        bool end, there;
        TRY(look_at_head(&end, reader, error));
        if (end)
            break;
        uint64_t bytes = record_length(cursor_of(reader));
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

struct record_place record_file_tell(const struct record_file *reader)
{
    return (struct record_place){.byte = reader->at, .record = reader->record};
}

plim_status record_file_rewind(struct record_file *reader, plim_error *error)
{
    if (reader->gzip)
        TRY(gzip_rewind(reader->gzip, error));
    else
        TRY(file_size(&reader->total, reader->file, error));
    give_effort(reader);
    reader->begin = reader->end = 0;
    reader->at = 0;
    reader->record = 0;
    reader->ended = reader->passed = false;
    return PLIM_OK;
}

plim_status record_file_seek(struct record_file *reader, const struct record_place *place, plim_error *error)
{
    bool there = true;
    if (!reader->gzip) {
        there = place->byte <= reader->total;
        if (there)
            reader_jump(reader, place->byte);
    } else {
        if (place->byte < reader->at)
            TRY(record_file_rewind(reader, error));
        TRY(reader_advance(&there, reader, place->byte - reader->at, error));
    }
    if (!there)
        return fail_byte(error, PLIM_BAD_DATA, record_file_path(reader), reader->at,
                         "the file ends before byte %llu, where record %lld was: it is not the same file any more",
                         (unsigned long long)place->byte, (long long)place->record);
    reader->record = place->record;
    reader->passed = false;
    return PLIM_OK;
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

plim_status record_read_at(struct string *record, struct file *file, uint64_t at, uint64_t bytes, int64_t number,
                           struct room *room, plim_error *error)
{
    *record = (struct string){0};
    room->wanted = 0;
    if (bytes > INT64_MAX - RECORD_FRAME_BYTES)
        return fail_byte(error, PLIM_BAD_DATA, file_path(file), at, "record %lld: no file has %llu bytes",
                         (long long)number, (unsigned long long)bytes);
    uint8_t *head = room_take_bytes(room, RECORD_FRAME_BYTES + bytes);
    if (!head)
        return PLIM_OK;
    plim_status status = file_read(file, at, head, (size_t)bytes + RECORD_FRAME_BYTES, error);
    uint8_t *data = head + RECORD_HEAD_BYTES;
    if (status == PLIM_OK && (!record_head_holds(head) || record_length(head) != bytes))
        status = fail_byte(error, PLIM_BAD_DATA, file_path(file), at,
                           "record %lld: no length of %llu with its checksum is here", (long long)number,
                           (unsigned long long)bytes);
    if (status == PLIM_OK && !record_checksum_holds(data, bytes, data + bytes))
        status =
            fail_byte(error, PLIM_BAD_DATA, file_path(file), at,
                      "record %lld: checksum of its %llu bytes 0x%08x stored, 0x%08x computed", (long long)number,
                      (unsigned long long)bytes, stored_checksum(data + bytes), crc32c_mask(crc32c(0, data, bytes)));
    if (status != PLIM_OK) {
        room->used -= RECORD_FRAME_BYTES + bytes;
        return status;
    }
    *record = (struct string){.data = data, .bytes = bytes};
    return PLIM_OK;
}
