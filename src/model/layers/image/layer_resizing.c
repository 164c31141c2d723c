/* layer_resizing.c - UpSampling1D to 3D, Resizing, CenterCrop, RandomCrop. */
#include <string.h>

#include "model/layers/shape_options.h"
#include "ops/ops.h"

enum method { METHOD_NEAREST, METHOD_BILINEAR, METHOD_BICUBIC };
static const char *const methods[] = {"nearest", "bilinear", "bicubic"};
static const char *const keras_methods[] = {"lanczos3", "lanczos5", "gaussian", "mitchellcubic", "area"};

struct resizing {
    struct layer_words words;
    int64_t size[3]; /* UpSampling: how many times, by axis; others: height and width */
    int method;
    bool crop_to_aspect_ratio;
    int64_t seed;
    const struct yaml *size_word, *method_word, *data_format, *seed_word;
    const struct yaml *pad_to_aspect_ratio, *fill_mode, *fill_value, *antialias;
};

#define AT(field) offsetof(struct resizing, field)

static plim_status read_method(struct resizing *resizing, const struct layer *layer, plim_error *error)
{
    return option_word(&resizing->method, layer, "interpolation", resizing->method_word, methods, LENGTH(methods),
                       keras_methods, LENGTH(keras_methods), error);
}

bool resize_method(int *out, const char *word)
{
    for (int i = 0; i < LENGTH(methods); i++)
        if (strcmp(word, methods[i]) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static plim_status need_channels_last(const struct resizing *resizing, const struct layer *layer, plim_error *error)
{
    return option_default(layer->type->name, layer->model->job, "data_format", "channels_last", resizing->data_format,
                          error);
}

struct tensor *resized(struct graph *graph, struct tensor *x, int method, int64_t height, int64_t width)
{
    struct resize_attributes attributes = {.method = method == METHOD_BICUBIC ? RESAMPLE_BICUBIC : RESAMPLE_BILINEAR,
                                           .size = {height, width}};
    struct axis_map maps[MOST_AXES] = {{0}, {AXIS_NEAREST, height, 0, 0}, {AXIS_NEAREST, width, 0, 0}};
    if (!x || (x->shape.dim[1] == height && x->shape.dim[2] == width))
        return x;
    if (method == METHOD_NEAREST)
        return remap(graph, &op_resize_nearest, x, maps, MOST_AXES, 0);
    return graph_add(graph, &op_resize, &x, 1, &attributes, sizeof attributes);
}

static struct tensor *cropped(struct graph *graph, struct tensor *x, int64_t y, int64_t height, int64_t left,
                              int64_t width)
{
    struct axis_map maps[MOST_AXES] = {{0}, {AXIS_SLICE, height, y, 1}, {AXIS_SLICE, width, left, 1}};
    if (!x || (x->shape.dim[1] == height && x->shape.dim[2] == width))
        return x;
    return remap(graph, &op_slice, x, maps, MOST_AXES, 0);
}

/* The longest part of a side of `whole` that has the proportions: side to other as wanted to other_wanted. */
static int64_t proportional(int64_t whole, int64_t other, int64_t wanted, int64_t other_wanted)
{
    int64_t side = (int64_t)((double)other * (double)wanted / (double)other_wanted);
    side = side < whole ? side : whole;
    return side < 1 ? 1 : side;
}

struct tensor *resized_whole(struct graph *graph, struct tensor *x, int method, int64_t height, int64_t width)
{
    if (!x)
        return NULL;
    int64_t h = x->shape.dim[1], w = x->shape.dim[2];
    int64_t crop_h = proportional(h, w, height, width), crop_w = proportional(w, h, width, height);
    x = cropped(graph, x, (h - crop_h) / 2, crop_h, (w - crop_w) / 2, crop_w);
    return resized(graph, x, method, height, width);
}

/* ---- UpSampling ---- */

static const struct setting upsampling_settings[] = {
    {"size", SETTING_NODE, AT(size_word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};
static const struct setting upsampling2d_settings[] = {
    {"size", SETTING_NODE, AT(size_word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    {"interpolation", SETTING_NODE, AT(method_word), 0},
    LAYER_WORDS,
};

static plim_status upsampling_read(struct layer *layer, const struct setting *settings, int count, int axes,
                                   const struct yaml *yaml, plim_error *error)
{
    struct resizing *resizing = layer->options;
    for (int i = 0; i < axes; i++)
        resizing->size[i] = 2;
    TRY(layer_read(layer, settings, count, yaml, error));
    TRY(option_wholes(resizing->size, axes, 1, layer, "size", resizing->size_word, error));
    TRY(read_method(resizing, layer, error));
    return need_channels_last(resizing, layer, error);
}

static struct tensor *upsampling_build(const struct layer *layer, struct graph *graph, struct tensor *x, int axes)
{
    const struct resizing *resizing = layer->options;
    struct axis_map maps[MOST_AXES] = {{0}};
    int64_t times = 1;
    if (!layer_needs_rank(layer, graph, x, axes + 2))
        return NULL;
    for (int i = 0; i < axes; i++) {
        int64_t extent;
        if (__builtin_mul_overflow(x->shape.dim[i + 1], resizing->size[i], &extent)) {
            graph_fail(graph, PLIM_BAD_JOB, "%s: %lld times axis %d is more than can be counted", layer->name,
                       (long long)resizing->size[i], i + 1);
            return NULL;
        }
        maps[i + 1] = (struct axis_map){AXIS_REPEAT, extent, 0, resizing->size[i]};
        times = times > 1 ? times : resizing->size[i];
    }
    if (times == 1)
        return x;
    if (resizing->method != METHOD_NEAREST)
        return resized(graph, x, resizing->method, maps[1].extent, maps[2].extent);
    return remap(graph, &op_repeat, x, maps, MOST_AXES, 0);
}

#define UPSAMPLING_LAYER(axes, table)                                                                                  \
    static plim_status upsampling##axes##d_read(struct layer *layer, const struct yaml *yaml, plim_error *error)       \
    {                                                                                                                  \
        return upsampling_read(layer, table, LENGTH(table), axes, yaml, error);                                        \
    }                                                                                                                  \
    static struct tensor *upsampling##axes##d_build(const struct layer *layer, struct graph *graph, struct tensor *x)  \
    {                                                                                                                  \
        return upsampling_build(layer, graph, x, axes);                                                                \
    }                                                                                                                  \
    const struct layer_type layer_up_sampling##axes##d = {                                                             \
        .name = "UpSampling" #axes "D",                                                                                \
        .snake = "up_sampling" #axes "d",                                                                              \
        .options_bytes = sizeof(struct resizing),                                                                      \
        .read = upsampling##axes##d_read,                                                                              \
        .build = upsampling##axes##d_build,                                                                            \
    }

UPSAMPLING_LAYER(1, upsampling_settings);
UPSAMPLING_LAYER(2, upsampling2d_settings);
UPSAMPLING_LAYER(3, upsampling_settings);

/* ---- Resizing, CenterCrop ---- */

static const struct setting resizing_settings[] = {
    {"height", SETTING_WHOLE, AT(size[0]), 1},
    {"width", SETTING_WHOLE, AT(size[1]), 1},
    {"interpolation", SETTING_NODE, AT(method_word), 0},
    {"crop_to_aspect_ratio", SETTING_BOOL, AT(crop_to_aspect_ratio), 0},
    {"pad_to_aspect_ratio", SETTING_NODE, AT(pad_to_aspect_ratio), 0},
    {"fill_mode", SETTING_NODE, AT(fill_mode), 0},
    {"fill_value", SETTING_NODE, AT(fill_value), 0},
    {"antialias", SETTING_NODE, AT(antialias), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};
static const struct setting crop_settings[] = {
    {"height", SETTING_WHOLE, AT(size[0]), 1},
    {"width", SETTING_WHOLE, AT(size[1]), 1},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};

static plim_status read_sizes(struct layer *layer, const struct setting *settings, int count, const struct yaml *yaml,
                              plim_error *error)
{
    struct resizing *resizing = layer->options;
    resizing->method = METHOD_BILINEAR;
    TRY(layer_read(layer, settings, count, yaml, error));
    if (!resizing->size[0] || !resizing->size[1])
        return layer_missing(layer, resizing->size[0] ? "width" : "height", "{height: 224, width: 224}", error);
    TRY(option_extent(layer, "height", resizing->size[0], error));
    TRY(option_extent(layer, "width", resizing->size[1], error));
    return need_channels_last(resizing, layer, error);
}

static plim_status resizing_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct resizing *resizing = layer->options;
    const char *job = layer->model->job;
    TRY(read_sizes(layer, resizing_settings, LENGTH(resizing_settings), yaml, error));
    TRY(read_method(resizing, layer, error));
    TRY(option_default("Resizing", job, "pad_to_aspect_ratio", "false", resizing->pad_to_aspect_ratio, error));
    TRY(option_default("Resizing", job, "fill_mode", "constant", resizing->fill_mode, error));
    TRY(option_default("Resizing", job, "fill_value", "0", resizing->fill_value, error));
    return option_default("Resizing", job, "antialias", "false", resizing->antialias, error);
}

static struct tensor *resizing_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct resizing *resizing = layer->options;
    if (!layer_needs_rank(layer, graph, x, 4))
        return NULL;
    if (resizing->crop_to_aspect_ratio)
        return resized_whole(graph, x, resizing->method, resizing->size[0], resizing->size[1]);
    return resized(graph, x, resizing->method, resizing->size[0], resizing->size[1]);
}

const struct layer_type layer_resizing = {
    .name = "Resizing",
    .snake = "resizing",
    .options_bytes = sizeof(struct resizing),
    .read = resizing_read,
    .build = resizing_build,
};

static plim_status crop_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_sizes(layer, crop_settings, LENGTH(crop_settings), yaml, error);
}

/* A picture that is too small is enlarged first, as Keras does it. */
static struct tensor *crop_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct resizing *resizing = layer->options;
    int64_t height = resizing->size[0], width = resizing->size[1];
    if (!layer_needs_rank(layer, graph, x, 4))
        return NULL;
    int64_t h = x->shape.dim[1], w = x->shape.dim[2];
    if (h >= height && w >= width)
        return cropped(graph, x, (h - height) / 2, height, (w - width) / 2, width);
    return resized_whole(graph, x, METHOD_BILINEAR, height, width);
}

const struct layer_type layer_center_crop = {
    .name = "CenterCrop",
    .snake = "center_crop",
    .options_bytes = sizeof(struct resizing),
    .read = crop_read,
    .build = crop_build,
};

/* ---- RandomCrop ---- */

static const struct setting random_settings[] = {
    {"height", SETTING_WHOLE, AT(size[0]), 1},
    {"width", SETTING_WHOLE, AT(size[1]), 1},
    {"seed", SETTING_NODE, AT(seed_word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};

static plim_status random_crop_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct resizing *resizing = layer->options;
    const struct setting seed = {"seed", SETTING_WHOLE, 0, 0};
    TRY(read_sizes(layer, random_settings, LENGTH(random_settings), yaml, error));
    if (resizing->seed_word && !resizing->seed_word->is_null)
        return setting_value(&resizing->seed, &seed, layer->model->job, resizing->seed_word, error);
    return PLIM_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Of pictures that are too small Keras takes a part that begins where the middle one would, and enlarges it. */
static struct tensor *crop_of_small(struct graph *graph, struct tensor *x, int64_t height, int64_t width)
{
    int64_t h = x->shape.dim[1], w = x->shape.dim[2];
    int64_t y = (h - proportional(h, w, height, width)) / 2, left = (w - proportional(w, h, width, height)) / 2;
    x = cropped(graph, x, y, smaller(height, h - y), left, smaller(width, w - left));
    return resized(graph, x, METHOD_BILINEAR, height, width);
}

/* In training one place for the whole batch; else the middle, in the wanted proportions. */
static struct tensor *random_crop_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct resizing *resizing = layer->options;
    int64_t height = resizing->size[0], width = resizing->size[1];
    if (!layer_needs_rank(layer, graph, x, 4))
        return NULL;
    if (!graph->build->fitting)
        return resized_whole(graph, x, METHOD_BILINEAR, height, width);
    if (x->shape.dim[1] <= height || x->shape.dim[2] <= width)
        return crop_of_small(graph, x, height, width);
    struct random_warp_attributes attributes = {.kind = WARP_CROP,
                                                .together = 1,
                                                .fill = WARP_CONSTANT,
                                                .nearest = 1,
                                                .size = {height, width},
                                                .seed = layer_seed(layer, graph, resizing->seed)};
    return graph_add(graph, &op_random_warp, (struct tensor *[]){x, model_iteration(graph)}, 2, &attributes,
                     sizeof attributes);
}

const struct layer_type layer_random_crop = {
    .name = "RandomCrop",
    .snake = "random_crop",
    .options_bytes = sizeof(struct resizing),
    .read = random_crop_read,
    .build = random_crop_build,
};
