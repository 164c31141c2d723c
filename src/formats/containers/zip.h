/* zip.h - members of a zip file, and arrays of an npz file, which is a zip of npy files.

   Memory does not grow with the number of members: the directory is scanned, never kept. Zip64 is known. Members
   must lie in the order of the directory, without overlapping; a member cannot unpack to more than deflate can make
   of its bytes. Encrypted members and other compressions than deflate are refused when they are read. */
#ifndef FORMATS_CONTAINERS_ZIP_H
#define FORMATS_CONTAINERS_ZIP_H

#include "formats/tables/npy_header.h"

#define ZIP_NAME_MOST 1023
/* What an open zip_stream takes from the budget at most. */
#define ZIP_STREAM_BYTES ((uint64_t)128 * 1024)

/* An open file. All of it is read-only outside of zip.c. */
struct zip {
    struct budget *budget;
    struct file *file;
    uint64_t directory_at, directory_bytes, count;
};

struct zip_member {
    char name[ZIP_NAME_MOST + 1];
    uint16_t method, flags; /* 0: stored, 8: deflated */
    uint32_t crc;
    uint64_t packed_bytes, bytes; /* in the file; unpacked */
    uint64_t header_at, limit;    /* where it begins in the file, and where the next one does */
    uint64_t at;                  /* its data; known after zip_locate or zip_find */
};

/* Where a position over the directory stands; zeroed at first. */
struct zip_position {
    uint64_t at, index, floor;
};

plim_status zip_open(struct zip **out, struct budget *budget, const char *path, plim_error *error);
void zip_close(struct zip *zip);
/* The next member of the directory; *more false after the last. */
plim_status zip_next(bool *more, struct zip_member *out, struct zip_position *position, struct zip *zip,
                     plim_error *error);
/* The one of this name, located. None, or two of them, is PLIM_BAD_DATA. */
plim_status zip_find(struct zip_member *out, struct zip *zip, const char *name, plim_error *error);
/* Looks at the member's own header, and finds its data: a stored one's can be read in place. */
plim_status zip_locate(struct zip_member *member, struct zip *zip, plim_error *error);

/* The member's bytes in order, unpacked, with its checksum looked at behind the last one. */
struct zip_stream;
plim_status zip_stream_open(struct zip_stream **out, struct zip *zip, const struct zip_member *member,
                            plim_error *error);
void zip_stream_close(struct zip_stream *stream);
/* Up to `bytes`; *got < bytes only at the end. */
plim_status zip_stream_read(size_t *got, struct zip_stream *stream, void *to, size_t bytes, plim_error *error);
/* All member->bytes of it, into memory; into a scratch file, from byte `at` on. */
plim_status zip_read(struct zip *zip, const struct zip_member *member, void *to, plim_error *error);
plim_status zip_unpack(struct zip *zip, const struct zip_member *member, struct file *to, uint64_t at,
                       plim_error *error);

/* ---- npz ------------------------------------------------------------------- */

struct npz_array {
    struct zip_member member;
    size_t name_bytes; /* of member.name without ".npy" */
    /* Of a stored member header.at is a byte of the file: rows are read in place. Of a deflated one it is a byte of
       what zip_stream gives. */
    struct npy_header header;
};

static inline bool npz_is_stored(const struct npz_array *array)
{
    return array->member.method == 0;
}

/* The next member whose name ends with ".npy". */
plim_status npz_next(bool *more, struct npz_array *out, struct zip_position *position, struct zip *zip,
                     plim_error *error);
/* The array of this name ("x" for x.npy). */
plim_status npz_find(struct npz_array *out, struct zip *zip, const char *name, plim_error *error);

#endif
