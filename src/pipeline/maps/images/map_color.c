/* map_color.c - changes of values: Keras's RandomContrast, RandomBrightness and Normalization, and
   tf.image.per_image_standardization. Results are float32, in place where the images are. */
#include <string.h>

#include "base/numbers/random.h"
#include "base/text/settings.h"
#include "pipeline/maps/images/map_image.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static plim_status infer(int *c, struct spec *spec, const char *column, const char *name, plim_error *error)
{
    TRY(map_image_column(c, spec, name, column, false, error));
    spec->column[*c].type = TYPE_F32;
    return PLIM_OK;
}

static uint64_t room(const struct spec *from, const struct spec *to, const void *options)
{
    const char *column = options; /* all of them begin with it */
    (void)from;
    return map_values_room(&to->column[map_first_column(to, column)]);
}

typedef void change(float *pixels, const struct picture *picture, const void *options, uint32_t bits);

static plim_status run(const struct map_call *call, change *change_pixels, plim_error *error)
{
    int c = map_first_column(call->from_spec, call->options);
    for (int64_t i = 0; i < call->count; i++) {
        uint32_t random[4];
        struct picture picture;
        float *pixels = map_image_floats(&picture, call, c, i);
        if (!pixels)
            return map_full(call, error);
        random_block(random, call->seed, call->epoch, (uint64_t)call->index[i]);
        change_pixels(pixels, &picture, call->options, random[0]);
    }
    return PLIM_OK;
}

/* ---- what is done ---- */

static float highest(const struct color_options *color)
{
    return color->low == 0 && color->high == 0 ? 255.0f : (float)color->high;
}

static void change_contrast(float *pixels, const struct picture *picture, const void *options, uint32_t bits)
{
    const struct color_options *color = options;
    adjust_contrast(pixels, picture->height * picture->width, picture->channels,
                    1.0f + factor_draw(&color->factor, bits), (float)color->low, highest(color));
}

static void change_brightness(float *pixels, const struct picture *picture, const void *options, uint32_t bits)
{
    const struct color_options *color = options;
    adjust_brightness(pixels, picture->height * picture->width, picture->channels, factor_draw(&color->factor, bits),
                      (float)color->low, highest(color));
}

static void standardize(float *pixels, const struct picture *picture, const void *options, uint32_t bits)
{
    (void)options, (void)bits;
    standardize_image(pixels, picture->height * picture->width, picture->channels);
}

static void normalize(float *pixels, const struct picture *picture, const void *options, uint32_t bits)
{
    const struct normalize_options *normal = options;
    float mean[NORMALIZE_CHANNELS], variance[NORMALIZE_CHANNELS];
    (void)bits;
    for (int64_t k = 0; k < picture->channels; k++) {
        mean[k] = normal->mean[normal->mean_count > 1 ? k : 0];
        variance[k] = normal->variance[normal->variance_count > 1 ? k : 0];
    }
    normalize_image(pixels, picture->height * picture->width, picture->channels, mean, variance);
}

/* ---- job files ---- */

struct color_words {
    const struct yaml *factor, *range;
};

/* `random_contrast: 0.2`, `random_contrast: {factor: [0.1, 0.3], value_range: [0, 1]}`. */
static plim_status color_read(struct color_options *color, const char *job, const struct yaml *value, plim_error *error)
{
    static const struct setting settings[] = {
        {"factor", SETTING_NODE, offsetof(struct color_words, factor), 0},
        {"value_range", SETTING_NODE, offsetof(struct color_words, range), 0},
    };
    struct color_words words = {.factor = value};
    struct factor range = {0, 255};
    char where[256];
    if (value->kind == YAML_MAP) {
        words.factor = NULL;
        TRY(settings_read(&words, settings, COUNT(settings), job, value, error));
    }
    yaml_place(where, job, value);
    if (!words.factor)
        return fail_at(error, PLIM_BAD_JOB, where, "'factor:' is missing");
    if (words.range && words.range->kind != YAML_LIST)
        return fail_at(error, PLIM_BAD_JOB, where, "value_range: expected [lowest, highest]");
    if (words.range)
        TRY(map_read_factor(&range, "value_range", job, words.range, error));
    color->low = range.lower;
    color->high = range.upper;
    return map_read_factor(&color->factor, "factor", job, words.factor, error);
}

static plim_status brightness_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    return color_read(options, job, value, error);
}

/* Keras's two numbers are both parts to either side: [lower, upper] is drawn from [1 - lower, 1 + upper]. */
static plim_status contrast_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    struct color_options *color = options;
    TRY(color_read(color, job, value, error));
    const struct yaml *factor = value->kind == YAML_MAP ? yaml_get(value, "factor") : value;
    if (factor->kind == YAML_LIST)
        color->factor.lower = -color->factor.lower;
    return PLIM_OK;
}

