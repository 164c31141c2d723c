/* augment.h - what Keras 3's random image layers do, as functions of the numbers that they draw.

   Pictures are float32 (height, width, channels) where nothing else is said. Whoever calls draws the numbers: the same
   numbers give the same bits. */
#ifndef IMAGE_AUGMENT_H
#define IMAGE_AUGMENT_H

#include "image/resize.h"
#include "ops/image/random_warp.h"

/* RandomFlip: in place, elements of any type. */
void flip_image(void *pixels, const struct picture *picture, bool horizontal, bool vertical);

/* Keras's words, by enum warp_fill. */
extern const char *const warp_fill_names[WARP_FILLS];

struct warp {
    struct warp_map map;
    enum warp_fill fill;
    float fill_value; /* of WARP_CONSTANT */
    bool nearest;     /* interpolation; else bilinear */
};

/* out is another picture than in. */
plim_status warp_image(float *out, const float *in, const struct picture *picture, const struct warp *warp,
                       plim_error *error);

/* The rest works in place on height * width pixels of `channels` floats. */

/* RandomContrast: (x - mean) * factor + mean with the channel's mean, then clipped to [low, high]. */
void adjust_contrast(float *pixels, int64_t count, int64_t channels, float factor, float low, float high);
/* RandomBrightness: x + factor * (high - low), clipped to [low, high]. */
void adjust_brightness(float *pixels, int64_t count, int64_t channels, float factor, float low, float high);
/* tf.image.per_image_standardization: (x - mean) / max(deviation, 1 / sqrt(elements)) over the whole picture. */
void standardize_image(float *pixels, int64_t count, int64_t channels);
/* Normalization: (x - mean) / max(sqrt(variance), 1e-7), a mean and a variance a channel. */
void normalize_image(float *pixels, int64_t count, int64_t channels, const float *mean, const float *variance);

#endif
