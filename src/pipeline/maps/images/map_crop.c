/* map_crop.c - parts of images: crop, center_crop, random_crop, resize_with_crop_or_pad. */
#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "pipeline/maps/images/map_image.h"

enum crop_kind { CROP_GIVEN, CROP_CENTER, CROP_RANDOM, CROP_OR_PAD };

/* An extent of -1 is known of each image alone. */
static bool may_hold(int64_t extent, int64_t from, int64_t length)
{
    return extent < 0 || (length <= extent && from <= extent - length);
}

/* Against what is known of the images beforehand; find_part and crop_image check the rest. */
static plim_status check_part(const struct column *column, const struct map_function *self,
                              const struct crop_options *crop, plim_error *error)
{
    bool given = self->kind == CROP_GIVEN;
    const int64_t *is = column->shape.dim;
    char shape[64];
    if (self->kind == CROP_OR_PAD ||
        (may_hold(is[0], given ? crop->y : 0, crop->height) && may_hold(is[1], given ? crop->x : 0, crop->width)))
        return PLIM_OK;
    shape_text(shape, sizeof shape, &column->shape, false);
    if (given)
        return fail(error, PLIM_BAD_JOB,
                    "%s: %lld x %lld pixels at (%lld, %lld) are not inside column '%s', which is %s", self->name,
                    (long long)crop->height, (long long)crop->width, (long long)crop->y, (long long)crop->x,
                    column->name, shape);
    fail(error, PLIM_BAD_JOB, "%s: %lld x %lld pixels are not inside column '%s', which is %s", self->name,
         (long long)crop->height, (long long)crop->width, column->name, shape);
    return hint(error, PLIM_BAD_JOB, "resize: first, or resize_with_crop_or_pad: instead");
}

static plim_status crop_infer(struct column *column, const struct map_function *self, const void *options,
                              plim_error *error)
{
    const struct crop_options *crop = options;
    TRY(map_need_image(column, self->name, true, error));
    if (crop->height < 1 || crop->width < 1 || crop->y < 0 || crop->x < 0)
        return fail(error, PLIM_BAD_JOB, "%s: %lld x %lld pixels at (%lld, %lld)", self->name, (long long)crop->height,
                    (long long)crop->width, (long long)crop->y, (long long)crop->x);
    TRY(map_need_size(column, self->name, error));
    TRY(check_part(column, self, crop, error));
    column->shape.dim[0] = crop->height;
    column->shape.dim[1] = crop->width;
    column->origin = -1;
    return map_need_size(column, self->name, error);
}

static uint64_t crop_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    const struct crop_options *crop = options;
    const struct column *column = &to->column[map_column(to, &map_crop, crop)];
    struct shape shape = shape_of(3, (int64_t[]){crop->height, crop->width, 4});
    uint64_t bytes;
    (void)from;
    if (!column_is_variable(column))
        return 0;
    return shape_bytes(&bytes, &shape, column->type) ? add_most(bytes, VALUE_ALIGNMENT) : UINT64_MAX;
}

static int64_t below(int64_t count, uint32_t bits)
{
    return (int64_t)((uint64_t)count * bits >> 32);
}

/* Where the part begins: as stated, in the middle, or drawn. */
static plim_status find_part(int64_t *y, int64_t *x, const struct map_row *row, const struct picture *picture,
                             plim_error *error)
{
    const struct crop_options *crop = row->options;
    int kind = row->call->function->kind;
    int64_t tall = picture->height - crop->height, wide = picture->width - crop->width;
    uint32_t random[4];
    *y = crop->y;
    *x = crop->x;
    if (kind == CROP_GIVEN)
        return PLIM_OK;
    if (tall < 0 || wide < 0) {
        fail(error, PLIM_BAD_DATA, "element %lld: has %lld x %lld pixels, fewer than the crop of %lld x %lld",
             map_element(row->call, row->index), (long long)picture->height, (long long)picture->width,
             (long long)crop->height, (long long)crop->width);
        return hint(error, PLIM_BAD_DATA, "resize: first, or resize_with_crop_or_pad: instead");
    }
    map_random(random, row);
    *y = kind == CROP_CENTER ? tall / 2 : below((tall & UINT32_MAX) + 1, random[0]);
    *x = kind == CROP_CENTER ? wide / 2 : below((wide & UINT32_MAX) + 1, random[1]);
    return PLIM_OK;
}

static plim_status crop_row(const struct map_row *row, plim_error *error)
{
    const struct crop_options *crop = row->options;
    const struct picture picture = map_picture(row);
    struct crop part = {.height = crop->height, .width = crop->width};
    void *out = map_image_result(row, crop->height, crop->width);
    if (!out)
        return map_full(row->call, error);
    if (row->call->function->kind == CROP_OR_PAD)
        return crop_or_pad_image(out, row->values, &picture, crop->height, crop->width, error);
    TRY(find_part(&part.y, &part.x, row, &picture, error));
    return crop_image(out, row->values, &picture, &part, error);
}

/* ---- job files ---- */

/* `crop: [offset_height, offset_width, target_height, target_width]`, or by these names. */
static plim_status crop_read(void *options, const struct map_function *self, const char *job, const struct yaml *value,
                             plim_error *error)
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
    TRY(map_read_sizes(part, 4, 0, self->name, job, value, error));
    crop->y = part[0], crop->x = part[1], crop->height = part[2], crop->width = part[3];
    return PLIM_OK;
}

/* `center_crop: [224, 224]`, `center_crop: {height: 224, width: 224}`. */
static plim_status size_read(void *options, const struct map_function *self, const char *job, const struct yaml *value,
                             plim_error *error)
{
    static const struct setting settings[] = {
        {"height", SETTING_WHOLE, offsetof(struct crop_options, height), 1},
        {"width", SETTING_WHOLE, offsetof(struct crop_options, width), 1},
    };
    struct crop_options *crop = options;
    int64_t size[2];
    (void)self;
    if (value->kind == YAML_MAP)
        return settings_read(crop, settings, COUNT(settings), job, value, error);
    TRY(map_read_sizes(size, 2, 1, "size", job, value, error));
    crop->height = size[0], crop->width = size[1];
    return PLIM_OK;
}

#define CROP(word, which, reader)                                                                                      \
    const struct map_function map_##word = {                                                                           \
        .name = #word,                                                                                                 \
        .kind = which,                                                                                                 \
        .infer_column = crop_infer,                                                                                    \
        .run_row = crop_row,                                                                                           \
        .options_bytes = sizeof(struct crop_options),                                                                  \
        .value_bytes = crop_value_bytes,                                                                               \
        .read = reader,                                                                                                \
    };

CROP(crop, CROP_GIVEN, crop_read)
CROP(center_crop, CROP_CENTER, size_read)
CROP(random_crop, CROP_RANDOM, size_read)
CROP(resize_with_crop_or_pad, CROP_OR_PAD, size_read)
