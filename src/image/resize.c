/* resize.c - tf.image.resize: bilinear, nearest, and sums over spans for the other methods.

   Bilinear is in TensorFlow's order of operations, so that bits are equal: along the row first, then between rows:
   top = a + (b - a) x, bottom = c + (d - c) x, result = top + (bottom - top) y. The others sum along columns first. */
#include "image/resize.h"

#include <math.h>
#include <string.h>

#include "base/numbers/checked.h"
#include "image/resize_rows.h"
#include "image/resize_spans.h"

#define MOST_SIDE ((int64_t)1 << 24) /* beyond it float32 cannot tell pixels apart */

const char *const resize_method_names[RESIZE_METHODS] = {"bilinear", "nearest", "bicubic", "area"};

enum type resize_type(const struct resize *resize)
{
    return resize->method == RESIZE_NEAREST ? resize->from.type : TYPE_F32;
}

/* ---- bilinear -------------------------------------------------------- */

static void make_taps(struct tap *taps, int64_t from, int64_t to, int64_t channels)
{
    float by = (float)from / (float)to;
    for (int64_t i = 0; i < to; i++) {
        float at = ((float)i + 0.5f) * by - 0.5f, below = floorf(at);
        int64_t lower = (int64_t)below, upper = (int64_t)ceilf(at);
        lower = lower < 0 ? 0 : lower > from - 1 ? from - 1 : lower;
        upper = upper > from - 1 ? from - 1 : upper;
        taps[i] =
            (struct tap){(int32_t)(lower * channels), (int32_t)(upper * channels), lower == upper ? 0 : at - below};
    }
}

static inline float value(const void *row, bool bytes, int64_t i)
{
    return bytes ? (float)((const uint8_t *)row)[i] : ((const float *)row)[i];
}

static inline __attribute__((always_inline)) void mix_row(float *out, const void *top, const void *bottom,
                                                          const struct tap *taps, int64_t count, int64_t channels,
                                                          float y, bool bytes)
{
    for (; count > 0; count--, taps++) {
        for (int64_t c = 0; c < channels; c++) {
            float a = value(top, bytes, taps->lower + c), b = value(top, bytes, taps->upper + c);
            float d = value(bottom, bytes, taps->lower + c), e = value(bottom, bytes, taps->upper + c);
            float over = a + (b - a) * taps->fraction, under = d + (e - d) * taps->fraction;
            *out++ = over + (under - over) * y;
        }
    }
}

/* How many of the first new pixels the fast loop may do: a row's last ones lie too near the end of its bytes. */
static int64_t fast_pixels(const struct resize *resize, const struct tap *taps)
{
    int64_t count = 0, row = 3 * resize->from.width;
    if (resize->from.type != TYPE_U8 || resize->from.channels != 3)
        return 0;
    while (count < resize->to_width - 1 && taps[count].lower + ROWS_BYTES <= row)
        count++;
    return count;
}

static void bilinear_rows(float *out, const uint8_t *in, const struct resize *resize, const struct tap *across,
                          const struct tap *down)
{
    const struct resize_rows *rows = resize_rows_choose();
    int64_t channels = resize->from.channels, fast = fast_pixels(resize, across), rest = resize->to_width - fast;
    size_t row_bytes = (size_t)(resize->from.width * channels) * type_bytes(resize->from.type);
    bool bytes = resize->from.type == TYPE_U8;
    for (int64_t y = 0; y < resize->to_height; y++, out += resize->to_width * channels) {
        const uint8_t *top = in + (size_t)down[y].lower * row_bytes, *bottom = in + (size_t)down[y].upper * row_bytes;
        float *end = out + fast * channels;
        if (fast)
            rows->mix_three(out, top, bottom, across, fast, down[y].fraction);
        if (bytes)
            mix_row(end, top, bottom, across + fast, rest, channels, down[y].fraction, true);
        else
            mix_row(end, top, bottom, across, rest, channels, down[y].fraction, false);
    }
}

static bool bilinear(float *out, const uint8_t *in, const struct resize *resize, struct value_buffer *scratch)
{
    const struct picture *from = &resize->from;
    struct tap *across = value_buffer_take(scratch, (uint64_t)resize->to_width * sizeof *across);
    struct tap *down = across ? value_buffer_take(scratch, (uint64_t)resize->to_height * sizeof *down) : NULL;
    if (!down)
        return false;
    make_taps(across, from->width, resize->to_width, from->channels);
    make_taps(down, from->height, resize->to_height, 1);
    bilinear_rows(out, in, resize, across, down);
    return true;
}

