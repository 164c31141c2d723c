/* hdf5_source.h - data sets of an HDF5 file side by side as a source: a column each. */
#ifndef FORMATS_SOURCES_HDF5_SOURCE_H
#define FORMATS_SOURCES_HDF5_SOURCE_H

#include "formats/source.h"

struct hdf5_column {
    const char *path; /* "/train/images" */
    const char *name;
};

/* column_count 0: all data sets of the root group, under their names. Contiguous ones are read in place, chunked ones
   are unpacked when reading starts. All have as many rows. */
plim_status hdf5_source_open(struct source **out, struct budget *budget, const char *path,
                             const struct hdf5_column *columns, int column_count, plim_error *error);

#endif
