/* tfrecord_resync.c - finds the next record of a damaged TFRecord file. */
#include "formats/records/tfrecord_reader_inside.h"

/* Data that are only checked go through the stack. */
#define CHECK_BYTES 4096
/* A length of this and more in a compressed file, whose end nobody knows, is damage. */
#define PLAUSIBLE_BYTES ((uint64_t)1 << 40)

/* Of a raw file: whether the checksum behind these data holds. Nothing is kept. */
static plim_status data_hold(bool *holds, struct tfrecord_reader *reader, uint64_t at, uint64_t bytes,
                             plim_error *error)
{
    uint8_t piece[CHECK_BYTES];
    uint32_t crc = 0;
    for (uint64_t done = 0; done < bytes;) {
        size_t step = bytes - done < sizeof piece ? (size_t)(bytes - done) : sizeof piece;
        TRY(file_read(reader->file, at + done, piece, step, error));
        crc = crc32c(crc, piece, step);
        done += step;
    }
    TRY(file_read(reader->file, at + bytes, piece, RECORD_FOOT_BYTES, error));
    *holds = stored_checksum(piece) == crc32c_mask(crc);
    return PLIM_OK;
}

/* Of a raw file: whether a record, or the end of the file, is at this byte. */
static plim_status begins_at(bool *begins, struct tfrecord_reader *reader, uint64_t at, plim_error *error)
{
    uint8_t head[RECORD_HEAD_BYTES];
    *begins = at == reader->total;
    if (reader->total - at < sizeof head)
        return PLIM_OK;
    TRY(file_read(reader->file, at, head, sizeof head, error));
    *begins = record_head_holds(head);
    return PLIM_OK;
}

/* Whether the length at the cursor is one that the file can have. */
static bool fits(const struct tfrecord_reader *reader)
{
    uint64_t left = reader->gzip ? PLAUSIBLE_BYTES : reader->total - reader->at;
    return reader_held(reader) >= RECORD_HEAD_BYTES && left >= RECORD_FRAME_BYTES &&
           record_length(reader_cursor(reader)) <= left - RECORD_FRAME_BYTES;
}

/* Whether the data of the length at the cursor (which fits) have their checksum behind them; false as well when
   that costs too much to find out. */
static plim_status data_ahead_hold(bool *holds, struct tfrecord_reader *reader, plim_error *error)
{
    uint64_t bytes = record_length(reader_cursor(reader));
    *holds = false;
    if (bytes > reader->effort || (reader->gzip && bytes > reader->buffer_bytes - RECORD_FRAME_BYTES))
        return PLIM_OK;
    reader->effort -= bytes;
    if (!reader->gzip)
        return data_hold(holds, reader, reader->at + RECORD_HEAD_BYTES, bytes, error);
    TRY(reader_want(reader, RECORD_FRAME_BYTES + (size_t)bytes, error));
    const uint8_t *data = reader_cursor(reader) + RECORD_HEAD_BYTES;
    *holds = reader_held(reader) >= RECORD_FRAME_BYTES + bytes && record_checksum_holds(data, bytes, data + bytes);
    return PLIM_OK;
}

/* Whether the bytes at the cursor, of which there are enough, begin a record. A length that the file can have,
   with its checksum, is hardly ever chance: of a compressed file, and where more costs too much, it must do. */
static plim_status is_record(bool *is, struct tfrecord_reader *reader, plim_error *error)
{
    *is = fits(reader) && record_head_holds(reader_cursor(reader));
    if (!*is || reader->gzip)
        return PLIM_OK;
    uint64_t bytes = record_length(reader_cursor(reader));
    TRY(begins_at(is, reader, reader->at + RECORD_FRAME_BYTES + bytes, error));
    if (*is)
        return PLIM_OK;
    *is = bytes > reader->effort;
    return *is ? PLIM_OK : data_ahead_hold(is, reader, error);
}