/* ---- nearest --------------------------------------------------------- */

static int64_t nearest_to(int64_t i, int64_t from, int64_t to)
{
    int64_t at = (int64_t)floorf(((float)i + 0.5f) * ((float)from / (float)to));
    return at > from - 1 ? from - 1 : at;
}

static bool nearest(uint8_t *out, const uint8_t *in, const struct resize *resize, struct value_buffer *scratch)
{
    const struct picture *from = &resize->from;
    size_t pixel = (size_t)from->channels * type_bytes(from->type);
    int32_t *columns = value_buffer_take(scratch, (uint64_t)resize->to_width * sizeof *columns);
    if (!columns)
        return false;
    for (int64_t x = 0; x < resize->to_width; x++)
        columns[x] = (int32_t)nearest_to(x, from->width, resize->to_width);
    for (int64_t y = 0; y < resize->to_height; y++) {
        const uint8_t *row = in + (size_t)(nearest_to(y, from->height, resize->to_height) * from->width) * pixel;
        for (int64_t x = 0; x < resize->to_width; x++, out += pixel)
            memcpy(out, row + (size_t)columns[x] * pixel, pixel);
    }
    return true;
}

/* ---- spans: bicubic, area, antialias --------------------------------- */

static void sum_rows(float *sum, const uint8_t *in, struct span span, const float *weights, const struct picture *from)
{
    const struct resize_rows *rows = resize_rows_choose();
    int64_t count = from->width * from->channels;
    if (!span.count)
        memset(sum, 0, (size_t)count * sizeof *sum);
    for (int32_t k = 0; k < span.count; k++) {
        size_t at = (size_t)(span.start + k) * (size_t)count;
        if (from->type == TYPE_U8)
            (k ? rows->add_bytes : rows->set_bytes)(sum, in + at, count, weights[k]);
        else
            (k ? rows->add_floats : rows->set_floats)(sum, (const float *)(const void *)in + at, count, weights[k]);
    }
}

static void sum_columns(float *out, const float *sum, const struct spans *spans, int64_t to, int64_t channels,
                        float scale)
{
    const struct resize_rows *rows = resize_rows_choose();
    for (int64_t x = 0; x < to; x++, out += channels) {
        const float *weights = spans->weights + x * spans->most, *from = sum + spans->span[x].start * channels;
        if (channels == 3 && x < to - 1) { /* the last one would write past the row */
            rows->sum_three(out, from, weights, spans->span[x].count, scale);
            continue;
        }
        for (int64_t c = 0; c < channels; c++) {
            float total = 0;
            for (int32_t k = 0; k < spans->span[x].count; k++)
                total += from[k * channels + c] * weights[k];
            out[c] = total * scale;
        }
    }
}

static bool by_spans(float *out, const uint8_t *in, const struct resize *resize, struct value_buffer *scratch)
{
    const struct picture *from = &resize->from;
    struct spans across, down;
    float *sum = value_buffer_take(scratch, (uint64_t)(from->width * from->channels + 1) * sizeof *sum);
    if (!sum || !spans_make(&across, resize, from->width, resize->to_width, scratch) ||
        !spans_make(&down, resize, from->height, resize->to_height, scratch))
        return false;
    float scale = across.scale * down.scale;
    sum[from->width * from->channels] = 0; /* is read with the last pixel's channels */
    for (int64_t y = 0; y < resize->to_height; y++) {
        sum_rows(sum, in, down.span[y], down.weights + y * down.most, from);
        sum_columns(out + y * resize->to_width * from->channels, sum, &across, resize->to_width, from->channels, scale);
    }
    return true;
}

/* ---- what callers see ------------------------------------------------ */

static bool side_fits(int64_t side)
{
    return side == -1 || (side >= 1 && side <= MOST_SIDE);
}

bool picture_fits(const struct picture *picture)
{
    int64_t width = picture->width < 0 ? 1 : picture->width, channels = picture->channels;
    return side_fits(picture->height) && side_fits(picture->width) &&
           (channels == -1 || (channels >= 1 && channels <= INT32_MAX / width));
}

static plim_status check_picture(const struct picture *picture, plim_error *error)
{
    if (picture->height < 0 || picture->width < 0 || picture->channels < 0 || !picture_fits(picture))
        return fail(error, PLIM_BAD_DATA,
                    "a picture of %lld x %lld pixels of %lld channels cannot be resized or cropped",
                    (long long)picture->height, (long long)picture->width, (long long)picture->channels);
    return PLIM_OK;
}

