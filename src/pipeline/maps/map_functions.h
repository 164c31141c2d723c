/* map_functions.h - the functions that `map:` knows by name. Each has a line in map_functions.def and a file. */
#ifndef PIPELINE_MAPS_MAP_FUNCTIONS_H
#define PIPELINE_MAPS_MAP_FUNCTIONS_H

#include <stddef.h>

#include "base/text/yaml.h"
#include "pipeline/core/dataset.h"

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

/* What the largest value of unknown size is expected to have: an image of 1024 x 1024 pixels of 3 channels. */
#define MAP_VALUES ((uint64_t)3 * 1024 * 1024)
/* And of one that is no image: a text, a list of tokens. */
#define MAP_SEQUENCE ((uint64_t)16 * 1024)

/* Room for the options of any of them. */
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
/* Options from a job file: what stands behind the function's name (NULL: nothing is there). They are zeroed here; the
   caller sets the column afterwards. */
plim_status map_function_read(union map_options *options, const struct map_function *function, const char *job,
                              const struct yaml *value, plim_error *error);

/* ---- for the functions themselves ---- */

/* The column of this name, or the first or last for ""; -1: there is none. */
int map_first_column(const struct spec *spec, const char *name);
int map_last_column(const struct spec *spec, const char *name);
/* The values of a row as they come in, and how many. */
const void *map_values(int64_t *count, const struct map_call *call, int c, int64_t row);
/* Where as many values of the result go: into its column, or, with the row's extents, into the room. NULL: it is full. */
void *map_values_to(const struct map_call *call, int c, int64_t row);
/* What such results take in the room: 0 where they go into the column. */
uint64_t map_values_room(const struct column *to);
/* That the column holds numbers. */
plim_status map_need_numbers(const struct column *column, const char *function, plim_error *error);
plim_status map_no_column(const struct spec *spec, const char *function, const char *name, plim_error *error);

#endif
