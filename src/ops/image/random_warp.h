/* random_warp.h - what Keras's random image layers do to pictures [N, h, w, c], each sample by numbers of its own
   (drawn as in noise.h). Inputs x and iteration.

   random_warp: an output pixel shows the input where an affine map that was drawn sends it: flips, rotations, zooms,
     translations, crops. random_warp_gradient: dx from dy, iteration; the size of x is in the attributes.
   random_tone: y = clip((x - mean) * factor + mean + delta), a mean a sample and channel: brightness draws delta,
     contrast factor. random_tone_gradient: dx from dy, x, iteration. */
#ifndef OPS_IMAGE_RANDOM_WARP_H
#define OPS_IMAGE_RANDOM_WARP_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum warp_kind { WARP_FLIP, WARP_ROTATE, WARP_ZOOM, WARP_TRANSLATE, WARP_CROP, WARP_KINDS };
/* reflect (d c b a | a b c d | d c b a), wrap, constant, nearest (a a a a | a b c d | d d d d). */
enum warp_fill { WARP_REFLECT, WARP_WRAP, WARP_CONSTANT, WARP_NEAREST, WARP_FILLS };

struct random_warp_attributes {
    int64_t kind;
    double low[2],
        high[2];      /* factors: of the height (rotation: parts of a turn), of the width; FLIP: high 1: may flip */
    int64_t same;     /* ZOOM: the width has the height's factor */
    int64_t together; /* one draw for the whole batch */
    int64_t fill, nearest; /* nearest: interpolation; else bilinear */
    double fill_value;
    int64_t size[2]; /* of the output: CROP makes it smaller */
    uint64_t seed;
};
struct random_warp_gradient_attributes {
    struct random_warp_attributes forward;
    int64_t input[2];
};

/* Output pixel (x, y) shows the input at (a[0] x + a[1] y + a[2], b[0] x + b[1] y + b[2]). */
struct warp_map {
    float a[3], b[3];
};
/* Rotation by a part of a full turn. */
struct warp_map warp_rotation(float factor, int64_t height, int64_t width);
/* Zoom: positive factors zoom out, as in Keras. */
struct warp_map warp_zoom(float height_factor, float width_factor, int64_t height, int64_t width);
/* Translation by parts of the height and width: positive ones shift down and to the right. */
struct warp_map warp_translation(float height_factor, float width_factor, int64_t height, int64_t width);
struct warp_map random_warp_draw(const struct random_warp_attributes *attributes, uint64_t step, int64_t sample,
                                 int64_t height, int64_t width);

/* What an output pixel is made of: pixels by number, -1 for the fill value. */
struct warp_taps {
    int64_t place[4];
    float weight[4];
};

/* Positions outside, as TensorFlow's ImageProjectiveTransformV3 maps them. */
static inline float warp_inside(float at, int64_t length, int64_t fill)
{
    float last = (float)(length - 1), twice = (float)(2 * length);
    if (fill == WARP_CONSTANT)
        return at;
    if (length == 1)
        return 0;
    if (fill == WARP_REFLECT && at < 0) {
        at += twice * (float)(int64_t)(-at / twice);
        at = at < (float)-length ? at + twice : -at - 1;
    } else if (fill == WARP_REFLECT && at > last) {
        at -= twice * (float)(int64_t)(at / twice);
        at = at >= (float)length ? twice - at - 1 : at;
    } else if (fill == WARP_WRAP && at < 0) {
        at += (float)(length * ((int64_t)(-at / last) + 1));
    } else if (fill == WARP_WRAP && at > last) {
        at -= (float)(length * (int64_t)(at / last));
    }
    return at < 0 ? 0 : at > last ? last : at;
}

static inline int64_t warp_pixel(float y, float x, int64_t height, int64_t width)
{
    bool inside = y >= 0 && y < (float)height && x >= 0 && x < (float)width;
    return inside ? (int64_t)y * width + (int64_t)x : -1;
}

#define WARP_FAR 1e9f /* positions beyond it are fill: they cannot become indices */

static inline struct warp_taps warp_taps(const struct random_warp_attributes *attributes, const struct warp_map *map,
                                         int64_t height, int64_t width, int64_t column, int64_t row)
{
    struct warp_taps taps = {{-1, -1, -1, -1}, {1, 0, 0, 0}};
    float x = map->a[0] * (float)column + map->a[1] * (float)row + map->a[2];
    float y = map->b[0] * (float)column + map->b[1] * (float)row + map->b[2];
    if (!(fabsf(x) < WARP_FAR && fabsf(y) < WARP_FAR))
        return taps;
    x = warp_inside(x, width, attributes->fill);
    y = warp_inside(y, height, attributes->fill);
    if (attributes->nearest) {
        taps.place[0] = warp_pixel(roundf(y), roundf(x), height, width);
        return taps;
    }
    float top = floorf(y), left = floorf(x);
    for (int i = 0; i < 4; i++) {
        float down = i < 2 ? top + 1 - y : y - top, across = i % 2 ? x - left : left + 1 - x;
        taps.place[i] = warp_pixel(i < 2 ? top : top + 1, i % 2 ? left + 1 : left, height, width);
        taps.weight[i] = down * across;
    }
    return taps;
}

enum tone_kind { TONE_BRIGHTNESS, TONE_CONTRAST };
struct random_tone_attributes {
    int64_t kind;
    double low, high;             /* what is drawn: BRIGHTNESS: delta; CONTRAST: factor */
    double value_low, value_high; /* clipped to */
    uint64_t seed;
};
/* The sample's number. */
float random_tone_draw(const struct random_tone_attributes *attributes, uint64_t step, int64_t sample);

#endif
