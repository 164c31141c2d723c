/* map_functions.h - the functions that `map:` knows by name. Each has a line in map_functions.def and a file.

   The options of all of them begin with the name of the column; "" is the first one, for one_hot the last one. */
#ifndef PIPELINE_MAPS_MAP_FUNCTIONS_H
#define PIPELINE_MAPS_MAP_FUNCTIONS_H

#include <stddef.h>

#include "base/text/settings.h"
#include "pipeline/core/dataset.h"

struct cast_options {
    char column[64];
    enum type type;
};

/* x * scale + offset; whole numbers become float32. */
struct rescale_options {
    char column[64];
    double scale, offset;
};

/* Class numbers into float32 of one more axis; a number outside [0, classes) is PLIM_BAD_DATA. */
struct one_hot_options {
    char column[64];
    int64_t classes;
};

/* The bytes of strings as numbers: tf.io.decode_raw. */
struct decode_raw_options {
    char column[64];
    enum type type;
    bool has_shape; /* else (-1), as many as there are */
    struct shape shape;
    bool big_endian;
    uint64_t offset; /* bytes that are skipped first */
};

/* tf.ensure_shape. */
struct ensure_shape_options {
    char column[64];
    struct shape shape; /* no -1 */
};

/* pad, truncate, to_dense: rows of other extents. */
struct fit_options {
    char column[64];
    struct shape shape; /* -1: this axis stays as it is */
    double value;
    char text[64]; /* the value of string columns */
};

/* reshape, squeeze, expand_dims. */
struct shape_options {
    char column[64];
    struct shape shape;      /* reshape: one extent may be -1 */
    int axis_count;          /* squeeze: 0 is all axes of extent 1 */
    int64_t axis[MOST_AXES]; /* expand_dims: the first; a negative axis counts from the end */
};

/* Expected elements of the largest value of unknown size: an image of 1024 x 1024 pixels of 3 channels. */
#define MAP_VALUES ((uint64_t)3 * 1024 * 1024)
/* The same for a value that is no image: a text, a list of tokens. */
#define MAP_SEQUENCE ((uint64_t)16 * 1024)
/* Expected bytes of a record's features or raw numbers of unknown size. */
#define MAP_RECORD_BYTES ((uint64_t)256 * 1024)

/* Large enough for the options of any function. */
union map_options {
    char column[64];
    max_align_t aligned;
    uint8_t bytes[2048];
};

#define MAP_FUNCTION(name) extern const struct map_function map_##name;
#include "pipeline/maps/map_functions.def"
#undef MAP_FUNCTION

/* NULL when there is none. */
const struct map_function *map_function_by_name(const char *name);
/* The name nearest to this one, or NULL when none is near. */
const char *map_function_nearest(const char *name);
/* The error for a word that is none: not offered yet, or unknown with the nearest right one. */
plim_status map_function_unknown(const char *name, const char *where, plim_error *error);
/* Reads options from a job file: what stands behind the function's name (NULL: nothing is there). They are zeroed here;
   the caller sets the column afterwards. */
plim_status map_function_read(union map_options *options, const struct map_function *function, const char *job,
                              const struct yaml *value, plim_error *error);

/* ---- for the functions themselves ---- */

/* The column that the function changes; -1: there is none of this name. */
int map_column(const struct spec *spec, const struct map_function *function, const void *options);
plim_status map_no_column(const struct spec *spec, const char *function, const char *name, plim_error *error);
/* That the column holds numbers; that it holds single strings. */
plim_status map_need_numbers(const struct column *column, const char *function, plim_error *error);
plim_status map_need_text(const struct column *column, const char *function, plim_error *error);

/* One row of the column that a function changes. */
struct map_row {
    const struct map_call *call;
    const void *options;
    int64_t index;                  /* of the row in this call */
    const struct column *from, *to; /* the column before and after */
    const void *values;             /* that come in: `count` of them, of this shape */
    struct shape shape;
    int64_t count;
    uint8_t *to_row; /* where the row of the result lies: its values, or a cell that refers to them */
};

/* Where the values of the row's result go: into its column, or, where it is a cell of this shape, into the buffer.
   NULL: that is full. */
void *map_result(const struct map_row *row, const struct shape *shape);
/* map_function.value_bytes for results of map_result in the first column. */
uint64_t map_value_bytes(const struct spec *from, const struct spec *to, const void *options);
/* The same for one column: 0 where values go into the column. */
uint64_t map_column_value_bytes(const struct column *to);
/* The random numbers of a row. */
void map_random(uint32_t random[4], const struct map_row *row);
/* Puts "element N: " in front of the message: map_bad only where the data are at fault. */
plim_status map_reword(const struct map_call *call, int64_t row, plim_status status, plim_error *error);
plim_status map_bad(const struct map_call *call, int64_t row, plim_status status, plim_error *error);

/* The settings of a function. A value alone is that of the first one, which is called `alone` in errors. */
struct map_settings {
    const struct setting *table;
    int count;
    const char *alone;
};
/* Reads a map of settings by the table, or a value alone. A list is a value alone where the first setting takes any
   node. */
plim_status map_settings_read(void *out, const struct map_settings *settings, const char *job, const struct yaml *value,
                              plim_error *error);
/* [28, 28], or one number; extents of at least 1, or -1. */
plim_status map_shape_read(struct shape *out, const char *what, const char *job, const struct yaml *value,
                           plim_error *error);
/* The same without -1, and only as a list. */
plim_status map_fixed_shape_read(struct shape *out, const char *job, const struct yaml *list, plim_error *error);
/* The place of an option's word among those that it may be. */
plim_status map_choice_read(int *out, const struct word_choices *choices, const char *name, const char *job,
                            const struct yaml *value, plim_error *error);
/* Copies a text of the job file into the options; refuses one that does not fit. */
plim_status map_text_read(char *out, size_t capacity, const char *what, const char *text, plim_error *error);

#endif
