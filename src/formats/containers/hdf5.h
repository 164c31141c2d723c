/* hdf5.h - data sets of HDF5 files, as far as h5py writes them: contiguous, or in chunks with gzip, shuffle and
   fletcher32.

   A reader of our own, of the parts of the format that these files are made of: superblocks 0 to 3, object headers 1
   and 2, groups as symbol tables or as links in the header, layouts in version 3, chunks indexed by the first kind of
   B-tree or all in one. Whole numbers and floats. Everything else is PLIM_BAD_DATA with a name, and every address and
   size is checked against the file before it is used. Memory is independent of the file, but for one chunk. */
#ifndef FORMATS_CONTAINERS_HDF5_H
#define FORMATS_CONTAINERS_HDF5_H

#include "base/files/file.h"
#include "graph/tensor.h"

#define HDF5_NAME_MOST    255
#define HDF5_MOST_FILTERS 8

struct hdf5;

enum hdf5_layout { HDF5_NONE, HDF5_CONTIGUOUS, HDF5_CHUNKED };
enum hdf5_filter { HDF5_DEFLATE = 1, HDF5_SHUFFLE = 2, HDF5_FLETCHER32 = 3 };

struct hdf5_dataset {
    enum type type;
    bool big_endian;
    struct shape shape; /* no axis of length 0; rank 0: a single value */
    uint64_t bytes;     /* of all of it */
    enum hdf5_layout layout;
    uint64_t at; /* contiguous: the data; chunked: their index, or the only chunk */
    /* Chunked: */
    int64_t chunk[MOST_AXES];
    uint64_t chunk_bytes;
    bool single; /* one chunk, at `at`, of packed_bytes */
    uint64_t packed_bytes;
    int filter_count;
    enum hdf5_filter filter[HDF5_MOST_FILTERS]; /* as they were applied */
    bool other_fill;                            /* what was never written is not 0 */
};

plim_status hdf5_open(struct hdf5 **out, struct budget *budget, const char *path, plim_error *error);
/* The same of `bytes` from byte `base` of a file on, which must outlive it. Addresses of data sets are from there. */
plim_status hdf5_open_inside(struct hdf5 **out, struct budget *budget, struct file *file, uint64_t base, uint64_t bytes,
                             plim_error *error);
void hdf5_close(struct hdf5 *hdf5);
struct file *hdf5_file(struct hdf5 *hdf5);

/* The data set of this path, "images" or "/train/images". */
plim_status hdf5_find(struct hdf5_dataset *out, struct hdf5 *hdf5, const char *path, plim_error *error);
/* The names of what lies in the root group, in order; `visit` false: no more. */
typedef bool hdf5_visit(void *context, const char *name);
plim_status hdf5_names(struct hdf5 *hdf5, hdf5_visit *visit, void *context, plim_error *error);

/* All bytes of a contiguous data set. */
plim_status hdf5_load(struct hdf5 *hdf5, const struct hdf5_dataset *dataset, void *to, plim_error *error);
/* A chunked data set's elements, packed in C order, to `to` from byte `at` on (bytes of it). Takes hdf5_unpack_cost
   while it runs. */
plim_status hdf5_unpack(struct hdf5 *hdf5, const struct hdf5_dataset *dataset, struct file *to, uint64_t at,
                        plim_error *error);
uint64_t hdf5_unpack_cost(const struct hdf5_dataset *dataset);

#endif
