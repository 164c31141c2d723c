/* npz_source.h - arrays of an npz file side by side as a source: a column each. */
#ifndef FORMATS_SOURCES_NPZ_SOURCE_H
#define FORMATS_SOURCES_NPZ_SOURCE_H

#include "formats/source.h"

struct npz_column {
    const char *array; /* "x" is x.npy in the file */
    const char *name;  /* NULL: as the array */
};

/* column_count 0: all arrays, under their names. Stored arrays are read in place, deflated ones are unpacked when
   reading starts. All have as many rows. */
plim_status npz_open(struct source **out, struct budget *budget, const char *path, const struct npz_column *columns,
                     int column_count, plim_error *error);

#endif
