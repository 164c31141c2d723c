/* layer_border.c - Cropping1D to 3D and ZeroPadding1D to 3D: less or more around steps, pictures and volumes. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

struct border {
    struct layer_keys keys;
    int64_t each[3][2]; /* before and after, by axis */
};

#define TO(field) .offset = offsetof(struct border, field)
static const struct model_option cropping_options[] = {{"cropping", option_borders, TO(each)}, DATA_FORMAT};
static const struct model_option padding_options[] = {{"padding", option_borders, TO(each)}, DATA_FORMAT};

static bool is_nothing(const struct border *border, int axes)
{
    int64_t all = 0;
    for (int i = 0; i < axes; i++)
        all += border->each[i][0] + border->each[i][1];
    return all == 0;
}

static struct tensor *crop_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct border *border = layer->options;
    int axes = layer->type->axes;
    struct axis_map maps[MOST_AXES] = {{0}};
    if (!layer_needs_rank(layer, graph, x, axes + 2))
        return NULL;
    for (int i = 0; i < axes; i++) {
        int64_t left = x->shape.dim[i + 1] - border->each[i][0] - border->each[i][1];
        maps[i + 1] = (struct axis_map){AXIS_SLICE, left, border->each[i][0], 1};
        if (left < 1)
            return layer_misfit(layer, graph, x, "cropping %lld and %lld leaves nothing of axis %d of",
                                (long long)border->each[i][0], (long long)border->each[i][1], i + 1);
    }
    return is_nothing(border, axes) ? x : remap(graph, &op_slice, x, maps, MOST_AXES, 0);
}

static struct tensor *pad_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct border *border = layer->options;
    int axes = layer->type->axes;
    struct axis_map maps[MOST_AXES] = {{0}};
    if (!layer_needs_rank(layer, graph, x, axes + 2))
        return NULL;
    for (int i = 0; i < axes; i++) {
        int64_t extent = x->shape.dim[i + 1] + border->each[i][0] + border->each[i][1];
        maps[i + 1] = (struct axis_map){AXIS_PAD, extent, border->each[i][0], 0};
    }
    return is_nothing(border, axes) ? x : remap(graph, &op_pad, x, maps, MOST_AXES, 0);
}

#define BORDER_LAYER(variable, keras, table, space, usual, builder)                                                    \
    const struct layer_type layer_##variable = {                                                                       \
        NAMES(keras, #variable), OPTIONS(struct border, table), .defaults = usual, .axes = space, .build = builder,    \
    }

/* Keras's defaults: crop 1 of steps and volumes, nothing of pictures; pad 1. */
static const struct border one = {.each = {{1, 1}, {1, 1}, {1, 1}}};
BORDER_LAYER(cropping1d, "Cropping1D", cropping_options, 1, &one, crop_build);
BORDER_LAYER(cropping2d, "Cropping2D", cropping_options, 2, NULL, crop_build);
BORDER_LAYER(cropping3d, "Cropping3D", cropping_options, 3, &one, crop_build);
BORDER_LAYER(zero_padding1d, "ZeroPadding1D", padding_options, 1, &one, pad_build);
BORDER_LAYER(zero_padding2d, "ZeroPadding2D", padding_options, 2, &one, pad_build);
BORDER_LAYER(zero_padding3d, "ZeroPadding3D", padding_options, 3, &one, pad_build);
