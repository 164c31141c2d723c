/* source.h - records of files, each format behind one interface.

   Rows are of fixed size, always. A string, and a value of which only some extents are known beforehand, is a row
   that refers to bytes elsewhere (struct string, struct cell): we say that its column has values.

   A source is indexable (read or read_values): element i can be read without those before it. Or it is a
   stream (reader): elements come one after another, from the beginning. Opening reads headers only; compressed
   files that are to be indexable are unpacked once into an unlinked scratch file (on the disk, within the
   disk budget) when reading starts. */
#ifndef FORMATS_SOURCE_H
#define FORMATS_SOURCE_H

#include "base/files/file.h"
#include "base/memory/room.h"
#include "graph/tensor.h"

#define MOST_COLUMNS 64

/* Cardinalities that are no counts, as tf.data has them. */
#define CARDINALITY_INFINITE (-1)
#define CARDINALITY_UNKNOWN  (-2)

struct column {
    char name[64];
    enum type type;
    struct shape shape; /* of one element; -1: any extent, and rows are cells */
    uint64_t bytes;     /* of one row */
    int origin;         /* after a map: the column of its input that this is, in the same bytes; -1: a new one */
};

/* A row of a column with an extent of -1: `data` holds the product of dim[0..rank) elements, packed. */
struct cell {
    void *data;
    int64_t dim[MOST_AXES];
};

struct spec {
    int column_count;
    struct column column[MOST_COLUMNS];
    uint64_t element_bytes; /* all columns */
};

/* Where scratch files go, and how much they and caches in files may take on disk: scratch_take and scratch_give, from any
   thread. */
struct scratch {
    const char *folder;
    uint64_t limit_bytes, used_bytes;
};

struct source;
struct reader; /* of a stream: whatever the source's type makes of it */

/* Where the rows of one call go: row i of column c at to[c] + i * stride[c], what they refer to into the room. */
struct row_target {
    void *const *to;
    const uint64_t *stride;
    struct room *room; /* NULL only where no column has values */
};

/* Rows that lie in files as they are: row i of a part at byte at + i * row_bytes of its file. */
struct row_layout {
    int part_count;
    struct layout_part {
        struct file *file; /* NULL before start, where that makes it */
        uint64_t at, row_bytes;
        uint32_t swap; /* bytes of an element to be turned round; 1: none */
    } part[MOST_COLUMNS];
    struct layout_column {
        int part;
        uint64_t offset; /* in a row of it */
    } column[MOST_COLUMNS];
};

struct source_type {
    const char *name;         /* the job file's word: "idx", "npy", "random", "range" */
    const char *index_advice; /* of a stream: what would make its elements readable by number; NULL: nothing */
    /* Called once before the first read, after the plan was accepted:
       unpacks, takes buffers. May be NULL. */
    plim_status (*start)(struct source *source, struct scratch *scratch, plim_error *error);
    /* Elements index[0..count) into column c at to[c] + i * stride[c].
       Thread-safe after start. */
    plim_status (*read)(struct source *source, const int64_t *index, int64_t count, void *const *to,
                        const uint64_t *stride, plim_error *error);
    /* The same where columns have values. *done < count: the room is full, ask again for the others with an empty
       one. *done == 0 with PLIM_OK: element index[0] does not fit into an empty room (room->wanted would do). */
    plim_status (*read_values)(int64_t *done, struct source *source, const int64_t *index, int64_t count,
                               const struct row_target *target, plim_error *error);
    /* Elements first..first + count will be asked for soon, in any order: the disk may begin. Advice; may be NULL. */
    void (*expect)(struct source *source, int64_t first, int64_t count);
    /* Lately reads had to wait for the disk: it had better begin with what comes next. May be NULL: they never do. */
    bool (*waits)(const struct source *source);
    /* Where the rows lie; false: they are not in files as they are. May be NULL. */
    bool (*layout)(struct row_layout *out, const struct source *source);

    /* Streams. A reader takes source->reader_bytes from the budget at most (tag formats), on opening; it stands at
       the beginning of epoch 0 then. */
    plim_status (*reader_open)(struct reader **out, struct source *source, struct budget *budget, plim_error *error);
    void (*reader_close)(struct reader *reader);
    /* To the beginning of an epoch: the same elements, unless the source is told to mix them. */
    plim_status (*reader_rewind)(struct reader *reader, uint64_t epoch, plim_error *error);
    /* The next 1..most elements. *got == 0: the epoch is over, or, with room->wanted set, the next one does not
       fit into the empty room. Rows may refer to the room or to memory of the reader's, until its next call.
       After PLIM_BAD_DATA the bad element counts as read: calling again goes on behind it. */
    plim_status (*reader_next)(int64_t *got, struct reader *reader, int64_t most, const struct row_target *target,
                               plim_error *error);
    /* Passes over up to `count` elements; *passed < count: the epoch is over. May be NULL. */
    plim_status (*reader_skip)(int64_t *passed, struct reader *reader, int64_t count, plim_error *error);

