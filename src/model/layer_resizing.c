/* layer_resizing.c - UpSampling1D to 3D, Resizing, CenterCrop. */
#include "model/shape_options.h"
#include "ops/ops.h"

enum method { METHOD_NEAREST, METHOD_BILINEAR, METHOD_BICUBIC };
static const char *const methods[] = {"nearest", "bilinear", "bicubic"};
static const char *const keras_methods[] = {"lanczos3", "lanczos5", "gaussian", "mitchellcubic", "area"};

struct resizing {
    struct layer_words words;
    int64_t size[3]; /* UpSampling: how many times, by axis; others: height and width */
    int method;
    bool crop_to_aspect_ratio;
    const struct yaml *size_word, *method_word, *data_format;
    const struct yaml *pad_to_aspect_ratio, *fill_mode, *fill_value, *antialias;
};

#define AT(field) offsetof(struct resizing, field)

static plim_status read_method(struct resizing *resizing, const struct layer *layer, plim_error *error)
{
    return option_word(&resizing->method, layer, "interpolation", resizing->method_word, methods, LENGTH(methods),
                       keras_methods, LENGTH(keras_methods), error);
}

static plim_status need_channels_last(const struct resizing *resizing, const struct layer *layer, plim_error *error)
{
    return option_default(layer->type->name, layer->model->job, "data_format", "channels_last", resizing->data_format,
                          error);
}

/* Pictures of another height and width. */
static struct tensor *resized(struct graph *graph, struct tensor *x, int method, int64_t height, int64_t width)
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

/* The largest part in the middle that has the wanted proportions, then the wanted size. */
static struct tensor *resized_whole(struct graph *graph, struct tensor *x, int method, int64_t height, int64_t width)
{
    if (!x)
        return NULL;
    int64_t h = x->shape.dim[1], w = x->shape.dim[2];
    int64_t crop_h = (int64_t)((double)w * (double)height / (double)width);
    int64_t crop_w = (int64_t)((double)h * (double)width / (double)height);
    crop_h = crop_h < h ? crop_h : h;
    crop_w = crop_w < w ? crop_w : w;
    crop_h = crop_h < 1 ? 1 : crop_h;
    crop_w = crop_w < 1 ? 1 : crop_w;
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

static struct tensor *upsampling_build(struct layer *layer, struct graph *graph, struct tensor *x, int axes)
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
    static struct tensor *upsampling##axes##d_build(struct layer *layer, struct graph *graph, struct tensor *x)        \
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

static struct tensor *resizing_build(struct layer *layer, struct graph *graph, struct tensor *x)
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
static struct tensor *crop_build(struct layer *layer, struct graph *graph, struct tensor *x)
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
