/* tar.h - members of a tar file, raw or compressed, one after another; and WebDataset's samples.

   ustar, pax (path, size) and GNU's long names are known; folders, links and the like are passed over; sparse files
   are refused. A tar file ends with a block of zeros: one that ends without is cut short. */
#ifndef FORMATS_CONTAINERS_TAR_H
#define FORMATS_CONTAINERS_TAR_H

#include "base/memory/value_buffer.h"
#include "formats/containers/byte_stream.h"
#include "graph/tensor.h"

#define TAR_NAME_MOST 4095

struct tar;

struct tar_member {
    const char *name;   /* until the next member */
    uint64_t header_at; /* position, in the unpacked tar, of its first header */
    uint64_t at, bytes; /* its data */
};

/* Takes about 5 KiB, and BYTE_STREAM_PACKED_BYTES for a compressed file. */
plim_status tar_open(struct tar **out, struct budget *budget, const char *path, enum compression compression,
                     plim_error *error);
void tar_close(struct tar *tar);
uint64_t tar_cost(enum compression compression);
/* The next file; *more false at the end. What was not read of the last one is passed over. */
plim_status tar_next(bool *more, struct tar_member *out, struct tar *tar, plim_error *error);
/* Bytes of the current member, in order; *got < bytes only at its end. */
plim_status tar_read(size_t *got, struct tar *tar, void *to, size_t bytes, plim_error *error);
/* A raw tar's data may also be read in place: file_read(...->file, member.at, ...). */
struct byte_stream *tar_stream(struct tar *tar);

/* ---- WebDataset ------------------------------------------------------------- */

/* images/0001.seg.png: key images/0001, extension seg.png. The key ends before the first dot behind the last slash.
   False for what belongs to no sample: without an extension, without a name before the dot, or metadata ("__x__").
   Both point into name. */
bool wds_key(const char *name, size_t *key_bytes, const char **extension);

#define WDS_MOST_FIELDS     64
#define WDS_EXTENSION_BYTES 64

struct wds;

/* A member of a sample. */
struct wds_field {
    char extension[WDS_EXTENSION_BYTES]; /* in lower case */
    uint64_t at, bytes;
};

/* Neighbours with the same key are one sample. */
struct wds_sample {
    const char *key;   /* until the next sample */
    uint64_t begin_at; /* the position of its first header */
    int field_count;
    struct wds_field field[WDS_MOST_FIELDS];
};

/* Of a raw tar a sample's bytes are read straight into the value buffer; those of a compressed one wait in a buffer of
   `staging_bytes` until the sample is whole: a larger sample is PLIM_BAD_DATA and says so. */
plim_status wds_open(struct wds **out, struct budget *budget, const char *path, enum compression compression,
                     size_t staging_bytes, plim_error *error);
void wds_close(struct wds *wds);
/* What an open one takes from the budget at most (tag formats). */
uint64_t wds_cost(enum compression compression, size_t staging_bytes);
/* Finds the next sample: names and sizes. Two members with the same extension are PLIM_BAD_DATA; the sample is
   passed over then. */
plim_status wds_next(bool *more, const struct wds_sample **out, struct wds *wds, plim_error *error);
/* The bytes of the current sample's field whose extension is one of "jpg;jpeg;png", into the buffer; out->data NULL
   when it has none. *fits false: the value buffer is too full, values->wanted tells; it can be asked for again. */
plim_status wds_take(bool *fits, struct string *out, struct wds *wds, const char *extensions,
                     struct value_buffer *values, plim_error *error);
/* The file, for errors about a sample. */
struct byte_stream *wds_stream(struct wds *wds);

#endif
