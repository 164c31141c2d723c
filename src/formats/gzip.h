/* gzip.h - a gzip file as a stream of bytes, with a cap on what comes out.

   zlib's own memory is taken from the budget. Members that follow one another
   are one stream, as gzip has it; anything else behind the last one is
   PLIM_BAD_DATA. gzip's header fields are never asked for. */
#ifndef FORMATS_GZIP_H
#define FORMATS_GZIP_H

#include "base/file.h"

/* Deflate cannot make more than this of one byte. */
#define GZIP_MOST_RATIO 1032
/* What a stream takes from the budget at most, besides its input buffer. */
#define GZIP_STATE_BYTES ((uint64_t)56 * 1024)

struct gzip;

/* The file is borrowed. At most `most_bytes` may come out: one more is PLIM_BAD_DATA. */
plim_status gzip_open(struct gzip **out, struct budget *budget, struct file *file, size_t buffer_bytes,
                      uint64_t most_bytes, plim_error *error);
void gzip_close(struct gzip *gzip);
/* Up to `bytes`; *got < bytes only at the end of the stream, whose checksum
   and length were right then. */
plim_status gzip_read(size_t *got, struct gzip *gzip, void *to, size_t bytes, plim_error *error);
/* Byte of the compressed file that comes next. */
uint64_t gzip_at(const struct gzip *gzip);

#endif
