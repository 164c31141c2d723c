/* byte_stream.h - the bytes of a file in order, unpacked where the file is gzip or zlib.

   Positions are those of the unpacked bytes. Memory: the compressed file's
   buffers and zlib's state (BYTE_STREAM_PACKED_BYTES), nothing for a raw file. */
#ifndef FORMATS_CONTAINERS_BYTE_STREAM_H
#define FORMATS_CONTAINERS_BYTE_STREAM_H

#include "base/files/file.h"

enum compression {
    COMPRESSION_AUTO, /* by the first bytes: gzip's and zlib's marks, and for zlib data that unpack */
    COMPRESSION_NONE,
    COMPRESSION_GZIP,
    COMPRESSION_ZLIB,
};

/* What an open stream over a compressed file takes from the budget at most. */
#define BYTE_STREAM_PACKED_BYTES ((uint64_t)128 * 1024)

struct byte_stream;

plim_status byte_stream_open(struct byte_stream **out, struct budget *budget, const char *path,
                             enum compression compression, plim_error *error);
void byte_stream_close(struct byte_stream *stream);
/* Up to `bytes`; *got < bytes only at the end. A compressed file's checksum was right then. */
plim_status byte_stream_read(size_t *got, struct byte_stream *stream, void *to, size_t bytes, plim_error *error);
/* Up to `bytes`; *got == 0 only at the end. What was unpacked before damage comes first, then the error. */
plim_status byte_stream_read_some(size_t *got, struct byte_stream *stream, void *to, size_t bytes, plim_error *error);
/* The position of the byte that comes next. */
uint64_t byte_stream_at(const struct byte_stream *stream);
/* The next byte will be the one at `position`. A compressed file is unpacked up to there, from its start when
   the position lies behind. Beyond the end is PLIM_BAD_DATA. */
plim_status byte_stream_seek(struct byte_stream *stream, uint64_t position, plim_error *error);
bool byte_stream_is_packed(const struct byte_stream *stream);
/* What it was found to be. */
enum compression byte_stream_compression(const struct byte_stream *stream);
/* What an open stream takes from the budget at most, the file's own struct included. */
uint64_t byte_stream_cost(enum compression compression);
/* Of a raw file: positions are its bytes. */
struct file *byte_stream_file(struct byte_stream *stream);
const char *byte_stream_path(const struct byte_stream *stream);
/* PLIM_BAD_DATA at a position: "FILE: byte N"; the message says so when it is the unpacked data's. */
__attribute__((format(printf, 4, 5))) plim_status byte_stream_fail(const struct byte_stream *stream, uint64_t position,
                                                                   plim_error *error, const char *format, ...);

#endif
