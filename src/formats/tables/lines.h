/* lines.h - lines of text, and records of one size, from a file that may be gzip or zlib. */
#ifndef FORMATS_TABLES_LINES_H
#define FORMATS_TABLES_LINES_H

#include "base/memory/value_buffer.h"
#include "formats/containers/byte_stream.h"
#include "graph/tensor.h"

/* ---- lines, as tf.data.TextLineDataset has them ---------------------------- */

/* A line ends with LF; what follows the last one is a line too, unless it is empty. Every CR is left out, wherever
   it stands. No encoding is looked at. */
struct lines;

#define LINES_BUFFER_BYTES ((size_t)128 * 1024)

/* A line and its LF may be as long as the buffer (0: LINES_BUFFER_BYTES). Takes the buffer, and
   BYTE_STREAM_PACKED_BYTES for a compressed file. */
plim_status lines_open(struct lines **out, struct budget *budget, const char *path, enum compression compression,
                       size_t buffer_bytes, plim_error *error);
void lines_close(struct lines *lines);
/* What opening takes from the budget at most (tag formats). */
uint64_t lines_cost(enum compression compression, size_t buffer_bytes);
/* Up to `most` lines, their bytes put into the buffer. *got == 0 is the end of the file, unless values->wanted says
   that the next line did not fit: it comes again. Without a buffer the strings are good until the next call. A line
   that is too long is PLIM_BAD_DATA, says its size, and is passed over; behind data that do not unpack the file ends.
   Allocates nothing. */
plim_status lines_read(int64_t *got, struct lines *lines, struct string *out, int64_t most, struct value_buffer *values,
                       plim_error *error);

/* ---- records of one size, as tf.data.FixedLengthRecordDataset has them ------ */

struct fixed_records;

struct fixed_layout {
    uint64_t record_bytes, header_bytes, footer_bytes;
};

/* A raw file's size must be header + n records + footer. Of a compressed file this is seen at its end. */
plim_status fixed_records_open(struct fixed_records **out, struct budget *budget, const char *path,
                               const struct fixed_layout *layout, enum compression compression, plim_error *error);
void fixed_records_close(struct fixed_records *records);
/* What opening takes from the budget at most (tag formats). */
uint64_t fixed_records_cost(const struct fixed_layout *layout, enum compression compression);
/* How many there are; -1 for a compressed file. Those of a raw file are also rows (rows.h) from header_bytes on. */
int64_t fixed_records_count(const struct fixed_records *records);
struct file *fixed_records_file(struct fixed_records *records);
/* The next records, one behind another; *got < most only at the end. */
plim_status fixed_records_next(int64_t *got, struct fixed_records *records, void *to, int64_t most, plim_error *error);

#endif
