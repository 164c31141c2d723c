/* augment.c - flips, affine warps and changes of value, in TensorFlow's arithmetic. */
#include "image/augment.h"

#include <math.h>
#include <string.h>

/* Positions beyond it are fill: they cannot become indices. */
#define MOST_POSITION 1e9f

plim_status flip_image(void *out, const void *in, const struct picture *picture, bool horizontal, bool vertical,
                       plim_error *error)
{
    size_t pixel = (size_t)picture->channels * type_bytes(picture->type), row = (size_t)picture->width * pixel;
    if (picture->height < 1 || picture->width < 1 || picture->channels < 1)
        return fail(error, PLIM_BAD_DATA, "a picture without pixels cannot be flipped");
    for (int64_t y = 0; y < picture->height; y++) {
        const uint8_t *from = (const uint8_t *)in + (size_t)(vertical ? picture->height - 1 - y : y) * row;
        uint8_t *to = (uint8_t *)out + (size_t)y * row;
        if (!horizontal)
            memcpy(to, from, row);
        for (int64_t x = 0; horizontal && x < picture->width; x++)
            memcpy(to + (size_t)x * pixel, from + (size_t)(picture->width - 1 - x) * pixel, pixel);
    }
    return PLIM_OK;
}

struct affine affine_rotation(float factor, int64_t height, int64_t width)
{
    float angle = factor * 360.0f * (float)(3.14159265358979323846 / 180.0);
    float cosine = cosf(angle), sine = sinf(angle);
    float x = 0.5f * (float)(width - 1), y = 0.5f * (float)(height - 1);
    return (struct affine){.a0 = cosine,
                           .a1 = -sine,
                           .a2 = x - x * cosine - y * -sine,
                           .b0 = sine,
                           .b1 = cosine,
                           .b2 = y - x * sine - y * cosine};
}

struct affine affine_zoom(float height_factor, float width_factor, int64_t height, int64_t width)
{
    float tall = 1.0f + height_factor, wide = 1.0f + width_factor;
    return (struct affine){.a0 = wide,
                           .a2 = ((float)width - 1.0f) / 2.0f * (1.0f - wide),
                           .b1 = tall,
                           .b2 = ((float)height - 1.0f) / 2.0f * (1.0f - tall)};
}

struct affine affine_translation(float height_factor, float width_factor, int64_t height, int64_t width)
{
    return (struct affine){
        .a0 = 1, .a2 = -(width_factor * (float)width), .b1 = 1, .b2 = -(height_factor * (float)height)};
}

bool fill_mode_from_name(enum fill_mode *out, const char *name)
{
    static const char *const names[] = {"reflect", "wrap", "constant", "nearest"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum fill_mode)i;
            return true;
        }
    }
    return false;
}

/* ---- positions outside the picture, as ImageProjectiveTransformV3 maps them ---- */

static float reflect(float at, int64_t length)
{
    float twice = (float)(2 * length);
    if (at < 0) {
        at += twice * (float)(int64_t)(-at / twice);
        return at < (float)-length ? at + twice : -at - 1;
    }
    if (at > (float)(length - 1)) {
        at -= twice * (float)(int64_t)(at / twice);
        return at >= (float)length ? twice - at - 1 : at;
    }
    return at;
}

/* The divisor is length - 1, the step length: so it is there. */
static float wrap(float at, int64_t length)
{
    float last = (float)(length - 1);
    if (at < 0)
        return at + (float)(length * ((int64_t)(-at / last) + 1));
    return at > last ? at - (float)(length * (int64_t)(at / last)) : at;
}

static float map_position(float at, int64_t length, enum fill_mode fill)
{
    if (fill == FILL_CONSTANT)
        return at;
    if (length == 1)
        return 0;
    if (fill == FILL_REFLECT)
        at = reflect(at, length);
    else if (fill == FILL_WRAP)
        at = wrap(at, length);
    return at < 0 ? 0 : at > (float)(length - 1) ? (float)(length - 1) : at;
}

/* ---- warps -------------------------------------------------------------- */

/* NULL outside the picture. */
static const float *pixel_at(const float *in, const struct picture *picture, int64_t y, int64_t x)
{
    bool inside = y >= 0 && y < picture->height && x >= 0 && x < picture->width;
    return inside ? in + (y * picture->width + x) * picture->channels : NULL;
}

