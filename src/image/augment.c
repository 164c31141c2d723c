/* augment.c - flips, affine warps and changes of value, in TensorFlow's arithmetic. */
#include "image/augment.h"

#include <math.h>
#include <string.h>

/* ---- flips ---- */

static inline __attribute__((always_inline)) void exchange(uint8_t *a, uint8_t *b, size_t bytes)
{
    uint8_t kept[256];
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < sizeof kept ? bytes - at : sizeof kept;
        memcpy(kept, a + at, part);
        memcpy(a + at, b + at, part);
        memcpy(b + at, kept, part);
    }
}

static inline __attribute__((always_inline)) void mirror_by(uint8_t *line, int64_t width, size_t pixel_bytes)
{
    for (int64_t x = 0; x < width / 2; x++)
        exchange(line + (size_t)x * pixel_bytes, line + (size_t)(width - 1 - x) * pixel_bytes, pixel_bytes);
}

/* A pixel of a constant size is moved by one instruction or two. */
static void mirror(uint8_t *line, int64_t width, size_t pixel_bytes)
{
    if (pixel_bytes == 3)
        mirror_by(line, width, 3);
    else if (pixel_bytes == 12)
        mirror_by(line, width, 12);
    else if (pixel_bytes == 1)
        mirror_by(line, width, 1);
    else
        mirror_by(line, width, pixel_bytes);
}

void flip_image(void *pixels, const struct picture *picture, bool horizontal, bool vertical)
{
    size_t pixel = (size_t)picture->channels * type_bytes(picture->type), row = (size_t)picture->width * pixel;
    uint8_t *first = pixels;
    for (int64_t y = 0; horizontal && y < picture->height; y++)
        mirror(first + (size_t)y * row, picture->width, pixel);
    for (int64_t y = 0; vertical && y < picture->height / 2; y++)
        exchange(first + (size_t)y * row, first + (size_t)(picture->height - 1 - y) * row, row);
}

/* ---- warps ---- */

const char *const warp_fill_names[WARP_FILLS] = {"reflect", "wrap", "constant", "nearest"};

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

static void make_pixel(float *out, const float *in, const struct picture *picture, const struct warp *warp, float x,
                       float y)
{
    const float *a = warp->map.a, *b = warp->map.b;
    float from_x = a[0] * x + a[1] * y + a[2], from_y = b[0] * x + b[1] * y + b[2];
    const float *found = NULL;
    bool known = fabsf(from_x) < WARP_FAR && fabsf(from_y) < WARP_FAR;
    if (known) {
        from_x = warp_inside(from_x, picture->width, warp->fill);
        from_y = warp_inside(from_y, picture->height, warp->fill);
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
            make_pixel(out, in, picture, warp, (float)x, (float)y);
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
