/* tar_source.h - tar files in WebDataset's convention as a source: a column for each extension that is asked for. */
#ifndef FORMATS_SOURCES_TAR_SOURCE_H
#define FORMATS_SOURCES_TAR_SOURCE_H

#include "formats/containers/tar.h"
#include "formats/sources/file_source.h"

enum tar_content {
    TAR_BYTES, /* as they are: a string */
    TAR_CLASS, /* a whole number in decimal digits: int64 */
    TAR_ARRAY, /* an npy file of this type and shape */
};

struct tar_column {
    const char *extensions; /* "jpg;jpeg;png": the first that the sample has */
    const char *name;
    enum tar_content content;
    enum type type; /* of TAR_ARRAY */
    struct shape shape;
    bool optional; /* where the sample has none of them: `whole`, `text`, zeros. Otherwise that is an error */
    int64_t whole;
    const char *text;
};

/* Takes the list of files over, on failure too; columns are copied. A sample of compressed files must fit the buffer
   (0: 1 MiB); of raw ones it goes straight to the value buffer. */
plim_status tar_source_open(struct source **out, struct budget *budget, const struct file_choice *choice,
                            const struct tar_column *columns, int column_count, plim_error *error);

/* The extensions of the first sample of the first file: strings of the value buffer, at most MOST_COLUMNS. */
plim_status tar_first_extensions(struct string out[MOST_COLUMNS], int *count, struct budget *budget,
                                 const struct file_choice *choice, struct value_buffer *values, plim_error *error);

#endif
