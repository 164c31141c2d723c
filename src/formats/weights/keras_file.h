/* keras_file.h - a .keras file: a zip with config.json and model.weights.h5.

   The weights are read where they lie: a stored member is HDF5 inside the file; a packed one is unpacked once, to a
   scratch file. Nothing else of the zip is looked at, no name in it is a path of ours, and sizes are checked against
   the bytes that are there (zip.h, hdf5.h). */
#ifndef FORMATS_WEIGHTS_KERAS_FILE_H
#define FORMATS_WEIGHTS_KERAS_FILE_H

#include "formats/containers/hdf5.h"
#include "formats/files/scratch_file.h"

#define KERAS_CONFIG_MOST ((uint64_t)32 << 20)

struct keras_file;

/* Whether the file begins as a zip does; false also when it cannot be read. */
plim_status keras_file_is(bool *out, struct budget *budget, const char *path, plim_error *error);
plim_status keras_file_open(struct keras_file **out, struct budget *budget, const char *path, plim_error *error);
void keras_file_close(struct keras_file *file);
/* config.json, with a NUL behind it. Yours to give back: *bytes + 1, TAG_PLANNER. */
plim_status keras_file_config(char **text, size_t *bytes, struct keras_file *file, plim_error *error);
/* Before the two below. */
plim_status keras_file_weights(struct keras_file *file, struct scratch_disk *scratch, plim_error *error);
/* "layers/dense/vars/0": float32, and all of its bytes are there. */
plim_status keras_file_find(struct hdf5_dataset *out, struct keras_file *file, const char *path, plim_error *error);
plim_status keras_file_read(struct keras_file *file, const struct hdf5_dataset *dataset, void *to, plim_error *error);

#endif