static plim_status read_channels(float *out, int *count, const char *what, const char *job, const struct yaml *value,
                                 plim_error *error)
{
    const struct setting setting = {what, SETTING_NUMBER, 0, 0};
    const struct yaml *item = value->kind == YAML_LIST ? value->first : value;
    char where[256];
    yaml_place(where, job, value);
    if (!item || (value->kind == YAML_LIST && value->count > NORMALIZE_CHANNELS))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected a number, or one a channel (%d at most)", what,
                       NORMALIZE_CHANNELS);
    for (*count = 0; item; item = value->kind == YAML_LIST ? item->next : NULL) {
        double number = 0;
        TRY(setting_value(&number, &setting, job, item, error));
        out[(*count)++] = (float)number;
    }
    return PLIM_OK;
}

struct normalize_words {
    const struct yaml *mean, *variance, *deviation;
};

/* `normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}`; variance: as Keras has it. */
static plim_status normalize_read(void *options, const char *job, const struct yaml *value, plim_error *error)
{
    static const struct setting settings[] = {
        {"mean", SETTING_NODE, offsetof(struct normalize_words, mean), 0},
        {"variance", SETTING_NODE, offsetof(struct normalize_words, variance), 0},
        {"std", SETTING_NODE, offsetof(struct normalize_words, deviation), 0},
    };
    struct normalize_options *normal = options;
    struct normalize_words words = {0};
    TRY(settings_read(&words, settings, COUNT(settings), job, value, error));
    if (!words.mean || !words.variance == !words.deviation) {
        fail(error, PLIM_BAD_JOB, "normalize: needs 'mean:' and one of 'variance:' and 'std:'");
        return hint(error, PLIM_BAD_JOB, "normalize: {mean: 127.5, std: 127.5}");
    }
    TRY(read_channels(normal->mean, &normal->mean_count, "mean", job, words.mean, error));
    if (words.variance)
        return read_channels(normal->variance, &normal->variance_count, "variance", job, words.variance, error);
    TRY(read_channels(normal->variance, &normal->variance_count, "std", job, words.deviation, error));
    for (int i = 0; i < normal->variance_count; i++)
        normal->variance[i] *= normal->variance[i];
    return PLIM_OK;
}

/* ---- the functions ---- */

#define COLOR(word, do_this, alone, reader)                                                                            \
    static plim_status word##_infer(struct spec *spec, const void *options, plim_error *error)                         \
    {                                                                                                                  \
        int c;                                                                                                         \
        return infer(&c, spec, options, #word, error);                                                                 \
    }                                                                                                                  \
    static plim_status word##_run(const struct map_call *call, plim_error *error)                                      \
    {                                                                                                                  \
        return run(call, do_this, error);                                                                              \
    }                                                                                                                  \
    const struct map_function map_##word = {                                                                           \
        .name = #word,                                                                                                 \
        .infer = word##_infer,                                                                                         \
        .run = word##_run,                                                                                             \
        .options_bytes = sizeof(struct color_options),                                                                 \
        .room_bytes = room,                                                                                            \
        .bare = alone,                                                                                                 \
        .read = reader,                                                                                                \
    };

COLOR(random_contrast, change_contrast, false, contrast_read)
COLOR(random_brightness, change_brightness, false, brightness_read)
COLOR(per_image_standardization, standardize, true, NULL)

static bool fits(int count, int64_t channels)
{
    return count == 1 || count == channels;
}

static plim_status normalize_infer(struct spec *spec, const void *options, plim_error *error)
{
    const struct normalize_options *normal = options;
    int c;
    TRY(infer(&c, spec, normal->column, "normalize", error));
    int64_t channels = spec->column[c].shape.dim[2];
    if (!fits(normal->mean_count, channels) || !fits(normal->variance_count, channels) ||
        channels > NORMALIZE_CHANNELS || channels < 0)
        return fail(error, PLIM_BAD_JOB,
                    "normalize: %d values of mean and %d of variance for images of %lld channels (-1: any number)",
                    normal->mean_count, normal->variance_count, (long long)channels);
    return PLIM_OK;
}

static plim_status normalize_run(const struct map_call *call, plim_error *error)
{
    return run(call, normalize, error);
}

const struct map_function map_normalize = {
    .name = "normalize",
    .infer = normalize_infer,
    .run = normalize_run,
    .options_bytes = sizeof(struct normalize_options),
    .room_bytes = room,
    .read = normalize_read,
};