/* A neighbour that is not there has the fill value: the picture's edge fades into it. */
static void mix_neighbours(float *out, const float *in, const struct picture *picture, float y, float x, float fill)
{
    float top = floorf(y), left = floorf(x), bottom = top + 1, right = left + 1;
    const float *corner[4];
    for (int i = 0; i < 4; i++)
        corner[i] = pixel_at(in, picture, (int64_t)(i < 2 ? top : bottom), (int64_t)(i % 2 ? right : left));
    for (int64_t c = 0; c < picture->channels; c++) {
        float v[4];
        for (int i = 0; i < 4; i++)
            v[i] = corner[i] ? corner[i][c] : fill;
        float over = (right - x) * v[0] + (x - left) * v[1], under = (right - x) * v[2] + (x - left) * v[3];
        out[c] = (bottom - y) * over + (y - top) * under;
    }
}

static void warp_pixel(float *out, const float *in, const struct picture *picture, const struct warp *warp, float x,
                       float y)
{
    const struct affine *m = &warp->affine;
    float from_x = m->a0 * x + m->a1 * y + m->a2, from_y = m->b0 * x + m->b1 * y + m->b2;
    const float *found = NULL;
    bool known = fabsf(from_x) < MOST_POSITION && fabsf(from_y) < MOST_POSITION;
    if (known) {
        from_x = map_position(from_x, picture->width, warp->fill);
        from_y = map_position(from_y, picture->height, warp->fill);
    }
    if (known && !warp->nearest) {
        mix_neighbours(out, in, picture, from_y, from_x, warp->fill_value);
        return;
    }
    if (known)
        found = pixel_at(in, picture, (int64_t)roundf(from_y), (int64_t)roundf(from_x));
    for (int64_t c = 0; c < picture->channels; c++)
        out[c] = found ? found[c] : warp->fill_value;
}

plim_status warp_image(float *out, const float *in, const struct picture *picture, const struct warp *warp,
                       plim_error *error)
{
    if (picture->type != TYPE_F32 || picture->height < 1 || picture->width < 1 || picture->channels < 1)
        return fail(error, PLIM_BAD_DATA, "only pictures of float32 can be rotated, zoomed or translated");
    for (int64_t y = 0; y < picture->height; y++)
        for (int64_t x = 0; x < picture->width; x++, out += picture->channels)
            warp_pixel(out, in, picture, warp, (float)x, (float)y);
    return PLIM_OK;
}

/* ---- values -------------------------------------------------------------- */

static float clip(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static float channel_mean(const float *pixels, int64_t count, int64_t channels)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)pixels[i * channels];
    return (float)(sum / (double)count);
}

void adjust_contrast(float *pixels, int64_t count, int64_t channels, float factor, float low, float high)
{
    for (int64_t c = 0; c < channels; c++) {
        float mean = channel_mean(pixels + c, count, channels);
        for (int64_t i = c; i < count * channels; i += channels)
            pixels[i] = clip((pixels[i] - mean) * factor + mean, low, high);
    }
}

void adjust_brightness(float *pixels, int64_t count, int64_t channels, float factor, float low, float high)
{
    float delta = factor * (high - low);
    for (int64_t i = 0; i < count * channels; i++)
        pixels[i] = clip(pixels[i] + delta, low, high);
}

void standardize_image(float *pixels, int64_t count, int64_t channels)
{
    int64_t elements = count * channels;
    float mean = channel_mean(pixels, elements, 1);
    double squares = 0;
    for (int64_t i = 0; i < elements; i++)
        squares += ((double)pixels[i] - (double)mean) * ((double)pixels[i] - (double)mean);
    float deviation = (float)sqrt(squares / (double)elements), least = 1.0f / sqrtf((float)elements);
    float divisor = deviation > least ? deviation : least;
    for (int64_t i = 0; i < elements; i++)
        pixels[i] = (pixels[i] - mean) / divisor;
}

void normalize_image(float *pixels, int64_t count, int64_t channels, const float *mean, const float *variance)
{
    for (int64_t c = 0; c < channels; c++) {
        float deviation = sqrtf(variance[c]), divisor = deviation > 1e-7f ? deviation : 1e-7f;
        for (int64_t i = c; i < count * channels; i += channels)
            pixels[i] = (pixels[i] - mean[c]) / divisor;
    }
}
