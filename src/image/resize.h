/* resize.h - pictures of other sizes: tf.image.resize, crops and padding.

   Pictures are (height, width, channels), uint8 or float32; of any type of numbers where pixels are only moved. Pixel
   centres are at halves; nothing is kept between calls, and the same input gives the same bits on every machine. */
#ifndef IMAGE_RESIZE_H
#define IMAGE_RESIZE_H

#include "base/memory/value_buffer.h"
#include "base/status.h"
#include "graph/tensor.h"

struct picture {
    enum type type;
    int64_t height, width, channels;
};

/* Sizes that resize and crop take; -1: not known, and fits. */
bool picture_fits(const struct picture *picture);

enum resize_method { RESIZE_BILINEAR, RESIZE_NEAREST, RESIZE_BICUBIC, RESIZE_AREA, RESIZE_METHODS };
extern const char *const resize_method_names[RESIZE_METHODS];

struct resize {
    enum resize_method method;
    bool antialias; /* of bilinear and bicubic; the others have nothing to change */
    struct picture from;
    int64_t to_height, to_width;
};

/* float32; nearest keeps the type. */
enum type resize_type(const struct resize *resize);
/* What resize_image takes of the scratch value buffer; refuses sizes that it cannot do. */
plim_status resize_scratch(uint64_t *bytes, const struct resize *resize, plim_error *error);
/* The scratch value buffer is as before afterwards. When it is too small: OVER_BUDGET, and scratch->wanted. */
plim_status resize_image(void *out, const void *in, const struct resize *resize, struct value_buffer *scratch,
                         plim_error *error);

/* The part of height x width pixels whose first pixel is (y, x). */
struct crop {
    int64_t y, x, height, width;
};
plim_status crop_image(void *out, const void *in, const struct picture *picture, const struct crop *crop,
                       plim_error *error);
/* tf.image.resize_with_crop_or_pad: the centre, with zeros around where it is too small. */
plim_status crop_or_pad_image(void *out, const void *in, const struct picture *picture, int64_t height, int64_t width,
                              plim_error *error);
#endif
