/* data_sink.h - where converted elements go: a file format for writing, one entry, one file (sink_NAME.c). */
#ifndef JOB_DATA_DATA_SINK_H
#define JOB_DATA_DATA_SINK_H

#include "formats/source.h"

struct sink; /* whatever the type makes of it */

struct sink_plan {
    const struct spec *spec; /* of one sample */
    uint64_t value_bytes;    /* of its values; 0: it has none */
};

struct sink_type {
    const char *suffixes[4]; /* of the output's name */
    /* What open takes from the budget at most. */
    uint64_t (*cost)(const struct sink_plan *plan);
    /* Refuses columns that it cannot hold, before anything is written. */
    plim_status (*open)(struct sink **out, struct budget *budget, const char *path, const struct sink_plan *plan,
                        plim_error *error);
    /* One element: the row of each column. */
    plim_status (*add)(struct sink *sink, void *const *row, plim_error *error);
    /* On the disk under its name. */
    plim_status (*finish)(struct sink *sink, plim_error *error);
    /* Without finish nothing is left. */
    void (*close)(struct sink *sink);
    /* The file of column c where each has one, as snprintf; NULL: there is one file, of the output's name. */
    int (*file_name)(char *out, size_t capacity, const char *path, const struct spec *spec, int c);
};

extern const struct sink_type sink_records, sink_npy, sink_tar, sink_snapshot;

/* By the end of the name: a name without a dot is that of a folder. NULL: none. */
const struct sink_type *sink_find(const char *path);

/* "{'descr': '<f4', ...}" of 128 bytes, which is how every npy file of ours begins; count < 0: `shape` is all of it.
   False: npy has no such type. */
#define NPY_HEAD_BYTES 128
bool npy_head(char out[NPY_HEAD_BYTES], enum type type, const struct shape *shape, int64_t count);

#endif
