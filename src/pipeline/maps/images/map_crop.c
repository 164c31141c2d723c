/* map_crop.c - parts of images: crop, center_crop, random_crop, resize_with_crop_or_pad. */
#include "base/numbers/checked.h"
#include "base/numbers/random.h"
#include "base/text/settings.h"
#include "pipeline/maps/images/map_image.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static plim_status infer(struct spec *spec, const struct crop_options *crop, const char *name, plim_error *error)
{
    int c;
    TRY(map_image_column(&c, spec, name, crop->column, true, error));
    if (crop->height < 1 || crop->width < 1 || crop->y < 0 || crop->x < 0)
        return fail(error, PLIM_BAD_JOB, "%s: %lld x %lld pixels at (%lld, %lld)", name, (long long)crop->height,
                    (long long)crop->width, (long long)crop->y, (long long)crop->x);
    spec->column[c].shape.dim[0] = crop->height;
    spec->column[c].shape.dim[1] = crop->width;
    spec->column[c].origin = -1;
    return PLIM_OK;
}

static uint64_t room(const struct spec *from, const struct spec *to, const void *options)
{
    const struct crop_options *crop = options;
    const struct column *column = &to->column[map_first_column(to, crop->column)];
    struct shape shape = shape_of(3, (int64_t[]){crop->height, crop->width, 4});
    uint64_t bytes;
    (void)from;
    if (!column_is_variable(column))
        return 0;
    return shape_bytes(&bytes, &shape, column->type) ? add_most(bytes, ROOM_ALIGNMENT) : UINT64_MAX;
}

typedef plim_status place_part(int64_t *y, int64_t *x, const struct map_call *call, int64_t row,
                               const struct picture *picture, plim_error *error);

/* `find` says where the part begins; NULL: the centre, padded with zeros where the image is too small. */
static plim_status run(const struct map_call *call, place_part *find, plim_error *error)
{
    const struct crop_options *crop = call->options;
    int c = map_first_column(call->from_spec, crop->column);
    for (int64_t i = 0; i < call->count; i++) {
        struct picture from, to;
        const void *pixels = map_image_from(&from, call, c, i);
        to = (struct picture){from.type, crop->height, crop->width, from.channels};
        int64_t y = 0, x = 0;
        void *out = map_image_to(call, c, i, &to);
        if (!out)
            return map_full(call, error);
        if (find) {
            TRY(find(&y, &x, call, i, &from, error));
            TRY(crop_image(out, pixels, &from, y, x, crop->height, crop->width, error));
        } else {
            TRY(crop_or_pad_image(out, pixels, &from, crop->height, crop->width, error));
        }
    }
    return PLIM_OK;
}

/* ---- where the part begins ---- */

static plim_status where_said(int64_t *y, int64_t *x, const struct map_call *call, int64_t row,
                              const struct picture *picture, plim_error *error)
{
    const struct crop_options *crop = call->options;
    (void)row, (void)picture, (void)error;
    *y = crop->y;
    *x = crop->x;
    return PLIM_OK;
}

/* Pixels to spare, in either direction. */
static plim_status spare(int64_t *tall, int64_t *wide, const struct map_call *call, int64_t row,
                         const struct picture *picture, plim_error *error)
{
    const struct crop_options *crop = call->options;
    *tall = picture->height - crop->height;
    *wide = picture->width - crop->width;
    if (*tall >= 0 && *wide >= 0)
        return PLIM_OK;
    fail(error, PLIM_BAD_DATA, "element %lld: has %lld x %lld pixels, fewer than the crop of %lld x %lld",
         map_element(call, row), (long long)picture->height, (long long)picture->width, (long long)crop->height,
         (long long)crop->width);
    return hint(error, PLIM_BAD_DATA, "resize: first, or resize_with_crop_or_pad: instead");
}

static plim_status where_centred(int64_t *y, int64_t *x, const struct map_call *call, int64_t row,
                                 const struct picture *picture, plim_error *error)
{
    TRY(spare(y, x, call, row, picture, error));
    *y /= 2;
    *x /= 2;
    return PLIM_OK;
}

static int64_t below(int64_t count, uint32_t bits)
{
    return (int64_t)((uint64_t)count * bits >> 32);
}

static plim_status where_drawn(int64_t *y, int64_t *x, const struct map_call *call, int64_t row,
                               const struct picture *picture, plim_error *error)
{
    uint32_t random[4];
    TRY(spare(y, x, call, row, picture, error));
    random_block(random, call->seed, call->epoch, (uint64_t)call->index[row]);
    *y = below((*y & UINT32_MAX) + 1, random[0]);
    *x = below((*x & UINT32_MAX) + 1, random[1]);
    return PLIM_OK;
}

/* ---- job files ---- */

/* `crop: [offset_height, offset_width, target_height, target_width]`, or by these names. */
static plim_status crop_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    static const struct setting settings[] = {
        {"offset_height", SETTING_WHOLE, offsetof(struct crop_options, y), 0},
        {"offset_width", SETTING_WHOLE, offsetof(struct crop_options, x), 0},
        {"target_height", SETTING_WHOLE, offsetof(struct crop_options, height), 1},
        {"target_width", SETTING_WHOLE, offsetof(struct crop_options, width), 1},
    };
    struct crop_options *crop = options;
    int64_t part[4];
    if (value->kind == YAML_MAP)
        return settings_read(crop, settings, COUNT(settings), job, value, error);
    TRY(map_read_sizes(part, 4, 0, "crop", job, value, error));
    crop->y = part[0], crop->x = part[1], crop->height = part[2], crop->width = part[3];
    return PLIM_OK;
}

/* `center_crop: [224, 224]`, `center_crop: {height: 224, width: 224}`. */
static plim_status size_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    static const struct setting settings[] = {
        {"height", SETTING_WHOLE, offsetof(struct crop_options, height), 1},
        {"width", SETTING_WHOLE, offsetof(struct crop_options, width), 1},
    };
    struct crop_options *crop = options;
    int64_t size[2];
    if (value->kind == YAML_MAP)
        return settings_read(crop, settings, COUNT(settings), job, value, error);
    TRY(map_read_sizes(size, 2, 1, "size", job, value, error));
    crop->height = size[0], crop->width = size[1];
    return PLIM_OK;
}

#define CROP(word, find, reader)                                                                                       \
    static plim_status word##_infer(struct spec *spec, const void *options, plim_error *error)                         \
    {                                                                                                                  \
        return infer(spec, options, #word, error);                                                                     \
    }                                                                                                                  \
    static plim_status word##_run(const struct map_call *call, plim_error *error)                                      \
    {                                                                                                                  \
        return run(call, find, error);                                                                                 \
    }                                                                                                                  \
    const struct map_function map_##word = {                                                                           \
        .name = #word,                                                                                                 \
        .infer = word##_infer,                                                                                         \
        .run = word##_run,                                                                                             \
        .options_bytes = sizeof(struct crop_options),                                                                  \
        .room_bytes = room,                                                                                            \
        .read = reader,                                                                                                \
    };

CROP(crop, where_said, crop_read)
CROP(center_crop, where_centred, size_read)
CROP(random_crop, where_drawn, size_read)
CROP(resize_with_crop_or_pad, NULL, size_read)
