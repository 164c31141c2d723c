/* layer_random.c - Keras's random image layers, which act in training only: RandomFlip, RandomRotation, RandomZoom,
   RandomTranslation, RandomBrightness, RandomContrast. Each sample has numbers of its own. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

struct random_image {
    struct layer_keys keys;
    struct range {
        double low, high;
        bool given;
    } factor[2];              /* of the height (or the only one), of the width */
    struct range value_range; /* RandomBrightness, RandomContrast */
    double fill_value;
    int fill, interpolation, mode;
    int64_t seed;
};

static const char *const fills[] = {"reflect", "wrap", "constant", "nearest"}; /* as in enum warp_fill */
static const char *const interpolations[] = {"bilinear", "nearest"};
static const char *const modes[] = {"horizontal", "vertical", "horizontal_and_vertical"};

static OPTION_READER(read_range)
{
    double a, b;
    if (node->kind != YAML_LIST || node->count != 2)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "%s: expected two numbers", option->word);
    TRY(option_number(&a, option, at, node->first, error));
    TRY(option_number(&b, option, at, node->first->next, error));
    *(struct range *)out = (struct range){a < b ? a : b, a < b ? b : a, true}; /* Keras sorts them */
    return PLIM_OK;
}

/* A factor f is drawn from [-f, f], but not from below option->least; a pair is drawn from as it is. */
static OPTION_READER(read_factor)
{
    struct range *range = out;
    double least = option->least;
    if (node->kind == YAML_LIST) {
        TRY(read_range(range, option, at, node, error));
    } else {
        TRY(option_number(&range->high, option, at, node, error));
        range->high = range->high < 0 && least < 0 ? -range->high : range->high;
        range->low = -range->high < least ? least : -range->high;
        range->given = true;
    }
    if (range->low < least || range->high > 1)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "%s: must be from %g to 1", option->word, least);
    return PLIM_OK;
}

#define TO(field)       .offset = offsetof(struct random_image, field)
#define SEED_AND_FORMAT {"seed", option_whole, TO(seed), .nullable = true}, DATA_FORMAT
#define WARP                                                                                                           \
    {"fill_mode", option_choice, TO(fill), .nullable = true, .with = CHOICES(fills)},                                  \
        {"interpolation", option_choice, TO(interpolation), .nullable = true, .with = CHOICES(interpolations)},        \
    {                                                                                                                  \
        "fill_value", option_number, TO(fill_value)                                                                    \
    }
#define HEIGHT                                                                                                         \
    {                                                                                                                  \
        "height_factor", read_factor, TO(factor[0]), .least = -1, .required = true                                     \
    }

static const struct model_option flip_options[] = {
    {"mode", option_choice, TO(mode), .nullable = true, .with = CHOICES(modes)},
    SEED_AND_FORMAT,
};
static const struct model_option rotation_options[] = {
    {"factor", read_factor, TO(factor[0]), .least = -1, .required = true},
    WARP,
    SEED_AND_FORMAT,
};
static const struct model_option zoom_options[] = {
    HEIGHT,
    {"width_factor", read_factor, TO(factor[1]), .least = -1, .nullable = true},
    WARP,
    SEED_AND_FORMAT,
};
static const struct model_option translation_options[] = {
    HEIGHT,
    {"width_factor", read_factor, TO(factor[1]), .least = -1, .required = true, .nullable = true},
    WARP,
    SEED_AND_FORMAT,
};
static const struct model_option brightness_options[] = {
    {"factor", read_factor, TO(factor[0]), .least = -1, .required = true},
    {"value_range", read_range, TO(value_range)},
    SEED_AND_FORMAT,
};
static const struct model_option contrast_options[] = {
    {"factor", read_factor, TO(factor[0]), .least = 0, .required = true},
    {"value_range", read_range, TO(value_range)},
    SEED_AND_FORMAT,
};
static const struct random_image defaults = {.mode = 2, .value_range = {.high = 255}};

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

static struct tensor *factors_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct random_image *options = layer->options;
    const struct range *factor = options->factor;
    return warp(layer, graph, x,
                (struct random_warp_attributes){.kind = layer->type->form,
                                                .low = {factor[0].low, factor[1].low},
                                                .high = {factor[0].high, factor[1].high},
                                                .same = !factor[1].given,
                                                .fill = options->fill,
                                                .nearest = options->interpolation,
                                                .fill_value = options->fill_value});
}

static struct tensor *tone(const struct layer *layer, struct graph *graph, struct tensor *x, enum tone_kind kind,
                           double low, double high)
{
    const struct random_image *options = layer->options;
    struct random_tone_attributes attributes = {.kind = kind,
                                                .low = low,
                                                .high = high,
                                                .value_low = options->value_range.low,
                                                .value_high = options->value_range.high,
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
    double range = options->value_range.high - options->value_range.low;
    return tone(layer, graph, x, TONE_BRIGHTNESS, options->factor[0].low * range, options->factor[0].high * range);
}

/* From 1 - lower to 1 + upper: so Keras draws. */
static struct tensor *contrast_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct random_image *options = layer->options;
    return tone(layer, graph, x, TONE_CONTRAST, 1 - options->factor[0].low, 1 + options->factor[0].high);
}

#define RANDOM_LAYER(variable, keras, table, needs, what, builder)                                                     \
    const struct layer_type layer_##variable = {                                                                       \
        NAMES(keras, #variable),                                                                                       \
        OPTIONS(struct random_image, table),                                                                           \
        .defaults = &defaults,                                                                                         \
        .example = needs,                                                                                              \
        .form = what,                                                                                                  \
        .build = builder,                                                                                              \
    }
#define ONE  "{factor: 0.1}"
#define PAIR "{height_factor: 0.1, width_factor: 0.1}"

RANDOM_LAYER(random_flip, "RandomFlip", flip_options, NULL, WARP_FLIP, flip_build);
RANDOM_LAYER(random_rotation, "RandomRotation", rotation_options, ONE, WARP_ROTATE, factors_build);
RANDOM_LAYER(random_zoom, "RandomZoom", zoom_options, PAIR, WARP_ZOOM, factors_build);
RANDOM_LAYER(random_translation, "RandomTranslation", translation_options, PAIR, WARP_TRANSLATE, factors_build);
RANDOM_LAYER(random_brightness, "RandomBrightness", brightness_options, ONE, TONE_BRIGHTNESS, brightness_build);
RANDOM_LAYER(random_contrast, "RandomContrast", contrast_options, ONE, TONE_CONTRAST, contrast_build);
