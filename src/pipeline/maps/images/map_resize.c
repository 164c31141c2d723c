/* map_resize.c - images of another size, as tf.image.resize makes them. */
#include "base/numbers/checked.h"
#include "base/numbers/count.h"
#include "pipeline/maps/images/map_image.h"

#define EXPECTED_SIDE 1024 /* of an image of unknown size */

static struct resize plan_of(const struct resize_options *options, const struct picture *from)
{
    return (struct resize){.method = options->method,
                           .antialias = options->antialias,
                           .from = *from,
                           .to_height = options->height,
                           .to_width = options->width};
}

static plim_status resize_infer(struct column *column, const struct map_function *self, const void *options,
                                plim_error *error)
{
    const struct resize_options *resize = options;
    TRY(map_need_image(column, self->name, false, error));
    if (resize->height < 1 || resize->width < 1)
        return fail(error, PLIM_BAD_JOB, "resize: to %lld x %lld pixels", (long long)resize->height,
                    (long long)resize->width);
    TRY(map_need_size(column, self->name, error));
    struct resize plan = plan_of(resize, &(struct picture){column->type, 1, 1, 1});
    column->type = resize_type(&plan);
    column->shape.dim[0] = resize->height;
    column->shape.dim[1] = resize->width;
    column->origin = -1;
    return map_need_size(column, self->name, error);
}

static plim_status resize_row(const struct map_row *row, plim_error *error)
{
    const struct resize_options *resize = row->options;
    const struct picture from = map_picture(row);
    const struct resize plan = plan_of(resize, &from);
    struct value_buffer *buffer = row->call->values;
    void *out = map_image_result(row, resize->height, resize->width);
    if (!out)
        return map_full(row->call, error);
    plim_status status = resize_image(out, row->values, &plan, buffer, error);
    return status == PLIM_OVER_BUDGET && buffer->wanted ? map_full(row->call, error) : status;
}

static int64_t expected(int64_t extent, int64_t otherwise)
{
    return extent < 0 ? otherwise : extent;
}

static uint64_t resize_value_bytes(const struct spec *from, const struct spec *to, const void *options)
{
    const struct resize_options *resize = options;
    int c = map_column(from, &map_resize, resize);
    const struct column *before = &from->column[c], *after = &to->column[c];
    const struct picture picture = {before->type, expected(before->shape.dim[0], EXPECTED_SIDE),
                                    expected(before->shape.dim[1], EXPECTED_SIDE), expected(before->shape.dim[2], 4)};
    const struct resize plan = plan_of(resize, &picture);
    uint64_t bytes = 0, made = 0;
    if (resize_scratch(&bytes, &plan, NULL) != PLIM_OK)
        bytes = 0; /* of sizes that are not expected: refused for the first image, with words */
    struct shape shape = shape_of(3, (int64_t[]){resize->height, resize->width, picture.channels});
    if (column_is_variable(after) && !shape_bytes(&made, &shape, after->type))
        return UINT64_MAX;
    return add_most(add_most(made, VALUE_ALIGNMENT), bytes);
}

/* ---- job files ---- */

struct resize_settings {
    const struct yaml *size;
    const char *method;
    bool antialias;
};

/* `resize: [224, 224]`, `resize: {size: [224, 224], method: bicubic, antialias: true}`. */
static plim_status resize_read(void *options, const struct map_function *self, const char *job,
                               const struct yaml *value, plim_error *error)
{
    static const char *const later[] = {"lanczos3", "lanczos5", "gaussian", "mitchellcubic"};
    static const struct word_choices methods = {"method", resize_method_names, RESIZE_METHODS, later, COUNT(later)};
    static const struct setting settings[] = {
        {"size", SETTING_NODE, offsetof(struct resize_settings, size), 0},
        {"method", SETTING_WORD, offsetof(struct resize_settings, method), 0},
        {"antialias", SETTING_BOOL, offsetof(struct resize_settings, antialias), 0},
    };
    struct resize_options *resize = options;
    struct resize_settings read = {.method = "bilinear"};
    int64_t size[2];
    int method = 0;
    TRY(map_settings_read(&read, &(struct map_settings){settings, COUNT(settings), self->name}, job, value, error));
    if (!read.size)
        return yaml_fail(error, PLIM_BAD_JOB, job, value, "resize: 'size:' is missing");
    TRY(map_read_sizes(size, 2, 1, self->name, job, read.size, error));
    TRY(map_choice_read(&method, &methods, read.method, job, value, error));
    resize->height = size[0];
    resize->width = size[1];
    resize->antialias = read.antialias;
    resize->method = (enum resize_method)method;
    return PLIM_OK;
}

const struct map_function map_resize = {
    .name = "resize",
    .infer_column = resize_infer,
    .run_row = resize_row,
    .options_bytes = sizeof(struct resize_options),
    .value_bytes = resize_value_bytes,
    .heavy = true,
    .read = resize_read,
};
