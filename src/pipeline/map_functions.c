/* map_functions.c - the functions that `map:` knows by name.

   A column that a function leaves alone, or changes without changing its type
   and shape, is in place: to[c] == from[c]. */
#include "pipeline/map_functions.h"

#include <string.h>

#include "base/random.h"
#include "base/settings.h"
#include "base/text.h"
#include "pipeline/stage.h"

#define COUNT(array)     (sizeof(array) / sizeof((array)[0]))
#define MOST_PIXEL_BYTES 256

/* ---- columns ---- */

static int column_find(const struct spec *spec, const char *name, int unnamed)
{
    if (!*name)
        return unnamed;
    for (int c = 0; c < spec->column_count; c++)
        if (strcmp(spec->column[c].name, name) == 0)
            return c;
    return -1;
}

static int first_column(const struct spec *spec, const char *name)
{
    return column_find(spec, name, 0);
}

static int last_column(const struct spec *spec, const char *name)
{
    return column_find(spec, name, spec->column_count - 1);
}

static plim_status no_column(const struct spec *spec, const char *function, const char *name, plim_error *error)
{
    const char *names[MOST_COLUMNS];
    for (int c = 0; c < spec->column_count; c++)
        names[c] = spec->column[c].name;
    const char *near = text_nearest(name, names, (size_t)spec->column_count);
    fail(error, PLIM_BAD_JOB, "%s: there is no column '%s'", function, name);
    return near ? hint(error, PLIM_BAD_JOB, "did you mean '%s'?", near) : PLIM_BAD_JOB;
}

static bool is_float(enum type type)
{
    return type == TYPE_F32 || type == TYPE_F64 || type == TYPE_F16 || type == TYPE_BF16;
}

/* ---- cast ---- */

static plim_status cast_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct cast_options *cast = options;
    int c = first_column(spec, cast->column);
    if (c < 0)
        return no_column(spec, "cast", cast->column, error);
    spec->column[c].type = cast->type;
    return PLIM_OK;
}

static void cast_row(void *to, enum type to_type, const void *from, enum type from_type, int64_t n)
{
    if (to_type == TYPE_F32 && from_type == TYPE_U8)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = ((const uint8_t *)from)[i];
    else
        for (int64_t i = 0; i < n; i++)
            element_set(to, to_type, i, element_get(from, from_type, i));
}

static plim_status cast_run(const struct map_call *call, plim_error *error)
{
    const struct cast_options *cast = call->options;
    int c = first_column(call->from_spec, cast->column);
    const struct column *from = &call->from_spec->column[c];
    (void)error;
    if (from->type == cast->type)
        return PLIM_OK;
    for (int64_t i = 0; i < call->count; i++)
        cast_row((char *)call->to[c] + (uint64_t)i * call->to_stride[c], cast->type,
                 (const char *)call->from[c] + (uint64_t)i * call->from_stride[c], from->type,
                 shape_count(&from->shape));
    return PLIM_OK;
}

static plim_status cast_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct cast_options *cast = options;
    const char *word = NULL, *names[TYPE_COUNT];
    char where[256];
    const struct setting setting = {"cast", SETTING_WORD, 0, 0};
    TRY(setting_value(&word, &setting, job, value, error));
    if (type_from_name(&cast->type, word))
        return PLIM_OK;
    for (int i = 0; i < TYPE_COUNT; i++)
        names[i] = type_name((enum type)i);
    const char *near = text_nearest(word, names, TYPE_COUNT);
    yaml_place(where, job, value);
    fail_at(error, PLIM_BAD_JOB, where, "cast: unknown type '%s'", word);
    return hint(error, PLIM_BAD_JOB, near ? "did you mean '%s'?" : "cast: float32", near);
}

const struct map_function map_cast = {
    .name = "cast", .infer = cast_infer, .run = cast_run, .options_bytes = sizeof(struct cast_options)};

/* ---- rescale ---- */

static plim_status rescale_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct rescale_options *rescale = options;
    int c = first_column(spec, rescale->column);
    if (c < 0)
        return no_column(spec, "rescale", rescale->column, error);
    if (!is_float(spec->column[c].type))
        spec->column[c].type = TYPE_F32;
    return PLIM_OK;
}

/* y = x * scale + offset, each step rounded to float as Keras does it; in double for float64. */
static void rescale_row(void *to, enum type to_type, const void *from, enum type from_type, int64_t n,
                        const struct rescale_options *rescale)
{
    float scale = (float)rescale->scale, offset = (float)rescale->offset;
    if (to_type == TYPE_F32 && from_type == TYPE_U8)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = ((const uint8_t *)from)[i] * scale + offset;
    else if (to_type == TYPE_F32 && from_type == TYPE_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = ((const float *)from)[i] * scale + offset;
    else if (to_type == TYPE_F64)
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] = ((const double *)from)[i] * rescale->scale + rescale->offset;
    else
        for (int64_t i = 0; i < n; i++)
            element_set(to, to_type, i, (float)element_get(from, from_type, i) * scale + offset);
}

