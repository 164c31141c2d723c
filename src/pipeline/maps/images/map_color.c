/* map_color.c - changes of values: Keras's RandomContrast, RandomBrightness and Normalization, and
   tf.image.per_image_standardization. Results are float32, in place where the images are. */
#include "base/numbers/count.h"
#include "pipeline/maps/images/map_image.h"

enum color_kind { COLOR_CONTRAST, COLOR_BRIGHTNESS, COLOR_STANDARDIZE, COLOR_NORMALIZE };

static plim_status color_infer(struct column *column, const struct map_function *self, const void *options,
                               plim_error *error)
{
    (void)options;
    TRY(map_need_image(column, self->name, false, error));
    column->type = TYPE_F32;
    return PLIM_OK;
}

/* A mean and a variance for each of the channels. */
static void normalize(float *pixels, int64_t count, int64_t channels, const struct normalize_options *normal)
{
    float mean[NORMALIZE_CHANNELS], variance[NORMALIZE_CHANNELS];
    for (int64_t k = 0; k < channels; k++) {
        mean[k] = normal->mean[normal->mean_count > 1 ? k : 0];
        variance[k] = normal->variance[normal->variance_count > 1 ? k : 0];
    }
    normalize_image(pixels, count, channels, mean, variance);
}

static plim_status color_row(const struct map_row *row, plim_error *error)
{
    const struct color_options *color = row->options;
    int64_t channels = row->shape.dim[2], count = row->shape.dim[0] * row->shape.dim[1];
    int kind = row->call->function->kind;
    uint32_t random[4];
    float *pixels = map_image_floats(row);
    if (!pixels)
        return map_full(row->call, error);
    if (kind == COLOR_STANDARDIZE)
        standardize_image(pixels, count, channels);
    if (kind == COLOR_NORMALIZE)
        normalize(pixels, count, channels, row->options);
    if (kind != COLOR_CONTRAST && kind != COLOR_BRIGHTNESS)
        return PLIM_OK;
    map_random(random, row);
    float factor = factor_draw(&color->factor, random[0]), low = (float)color->low;
    float high = color->low == 0 && color->high == 0 ? 255.0f : (float)color->high;
    if (kind == COLOR_CONTRAST)
        adjust_contrast(pixels, count, channels, 1.0f + factor, low, high);
    else
        adjust_brightness(pixels, count, channels, factor, low, high);
    return PLIM_OK;
}

/* ---- job files ---- */

struct color_settings {
    const struct yaml *factor, *range;
};

/* `random_contrast: 0.2`, `random_contrast: {factor: [0.1, 0.3], value_range: [0, 1]}`. Keras's two numbers of
   random_contrast are parts to either side: [lower, upper] is drawn from [1 - lower, 1 + upper]. */
static plim_status color_read(void *options, const struct map_function *self, const char *job, const struct yaml *value,
                              plim_error *error)
{
    static const struct setting settings[] = {
        {"factor", SETTING_NODE, offsetof(struct color_settings, factor), 0},
        {"value_range", SETTING_NODE, offsetof(struct color_settings, range), 0},
    };
    struct color_options *color = options;
    struct color_settings read = {0};
    struct factor range = {0, 255};
    char where[256];
    TRY(map_settings_read(&read, &(struct map_settings){settings, COUNT(settings), "factor"}, job, value, error));
    yaml_place(where, job, value);
    if (!read.factor)
        return fail_at(error, PLIM_BAD_JOB, where, "'factor:' is missing");
    if (read.range && read.range->kind != YAML_LIST)
        return fail_at(error, PLIM_BAD_JOB, where, "value_range: expected [lowest, highest]");
    if (read.range)
        TRY(map_read_factor(&range, "value_range", job, read.range, error));
    color->low = range.lower;
    color->high = range.upper;
    TRY(map_read_factor(&color->factor, "factor", job, read.factor, error));
    if (self->kind == COLOR_CONTRAST && read.factor->kind == YAML_LIST)
        color->factor.lower = -color->factor.lower;
    return PLIM_OK;
}

