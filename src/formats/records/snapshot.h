/* snapshot.h - elements of a pipeline in files, as they were: written once from beginning to end, read by index.

   PATH is: the 8 bytes "PLIMSNP1"; how many bytes all this up to row 0 is, as a 64-bit number, low byte first; a JSON
   object, padded with spaces; the rows, all of the same size.

       {"count": 1000, "values_bytes": 0, "digest": "...", "columns": [{"name": "x", "type": "float32", "shape": [28]}]}

   A row is its columns one after another, each from a multiple of 8 bytes on, in the machine's own (little-endian)
   numbers. Where columns have values there is PATH.values beside it, and a row has, for a string, where it begins there
   and its bytes, two 64-bit numbers; for a value whose extents (-1 in "shape") are its own, where it begins
   and its 6 extents, 64-bit numbers; of an array of strings, pairs of such numbers lie there.

   Both are written under NAME.partial. PATH gets its name last: when it is there, all of it is. */
#ifndef FORMATS_RECORDS_SNAPSHOT_H
#define FORMATS_RECORDS_SNAPSHOT_H

#include "formats/source.h"

#define SNAPSHOT_DIGEST 65 /* 64 hexadecimal digits and a NUL */

struct snapshot;

/* What its head says. */
struct snapshot_head {
    struct spec spec;
    int64_t count;
    uint64_t values_bytes;
    uint64_t rows_at; /* where row 0 begins */
    char digest[SNAPSHOT_DIGEST];
};

/* What an open one takes at most (tag formats). */
uint64_t snapshot_bytes(const char *path);
/* What one of so many elements takes on disk at most, values beside the rows not included. */
uint64_t snapshot_disk(const struct spec *spec, int64_t count);
/* Begins to write. digest: of whatever it is made of, to find it again by; "" is fine. */
plim_status snapshot_create(struct snapshot **out, struct budget *budget, const char *path, const struct spec *spec,
                            const char *digest, plim_error *error);
/* Rows behind the last: row i of column c at from[c] + i * stride[c]. */
plim_status snapshot_add(struct snapshot *snapshot, const void *const *from, const uint64_t *stride, int64_t count,
                         plim_error *error);
/* Bytes on disk with all that was added so far. */
uint64_t snapshot_size(const struct snapshot *snapshot);
/* Begins anew with the first row. */
void snapshot_restart(struct snapshot *snapshot);
/* On the disk under its name; from now on it can be read. */
plim_status snapshot_finish(struct snapshot *snapshot, plim_error *error);
/* To read one that is there. */
plim_status snapshot_open(struct snapshot **out, struct budget *budget, const char *path, plim_error *error);
/* One that is not finished leaves nothing behind. */
void snapshot_close(struct snapshot *snapshot);

const struct snapshot_head *snapshot_head(const struct snapshot *snapshot);
/* Its files: rows, and what they refer to. */
const char *snapshot_path(const struct snapshot *snapshot);
const char *snapshot_values_path(const struct snapshot *snapshot);
/* As source_type.read_values; any thread. */
plim_status snapshot_read(int64_t *done, const struct snapshot *snapshot, const int64_t *index, int64_t count,
                          const struct row_target *target, plim_error *error);

/* A folder that dataset_save wrote (its file is "snapshot"), as a source with an index. */
#define SNAPSHOT_NAME "snapshot"
plim_status snapshot_source_open(struct source **out, struct budget *budget, const char *folder, plim_error *error);

/* Reading and writing the head (snapshot_head.c). */
plim_status snapshot_head_read(struct snapshot_head *out, struct file *file, struct budget *budget, plim_error *error);
/* rows_at is set; the same for any count. work: SNAPSHOT_HEAD_BYTES to work in. */
#define SNAPSHOT_HEAD_BYTES ((size_t)64 * 1024)
plim_status snapshot_head_write(struct snapshot_head *head, struct file *file, void *work, plim_error *error);
/* Where columns begin in a row; returns the bytes of a row. */
uint64_t snapshot_columns(uint64_t at[MOST_COLUMNS], const struct spec *spec);

#endif