static plim_status rescale_run(const struct map_call *call, plim_error *error)
{
    const struct rescale_options *rescale = call->options;
    int c = first_column(call->from_spec, rescale->column);
    const struct column *from = &call->from_spec->column[c], *to = &call->to_spec->column[c];
    (void)error;
    for (int64_t i = 0; i < call->count; i++)
        rescale_row((char *)call->to[c] + (uint64_t)i * call->to_stride[c], to->type,
                    (const char *)call->from[c] + (uint64_t)i * call->from_stride[c], from->type,
                    shape_count(&from->shape), rescale);
    return PLIM_OK;
}

static plim_status rescale_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct rescale_options *rescale = options;
    static const struct setting settings[] = {
        {"scale", SETTING_NUMBER, offsetof(struct rescale_options, scale), 0},
        {"offset", SETTING_NUMBER, offsetof(struct rescale_options, offset), 0},
    };
    const struct setting alone = {"rescale", SETTING_NUMBER, 0, 0};
    rescale->scale = 1;
    if (value->kind == YAML_SCALAR)
        return setting_value(&rescale->scale, &alone, job, value, error);
    return settings_read(rescale, settings, COUNT(settings), job, value, error);
}

const struct map_function map_rescale = {
    .name = "rescale", .infer = rescale_infer, .run = rescale_run, .options_bytes = sizeof(struct rescale_options)};

/* ---- one_hot ---- */

static plim_status one_hot_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct one_hot_options *one_hot = options;
    int c = last_column(spec, one_hot->column);
    if (c < 0)
        return no_column(spec, "one_hot", one_hot->column, error);
    struct column *column = &spec->column[c];
    if (one_hot->classes < 1)
        return fail(error, PLIM_BAD_JOB, "one_hot: needs at least 1 class");
    if (is_float(column->type))
        return fail(error, PLIM_BAD_JOB, "one_hot: column '%s' holds %s, not class numbers", column->name,
                    type_name(column->type));
    if (column->shape.rank >= MOST_AXES - 1) /* a batch axis comes before them */
        return fail(error, PLIM_UNSUPPORTED, "one_hot: column '%s' has %d axes already", column->name,
                    column->shape.rank);
    column->shape.dim[column->shape.rank++] = one_hot->classes;
    column->type = TYPE_F32;
    return PLIM_OK;
}

static plim_status one_hot_run(const struct map_call *call, plim_error *error)
{
    const struct one_hot_options *one_hot = call->options;
    int c = last_column(call->from_spec, one_hot->column);
    const struct column *from = &call->from_spec->column[c];
    int64_t n = shape_count(&from->shape);
    for (int64_t i = 0; i < call->count; i++) {
        float *to = (float *)((char *)call->to[c] + (uint64_t)i * call->to_stride[c]);
        const char *row = (const char *)call->from[c] + (uint64_t)i * call->from_stride[c];
        memset(to, 0, call->to_spec->column[c].bytes);
        for (int64_t k = 0; k < n; k++) {
            double label = element_get(row, from->type, k);
            if (label < 0 || label >= (double)one_hot->classes)
                return fail(error, PLIM_BAD_DATA, "element %lld: column '%s' is %.0f, not one of %lld classes from 0",
                            (long long)call->index[i], from->name, label, (long long)one_hot->classes);
            to[k * one_hot->classes + (int64_t)label] = 1;
        }
    }
    return PLIM_OK;
}

static plim_status one_hot_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct one_hot_options *one_hot = options;
    static const struct setting settings[] = {
        {"classes", SETTING_WHOLE, offsetof(struct one_hot_options, classes), 1},
    };
    const struct setting alone = {"one_hot", SETTING_WHOLE, 0, 1};
    if (value->kind == YAML_SCALAR)
        return setting_value(&one_hot->classes, &alone, job, value, error);
    return settings_read(one_hot, settings, COUNT(settings), job, value, error);
}

const struct map_function map_one_hot = {
    .name = "one_hot", .infer = one_hot_infer, .run = one_hot_run, .options_bytes = sizeof(struct one_hot_options)};

/* ---- random_flip ---- */

