/* gzip.h - a compressed file, or a part of one, as a stream of bytes, with a cap on what comes out.

   zlib's own memory is taken from the budget. Members that follow one another
   are one stream, as gzip has it; anything else behind the last one is
   PLIM_BAD_DATA. gzip's header fields are never asked for. */
#ifndef FORMATS_CONTAINERS_GZIP_H
#define FORMATS_CONTAINERS_GZIP_H

#include "base/files/file.h"

/* Deflate cannot make more than this of one byte. */
#define GZIP_MOST_RATIO 1032
/* What a stream takes from the budget at most, besides its input buffer. */
#define GZIP_STATE_BYTES ((uint64_t)56 * 1024)

struct gzip;

/* How deflated data are wrapped: a gzip file; a zlib stream, which ends its file; nothing at all, as inside a zip. */
enum deflate_frame { DEFLATE_GZIP, DEFLATE_ZLIB, DEFLATE_RAW };

/* The file is borrowed. At most `most_bytes` may come out: one more is PLIM_BAD_DATA. */
plim_status gzip_open(struct gzip **out, struct budget *budget, struct file *file, size_t buffer_bytes,
                      uint64_t most_bytes, plim_error *error);
/* Deflated data in a file. Raw ones carry no checksum: who reads them has one. */
struct deflated {
    struct file *file;
    uint64_t at, bytes;
    enum deflate_frame frame;
};
/* The same for a part of a file. */
plim_status gzip_open_part(struct gzip **out, struct budget *budget, const struct deflated *part, size_t buffer_bytes,
                           uint64_t most_bytes, plim_error *error);
void gzip_close(struct gzip *gzip);
/* Up to `bytes`; *got < bytes only at the end of the stream, whose checksum
   and length were right then. */
plim_status gzip_read(size_t *got, struct gzip *gzip, void *to, size_t bytes, plim_error *error);
/* The same, but what was unpacked before damage is handed out first, fewer bytes than asked for: the error
   comes again when there is nothing else. *got == 0 is the end. */
plim_status gzip_read_some(size_t *got, struct gzip *gzip, void *to, size_t bytes, plim_error *error);
/* Byte of the compressed file that comes next. */
uint64_t gzip_at(const struct gzip *gzip);

#endif
