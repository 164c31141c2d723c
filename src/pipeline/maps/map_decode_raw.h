/* map_decode_raw.h - the bytes of strings as numbers (tf.io.decode_raw), and shapes that must be (tf.ensure_shape). */
#ifndef PIPELINE_MAPS_MAP_DECODE_RAW_H
#define PIPELINE_MAPS_MAP_DECODE_RAW_H

#include "pipeline/maps/map_functions.h"

struct decode_raw_options {
    char column[64];
    enum type type;
    bool has_shape; /* else (-1), as many as there are */
    struct shape shape;
    bool big_endian;
    uint64_t offset; /* bytes that are passed over first */
};

struct ensure_shape_options {
    char column[64];
    struct shape shape; /* no -1 */
};

/* [28, 28, 1]. */
plim_status map_read_shape(struct shape *out, const char *job, const struct yaml *list, plim_error *error);

#endif
