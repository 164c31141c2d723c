/* source.h - the common interface of all data formats: a source yields the elements of files.

   Every row has a fixed size. So the row of a string, or of a value with an extent that is not known in advance, only
   refers to bytes elsewhere (struct string, struct cell). Such a column is a variable-size column; the names of
   functions say that it "has values". The caller provides a buffer of fixed capacity for those bytes: a value_buffer
   (base/memory/value_buffer.h).

   A source is either indexable (read or read_values): element i can be read without the elements before it. Or it is a
   stream (reader_*): elements are read sequentially from the beginning. Opening a source reads headers only. A
   compressed file that has to be indexable is decompressed once, when reading starts, into an unlinked scratch file (on
   the disk, within the disk budget). */
#ifndef FORMATS_SOURCE_H
#define FORMATS_SOURCE_H

#include "base/files/file.h"
#include "base/memory/value_buffer.h"
#include "graph/tensor.h"

#define MOST_COLUMNS 64

/* Special cardinalities, with tf.data's values. */
#define CARDINALITY_INFINITE (-1)
#define CARDINALITY_UNKNOWN  (-2)

struct column {
    char name[64];
    enum type type;
    struct shape shape; /* of one element; -1: the extent varies, and rows are cells */
    uint64_t bytes;     /* size of one row */
    int origin;         /* after a map: the input column that this column is, in the same bytes; -1: a new column */
};

/* A row of a column with an extent of -1. `data` points at dim[0] * ... * dim[rank - 1] elements, without gaps. */
struct cell {
    void *data;
    int64_t dim[MOST_AXES];
};

struct spec {
    int column_count;
    struct column column[MOST_COLUMNS];
    uint64_t element_bytes; /* sum over all columns */
};

/* The folder of scratch files, and the disk budget that scratch files and file caches share. Any thread may call
   scratch_disk_take and scratch_disk_give. */
struct scratch_disk {
    const char *folder;
    uint64_t limit_bytes, used_bytes;
};

struct source;
struct file_list;
struct reader; /* reads a stream; each source type defines its own */

/* The destination of one call: row i of column c goes to to[c] + i * stride[c], and the bytes that rows refer to go
   into `values`. */
struct row_target {
    void *const *to;
    const uint64_t *stride;
    struct value_buffer *values; /* NULL only if no column is variable-size */
};

/* Rows that files hold in their final form: row i of a part lies at byte at + i * row_bytes of its file. */
struct row_layout {
    int part_count;
    struct layout_part {
        struct file *file; /* NULL before start(), if start() makes the file */
        uint64_t at, row_bytes;
        uint32_t swap; /* element size for byte swapping; 1: no swapping */
    } part[MOST_COLUMNS];
    struct layout_column {
        int part;
        uint64_t offset; /* in a row of the part */
    } column[MOST_COLUMNS];
};

struct source_type {
    const char *name;         /* the key in the job file: "idx", "npy", "random", "range" */
    const char *index_advice; /* of a stream: how to make its elements readable by index; NULL: impossible */
    /* Called once, after the plan was accepted and before the first read: decompresses files and allocates buffers. May
       be NULL. */
    plim_status (*start)(struct source *source, struct scratch_disk *scratch, plim_error *error);
    /* Reads elements index[0..count): column c of element index[i] goes to to[c] + i * stride[c]. Thread-safe after
       start(). */
    plim_status (*read)(struct source *source, const int64_t *index, int64_t count, void *const *to,
                        const uint64_t *stride, plim_error *error);
    /* The same for variable-size columns. *done < count: the buffer target->values is full; empty it and call again for
       the rest. *done == 0 with PLIM_OK: element index[0] does not fit into the empty buffer, which needs a capacity of
       values->wanted. */
    plim_status (*read_values)(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                               const struct row_target *target, plim_error *error);
    /* Elements first..first + count - 1 will be read soon, in any order, so the disk may start reading them. This is
       only advice. May be NULL. */
    void (*expect)(struct source *source, int64_t first, int64_t count);
    /* Whether recent reads waited for the disk, so that calling expect() is worthwhile. NULL: reads never wait. */
    bool (*waits)(const struct source *source);
    /* Where the rows lie; false: the files do not hold rows in their final form. May be NULL. */
    bool (*layout)(struct row_layout *out, const struct source *source);

