/* layer_border.c - Cropping1D to 3D and ZeroPadding1D to 3D: less or more around steps, pictures and volumes. */
#include "model/layers/shape_options.h"
#include "ops/ops.h"

struct border {
    struct layer_words words;
    int64_t each[3][2]; /* before and after, by axis */
    const struct yaml *word, *data_format;
};

#define AT(field) offsetof(struct border, field)

static const struct setting cropping_settings[] = {
    {"cropping", SETTING_NODE, AT(word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};
static const struct setting padding_settings[] = {
    {"padding", SETTING_NODE, AT(word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};

static plim_status border_read(struct layer *layer, const struct setting *settings, int axes, int64_t usual,
                               const struct yaml *yaml, plim_error *error)
{
    struct border *border = layer->options;
    for (int i = 0; i < axes; i++)
        border->each[i][0] = border->each[i][1] = usual;
    TRY(layer_read(layer, settings, LENGTH(cropping_settings), yaml, error));
    TRY(option_borders(border->each, axes, layer, settings[0].word, border->word, error));
    return option_default(layer->type->name, layer->model->job, "data_format", "channels_last", border->data_format,
                          error);
}

static bool is_nothing(const struct border *border, int axes)
{
    int64_t all = 0;
    for (int i = 0; i < axes; i++)
        all += border->each[i][0] + border->each[i][1];
    return all == 0;
}

static struct tensor *crop_build(const struct layer *layer, struct graph *graph, struct tensor *x, int axes)
{
    const struct border *border = layer->options;
    struct axis_map maps[MOST_AXES] = {{0}};
    char shape[96];
    if (!layer_needs_rank(layer, graph, x, axes + 2))
        return NULL;
    for (int i = 0; i < axes; i++) {
        int64_t left = x->shape.dim[i + 1] - border->each[i][0] - border->each[i][1];
        maps[i + 1] = (struct axis_map){AXIS_SLICE, left, border->each[i][0], 1};
        if (left < 1) {
            shape_text(shape, sizeof shape, &x->shape, true);
            graph_fail(graph, PLIM_BAD_JOB, "%s: cropping %lld and %lld leaves nothing of axis %d of %s", layer->name,
                       (long long)border->each[i][0], (long long)border->each[i][1], i + 1, shape);
            return NULL;
        }
    }
    return is_nothing(border, axes) ? x : remap(graph, &op_slice, x, maps, MOST_AXES, 0);
}

static struct tensor *pad_build(const struct layer *layer, struct graph *graph, struct tensor *x, int axes)
{
    const struct border *border = layer->options;
    struct axis_map maps[MOST_AXES] = {{0}};
    if (!layer_needs_rank(layer, graph, x, axes + 2))
        return NULL;
    for (int i = 0; i < axes; i++) {
        int64_t extent = x->shape.dim[i + 1] + border->each[i][0] + border->each[i][1];
        maps[i + 1] = (struct axis_map){AXIS_PAD, extent, border->each[i][0], 0};
    }
    return is_nothing(border, axes) ? x : remap(graph, &op_pad, x, maps, MOST_AXES, 0);
}

/* Keras's defaults: crop 1 of steps and volumes, nothing of pictures; pad 1. */
#define BORDER_LAYERS(axes, crop)                                                                                      \
    static plim_status cropping##axes##d_read(struct layer *layer, const struct yaml *yaml, plim_error *error)         \
    {                                                                                                                  \
        return border_read(layer, cropping_settings, axes, crop, yaml, error);                                         \
    }                                                                                                                  \
    static struct tensor *cropping##axes##d_build(const struct layer *layer, struct graph *graph, struct tensor *x)    \
    {                                                                                                                  \
        return crop_build(layer, graph, x, axes);                                                                      \
    }                                                                                                                  \
    static plim_status padding##axes##d_read(struct layer *layer, const struct yaml *yaml, plim_error *error)          \
    {                                                                                                                  \
        return border_read(layer, padding_settings, axes, 1, yaml, error);                                             \
    }                                                                                                                  \
    static struct tensor *padding##axes##d_build(const struct layer *layer, struct graph *graph, struct tensor *x)     \
    {                                                                                                                  \
        return pad_build(layer, graph, x, axes);                                                                       \
    }                                                                                                                  \
    const struct layer_type layer_cropping##axes##d = {                                                                \
        .name = "Cropping" #axes "D",                                                                                  \
        .snake = "cropping" #axes "d",                                                                                 \
        .options_bytes = sizeof(struct border),                                                                        \
        .read = cropping##axes##d_read,                                                                                \
        .build = cropping##axes##d_build,                                                                              \
    };                                                                                                                 \
    const struct layer_type layer_zero_padding##axes##d = {                                                            \
        .name = "ZeroPadding" #axes "D",                                                                               \
        .snake = "zero_padding" #axes "d",                                                                             \
        .options_bytes = sizeof(struct border),                                                                        \
        .read = padding##axes##d_read,                                                                                 \
        .build = padding##axes##d_build,                                                                               \
    }

BORDER_LAYERS(1, 1);
BORDER_LAYERS(2, 0);
BORDER_LAYERS(3, 1);