static bool uses_spans(const struct resize *resize)
{
    return resize->method == RESIZE_BICUBIC || resize->method == RESIZE_AREA ||
           (resize->method == RESIZE_BILINEAR && resize->antialias);
}

plim_status resize_scratch(uint64_t *bytes, const struct resize *resize, plim_error *error)
{
    const struct picture *from = &resize->from;
    struct picture to = {TYPE_F32, resize->to_height, resize->to_width, from->channels};
    if (from->type != TYPE_U8 && from->type != TYPE_F32)
        return fail(error, PLIM_UNSUPPORTED, "pictures are uint8 or float32, not %s", type_name(from->type));
    TRY(check_picture(from, error));
    TRY(check_picture(&to, error));
    if (uses_spans(resize))
        *bytes = (uint64_t)(from->width * from->channels + 1) * sizeof(float) +
                 spans_bytes(resize, from->width, to.width) + spans_bytes(resize, from->height, to.height);
    else
        *bytes = (uint64_t)(to.width + to.height) * sizeof(struct tap);
    *bytes += (uint64_t)4 * VALUE_ALIGNMENT;
    return PLIM_OK;
}

plim_status resize_image(void *out, const void *in, const struct resize *resize, struct value_buffer *scratch,
                         plim_error *error)
{
    uint64_t bytes, used = scratch->used;
    TRY(resize_scratch(&bytes, resize, error));
    bool done = resize->method == RESIZE_NEAREST ? nearest(out, in, resize, scratch)
                : uses_spans(resize)             ? by_spans(out, in, resize, scratch)
                                                 : bilinear(out, in, resize, scratch);
    scratch->used = used;
    if (done) {
        scratch->wanted = 0;
        return PLIM_OK;
    }
    scratch->wanted = add_most(used, bytes);
    return fail(error, PLIM_OVER_BUDGET, "resizing takes %llu bytes of memory; there is room for %llu",
                (unsigned long long)bytes, (unsigned long long)value_buffer_left(scratch));
}

/* The rows and columns from (in_y, in_x) to (out_y, out_x); both are inside. */
static void copy_part(uint8_t *out, const uint8_t *in, const struct picture *from, int64_t out_width, int64_t height,
                      int64_t width)
{
    size_t pixel = (size_t)from->channels * type_bytes(from->type);
    for (int64_t y = 0; y < height; y++)
        memcpy(out + (size_t)(y * out_width) * pixel, in + (size_t)(y * from->width) * pixel, (size_t)width * pixel);
}

plim_status crop_image(void *out, const void *in, const struct picture *picture, const struct crop *crop,
                       plim_error *error)
{
    int64_t y = crop->y, x = crop->x, height = crop->height, width = crop->width;
    size_t pixel = (size_t)picture->channels * type_bytes(picture->type);
    TRY(check_picture(picture, error));
    if (y < 0 || x < 0 || height < 1 || width < 1 || height > picture->height || width > picture->width ||
        y > picture->height - height || x > picture->width - width)
        return fail(error, PLIM_BAD_DATA,
                    "a crop of %lld x %lld pixels at (%lld, %lld) is not inside %lld x %lld pixels", (long long)height,
                    (long long)width, (long long)y, (long long)x, (long long)picture->height,
                    (long long)picture->width);
    copy_part(out, (const uint8_t *)in + (size_t)(y * picture->width + x) * pixel, picture, width, height, width);
    return PLIM_OK;
}

plim_status crop_or_pad_image(void *out, const void *in, const struct picture *picture, int64_t height, int64_t width,
                              plim_error *error)
{
    size_t pixel = (size_t)picture->channels * type_bytes(picture->type);
    struct picture to = {picture->type, height, width, picture->channels};
    TRY(check_picture(picture, error));
    TRY(check_picture(&to, error));
    int64_t rows = height < picture->height ? height : picture->height;
    int64_t columns = width < picture->width ? width : picture->width;
    int64_t from = (picture->height - rows) / 2 * picture->width + (picture->width - columns) / 2;
    int64_t at = (height - rows) / 2 * width + (width - columns) / 2;
    if (rows < height || columns < width)
        memset(out, 0, (size_t)(height * width) * pixel);
    copy_part((uint8_t *)out + (size_t)at * pixel, (const uint8_t *)in + (size_t)from * pixel, picture, width, rows,
              columns);
    return PLIM_OK;
}
