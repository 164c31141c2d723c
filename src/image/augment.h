/* augment.h - what Keras 3's random image layers do, as functions of the numbers that they draw.

   Pictures are float32 (height, width, channels) where nothing else is said. Whoever calls draws the numbers: the same
   numbers give the same bits. */
#ifndef IMAGE_AUGMENT_H
#define IMAGE_AUGMENT_H

#include "image/resize.h"

/* RandomFlip: out is another picture than in; either type. */
plim_status flip_image(void *out, const void *in, const struct picture *picture, bool horizontal, bool vertical,
                       plim_error *error);

/* An output pixel (x, y) shows the input at (a0 x + a1 y + a2, b0 x + b1 y + b2). */
struct affine {
    float a0, a1, a2, b0, b1, b2;
};

/* RandomRotation: `factor` is the part of a full turn that was drawn from [lower, upper]. */
struct affine affine_rotation(float factor, int64_t height, int64_t width);
/* RandomZoom: what was drawn from the factors; positive ones zoom out, as in Keras. */
struct affine affine_zoom(float height_factor, float width_factor, int64_t height, int64_t width);
/* RandomTranslation: parts of the height and width; positive ones shift down and to the right. */
struct affine affine_translation(float height_factor, float width_factor, int64_t height, int64_t width);

/* Keras's words: reflect (d c b a | a b c d | d c b a), wrap, constant, nearest (a a a a | a b c d | d d d d). */
enum fill_mode { FILL_REFLECT, FILL_WRAP, FILL_CONSTANT, FILL_NEAREST };

bool fill_mode_from_name(enum fill_mode *out, const char *name);

struct warp {
    struct affine affine;
    enum fill_mode fill;
    float fill_value; /* of FILL_CONSTANT */
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
