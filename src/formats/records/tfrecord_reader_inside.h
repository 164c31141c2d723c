/* tfrecord_reader_inside.h - inside the reader of TFRecord files: what reading and finding records again share.

   The buffer holds [at, at + held) of the unpacked file, and `at` is where a record begins. Invariants: 1. the
   cursor moves only over records whose checksums hold, or in resync; 2. what is short in the buffer is read before
   it is called missing; 3. a declared length is compared with the bytes there are, never allocated. */
#ifndef FORMATS_RECORDS_TFRECORD_READER_INSIDE_H
#define FORMATS_RECORDS_TFRECORD_READER_INSIDE_H

#include "formats/containers/gzip.h"
#include "formats/records/record_frame.h"
#include "formats/records/tfrecord_reader.h"

struct tfrecord_reader {
    struct budget *budget;
    struct file *file;
    struct gzip *gzip; /* NULL: raw */
    uint8_t *buffer;
    size_t buffer_bytes, begin, end; /* unread: [begin, end) */
    uint64_t at;                     /* position of buffer[begin] */
    uint64_t total;                  /* bytes of the file */
    int64_t record;
    uint64_t effort; /* bytes that resync may still checksum: hostile files must not cost hours */
    bool ended;      /* nothing comes behind buffer[end - 1] */
    bool passed;     /* the record that failed lies behind the cursor: a stream cannot go back */
};

static inline size_t reader_held(const struct tfrecord_reader *reader)
{
    return reader->end - reader->begin;
}

static inline const uint8_t *reader_cursor(const struct tfrecord_reader *reader)
{
    return reader->buffer + reader->begin;
}

static inline void reader_pass(struct tfrecord_reader *reader, size_t bytes)
{
    reader->begin += bytes;
    reader->at += bytes;
}

/* At least `bytes` (no more than the buffer's) in the buffer, if the file has them. */
plim_status reader_want(struct tfrecord_reader *reader, size_t bytes, plim_error *error);
/* The cursor anywhere in a raw file. */
void reader_jump(struct tfrecord_reader *reader, uint64_t to);
/* Forwards by any number of bytes; *there == false: the file ends before. */
plim_status reader_advance(bool *there, struct tfrecord_reader *reader, uint64_t bytes, plim_error *error);

#endif