static plim_status random_flip_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct random_flip_options *flip = options;
    int c = first_column(spec, flip->column);
    if (c < 0)
        return no_column(spec, "random_flip", flip->column, error);
    const struct column *column = &spec->column[c];
    char shape[64];
    shape_text(shape, sizeof shape, &column->shape, false);
    if (column->shape.rank != 3)
        return fail(error, PLIM_BAD_JOB, "random_flip: column '%s' is %s, not (height, width, channels)", column->name,
                    shape);
    if ((uint64_t)column->shape.dim[2] * type_bytes(column->type) > MOST_PIXEL_BYTES)
        return fail(error, PLIM_UNSUPPORTED, "random_flip: column '%s' is %s: more than %d bytes a pixel", column->name,
                    shape, MOST_PIXEL_BYTES);
    return PLIM_OK;
}

static void mirror(uint8_t *line, int64_t width, size_t pixel_bytes)
{
    uint8_t kept[MOST_PIXEL_BYTES];
    for (int64_t x = 0; x < width / 2; x++) {
        uint8_t *left = line + (size_t)x * pixel_bytes, *right = line + (size_t)(width - 1 - x) * pixel_bytes;
        memcpy(kept, left, pixel_bytes);
        memcpy(left, right, pixel_bytes);
        memcpy(right, kept, pixel_bytes);
    }
}

static plim_status random_flip_run(const struct map_call *call, plim_error *error)
{
    const struct random_flip_options *flip = call->options;
    int c = first_column(call->from_spec, flip->column);
    const struct column *column = &call->from_spec->column[c];
    const int64_t *dim = column->shape.dim;
    size_t pixel_bytes = (size_t)dim[2] * type_bytes(column->type);
    (void)error;
    for (int64_t i = 0; i < call->count; i++) {
        uint32_t random[4];
        random_block(random, call->seed, call->epoch, (uint64_t)call->index[i]);
        uint8_t *image = (uint8_t *)call->to[c] + (uint64_t)i * call->to_stride[c];
        for (int64_t y = 0; random[0] >> 31 && y < dim[0]; y++)
            mirror(image + (size_t)(y * dim[1]) * pixel_bytes, dim[1], pixel_bytes);
    }
    return PLIM_OK;
}

static plim_status random_flip_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    const char *word = NULL;
    char where[256];
    const struct setting setting = {"random_flip", SETTING_WORD, 0, 0};
    (void)options;
    TRY(setting_value(&word, &setting, job, value, error));
    if (strcmp(word, "horizontal") == 0)
        return PLIM_OK;
    static const char *const offered[] = {"horizontal"}, *const later[] = {"vertical", "horizontal_and_vertical"};
    yaml_place(where, job, value);
    return stage_unknown("random_flip", word, offered, COUNT(offered), later, COUNT(later), where, error);
}

const struct map_function map_random_flip = {.name = "random_flip",
                                             .infer = random_flip_infer,
                                             .run = random_flip_run,
                                             .options_bytes = sizeof(struct random_flip_options)};

/* ---- by name ---- */

static const struct named {
    const struct map_function *function;
    plim_status (*read)(void *options, const char *job, const struct yaml *value, plim_error *error);
} functions[] = {
    {&map_cast, cast_read},
    {&map_rescale, rescale_read},
    {&map_one_hot, one_hot_read},
    {&map_random_flip, random_flip_read},
};

static const char *const later_functions[] = {
    "decode_jpeg",
    "decode_png",
    "decode_image",
    "resize",
    "crop",
    "flip",
    "rotate",
    "normalize",
    "parse_example",
    "parse_single_example",
    "random_crop",
    "random_rotation",
    "random_translation",
    "random_zoom",
    "random_brightness",
    "random_contrast",
    "random_height",
    "random_width",
    "center_crop",
};

const struct map_function *map_function_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT(functions); i++)
        if (strcmp(functions[i].function->name, name) == 0)
            return functions[i].function;
    return NULL;
}

plim_status map_function_unknown(const char *name, const char *where, plim_error *error)
{
    const char *names[COUNT(functions)];
    for (size_t i = 0; i < COUNT(functions); i++)
        names[i] = functions[i].function->name;
    return stage_unknown("function", name, names, COUNT(names), later_functions, COUNT(later_functions), where, error);
}

plim_status map_function_read(void *options, const struct map_function *function, const char *job,
                              const struct yaml *value, plim_error *error)
{
    memset(options, 0, sizeof(union map_options));
    if (!value || value->is_null)
        return fail(error, PLIM_BAD_JOB, "%s: its value is missing", function->name);
    for (size_t i = 0; i < COUNT(functions); i++)
        if (functions[i].function == function)
            return functions[i].read(options, job, value, error);
    return fail(error, PLIM_INTERNAL, "%s: has no reader", function->name);
}
