/* layer_random.c - Keras's random image layers, which act in training only: RandomFlip, RandomRotation, RandomZoom,
   RandomTranslation, RandomBrightness, RandomContrast. Each sample has numbers of its own. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

struct random_image {
    struct layer_words words;
    double low[2], high[2]; /* factors: of the height (or the only one), of the width */
    double value_range[2];  /* RandomBrightness, RandomContrast */
    double fill_value;
    int fill, interpolation, mode;
    int64_t seed;
    const struct yaml *factor_word[2], *fill_word, *interpolation_word, *mode_word, *range_word, *seed_word,
        *data_format;
};

#define AT(field) offsetof(struct random_image, field)
#define SEED_AND_FORMAT                                                                                                \
    {"seed", SETTING_NODE, AT(seed_word), 0},                                                                          \
    {                                                                                                                  \
        "data_format", SETTING_NODE, AT(data_format), 0                                                                \
    }
#define WARP_WORDS                                                                                                     \
    {"fill_mode", SETTING_NODE, AT(fill_word), 0}, {"interpolation", SETTING_NODE, AT(interpolation_word), 0},         \
    {                                                                                                                  \
        "fill_value", SETTING_NUMBER, AT(fill_value), 0                                                                \
    }

static const struct setting flip_settings[] = {
    {"mode", SETTING_NODE, AT(mode_word), 0},
    SEED_AND_FORMAT,
    LAYER_WORDS,
};
static const struct setting rotation_settings[] = {
    {"factor", SETTING_NODE, AT(factor_word[0]), 0},
    WARP_WORDS,
    SEED_AND_FORMAT,
    LAYER_WORDS,
};
static const struct setting pair_settings[] = {
    {"height_factor", SETTING_NODE, AT(factor_word[0]), 0},
    {"width_factor", SETTING_NODE, AT(factor_word[1]), 0},
    WARP_WORDS,
    SEED_AND_FORMAT,
    LAYER_WORDS,
};
static const struct setting tone_settings[] = {
    {"factor", SETTING_NODE, AT(factor_word[0]), 0},
    {"value_range", SETTING_NODE, AT(range_word), 0},
    SEED_AND_FORMAT,
    LAYER_WORDS,
};

static const char *const fills[] = {"reflect", "wrap", "constant", "nearest"}; /* as in enum warp_fill */
static const char *const interpolations[] = {"bilinear", "nearest"};
static const char *const modes[] = {"horizontal", "vertical", "horizontal_and_vertical"};

/* ---- reading ---- */

static plim_status read_two(double out[2], const struct layer *layer, const char *word, const struct yaml *node,
                            plim_error *error)
{
    const struct setting number = {word, SETTING_NUMBER, 0, 0};
    char where[256];
    if (node->kind != YAML_LIST || node->count != 2) {
        yaml_place(where, layer->model->job, node);
        return fail_at(error, PLIM_BAD_JOB, where, "%s: expected two numbers", word);
    }
    TRY(setting_value(&out[0], &number, layer->model->job, node->first, error));
    TRY(setting_value(&out[1], &number, layer->model->job, node->first->next, error));
    if (out[0] > out[1]) { /* Keras sorts them */
        double larger = out[0];
        out[0] = out[1];
        out[1] = larger;
    }
    return PLIM_OK;
}

/* A factor f is drawn from [-f, f], but not from below `least`; a pair is drawn from as it is. */
static plim_status read_factor(struct layer *layer, int i, const char *word, double least, plim_error *error)
{
    struct random_image *options = layer->options;
    const struct setting number = {word, SETTING_NUMBER, 0, 0};
    const struct yaml *node = options->factor_word[i];
    double pair[2];
    char where[256];
    if (node->kind == YAML_LIST) {
        TRY(read_two(pair, layer, word, node, error));
    } else {
        TRY(setting_value(&pair[1], &number, layer->model->job, node, error));
        pair[1] = pair[1] < 0 && least < 0 ? -pair[1] : pair[1];
        pair[0] = -pair[1] < least ? least : -pair[1];
    }
    if (pair[0] < least || pair[1] > 1) {
        yaml_place(where, layer->model->job, node);
        return fail_at(error, PLIM_BAD_JOB, where, "%s: must be from %g to 1", word, least);
    }
    options->low[i] = pair[0];
    options->high[i] = pair[1];
    return PLIM_OK;
}

static plim_status read_common(struct layer *layer, const struct setting *settings, int count, const struct yaml *yaml,
                               plim_error *error)
{
    struct random_image *options = layer->options;
    const struct setting seed = {"seed", SETTING_WHOLE, 0, 0};
    const char *job = layer->model->job;
    options->mode = 2;
    options->value_range[1] = 255;
    TRY(layer_read(layer, settings, count, yaml, error));
    TRY(option_word(&options->fill, layer, "fill_mode", options->fill_word, fills, LENGTH(fills), NULL, 0, error));
    TRY(option_word(&options->interpolation, layer, "interpolation", options->interpolation_word, interpolations,
                    LENGTH(interpolations), NULL, 0, error));
    TRY(option_word(&options->mode, layer, "mode", options->mode_word, modes, LENGTH(modes), NULL, 0, error));
    if (options->range_word)
        TRY(read_two(options->value_range, layer, "value_range", options->range_word, error));
    if (options->seed_word && !options->seed_word->is_null)
        TRY(setting_value(&options->seed, &seed, job, options->seed_word, error));
    return option_default(layer->type->name, job, "data_format", "channels_last", options->data_format, error);
}

static plim_status flip_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_common(layer, flip_settings, LENGTH(flip_settings), yaml, error);
}

