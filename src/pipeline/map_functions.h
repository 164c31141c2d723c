/* map_functions.h - the functions that `map:` knows by name. */
#ifndef PIPELINE_MAP_FUNCTIONS_H
#define PIPELINE_MAP_FUNCTIONS_H

#include "base/yaml.h"
#include "pipeline/dataset.h"

/* The options of all of them begin with the column; "" is the first, for one_hot the last. */
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

/* Mirrors half of the images (height, width, channels) left to right. */
struct random_flip_options {
    char column[64];
};

union map_options {
    char column[64];
    struct cast_options cast;
    struct rescale_options rescale;
    struct one_hot_options one_hot;
    struct random_flip_options random_flip;
};

extern const struct map_function map_cast, map_rescale, map_one_hot, map_random_flip;

/* NULL when there is none. */
const struct map_function *map_function_by_name(const char *name);
/* The error for a word that is none: not offered yet, or unknown with the nearest right one. */
plim_status map_function_unknown(const char *name, const char *where, plim_error *error);
/* Options from a job file: the scalar or map after the function's name (NULL: nothing is there).
   `options` is a union map_options, zeroed here; the caller sets the column afterwards. */
plim_status map_function_read(void *options, const struct map_function *function, const char *job,
                              const struct yaml *value, plim_error *error);

#endif
