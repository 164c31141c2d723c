/* source.h - records of files, each format behind one interface.

   A source is indexable: element i can be read without those before it.
   Compressed files are unpacked once into an unlinked scratch file (on the
   disk, within the disk budget) when reading starts; opening reads headers only. */
#ifndef FORMATS_SOURCE_H
#define FORMATS_SOURCE_H

#include "base/file.h"
#include "graph/tensor.h"

#define MOST_COLUMNS 8

struct column {
    char name[64];
    enum type type;
    struct shape shape; /* of one element */
    uint64_t bytes;     /* of one element */
};

struct spec {
    int column_count;
    struct column column[MOST_COLUMNS];
    uint64_t element_bytes; /* all columns */
};

/* Where scratch files go and how much they may take. */
struct scratch {
    const char *folder;
    uint64_t limit_bytes, used_bytes;
};

struct source;

struct source_type {
    const char *name; /* the job file's word: "idx", "npy", "random", "range" */
    /* Called once before the first read, after the plan was accepted:
       unpacks, takes buffers. May be NULL. */
    plim_status (*start)(struct source *source, struct scratch *scratch, plim_error *error);
    /* Elements index[0..count) into column c at to[c] + i * stride[c].
       Thread-safe after start. */
    plim_status (*read)(struct source *source, const int64_t *index, int64_t count, void *const *to,
                        const uint64_t *stride, plim_error *error);
    void (*close)(struct source *source);
};

struct source {
    const struct source_type *type;
    struct budget *budget;
    struct spec spec;
    int64_t count;          /* elements */
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
/* The caller's arrays, never copied whole; they must outlive the source. */
plim_status memory_open(struct source **out, struct budget *budget, const struct spec *spec, const void *const *columns,
                        int64_t count, plim_error *error);

void source_close(struct source *source);

#endif
