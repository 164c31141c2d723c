/* map_decode_raw.h - the bytes of strings as numbers: tf.io.decode_raw. */
#ifndef PIPELINE_MAP_DECODE_RAW_H
#define PIPELINE_MAP_DECODE_RAW_H

#include "pipeline/map_functions.h"

struct decode_raw_options {
    char column[64];
    enum type type;
    bool has_shape; /* else (-1), as many as there are */
    struct shape shape;
    bool big_endian;
    uint64_t offset; /* bytes that are passed over first */
};

#endif
