/* line_source.h - files of lines, of records of one size, and of comma-separated values as sources. */
#ifndef FORMATS_SOURCES_LINE_SOURCE_H
#define FORMATS_SOURCES_LINE_SOURCE_H

#include "formats/sources/file_source.h"
#include "formats/tables/csv.h"
#include "formats/tables/lines.h"

/* All of them take the list of files over, on failure too. */

/* A column "line" of strings, as tf.data.TextLineDataset. A line must fit the buffer (0: LINES_BUFFER_BYTES). */
plim_status lines_source_open(struct source **out, struct budget *budget, const struct file_choice *choice,
                              plim_error *error);

/* A column "record" of strings, as tf.data.FixedLengthRecordDataset: indexable where the files are raw, are read one
   after another, and are at most FIXED_MOST_FILES, for all of them are open then. */
#define FIXED_MOST_FILES 64
plim_status fixed_source_open(struct source **out, struct budget *budget, const struct file_choice *choice,
                              const struct fixed_layout *layout, plim_error *error);

/* Where a column of the file goes: to which column of the elements, and (of a vector) which place of it. */
struct csv_place {
    int output;
    int64_t at;
};
/* A column of the elements: a column of the file, or several as a vector of float32. */
struct csv_output {
    const char *name;
    int64_t width; /* 0: one value */
    enum type type;
};

/* Column c that is read goes to places[c]. */
struct csv_layout {
    const struct csv_place *places;
    const struct csv_output *outputs;
    int output_count;
};

/* What makes a vector is TYPE_F32. Everything is copied. Compression and buffer are those of the options. */
plim_status csv_source_open(struct source **out, struct budget *budget, const struct file_choice *choice,
                            const struct csv_options *options, const struct csv_layout *layout, plim_error *error);

#endif
