/* hdf5_reader.h - what hdf5.c (headers, groups), hdf5_message.c (what a data set is) and hdf5_chunks.c share. */
#ifndef FORMATS_CONTAINERS_HDF5_READER_H
#define FORMATS_CONTAINERS_HDF5_READER_H

#include "formats/containers/hdf5.h"
#include "formats/files/cursor.h"

#define HDF5_UNDEFINED UINT64_MAX

struct hdf5 {
    struct budget *budget;
    struct file *file;
    bool borrowed;       /* the file is somebody else's */
    uint64_t base;       /* where it begins in the file */
    uint64_t file_bytes; /* from there on */
    uint64_t root;       /* object header of the root group */
    uint64_t steps_left; /* nodes and messages that may still be looked at in one call: no file has more */
};

/* Messages of an object header. */
enum {
    MESSAGE_DATASPACE = 1,
    MESSAGE_LINK_INFO = 2,
    MESSAGE_DATATYPE = 3,
    MESSAGE_OLD_FILL = 4,
    MESSAGE_FILL = 5,
    MESSAGE_LINK = 6,
    MESSAGE_LAYOUT = 8,
    MESSAGE_FILTERS = 11,
    MESSAGE_CONTINUATION = 16,
    MESSAGE_SYMBOL_TABLE = 17,
};

/* Messages that are longer are cut: none that is looked at is. */
#define MESSAGE_MOST 4096

struct message {
    unsigned type, flags;
    size_t bytes;
    uint64_t at;
    uint8_t data[MESSAGE_MOST];
};

/* Bytes of the file; beyond its end is PLIM_BAD_DATA. */
plim_status hdf5_read(struct hdf5 *hdf5, uint64_t at, void *to, size_t bytes, plim_error *error);
/* One step further; PLIM_BAD_DATA when it goes in circles. */
plim_status hdf5_step(struct hdf5 *hdf5, uint64_t at, plim_error *error);

#define hdf5_bad(hdf5, error, at, ...) fail_byte(error, PLIM_BAD_DATA, file_path((hdf5)->file), at, __VA_ARGS__)

/* What a message of a data set's header says. `seen` has a bit for each type that came. */
plim_status hdf5_take_message(struct hdf5_dataset *out, uint32_t *seen, struct hdf5 *hdf5,
                              const struct message *message, plim_error *error);
/* That what was said makes a data set. */
plim_status hdf5_check_dataset(struct hdf5_dataset *dataset, uint32_t seen, struct hdf5 *hdf5, uint64_t at,
                               plim_error *error);

#endif
