/* record_pipe.h - records in TFRecord's framing from a writer that is heard once, from beginning to end: a pipe.

   A record whose data are damaged is passed over; behind a damaged length nothing can be found again, for a pipe does
   not go back. Memory is the caller's buffer; nothing is taken for a length that the writer declares. */
#ifndef FORMATS_RECORDS_RECORD_PIPE_H
#define FORMATS_RECORDS_RECORD_PIPE_H

#include "formats/source.h"

struct pipe_input {
    /* What there is, up to `bytes`, at least one; *got == 0: the end. */
    plim_status (*read)(size_t *got, void *context, void *to, size_t bytes, plim_error *error);
    /* Called at the end: what the writer says of it. */
    plim_status (*ended)(void *context, plim_error *error);
};

struct record_pipe {
    const struct pipe_input *input;
    void *context;
    const char *name; /* of the writer: the place of errors */
    uint8_t *buffer;
    size_t buffer_bytes, begin, end; /* unread: [begin, end) */
    uint64_t at;                     /* byte of the output where they begin */
    int64_t record;
    bool over; /* nothing comes any more */
};

/* From the beginning. Records up to buffer_bytes (more than 16) less their frame lie in the buffer, larger ones go into
   the value buffer of the call. */
void record_pipe_begin(struct record_pipe *pipe, const struct pipe_input *input, void *context, const char *name,
                       void *buffer, size_t buffer_bytes);
/* As source_type.reader_next, of one column of strings. */
plim_status record_pipe_next(int64_t *got, struct record_pipe *pipe, int64_t most, const struct row_target *target,
                             plim_error *error);

#endif