    /* Where an element is from, for errors of those who use it: "x.npy: record 3 at byte 128" (source_place). column:
       the one that the error is about, or NULL. False: it cannot tell. Any thread. May be NULL. */
    bool (*describe)(char out[256], const struct source *source, int64_t index, const char *column);
    /* The same of a reader's element: which one of which epoch, bad ones counted. */
    bool (*reader_describe)(char out[256], struct reader *reader, uint64_t epoch, int64_t index);
    /* The files that it reads, in its order, and the path of one: what tells this data from other data. May be NULL:
       there are none. */
    int64_t (*file_count)(const struct source *source);
    void (*file_path)(char out[4096], const struct source *source, int64_t file);
    /* The class that the file's place gives it; NULL: places give none. */
    int32_t (*file_class)(const struct source *source, int64_t file);
    /* The name of a class of a column of labels; NULL behind the last. May be NULL: it knows none. */
    const char *(*class_name)(const struct source *source, int64_t label);

    void (*close)(struct source *source);
};

struct source {
    const struct source_type *type;
    struct budget *budget;
    struct spec spec;
    int64_t count;          /* elements, or CARDINALITY_... */
    uint64_t room_bytes;    /* a good size for the room of a call: not less than the largest element, where known */
    uint64_t reader_bytes;  /* of a stream */
    uint64_t start_bytes;   /* what start() will take from the budget at most (tag formats) */
    uint64_t scratch_bytes; /* what start() will write to the scratch folder */
    uint64_t bytes_read;    /* so far (atomic) */
};

/* IDX, plain or gzip: files side by side, one column each ("x", "y" for two
   files). A rank-3 u8 file (images) gets one channel: (28, 28, 1). */
plim_status idx_open(struct source **out, struct budget *budget, const char *const *paths, int count,
                     plim_error *error);
/* npy files side by side; or one cut into named column ranges (first..end of
   the last axis; a single column has rank 0). */
struct npy_range {
    const char *name;
    int64_t first, end;
    bool scalar;
};
plim_status npy_open(struct source **out, struct budget *budget, const char *const *paths, int count,
                     const struct npy_range *ranges, int range_count, plim_error *error);
/* Values in [0, 1), a pure function of seed and index; label = class number
   (int32), or with classes == 1 a float target. learnable: the label depends on the features. */
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
/* Encoded images, a file each: columns image (string: the file's bytes) and label (int32). */
struct images_options {
    const char *folder;          /* whose sub-folders are classes; or NULL: */
    const char *const *patterns; /* files; there are no labels then */
    int pattern_count;
    const char *const *class_names; /* NULL at the end: these classes, in this order; NULL: all, sorted */
    bool no_labels;
};
plim_status images_open(struct source **out, struct budget *budget, const struct images_options *options,
                        plim_error *error);
/* The caller's arrays, never copied whole; they must outlive the source. */
plim_status memory_open(struct source **out, struct budget *budget, const struct spec *spec, const void *const *columns,
                        int64_t count, plim_error *error);

/* Elements made by a function, one after another; on one thread at a time, by one iterator at a time. */
struct generator {
    /* The next element into row[c], one for each column; *more = false: the epoch is over, rows stay untouched. What
       strings and cells refer to must live until the next call. */
    plim_status (*next)(bool *more, void *context, void *const *row, plim_error *error);
    /* To the beginning of an epoch; NULL: there is one only. Called before the first element too. */
    plim_status (*rewind)(void *context, int64_t epoch, plim_error *error);
    void *context;
    int64_t count;        /* elements an epoch; 0 or CARDINALITY_UNKNOWN: not known */
    uint64_t value_bytes; /* of the largest element's strings and cells; 0: 256 KiB */
};
plim_status generator_open(struct source **out, struct budget *budget, const struct spec *spec,
                           const struct generator *generator, plim_error *error);

/* start, start + step, ...: so many, or CARDINALITY_INFINITE. */
plim_status counter_open(struct source **out, struct budget *budget, int64_t start, int64_t step, int64_t count,
                         plim_error *error);
/* The paths of a list, which is taken over, on failure too: a column "file" of strings. */
struct file_list;
plim_status file_names_open(struct source **out, struct budget *budget, struct file_list *list, plim_error *error);
/* Records in TFRecord's framing on the standard output of a shell's command, run in `folder` (NULL: ours) once an
   epoch, with the epoch as $1: a column "record" of strings. */
plim_status command_open(struct source **out, struct budget *budget, const char *command, const char *folder,
                         plim_error *error);

void source_close(struct source *source);
/* "PATH: record 17 at byte 9132"; without the byte where that is SOURCE_BYTE_UNKNOWN. Of a long path its end. */
#define SOURCE_BYTE_UNKNOWN UINT64_MAX
void source_place(char out[256], const char *path, int64_t record, uint64_t byte);

/* Rows are cells. */
bool column_is_variable(const struct column *column);
/* Rows refer to bytes elsewhere: strings or cells. */
bool column_has_values(const struct column *column);
bool spec_has_values(const struct spec *spec);
/* Bytes of one row, from type and shape; false when they do not fit. */
bool column_bytes(uint64_t *bytes, const struct column *column);
/* -1 when there is none of this name. */
int spec_find(const struct spec *spec, const char *name);

#endif