/* Byte by byte to the next record, or to the end. */
static plim_status search(struct tfrecord_reader *reader, plim_error *error)
{
    bool found = false;
    for (;;) {
        TRY(reader_want(reader, RECORD_HEAD_BYTES, error));
        if (reader_held(reader) < RECORD_HEAD_BYTES) {
            reader_pass(reader, reader_held(reader));
            return PLIM_OK;
        }
        TRY(is_record(&found, reader, error));
        if (found)
            return PLIM_OK;
        reader_pass(reader, 1);
    }
}

/* Whether records follow one another from the cursor on and end exactly at `end`, by their lengths. */
static plim_status leads_to(bool *leads, struct tfrecord_reader *reader, uint64_t end, plim_error *error)
{
    uint8_t head[RECORD_HEAD_BYTES];
    uint64_t at = reader->at;
    *leads = false;
    while (at < end) {
        if (end - at < RECORD_FRAME_BYTES || reader->effort < CHECK_BYTES)
            return PLIM_OK;
        reader->effort -= CHECK_BYTES;
        TRY(file_read(reader->file, at, head, sizeof head, error));
        if (!record_head_holds(head) || record_length(head) > end - at - RECORD_FRAME_BYTES)
            return PLIM_OK;
        at += RECORD_FRAME_BYTES + record_length(head);
    }
    *leads = true;
    return PLIM_OK;
}

/* To the first byte before `end` from which records lead there; to `end` when there is none. */
static plim_status search_inside(struct tfrecord_reader *reader, uint64_t end, plim_error *error)
{
    bool found = false;
    while (reader->at < end && reader_held(reader) && !found) {
        reader_pass(reader, 1);
        TRY(reader_want(reader, RECORD_HEAD_BYTES, error));
        if (fits(reader) && record_head_holds(reader_cursor(reader)))
            TRY(leads_to(&found, reader, end, error));
    }
    return PLIM_OK;
}

/* Past a record whose length has its checksum. Bytes may have been lost or added inside it: records that stand
   before the place where it would end go first. (Records inside its data, which are nobody's business, do not
   lead to that place, but to its checksum.) */
static plim_status hop(struct tfrecord_reader *reader, plim_error *error)
{
    bool there;
    uint64_t bytes = RECORD_FRAME_BYTES + record_length(reader_cursor(reader)), behind = reader->at + bytes;
    if (reader->gzip)
        return reader_advance(&there, reader, bytes, error);
    TRY(begins_at(&there, reader, behind, error));
    if (there)
        return search_inside(reader, behind, error);
    reader_pass(reader, 1);
    TRY(search(reader, error));
    if (reader->at > behind)
        reader_jump(reader, behind);
    return PLIM_OK;
}

static plim_status resync(struct tfrecord_reader *reader, plim_error *error)
{
    bool there = false;
    if (reader->passed) {
        reader->passed = false;
        return search(reader, error);
    }
    TRY(reader_want(reader, RECORD_HEAD_BYTES, error));
    if (fits(reader) && record_head_holds(reader_cursor(reader)))
        return hop(reader, error);
    if (fits(reader))
        TRY(data_ahead_hold(&there, reader, error));
    if (there)
        return reader_advance(&there, reader, RECORD_FRAME_BYTES + record_length(reader_cursor(reader)), error);
    if (reader_held(reader))
        reader_pass(reader, 1);
    return search(reader, error);
}

plim_status tfrecord_reader_resync(uint64_t *skipped, struct tfrecord_reader *reader, plim_error *error)
{
    uint64_t from = reader->at;
    plim_status status = resync(reader, error);
    if (status == PLIM_BAD_DATA && reader->gzip) { /* the stream itself is damaged: nothing comes behind it */
        reader_pass(reader, reader_held(reader));
        reader->ended = true;
        status = PLIM_OK;
    }
    if (status != PLIM_OK)
        return status;
    reader->record++;
    *skipped = reader->at - from;
    return PLIM_OK;
}
