/* safetensors.h - named tensors in a file: u64 header length, JSON header,
   data. Read in place; nothing is allocated that the file does not pay for. */
#ifndef FORMATS_WEIGHTS_SAFETENSORS_H
#define FORMATS_WEIGHTS_SAFETENSORS_H

#include "base/files/file.h"
#include "graph/tensor.h"

/* The format's own limit on the header. */
#define SAFETENSORS_HEADER_MOST 100000000

struct safetensors_entry {
    const char *name;
    enum type type;
    struct shape shape;
    uint64_t offset, bytes; /* offset in the file */
};

struct safetensors; /* open for reading */

/* Checks everything that the format forbids: holes, overlaps, sizes that do
   not match shapes, duplicates, trailing bytes. PLIM_BAD_DATA names the byte. */
plim_status safetensors_open(struct safetensors **out, struct budget *budget, const char *path, plim_error *error);
void safetensors_close(struct safetensors *file);
int safetensors_count(const struct safetensors *file);
const struct safetensors_entry *safetensors_at(const struct safetensors *file, int i);
const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name);
/* A value of __metadata__, or NULL. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);
/* Bytes [from, from + bytes) of an entry's data. */
plim_status safetensors_read(struct safetensors *file, const struct safetensors_entry *entry, uint64_t from, void *to,
                             uint64_t bytes, plim_error *error);
/* SHA-256 over the whole file but its last `tail` bytes, through a small buffer. */
plim_status safetensors_digest(uint8_t digest[32], struct safetensors *file, uint64_t tail, plim_error *error);

/* Writing: declare all tensors first, then give their bytes in that order.
   Writes to PATH.partial, and safetensors_commit syncs, renames it into place and
   syncs the folder. Any failure removes the partial file, and later calls fail;
   safetensors_abandon frees the writer in every case, after a commit too. */
struct safetensors_writer;
/* The buffer is the caller's, of at least 4096 bytes; NULL: taken from the
   budget. */
plim_status safetensors_create(struct safetensors_writer **out, struct budget *budget, const char *path, void *buffer,
                               uint64_t buffer_bytes, plim_error *error);
/* What is known of the header before the first tensor is declared: so many bytes of it, at most, and so many tensors.
   It is taken at once, and then takes no more; without, it grows as it is filled. */
plim_status safetensors_expect(struct safetensors_writer *writer, uint64_t header_bytes, uint64_t tensors,
                               plim_error *error);
/* What a writer that expects these takes for its header (the tag is checkpoint). */
uint64_t safetensors_header_cost(uint64_t header_bytes, uint64_t tensors);
plim_status safetensors_declare(struct safetensors_writer *writer, const char *name, enum type type,
                                const struct shape *shape, plim_error *error);
plim_status safetensors_note(struct safetensors_writer *writer, const char *key, const char *value, plim_error *error);
/* Data starts at a multiple of 4096. */
plim_status safetensors_write(struct safetensors_writer *writer, const void *data, uint64_t bytes, plim_error *error);
/* With seal: a last tensor "plimsoll.sha256" (U8 [32]), declared by itself,
   holds the SHA-256 of every byte before it. */
/* All bytes of the partial file on the disk, under its partial name still:
   what may fail fails here, before anything is renamed. */
plim_status safetensors_finish(struct safetensors_writer *writer, plim_error *error);
plim_status safetensors_commit(struct safetensors_writer *writer, plim_error *error);
void safetensors_seal(struct safetensors_writer *writer);    /* before the first write */
void safetensors_abandon(struct safetensors_writer *writer); /* frees; removes what was not committed */

#endif