    /* Streams. Opening a reader allocates at most source->reader_bytes from the budget (tag formats). The reader is at
       the beginning of epoch 0 then. */
    plim_status (*reader_open)(struct reader **out, struct source *source, struct budget *budget, plim_error *error);
    void (*reader_close)(struct reader *reader);
    /* Moves to the beginning of an epoch. The elements and their order are the same in each epoch, unless the source
       was opened to shuffle its files. */
    plim_status (*reader_rewind)(struct reader *reader, uint64_t epoch, plim_error *error);
    /* Reads the next 1..most elements. *got == 0: the epoch is over, or, if values->wanted is set, the next element
       does not fit into the empty buffer. Rows may refer to that buffer, or to memory of the reader that is valid until
       its next call. After PLIM_BAD_DATA the bad element counts as read: the next call continues after it. */
    plim_status (*reader_next)(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                               plim_error *error);
    /* Skips up to `count` elements. *passed < count: the epoch is over. May be NULL. */
    plim_status (*reader_skip)(int64_t *passed, struct reader *reader, int64_t count, plim_error *error);

    /* For error messages of the element's users: where an element comes from, e.g. "x.npy: record 3 at byte 128"
       (source_place). column: the column that the error is about, or NULL. False: unknown. Any thread may call it. May
       be NULL. */
    bool (*describe)(char out[256], const struct source *source, int64_t index, const char *column);
    /* The same for element `index` of an epoch of a stream; bad elements count. */
    bool (*reader_describe)(char out[256], struct reader *reader, uint64_t epoch, int64_t index);
    /* The number of files that the source reads, and the path of each, in reading order. They identify the data. NULL:
       there are no files. */
    int64_t (*file_count)(const struct source *source);
    void (*file_path)(char out[4096], const struct source *source, int64_t file);
    /* The class of a file, which follows from its folder. NULL: folders do not define classes. */
    int32_t (*file_class)(const struct source *source, int64_t file);
    /* The name of a class in a label column; returns NULL after the last class. NULL: the source knows no names. */
    const char *(*class_name)(const struct source *source, int64_t label);

    /* Releases what the type added to the source; source_close gives back the block and the list of files. May be
       NULL. */
    void (*close)(struct source *source);
};

struct source {
    const struct source_type *type;
    struct budget *budget;
    size_t bytes;            /* of the block, which begins with this struct; 0: not from source_make */
    struct file_list *files; /* that it reads, its own; NULL: it has no list */
    struct spec spec;
    int64_t count;          /* number of elements, or CARDINALITY_... */
    uint64_t value_bytes;   /* a good capacity for the buffer of a call: at least the largest element, if known */
    uint64_t reader_bytes;  /* of a stream: upper bound of what one reader allocates */
    uint64_t start_bytes;   /* upper bound of what start() allocates from the budget (tag formats) */
    uint64_t scratch_bytes; /* bytes that start() will write to the scratch folder */
    uint64_t bytes_read;    /* bytes read so far (atomic) */
};

/* IDX files, plain or gzip, zipped together: each file is one column ("x", "y" for two files). A rank-3 u8 file
   (images) gets one channel: (28, 28, 1). */
plim_status idx_open(struct source **out, struct budget *budget, const char *const *paths, int count,
                     plim_error *error);
/* npy files zipped together, one column each (cut NULL); or one file that is split into named ranges (first..end of the
   last axis). A range of a single index has rank 0. */
struct npy_range {
    const char *name;
    int64_t first, end;
    bool scalar;
};
struct npy_cut {
    const struct npy_range *ranges;
    int count;
};
plim_status npy_open(struct source **out, struct budget *budget, const char *const *paths, int count,
                     const struct npy_cut *cut, plim_error *error);
/* Arrays of an npz file, data sets of an HDF5 file, one column each; all have the same number of rows. column_count 0:
   all arrays, or all data sets of the root group, under their own names. What is neither deflated nor chunked is read
   in place; the rest is unpacked by start(). */
struct array_column {
    const char *array; /* "x" is x.npy of an npz file; of an HDF5 file a path: "/train/images" */
    const char *name;  /* NULL: as the array (npz only) */
};
plim_status npz_open(struct source **out, struct budget *budget, const char *path, const struct array_column *columns,
                     int column_count, plim_error *error);
plim_status hdf5_source_open(struct source **out, struct budget *budget, const char *path,
                             const struct array_column *columns, int column_count, plim_error *error);
/* Random values in [0, 1) that are a pure function of seed and index. The label is a class number (int32), or with
   classes == 1 a float target. learnable: the label depends on the features. */
