/* tfrecord_reader.h - reads the records of one TFRecord file sequentially.

   The file is raw, gzip or zlib, which is detected from its first bytes. The reader uses a buffer of a fixed size; it
   never allocates memory for a length that the file declares. Positions are byte offsets in the uncompressed data. Both
   checksums (length and data) of every returned record are valid. For any other record the result is PLIM_BAD_DATA with
   file, record and byte, and the reader stays at that record: tfrecord_reader_resync continues after it. A reader may
   be used by one thread at a time. */
#ifndef FORMATS_RECORDS_TFRECORD_READER_H
#define FORMATS_RECORDS_TFRECORD_READER_H

#include "base/files/file.h"
#include "base/memory/value_buffer.h"
#include "graph/tensor.h"

#define RECORD_BUFFER_BYTES ((size_t)256 * 1024)

struct tfrecord_reader;

/* A position in a file: the byte offset of the next record, and its number, from 0. */
struct record_place {
    uint64_t byte;
    int64_t record;
};

/* buffer_bytes: RECORD_BUFFER_BYTES is a good choice. A record that is larger than the buffer goes into the caller's
   buffer (struct value_buffer). */
plim_status tfrecord_reader_open(struct tfrecord_reader **out, struct budget *budget, const char *path,
                                 size_t buffer_bytes, plim_error *error);
/* Upper bound of what opening allocates from the budget (tag formats), for any file. */
uint64_t tfrecord_reader_cost(size_t buffer_bytes);
void tfrecord_reader_close(struct tfrecord_reader *reader);

/* Returns the next 1..most records in place in the reader's buffer; they are valid until the next call. *count == 0:
   the file has ended; or, if values->wanted is set, the next record is larger than the buffer and did not fit `values`
   (tfrecord_reader_too_large makes the error for it; with values == NULL this call fails at once). The records are
   adjacent: record i + 1 begins at the byte of record i + its size + 16. Damage after the first record is reported by
   the next call. */
plim_status tfrecord_reader_read(int64_t *count, struct string *records, struct tfrecord_reader *reader, int64_t most,
                                 struct value_buffer *values, plim_error *error);
/* The same, with the bytes copied into `values`: they are valid as long as its contents are. *count == 0 with
   values->wanted set: the next record does not fit. */
plim_status tfrecord_reader_copy(int64_t *count, struct string *records, struct tfrecord_reader *reader, int64_t most,
                                 struct value_buffer *values, plim_error *error);
/* The error PLIM_OVER_BUDGET for the next record, which is larger than every available buffer. It names the record and
   its size. */
plim_status tfrecord_reader_too_large(const struct tfrecord_reader *reader, plim_error *error);

/* Skips records by their lengths, without reading their data. *skipped < count: the file has ended. *skipped is set on
   failure, too. */
plim_status tfrecord_reader_skip(int64_t *skipped, struct tfrecord_reader *reader, int64_t count, plim_error *error);

/* After PLIM_BAD_DATA: advances to the next record. If the length can be trusted (its checksum is valid, or the
   checksum of the data that it spans), one record is skipped. Otherwise the reader advances to the next byte at which a
   length with a valid checksum stands and either the data's checksum or the following record is valid (in a compressed
   file, or if that check costs too much, the length's checksum suffices); more than one record may be lost then, and
   the numbering continues as if it were one. If the compressed stream itself is damaged, everything after the damage is
   lost. *skipped: how many bytes were skipped. An error of this function itself is final. */
plim_status tfrecord_reader_resync(uint64_t *skipped, struct tfrecord_reader *reader, plim_error *error);

struct record_place tfrecord_reader_tell(const struct tfrecord_reader *reader);

const char *tfrecord_reader_path(const struct tfrecord_reader *reader);
bool tfrecord_reader_is_packed(const struct tfrecord_reader *reader);
/* For progress reports: bytes of the file that were read, and the size of the file. */
void tfrecord_reader_progress(uint64_t *done, uint64_t *total, const struct tfrecord_reader *reader);

/* For error messages: finds the byte at which a record of a raw file begins, by following the lengths from the start.
   False: more than a million records precede it, or the file is compressed, or it cannot be read. */
bool record_find(uint64_t *byte, struct budget *budget, const char *path, int64_t record);

/* Reads one record of a raw file, whose place and size come from an index, into `values` and verifies both checksums.
   record->data == NULL: the record does not fit (values->wanted is set). Thread-safe. */
plim_status record_read_at(struct string *record, struct file *file, const struct record_place *place, uint64_t bytes,
                           struct value_buffer *values, plim_error *error);

#endif
