/* array_source.h - arrays in files as a source: a column each, rows read in place by number.

   Used by the formats whose files hold rows in their final form: npy, IDX, npz, HDF5. What is packed is unpacked by
   start(), and is read from there afterwards. */
#ifndef FORMATS_TABLES_ARRAY_SOURCE_H
#define FORMATS_TABLES_ARRAY_SOURCE_H

#include "formats/tables/npy_fortran.h"
#include "formats/tables/rows.h"

struct array_part {
    struct file *origin;        /* the file that the user named */
    struct rows rows;           /* file NULL: the array is packed, and start() has not run */
    struct npy_fortran fortran; /* used where item is not 0: the array is in Fortran order */
    uint64_t scratch_at;        /* of a packed array in a container: where it goes in the scratch file */
};

struct array_source {
    struct source base;
    bool container;       /* all arrays lie in one file, which the format closes */
    struct file *scratch; /* of a container: its packed arrays, one behind another; NULL: none, or before start() */
    int part_count, part_most;
    struct array_part *part; /* part_most of them */
};

/* Memory for `count` arrays. */
plim_status array_source_reserve(struct array_source *source, int count, plim_error *error);
/* The next array is in a file of its own, which is opened. */
plim_status array_source_open_file(struct array_part **out, struct array_source *source, const char *path,
                                   plim_error *error);
/* The array that `header` describes lies in `file` (NULL: it is packed). */
void array_part_set(struct array_part *part, struct file *file, const struct npy_header *header);

/* For source_type. */
plim_status array_source_read(struct source *source, const int64_t *index, int64_t count, void *const *to,
                              const uint64_t *stride, plim_error *error);
void array_source_expect(struct source *source, int64_t first, int64_t count);
bool array_source_waits(const struct source *source);
bool array_source_layout(struct row_layout *out, const struct source *source);
bool array_source_describe(char out[256], const struct source *source, int64_t index, const char *column);
int64_t array_source_file_count(const struct source *source);
void array_source_file_path(char out[4096], const struct source *source, int64_t file);
/* The scratch file, the arrays' own files and the table; of a container its file stays open. */
void array_source_close(struct source *source);
#define ARRAY_SOURCE_FILES                                                                                             \
    .describe = array_source_describe, .file_count = array_source_file_count, .file_path = array_source_file_path

/* ---- containers ---- */

/* What an array of a container is called, and how those that belong together are chosen: for errors. */
struct array_naming {
    const char *kind, *choose;
};
/* An array of a container, and the column that it becomes. */
struct array_member {
    struct file *file;
    const struct npy_header *header;
    const char *name; /* what the file calls it */
    const char *column;
};
plim_status array_source_add_member(struct array_source *source, const struct array_member *member,
                                    const struct array_naming *naming, plim_error *error);
/* The last array is packed: it needs `bytes` of the scratch file, and `cost` bytes of memory while it is unpacked. */
plim_status array_source_plan_unpacking(struct array_source *source, uint64_t bytes, uint64_t cost, plim_error *error);
/* For start(): unpacks all packed arrays; unpack() writes array i to source->scratch, from its scratch_at on. */
plim_status array_source_unpack(struct array_source *source, struct scratch_disk *scratch,
                                plim_status (*unpack)(struct array_source *source, int i, plim_error *error),
                                plim_error *error);

#endif