struct random_options {
    int64_t elements;
    struct shape shape;
    int64_t classes;
    uint64_t seed;
    bool learnable;
};
plim_status random_open(struct source **out, struct budget *budget, const struct random_options *options,
                        plim_error *error);
plim_status range_open(struct source **out, struct budget *budget, int64_t n, plim_error *error);
/* Encoded images, one per file: columns image (string: the file's bytes) and label (int32). */
struct images_options {
    const char *folder;          /* the folder whose sub-folders are the classes; or NULL: */
    const char *const *patterns; /* patterns of file names; there are no labels then */
    int pattern_count;
    const char *const *class_names; /* NULL-terminated: only these classes, in this order; NULL: all, sorted */
    bool no_labels;
};
plim_status images_open(struct source **out, struct budget *budget, const struct images_options *options,
                        plim_error *error);
/* The caller's arrays. They are never copied as a whole, so they must outlive the source. */
plim_status memory_open(struct source **out, struct budget *budget, const struct spec *spec, const void *const *columns,
                        int64_t count, plim_error *error);

/* A function that generates elements sequentially. Only one thread and one iterator use it at a time. */
struct generator {
    /* Writes the next element to row[c], one row per column. *more = false: the epoch is over, and the rows are
       unchanged. Memory that strings and cells refer to must stay valid until the next call. */
    plim_status (*next)(bool *more, void *context, void *const *row, plim_error *error);
    /* Moves to the beginning of an epoch; also called before the first element. NULL: there is only one epoch. */
    plim_status (*rewind)(void *context, int64_t epoch, plim_error *error);
    void *context;
    int64_t count;        /* elements per epoch; 0 or CARDINALITY_UNKNOWN: unknown */
    uint64_t value_bytes; /* bytes of the strings and cells of the largest element; 0: 256 KiB */
};
plim_status generator_open(struct source **out, struct budget *budget, const struct spec *spec,
                           const struct generator *generator, plim_error *error);

/* The numbers start, start + step, ...: `count` of them, or CARDINALITY_INFINITE. */
plim_status counter_open(struct source **out, struct budget *budget, int64_t start, int64_t step, int64_t count,
                         plim_error *error);
/* The paths of a file list, as a string column "file". The function takes ownership of the list, on failure too. */
plim_status file_names_open(struct source **out, struct budget *budget, struct file_list *list, plim_error *error);
/* A string column "record": records in TFRecord framing from the standard output of a shell command. The command runs
   once per epoch, in `folder` (NULL: the current folder), with the epoch as $1. */
plim_status command_open(struct source **out, struct budget *budget, const char *command, const char *folder,
                         plim_error *error);

/* A block of `bytes` (tag formats) that begins with a struct source; *out is a pointer to whatever it is. */
plim_status source_make(void *out, size_t bytes, const struct source_type *type, struct budget *budget,
                        plim_error *error);
/* The end of opening: *out is the source, or, where opening failed, the source is closed. Returns `status`. */
plim_status source_opened(struct source **out, struct source *source, plim_status status);
void source_close(struct source *source);
/* An error that was found behind elements that were given first: the next call reports it. */
struct held_error {
    plim_status status;
    plim_error error;
};
/* Reports what is held, once; PLIM_OK: nothing is. */
plim_status held_error_report(struct held_error *held, plim_error *error);
/* For source_type: the files of source->files. */
#define SOURCE_FILES .file_count = source_file_count, .file_path = source_file_path
int64_t source_file_count(const struct source *source);
void source_file_path(char out[4096], const struct source *source, int64_t file);
/* Writes "PATH: record 17 at byte 9132". The byte is left out if it is SOURCE_BYTE_UNKNOWN. A long path is cut to its
   end. */
#define SOURCE_BYTE_UNKNOWN UINT64_MAX
void source_place(char out[256], const char *path, int64_t record, uint64_t byte);

/* Whether the rows are cells. */
bool column_is_variable(const struct column *column);
/* Whether the rows refer to bytes elsewhere, that is, whether they are strings or cells. */
bool column_has_values(const struct column *column);
bool spec_has_values(const struct spec *spec);
/* Computes the bytes of one row from type and shape; false: the number overflows. */
bool column_bytes(uint64_t *bytes, const struct column *column);
/* The index of the column of this name; -1: there is none. */
int spec_find(const struct spec *spec, const char *name);

#endif
