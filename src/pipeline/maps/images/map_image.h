/* map_image.h - the functions of `map:` over images, their options, and what they share.

   An image is a column (height, width, channels) of uint8 or float32; extents of -1 differ from image to image. The
   words, and what they mean, are those of tf.image and of Keras's layers. Random ones are functions of (seed, epoch,
   index) alone. */
#ifndef PIPELINE_MAPS_IMAGES_MAP_IMAGE_H
#define PIPELINE_MAPS_IMAGES_MAP_IMAGE_H

#include "image/augment.h"
#include "image/image.h"
#include "pipeline/maps/map_functions.h"

/* decode_jpeg, decode_png, decode_gif, decode_bmp, decode_image: strings into uint8 (-1, -1, channels or -1). Whatever
   the name, the bytes say which format it is, as in TensorFlow; of a GIF the first frame is decoded. */
struct decode_options {
    char column[64];
    int64_t channels;           /* 0: as stored */
    struct image_options image; /* least_height, least_width: scaled decoding */
    bool scaled;                /* in job files: as far as the resize that follows allows */
};

/* float32 (height, width, channels); nearest keeps the type. */
struct resize_options {
    char column[64];
    int64_t height, width;
    enum resize_method method;
    bool antialias;
};

/* crop, center_crop, random_crop, resize_with_crop_or_pad: types stay. y and x are of crop only. */
struct crop_options {
    char column[64];
    int64_t y, x, height, width;
};

/* Mirrors half of the images. Neither set is horizontal. */
struct random_flip_options {
    char column[64];
    bool horizontal, vertical;
};

/* What a factor is drawn from. */
struct factor {
    double lower, upper;
};

/* random_rotation (height: parts of a full turn), random_zoom, random_translation: float32. */
struct warp_options {
    char column[64];
    struct factor height, width;
    bool same; /* random_zoom: the width's factor is the height's */
    enum warp_fill fill;
    double fill_value;
    bool nearest;
};

/* random_contrast, random_brightness, per_image_standardization: float32. */
struct color_options {
    char column[64];
    struct factor factor; /* of contrast: what the values are multiplied with, less 1 */
    double low, high;     /* of the values; both 0: 0 and 255 */
};

#define NORMALIZE_CHANNELS 64

/* (x - mean) / sqrt(variance): float32. One value stands for all channels. */
struct normalize_options {
    char column[64];
    int mean_count, variance_count;
    float mean[NORMALIZE_CHANNELS], variance[NORMALIZE_CHANNELS];
};

/* ---- for the functions themselves ---- */

/* That the column holds images; any_type: for functions that only move pixels. */
plim_status map_need_image(const struct column *column, const char *function, bool any_type, plim_error *error);
/* That images of the column may have sizes that can be resized and cropped, as far as these are known. */
plim_status map_need_size(const struct column *column, const char *function, plim_error *error);
/* Type and size of the image that comes in. */
struct picture map_picture(const struct map_row *row);
/* map_result for an image of this size. */
void *map_image_result(const struct map_row *row, int64_t height, int64_t width);
/* The image, of the same type and size before and after, as pixels that may be changed. NULL: the buffer is full. */
void *map_image_own(const struct map_row *row);
/* The image as float32 pixels that may be changed and are the result. NULL: the buffer is full. */
float *map_image_floats(const struct map_row *row);
/* In [lower, upper). */
float factor_draw(const struct factor *factor, uint32_t bits);

/* Readers. `count` whole numbers of a list, each at least `least`. */
plim_status map_read_sizes(int64_t *out, int count, int64_t least, const char *what, const char *job,
                           const struct yaml *value, plim_error *error);
/* f is [-f, f]; [lower, upper]. */
plim_status map_read_factor(struct factor *out, const char *what, const char *job, const struct yaml *value,
                            plim_error *error);

#endif
