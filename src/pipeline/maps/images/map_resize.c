/* map_resize.c - images of another size, as tf.image.resize makes them. */
#include "base/numbers/checked.h"
#include "base/text/settings.h"
#include "pipeline/core/stage.h"
#include "pipeline/maps/images/map_image.h"

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define EXPECTED_SIDE 1024 /* of an image of unknown size */

static struct resize plan_of(const struct resize_options *options, const struct picture *from)
{
    return (struct resize){.method = options->method,
                           .antialias = options->antialias,
                           .from = *from,
                           .to_height = options->height,
                           .to_width = options->width};
}

static plim_status resize_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct resize_options *resize = options;
    int c;
    TRY(map_image_column(&c, spec, "resize", resize->column, false, error));
    if (resize->height < 1 || resize->width < 1)
        return fail(error, PLIM_BAD_JOB, "resize: to %lld x %lld pixels", (long long)resize->height,
                    (long long)resize->width);
    struct column *column = &spec->column[c];
    struct resize plan = plan_of(resize, &(struct picture){column->type, 1, 1, 1});
    column->type = resize_type(&plan);
    column->shape.dim[0] = resize->height;
    column->shape.dim[1] = resize->width;
    column->origin = -1;
    return PLIM_OK;
}

static plim_status resize_run(const struct map_call *call, plim_error *error)
{
    const struct resize_options *resize = call->options;
    int c = map_first_column(call->from_spec, resize->column);
    for (int64_t i = 0; i < call->count; i++) {
        struct picture from;
        const void *pixels = map_image_from(&from, call, c, i);
        struct resize plan = plan_of(resize, &from);
        const struct picture to = {resize_type(&plan), resize->height, resize->width, from.channels};
        void *out = map_image_to(call, c, i, &to);
        if (!out)
            return map_full(call, error);
        plim_status status = resize_image(out, pixels, &plan, call->room, error);
        if (status == PLIM_OVER_BUDGET && call->room->wanted)
            return map_full(call, error);
        if (status != PLIM_OK)
            return status;
    }
    return PLIM_OK;
}

static int64_t expected(int64_t extent, int64_t otherwise)
{
    return extent < 0 ? otherwise : extent;
}

static uint64_t resize_room(const struct spec *from, const struct spec *to, const void *options)
{
    const struct resize_options *resize = options;
    int c = map_first_column(from, resize->column);
    const struct column *before = &from->column[c], *after = &to->column[c];
    const struct picture picture = {before->type, expected(before->shape.dim[0], EXPECTED_SIDE),
                                    expected(before->shape.dim[1], EXPECTED_SIDE), expected(before->shape.dim[2], 4)};
    const struct resize plan = plan_of(resize, &picture);
    uint64_t bytes = 0, made = 0;
    if (resize_scratch(&bytes, &plan, NULL) != PLIM_OK)
        bytes = 0; /* refused for the first image, with words */
    struct shape shape = shape_of(3, (int64_t[]){resize->height, resize->width, picture.channels});
    if (column_is_variable(after) && !shape_bytes(&made, &shape, after->type))
        return UINT64_MAX;
    return add_most(add_most(made, ROOM_ALIGNMENT), bytes);
}

/* ---- job files ---- */

struct resize_words {
    const struct yaml *size;
    const char *method;
    bool antialias;
};

/* `resize: [224, 224]`, `resize: {size: [224, 224], method: bicubic, antialias: true}`. */
static plim_status resize_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    static const char *const methods[] = {"bilinear", "nearest", "bicubic", "area"};
    static const char *const later[] = {"lanczos3", "lanczos5", "gaussian", "mitchellcubic"};
    static const struct setting settings[] = {
        {"size", SETTING_NODE, offsetof(struct resize_words, size), 0},
        {"method", SETTING_WORD, offsetof(struct resize_words, method), 0},
        {"antialias", SETTING_BOOL, offsetof(struct resize_words, antialias), 0},
    };
    struct resize_options *resize = options;
    struct resize_words words = {.method = "bilinear"};
    int64_t size[2];
    char where[256];
    if (value->kind == YAML_MAP)
        TRY(settings_read(&words, settings, COUNT(settings), job, value, error));
    yaml_place(where, job, value);
    if (value->kind == YAML_MAP && !words.size)
        return fail_at(error, PLIM_BAD_JOB, where, "resize: 'size:' is missing");
    TRY(map_read_sizes(size, 2, 1, "resize", job, words.size ? words.size : value, error));
    resize->height = size[0];
    resize->width = size[1];
    resize->antialias = words.antialias;
    if (resize_method_from_name(&resize->method, words.method))
        return PLIM_OK;
    return stage_unknown("method", words.method, methods, COUNT(methods), later, COUNT(later), where, error);
}

const struct map_function map_resize = {
    .name = "resize",
    .infer = resize_infer,
    .run = resize_run,
    .options_bytes = sizeof(struct resize_options),
    .room_bytes = resize_room,
    .heavy = true,
    .read = resize_read,
};
