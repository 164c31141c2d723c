/* image_library.h - the functions of libjpeg and libpng, found at run time: programs without images do without them.

   Their headers declare the functions; here are pointers of the same types. Opened once a process and never closed: a
   library that stays is no more than its mapping. */
#ifndef IMAGE_IMAGE_LIBRARY_H
#define IMAGE_IMAGE_LIBRARY_H

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>
#include <png.h>

#include "base/status.h"

#define JPEG_FUNCTIONS(X)                                                                                              \
    X(jpeg_std_error)                                                                                                  \
    X(jpeg_CreateDecompress)                                                                                           \
    X(jpeg_destroy_decompress)                                                                                         \
    X(jpeg_abort_decompress)                                                                                           \
    X(jpeg_read_header)                                                                                                \
    X(jpeg_calc_output_dimensions)                                                                                     \
    X(jpeg_start_decompress)                                                                                           \
    X(jpeg_read_scanlines)                                                                                             \
    X(jpeg_resync_to_restart)

#define PNG_FUNCTIONS(X)                                                                                               \
    X(png_create_read_struct_2)                                                                                        \
    X(png_create_info_struct)                                                                                          \
    X(png_destroy_read_struct)                                                                                         \
    X(png_set_read_fn)                                                                                                 \
    X(png_set_keep_unknown_chunks)                                                                                     \
    X(png_read_info)                                                                                                   \
    X(png_get_color_type)                                                                                              \
    X(png_get_bit_depth)                                                                                               \
    X(png_get_valid)                                                                                                   \
    X(png_get_rowbytes)                                                                                                \
    X(png_set_strip_alpha)                                                                                             \
    X(png_set_tRNS_to_alpha)                                                                                           \
    X(png_set_add_alpha)                                                                                               \
    X(png_set_strip_16)                                                                                                \
    X(png_set_packing)                                                                                                 \
    X(png_set_palette_to_rgb)                                                                                          \
    X(png_set_expand_gray_1_2_4_to_8)                                                                                  \
    X(png_set_rgb_to_gray)                                                                                             \
    X(png_set_gray_to_rgb)                                                                                             \
    X(png_set_interlace_handling)                                                                                      \
    X(png_read_update_info)                                                                                            \
    X(png_read_row)                                                                                                    \
    X(png_read_end)

struct jpeg_functions {
#define X(name) __typeof__(name) *name;
    JPEG_FUNCTIONS(X)
#undef X
};

struct png_functions {
#define X(name) __typeof__(name) *name;
    PNG_FUNCTIONS(X)
#undef X
};

/* PLIM_UNSUPPORTED, and which package to install, where a library is not there. */
plim_status jpeg_library(struct jpeg_functions *out, plim_error *error);
plim_status png_library(struct png_functions *out, plim_error *error);

#endif
