/* map_warp.c - Keras's RandomRotation, RandomZoom and RandomTranslation. */
#include <string.h>

#include "base/numbers/count.h"
#include "pipeline/maps/images/map_image.h"

static plim_status warp_infer(struct column *column, const struct map_function *self, const void *options,
                              plim_error *error)
{
    (void)options;
    TRY(map_need_image(column, self->name, false, error));
    for (int a = 0; a < column->shape.rank; a++)
        if (column->shape.dim[a] == 0)
            return fail(error, PLIM_BAD_JOB, "%s: images of column '%s' have no pixels", self->name, column->name);
    column->type = TYPE_F32;
    column->origin = -1; /* each pixel is made of several: not in place */
    return PLIM_OK;
}

static uint64_t warp_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    int c = map_column(to, &map_random_rotation, options);
    const struct column *before = &from->column[c];
    uint64_t bytes = map_column_value_bytes(&to->column[c]);
    if (before->type == TYPE_U8) /* it is made float32 first */
        bytes += (bytes ? MAP_VALUES : (uint64_t)shape_count(&before->shape)) * sizeof(float) + VALUE_ALIGNMENT;
    return bytes;
}

/* The pixels as float32, in the buffer where they are not. NULL: it is full. */
static const float *as_floats(const struct map_row *row)
{
    if (row->from->type == TYPE_F32)
        return row->values;
    float *floats = value_buffer_take(row->call->values, (uint64_t)row->count * sizeof *floats);
    for (int64_t i = 0; floats && i < row->count; i++)
        floats[i] = ((const uint8_t *)row->values)[i];
    return floats;
}

static struct warp_map draw_map(const struct map_row *row, const struct picture *picture)
{
    const struct warp_options *warp = row->options;
    int64_t height = picture->height, width = picture->width;
    int kind = row->call->function->kind;
    uint32_t random[4];
    map_random(random, row);
    float first = factor_draw(&warp->height, random[0]);
    float second = kind == WARP_ZOOM && warp->same ? first : factor_draw(&warp->width, random[1]);
    return kind == WARP_ROTATE ? warp_rotation(first, height, width)
           : kind == WARP_ZOOM ? warp_zoom(first, second, height, width)
                               : warp_translation(first, second, height, width);
}

static plim_status warp_row(const struct map_row *row, plim_error *error)
{
    const struct warp_options *options = row->options;
    struct value_buffer *buffer = row->call->values;
    struct picture picture = map_picture(row);
    float *out = map_result(row, &row->shape);
    uint64_t used = buffer ? buffer->used : 0;
    const float *in = out ? as_floats(row) : NULL;
    if (!in)
        return map_full(row->call, error);
    const struct warp warp = {.map = draw_map(row, &picture),
                              .fill = options->fill,
                              .fill_value = (float)options->fill_value,
                              .nearest = options->nearest};
    picture.type = TYPE_F32;
    plim_status status = warp_image(out, in, &picture, &warp, error);
    if (buffer)
        buffer->used = used;
    return status;
}

/* ---- job files ---- */

struct warp_settings {
    const struct yaml *height, *width; /* rotation: the factor is in `height` */
    const char *fill, *interpolation;
    double fill_value;
};

/* {factor or height_factor, width_factor, fill_mode, fill_value, interpolation}, or the first factor alone. */
static plim_status read_settings(struct warp_settings *read, struct warp_options *warp, const char *job,
                                 const struct yaml *value, bool rotation, plim_error *error)
{
    static const char *const methods[] = {"bilinear", "nearest"};
    static const struct word_choices fills = {.what = "fill_mode", .names = warp_fill_names, .count = WARP_FILLS};
    static const struct word_choices interpolations = {.what = "interpolation", .names = methods, .count = 2};
    const struct setting settings[] = {
        {rotation ? "factor" : "height_factor", SETTING_NODE, offsetof(struct warp_settings, height), 0},
        {"fill_mode", SETTING_WORD, offsetof(struct warp_settings, fill), 0},
        {"fill_value", SETTING_NUMBER, offsetof(struct warp_settings, fill_value), 0},
        {"interpolation", SETTING_WORD, offsetof(struct warp_settings, interpolation), 0},
        {"width_factor", SETTING_NODE, offsetof(struct warp_settings, width), 0}, /* not of rotation: the last */
    };
    int fill = 0, method = 0;
    *read = (struct warp_settings){.fill = "reflect", .interpolation = "bilinear"};
    TRY(map_settings_read(read, &(struct map_settings){settings, (int)COUNT(settings) - rotation, settings[0].word},
                          job, value, error));
    if (!read->height)
        return fail(error, PLIM_BAD_JOB, "'%s:' is missing", settings[0].word);
    TRY(map_choice_read(&method, &interpolations, read->interpolation, job, value, error));
    TRY(map_choice_read(&fill, &fills, read->fill, job, value, error));
    warp->fill_value = read->fill_value;
    warp->nearest = method == 1;
    warp->fill = (enum warp_fill)fill;
    return PLIM_OK;
}

/* Without a factor of the width random_zoom keeps the ratio of the sides; one factor alone of random_translation is
   both. */
static plim_status warp_read(void *options, const struct map_function *self, const char *job, const struct yaml *value,
                             plim_error *error)
{
    struct warp_options *warp = options;
    struct warp_settings read;
    bool rotation = self->kind == WARP_ROTATE;
    TRY(read_settings(&read, warp, job, value, rotation, error));
    if (self->kind == WARP_TRANSLATE && value->kind == YAML_MAP && !read.width)
        return fail(error, PLIM_BAD_JOB, "'width_factor:' is missing");
    TRY(map_read_factor(&warp->height, rotation ? "factor" : "height_factor", job, read.height, error));
    if (self->kind == WARP_TRANSLATE)
        warp->width = warp->height;
    warp->same = self->kind == WARP_ZOOM && (!read.width || read.width->is_null);
    return read.width && !warp->same ? map_read_factor(&warp->width, "width_factor", job, read.width, error) : PLIM_OK;
}

#define WARP(word, which)                                                                                              \
    const struct map_function map_##word = {                                                                           \
        .name = #word,                                                                                                 \
        .kind = which,                                                                                                 \
        .infer_column = warp_infer,                                                                                    \
        .run_row = warp_row,                                                                                           \
        .options_bytes = sizeof(struct warp_options),                                                                  \
        .value_bytes = warp_value_bytes,                                                                               \
        .heavy = true,                                                                                                 \
        .read = warp_read,                                                                                             \
    };

WARP(random_rotation, WARP_ROTATE)
WARP(random_zoom, WARP_ZOOM)
WARP(random_translation, WARP_TRANSLATE)
