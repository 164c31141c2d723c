/* byte_stream.h - the bytes of a file in order, unpacked where the file is gzip or zlib.

   Positions are those of the unpacked bytes. Memory: the compressed file's
   buffers and zlib's state (BYTE_STREAM_PACKED_BYTES), nothing for a raw file. */
#ifndef FORMATS_CONTAINERS_BYTE_STREAM_H
#define FORMATS_CONTAINERS_BYTE_STREAM_H

#include "formats/containers/gzip.h"

enum compression {
    COMPRESSION_AUTO, /* by the first bytes: gzip's and zlib's marks, and for zlib data that unpack */
    COMPRESSION_NONE,
    COMPRESSION_GZIP,
    COMPRESSION_ZLIB,
};

/* What an open stream over a compressed file takes from the budget at most. */
#define BYTE_STREAM_PACKED_BYTES ((uint64_t)128 * 1024)

/* An open stream. Read-only outside of byte_stream.c. */
struct byte_stream {
    struct budget *budget;
    struct file *file; /* of a raw file positions are its bytes */
    bool packed;
    struct gzip *gzip; /* NULL: raw */
    enum deflate_frame frame;
    uint64_t at;   /* the position of the byte that comes next */
    uint64_t size; /* of the file when it was opened; 0 for what has none */
};

plim_status byte_stream_open(struct byte_stream **out, struct budget *budget, const char *path,
                             enum compression compression, plim_error *error);
void byte_stream_close(struct byte_stream *stream);
/* Up to `bytes`; *got < bytes only at the end. A compressed file's checksum was right then. */
plim_status byte_stream_read(size_t *got, struct byte_stream *stream, void *to, size_t bytes, plim_error *error);
/* Up to `bytes`; *got == 0 only at the end. What was unpacked before damage comes first, then the error. */
plim_status byte_stream_read_some(size_t *got, struct byte_stream *stream, void *to, size_t bytes, plim_error *error);
/* The next byte will be the one at `position`, which is not before the current one. A compressed file is unpacked up
   to there. Beyond the end is PLIM_BAD_DATA. */
plim_status byte_stream_seek(struct byte_stream *stream, uint64_t position, plim_error *error);
/* Whether a file that begins with these bytes (its first 3, or all) can be packed this way; COMPRESSION_NONE: it is no
   gzip file. That zlib's mark is there does not say that it is zlib: text may begin so. */
bool byte_stream_may_be(enum compression compression, const uint8_t *head, size_t bytes);
/* What it was found to be. */
enum compression byte_stream_compression(const struct byte_stream *stream);
/* What an open stream takes from the budget at most, the file's own struct included. */
uint64_t byte_stream_cost(enum compression compression);
/* PLIM_BAD_DATA at a position: "FILE: byte N"; the message says so when it is the unpacked data's. */
__attribute__((format(printf, 4, 5))) plim_status byte_stream_fail(const struct byte_stream *stream, uint64_t position,
                                                                   plim_error *error, const char *format, ...);

/* ---- through a buffer ---- */

/* What is wanted in one piece may be as long as the buffer. Invariant: bytes[next..end) is read and not yet given; the
   stream stands behind bytes[end). */
struct read_buffer {
    struct byte_stream *stream;
    char *bytes;
    size_t capacity, next, end;
    uint64_t base; /* position of bytes[0] in the stream */
    bool at_end;   /* the stream has no more */
};

/* What is left goes to the front, and as much as fits follows it. */
plim_status read_buffer_fill(struct read_buffer *buffer, plim_error *error);
/* The same status; after PLIM_BAD_DATA the buffer has ended, because nothing can be found behind data that do not
   unpack. */
plim_status read_buffer_give_up(struct read_buffer *buffer, plim_status status);

#endif
