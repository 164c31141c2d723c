/* record_file.h - the records of one TFRecord file, one after another.

   Raw, gzip or zlib, told by the first bytes. Memory is a buffer of a stated size; nothing is ever taken for a
   length that a file declares. Positions are bytes of the unpacked file. Every record handed out had both
   checksums right; what has not is PLIM_BAD_DATA with file, record and byte, and the reader stays at that record:
   record_file_resync goes on behind it. One thread at a time. */
#ifndef FORMATS_RECORDS_RECORD_FILE_H
#define FORMATS_RECORDS_RECORD_FILE_H

#include "base/files/file.h"
#include "base/memory/room.h"
#include "graph/tensor.h"

#define RECORD_BUFFER_BYTES ((size_t)256 * 1024)

struct record_file;

/* Where a reader stands: the byte of the next record and its number, from 0. */
struct record_place {
    uint64_t byte;
    int64_t record;
};

/* buffer_bytes: RECORD_BUFFER_BYTES is a good choice. Records that are larger go into the caller's room. */
plim_status record_file_open(struct record_file **out, struct budget *budget, const char *path, size_t buffer_bytes,
                             plim_error *error);
/* What opening takes from the budget at most (tag formats), whatever the file is. */
uint64_t record_file_cost(size_t buffer_bytes);
void record_file_close(struct record_file *reader);

/* The next 1..most records, where they lie in the buffer: valid until the next call. *count == 0: the end of the
   file; or, when room->wanted is set, the next record is larger than the buffer and did not fit into the room
   (record_file_too_large makes an error of it; without a room it is an error at once). They follow one another:
   record i + 1 begins at the byte of record i + its size + 16.
   Damage behind the first record is reported by the next call. */
plim_status record_file_read(int64_t *count, struct string *records, struct record_file *reader, int64_t most,
                             struct room *room, plim_error *error);
/* The same with the bytes copied into the room: valid as long as that. Fewer than
   `most`: the room is full, or one larger than the buffer comes next. */
plim_status record_file_copy(int64_t *count, struct string *records, struct record_file *reader, int64_t most,
                             struct room *room, plim_error *error);
/* One record: in place without a room, else copied into it. record->data == NULL: the end, or room->wanted is set. */
plim_status record_file_next(struct string *record, uint64_t *at, struct record_file *reader, struct room *room,
                             plim_error *error);
/* PLIM_OVER_BUDGET for the next record, which is larger than any room there is: names it and its size. */
plim_status record_file_too_large(const struct record_file *reader, plim_error *error);

/* Passes over records by their lengths; data are not looked at. *skipped < count: the end of the file; it is set on
   failure, too. */
plim_status record_file_skip(int64_t *skipped, struct record_file *reader, int64_t count, plim_error *error);

/* After PLIM_BAD_DATA: to the next record. Where the length can be trusted (its checksum holds, or that of the
   data it spans), one record is passed over. Else to the next byte at which a length with its checksum stands and
   either the data's checksum or the record behind holds; more than one record may be lost then, and
   numbers count on as if it were one. What comes behind damage in compressed data is lost.
   *skipped: how many bytes were passed over. An error of its own is final. */
plim_status record_file_resync(uint64_t *skipped, struct record_file *reader, plim_error *error);

struct record_place record_file_tell(const struct record_file *reader);
/* Compressed files are unpacked up to there. */
plim_status record_file_seek(struct record_file *reader, const struct record_place *place, plim_error *error);
plim_status record_file_rewind(struct record_file *reader, plim_error *error);

const char *record_file_path(const struct record_file *reader);
bool record_file_is_packed(const struct record_file *reader);
/* Bytes of the file that were read, and how many there are: for progress. */
void record_file_progress(uint64_t *done, uint64_t *total, const struct record_file *reader);

/* The byte at which a record of a raw file begins, by going from length to length; false: there are more than a million
   before it, or the file is packed, or cannot be read. For errors. */
bool record_find(uint64_t *byte, struct budget *budget, const char *path, int64_t record);

/* One record of a raw file whose place and size an index knows, into the room, with both checksums verified.
   record->data == NULL: it does not fit (room->wanted). Thread-safe. */
plim_status record_read_at(struct string *record, struct file *file, uint64_t at, uint64_t bytes, int64_t number,
                           struct room *room, plim_error *error);

#endif