static plim_status read_one(struct layer *layer, const struct setting *settings, int count, double least,
                            const struct yaml *yaml, plim_error *error)
{
    struct random_image *options = layer->options;
    TRY(read_common(layer, settings, count, yaml, error));
    if (!options->factor_word[0])
        return layer_missing(layer, "factor", "{factor: 0.1}", error);
    return read_factor(layer, 0, "factor", least, error);
}

static plim_status rotation_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_one(layer, rotation_settings, LENGTH(rotation_settings), -1, yaml, error);
}

static plim_status brightness_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_one(layer, tone_settings, LENGTH(tone_settings), -1, yaml, error);
}

static plim_status contrast_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_one(layer, tone_settings, LENGTH(tone_settings), 0, yaml, error);
}

static plim_status read_pair(struct layer *layer, bool both, const struct yaml *yaml, plim_error *error)
{
    struct random_image *options = layer->options;
    TRY(read_common(layer, pair_settings, LENGTH(pair_settings), yaml, error));
    if (options->factor_word[1] && options->factor_word[1]->kind == YAML_SCALAR && options->factor_word[1]->is_null)
        options->factor_word[1] = NULL;
    if (!options->factor_word[0] || (both && !options->factor_word[1]))
        return layer_missing(layer, options->factor_word[0] ? "width_factor" : "height_factor",
                             "{height_factor: 0.1, width_factor: 0.1}", error);
    TRY(read_factor(layer, 0, "height_factor", -1, error));
    return options->factor_word[1] ? read_factor(layer, 1, "width_factor", -1, error) : PLIM_OK;
}

static plim_status zoom_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_pair(layer, false, yaml, error);
}

static plim_status translation_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_pair(layer, true, yaml, error);
}

/* ---- building ---- */

static struct tensor *warp(const struct layer *layer, struct graph *graph, struct tensor *x,
                           struct random_warp_attributes attributes)
{
    const struct random_image *options = layer->options;
    if (!layer_needs_rank(layer, graph, x, 4))
        return NULL;
    if (!graph->build->fitting)
        return x;
    attributes.seed = layer_seed(layer, graph, options->seed);
    for (int i = 0; i < 2; i++)
        attributes.size[i] = x->shape.dim[1 + i];
    return graph_add(graph, &op_random_warp, (struct tensor *[]){x, model_iteration(graph)}, 2, &attributes,
                     sizeof attributes);
}

static struct tensor *flip_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct random_image *options = layer->options;
    return warp(
        layer, graph, x,
        (struct random_warp_attributes){
            .kind = WARP_FLIP, .high = {options->mode != 0, options->mode != 1}, .fill = WARP_CONSTANT, .nearest = 1});
}

static struct tensor *factors_build(const struct layer *layer, struct graph *graph, struct tensor *x,
                                    enum warp_kind kind)
{
    const struct random_image *options = layer->options;
    return warp(layer, graph, x,
                (struct random_warp_attributes){.kind = kind,
                                                .low = {options->low[0], options->low[1]},
                                                .high = {options->high[0], options->high[1]},
                                                .same = !options->factor_word[1],
                                                .fill = options->fill,
                                                .nearest = options->interpolation,
                                                .fill_value = options->fill_value});
}

static struct tensor *rotation_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    return factors_build(layer, graph, x, WARP_ROTATE);
}

static struct tensor *zoom_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    return factors_build(layer, graph, x, WARP_ZOOM);
}

static struct tensor *translation_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    return factors_build(layer, graph, x, WARP_TRANSLATE);
}

static struct tensor *tone(const struct layer *layer, struct graph *graph, struct tensor *x, enum tone_kind kind,
                           double low, double high)
{
    const struct random_image *options = layer->options;
    struct random_tone_attributes attributes = {.kind = kind,
                                                .low = low,
                                                .high = high,
                                                .value_low = options->value_range[0],
                                                .value_high = options->value_range[1],
                                                .seed = layer_seed(layer, graph, options->seed)};
    if (!layer_needs_rank(layer, graph, x, 4))
        return NULL;
    if (!graph->build->fitting)
        return x;
    return graph_add(graph, &op_random_tone, (struct tensor *[]){x, model_iteration(graph)}, 2, &attributes,
                     sizeof attributes);
}

static struct tensor *brightness_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct random_image *options = layer->options;
    double range = options->value_range[1] - options->value_range[0];
    return tone(layer, graph, x, TONE_BRIGHTNESS, options->low[0] * range, options->high[0] * range);
}

/* From 1 - lower to 1 + upper: so Keras draws. */
static struct tensor *contrast_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct random_image *options = layer->options;
    return tone(layer, graph, x, TONE_CONTRAST, 1 - options->low[0], 1 + options->high[0]);
}

#define RANDOM_LAYER(variable, keras, reader, builder)                                                                 \
    const struct layer_type layer_##variable = {                                                                       \
        .name = keras,                                                                                                 \
        .snake = #variable,                                                                                            \
        .options_bytes = sizeof(struct random_image),                                                                  \
        .read = reader,                                                                                                \
        .build = builder,                                                                                              \
    }

RANDOM_LAYER(random_flip, "RandomFlip", flip_read, flip_build);
RANDOM_LAYER(random_rotation, "RandomRotation", rotation_read, rotation_build);
RANDOM_LAYER(random_zoom, "RandomZoom", zoom_read, zoom_build);
RANDOM_LAYER(random_translation, "RandomTranslation", translation_read, translation_build);
RANDOM_LAYER(random_brightness, "RandomBrightness", brightness_read, brightness_build);
RANDOM_LAYER(random_contrast, "RandomContrast", contrast_read, contrast_build);