static plim_status read_channels(float *out, int *count, const char *what, const char *job, const struct yaml *value,
                                 plim_error *error)
{
    const struct setting setting = {what, SETTING_NUMBER, 0, 0};
    const struct yaml *item = value->kind == YAML_LIST ? value->first : value;
    if (!item || (value->kind == YAML_LIST && value->count > NORMALIZE_CHANNELS))
        return yaml_fail(error, PLIM_BAD_JOB, job, value, "%s: expected a number, or one a channel (%d at most)", what,
                         NORMALIZE_CHANNELS);
    for (*count = 0; item; item = value->kind == YAML_LIST ? item->next : NULL) {
        double number = 0;
        TRY(setting_value(&number, &setting, job, item, error));
        out[(*count)++] = (float)number;
    }
    return PLIM_OK;
}

struct normalize_settings {
    const struct yaml *mean, *variance, *deviation;
};

/* `normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}`; variance: as Keras has it. */
static plim_status normalize_read(void *options, const struct map_function *self, const char *job,
                                  const struct yaml *value, plim_error *error)
{
    static const struct setting settings[] = {
        {"mean", SETTING_NODE, offsetof(struct normalize_settings, mean), 0},
        {"variance", SETTING_NODE, offsetof(struct normalize_settings, variance), 0},
        {"std", SETTING_NODE, offsetof(struct normalize_settings, deviation), 0},
    };
    struct normalize_options *normal = options;
    struct normalize_settings read = {0};
    (void)self;
    TRY(settings_read(&read, settings, COUNT(settings), job, value, error));
    if (!read.mean || !read.variance == !read.deviation)
        return hint(error, fail(error, PLIM_BAD_JOB, "normalize: needs 'mean:' and one of 'variance:' and 'std:'"),
                    "normalize: {mean: 127.5, std: 127.5}");
    TRY(read_channels(normal->mean, &normal->mean_count, "mean", job, read.mean, error));
    if (read.variance)
        return read_channels(normal->variance, &normal->variance_count, "variance", job, read.variance, error);
    TRY(read_channels(normal->variance, &normal->variance_count, "std", job, read.deviation, error));
    for (int i = 0; i < normal->variance_count; i++)
        normal->variance[i] *= normal->variance[i];
    return PLIM_OK;
}

/* ---- the functions ---- */

static bool fits(int count, int64_t channels)
{
    return count == 1 || count == channels;
}

static plim_status normalize_infer(struct column *column, const struct map_function *self, const void *options,
                                   plim_error *error)
{
    const struct normalize_options *normal = options;
    TRY(color_infer(column, self, options, error));
    int64_t channels = column->shape.dim[2];
    if (!fits(normal->mean_count, channels) || !fits(normal->variance_count, channels) ||
        channels > NORMALIZE_CHANNELS || channels < 0)
        return fail(error, PLIM_BAD_JOB,
                    "normalize: %d values of mean and %d of variance for images of %lld channels (-1: any number)",
                    normal->mean_count, normal->variance_count, (long long)channels);
    return PLIM_OK;
}

#define COLOR(word, which, check, type, alone, reader)                                                                 \
    const struct map_function map_##word = {                                                                           \
        .name = #word,                                                                                                 \
        .kind = which,                                                                                                 \
        .infer_column = check,                                                                                         \
        .run_row = color_row,                                                                                          \
        .options_bytes = sizeof(struct type),                                                                          \
        .value_bytes = map_value_bytes,                                                                                \
        .bare = alone,                                                                                                 \
        .read = reader,                                                                                                \
    };

COLOR(random_contrast, COLOR_CONTRAST, color_infer, color_options, false, color_read)
COLOR(random_brightness, COLOR_BRIGHTNESS, color_infer, color_options, false, color_read)
COLOR(per_image_standardization, COLOR_STANDARDIZE, color_infer, color_options, true, NULL)
COLOR(normalize, COLOR_NORMALIZE, normalize_infer, normalize_options, false, normalize_read)
