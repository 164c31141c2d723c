/* layer_resizing.c - UpSampling1D to 3D, Resizing, CenterCrop, RandomCrop. */
#include <string.h>

#include "base/numbers/minmax.h"
#include "model/layers/shape_options.h"
#include "ops/ops.h"

enum method { METHOD_NEAREST, METHOD_BILINEAR, METHOD_BICUBIC };
static const char *const methods[] = {"nearest", "bilinear", "bicubic"};
static const char *const keras_methods[] = {"lanczos3", "lanczos5", "gaussian", "mitchellcubic", "area"};

struct resizing {
    struct layer_keys keys;
    int64_t size[3]; /* UpSampling: how many times, by axis; others: height and width */
    int method;
    bool crop_to_aspect_ratio;
    int64_t seed;
};

#define TO(field) .offset = offsetof(struct resizing, field)
#define METHOD                                                                                                         \
    {                                                                                                                  \
        "interpolation", option_choice, TO(method), .nullable = true, .with = CHOICES_OF(methods, keras_methods)       \
    }

bool resize_method(int *out, const char *word)
{
    for (int i = 0; i < COUNT(methods); i++)
        if (strcmp(word, methods[i]) == 0) {
            *out = i;
            return true;
        }
    return false;
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

static const struct model_option upsampling2d_options[] = {
    {"size", option_sizes, TO(size), .least = 1},
    DATA_FORMAT,
    METHOD,
};

static struct tensor *upsampling_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct resizing *resizing = layer->options;
    int axes = layer->type->axes;
    struct axis_map maps[MOST_AXES] = {{0}};
    int64_t times = 1;
    if (!layer_needs_rank(layer, graph, x, axes + 2))
        return NULL;
    for (int i = 0; i < axes; i++) {
        int64_t extent;
        if (__builtin_mul_overflow(x->shape.dim[i + 1], resizing->size[i], &extent))
            return graph_fail(graph, PLIM_BAD_JOB, "%s: %lld times axis %d is more than can be counted", layer->name,
                              (long long)resizing->size[i], i + 1);
        maps[i + 1] = (struct axis_map){AXIS_REPEAT, extent, 0, resizing->size[i]};
        times = times > 1 ? times : resizing->size[i];
    }
    if (times == 1)
        return x;
    if (resizing->method != METHOD_NEAREST)
        return resized(graph, x, resizing->method, maps[1].extent, maps[2].extent);
    return remap(graph, &op_repeat, x, maps, MOST_AXES, 0);
}

#define UPSAMPLING_LAYER(variable, keras, space, count)                                                                \
    const struct layer_type layer_##variable = {                                                                       \
        NAMES(keras, #variable),                                                                                       \
        .options_bytes = sizeof(struct resizing),                                                                      \
        .option = upsampling2d_options,                                                                                \
        .option_count = count,                                                                                         \
        .defaults = &(const struct resizing){.size = {2, 2, 2}},                                                       \
        .axes = space,                                                                                                 \
        .build = upsampling_build,                                                                                     \
    }

UPSAMPLING_LAYER(up_sampling1d, "UpSampling1D", 1, 2);
UPSAMPLING_LAYER(up_sampling2d, "UpSampling2D", 2, 3);
UPSAMPLING_LAYER(up_sampling3d, "UpSampling3D", 3, 2);

/* ---- Resizing, CenterCrop ---- */

#define HEIGHT_AND_WIDTH                                                                                               \
    {"height", option_extent, TO(size[0]), .least = 1, .required = true},                                              \
    {                                                                                                                  \
        "width", option_extent, TO(size[1]), .least = 1, .required = true                                              \
    }

static const struct model_option resizing_options[] = {
    HEIGHT_AND_WIDTH,
    METHOD,
    {"crop_to_aspect_ratio", option_flag, TO(crop_to_aspect_ratio)},
    {"pad_to_aspect_ratio", option_only, .with = "false"},
    {"fill_mode", option_only, .with = "constant"},
    {"fill_value", option_only, .with = "0"},
    {"antialias", option_only, .with = "false"},
    DATA_FORMAT,
};
static const struct model_option crop_options[] = {HEIGHT_AND_WIDTH, DATA_FORMAT};

static struct tensor *resizing_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct resizing *resizing = layer->options;
    if (!layer_needs_rank(layer, graph, x, 4))
        return NULL;
    if (resizing->crop_to_aspect_ratio)
        return resized_whole(graph, x, resizing->method, resizing->size[0], resizing->size[1]);
    return resized(graph, x, resizing->method, resizing->size[0], resizing->size[1]);
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

/* ---- RandomCrop ---- */

static const struct model_option random_crop_options[] = {
    HEIGHT_AND_WIDTH,
    {"seed", option_whole, TO(seed), .nullable = true},
    DATA_FORMAT,
};

/* Of pictures that are too small Keras takes a part that begins where the middle one would, and enlarges it. */
static struct tensor *crop_of_small(struct graph *graph, struct tensor *x, int64_t height, int64_t width)
{
    int64_t h = x->shape.dim[1], w = x->shape.dim[2];
    int64_t y = (h - proportional(h, w, height, width)) / 2, left = (w - proportional(w, h, width, height)) / 2;
    x = cropped(graph, x, y, min_i64(height, h - y), left, min_i64(width, w - left));
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

#define RESIZING_LAYER(variable, keras, table, builder)                                                                \
    const struct layer_type layer_##variable = {                                                                       \
        NAMES(keras, #variable),                                                                                       \
        OPTIONS(struct resizing, table),                                                                               \
        .defaults = &(const struct resizing){.method = METHOD_BILINEAR},                                               \
        .example = "{height: 224, width: 224}",                                                                        \
        .build = builder,                                                                                              \
    }

RESIZING_LAYER(resizing, "Resizing", resizing_options, resizing_build);
RESIZING_LAYER(center_crop, "CenterCrop", crop_options, crop_build);
RESIZING_LAYER(random_crop, "RandomCrop", random_crop_options, random_crop_build);
