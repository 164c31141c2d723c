/* layer_pooling.c - max and average pooling over windows, over everything (global) and to a given size (adaptive). Data
   is [N, ..., channels]. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

#include <stdio.h>

enum pooling_form { FORM_WINDOW, FORM_GLOBAL, FORM_ADAPTIVE };

struct pooling_kind {
    enum pooling_form form;
    int axes;
    const struct op *op;
    int64_t window; /* where the word may be absent; else 0 */
};

struct pooling {
    struct layer_words words;
    const struct pooling_kind *kind;
    int64_t window[MOST_SPACE], strides[MOST_SPACE]; /* adaptive: window is the output's size */
    bool same, keepdims;
    const struct yaml *size_word, *strides_word, *padding_word, *data_format; /* of the job file */
};

#define AT(field) offsetof(struct pooling, field)
static const struct setting window_settings[] = {
    {"pool_size", SETTING_NODE, AT(size_word), 0},
    {"strides", SETTING_NODE, AT(strides_word), 0},
    {"padding", SETTING_NODE, AT(padding_word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};
static const struct setting global_settings[] = {
    {"data_format", SETTING_NODE, AT(data_format), 0},
    {"keepdims", SETTING_BOOL, AT(keepdims), 0},
    LAYER_WORDS,
};
static const struct setting adaptive_settings[] = {
    {"output_size", SETTING_NODE, AT(size_word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};

static const struct {
    const struct setting *settings;
    int count;
    const char *size;
} words_of[] = {
    [FORM_WINDOW] = {window_settings, LENGTH(window_settings), "pool_size"},
    [FORM_GLOBAL] = {global_settings, LENGTH(global_settings), NULL},
    [FORM_ADAPTIVE] = {adaptive_settings, LENGTH(adaptive_settings), "output_size"},
};

static plim_status read_kind(struct layer *layer, const struct pooling_kind *kind, const struct yaml *yaml,
                             plim_error *error)
{
    struct pooling *pool = layer->options;
    const char *size = words_of[kind->form].size;
    char example[96];
    pool->kind = kind;
    TRY(layer_read(layer, words_of[kind->form].settings, words_of[kind->form].count, yaml, error));
    TRY(option_default(layer->type->name, layer->model->job, "data_format", "channels_last", pool->data_format, error));
    if (!size)
        return PLIM_OK;
    for (int i = 0; i < kind->axes; i++)
        pool->window[i] = kind->window;
    TRY(option_axes(pool->window, kind->axes, 1, layer, size, pool->size_word, error));
    snprintf(example, sizeof example, "%s: {%s: 2}", layer->type->name, size);
    if (!pool->window[0])
        return layer_missing(layer, size, example, error);
    for (int i = 0; i < kind->axes; i++)
        pool->strides[i] = pool->window[i];
    TRY(option_axes(pool->strides, kind->axes, 1, layer, "strides", pool->strides_word, error));
    return option_padding(&pool->same, layer, pool->padding_word, error);
}

static bool refuse_rank(const struct layer *layer, struct graph *graph, const struct tensor *x)
{
    static const char *const wanted[] = {"length", "height, width", "depth, height, width"};
    const struct pooling *pool = layer->options;
    char shape[96];
    if (x->shape.rank == pool->kind->axes + 2)
        return false;
    shape_text(shape, sizeof shape, &x->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: wants (batch, %s, channels), got %s", layer->name,
               wanted[pool->kind->axes - 1], shape);
    return true;
}

static bool place_windows(struct pool_attributes *out, const struct layer *layer, struct graph *graph,
                          const struct tensor *x)
{
    const struct pooling *pool = layer->options;
    char shape[96], window[96];
    int used = 0;
    bool fits = true;
    for (int axis = 0; axis < pool->kind->axes; axis++) {
        int64_t extent, in = x->shape.dim[1 + axis];
        out->window[axis] = pool->kind->form == FORM_GLOBAL ? in : pool->window[axis];
        out->stride[axis] = pool->kind->form == FORM_WINDOW ? pool->strides[axis] : 1;
        if (pool->kind->form == FORM_WINDOW)
            fits = window_place(&extent, &out->pad[2 * axis], &out->pad[2 * axis + 1], in, out->window[axis],
                                out->stride[axis], pool->same) &&
                   fits;
        used += snprintf(window + used, sizeof window - (size_t)used, "%s%lld", axis ? "x" : "",
                         (long long)out->window[axis]);
    }
    out->adaptive = pool->kind->form == FORM_ADAPTIVE;
    if (fits)
        return true;
    shape_text(shape, sizeof shape, &x->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: a window of %s does not fit into %s", layer->name, window, shape);
    return false;
}

static struct tensor *pooling_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct pooling *pool = layer->options;
    struct pool_attributes attributes = {0};
    if (!x || refuse_rank(layer, graph, x) || !place_windows(&attributes, layer, graph, x))
        return NULL;
    x = graph_add(graph, pool->kind->op, &x, 1, &attributes, sizeof attributes);
    return pool->kind->form == FORM_GLOBAL && !pool->keepdims ? unary(graph, &op_flatten, x) : x;
}

#define POOLING(id, keras, second, how, what, space, usual)                                                            \
    static plim_status id##_read(struct layer *layer, const struct yaml *yaml, plim_error *error)                      \
    {                                                                                                                  \
        static const struct pooling_kind kind = {.form = (what), .axes = (space), .op = (how), .window = (usual)};     \
        return read_kind(layer, &kind, yaml, error);                                                                   \
    }                                                                                                                  \
    const struct layer_type layer_##id = {                                                                             \
        .name = keras,                                                                                                 \
        .alias = second,                                                                                               \
        .snake = #id,                                                                                                  \
        .options_bytes = sizeof(struct pooling),                                                                       \
        .read = id##_read,                                                                                             \
        .build = pooling_build,                                                                                        \
    };

POOLING(max_pooling1d, "MaxPooling1D", "MaxPool1D", &op_max_pool, FORM_WINDOW, 1, 2)
POOLING(max_pooling2d, "MaxPooling2D", "MaxPool2D", &op_max_pool, FORM_WINDOW, 2, 2)
POOLING(max_pooling3d, "MaxPooling3D", "MaxPool3D", &op_max_pool, FORM_WINDOW, 3, 2)
POOLING(average_pooling1d, "AveragePooling1D", "AvgPool1D", &op_average_pool, FORM_WINDOW, 1, 0)
POOLING(average_pooling2d, "AveragePooling2D", "AvgPool2D", &op_average_pool, FORM_WINDOW, 2, 0)
POOLING(average_pooling3d, "AveragePooling3D", "AvgPool3D", &op_average_pool, FORM_WINDOW, 3, 0)
POOLING(global_max_pooling1d, "GlobalMaxPooling1D", "GlobalMaxPool1D", &op_max_pool, FORM_GLOBAL, 1, 0)
POOLING(global_max_pooling2d, "GlobalMaxPooling2D", "GlobalMaxPool2D", &op_max_pool, FORM_GLOBAL, 2, 0)
POOLING(global_max_pooling3d, "GlobalMaxPooling3D", "GlobalMaxPool3D", &op_max_pool, FORM_GLOBAL, 3, 0)
POOLING(global_average_pooling2d, "GlobalAveragePooling2D", "GlobalAvgPool2D", &op_average_pool, FORM_GLOBAL, 2, 0)
POOLING(global_average_pooling3d, "GlobalAveragePooling3D", "GlobalAvgPool3D", &op_average_pool, FORM_GLOBAL, 3, 0)
POOLING(adaptive_max_pooling1d, "AdaptiveMaxPooling1D", NULL, &op_max_pool, FORM_ADAPTIVE, 1, 0)
POOLING(adaptive_max_pooling2d, "AdaptiveMaxPooling2D", NULL, &op_max_pool, FORM_ADAPTIVE, 2, 0)
POOLING(adaptive_max_pooling3d, "AdaptiveMaxPooling3D", NULL, &op_max_pool, FORM_ADAPTIVE, 3, 0)
POOLING(adaptive_average_pooling1d, "AdaptiveAveragePooling1D", NULL, &op_average_pool, FORM_ADAPTIVE, 1, 0)
POOLING(adaptive_average_pooling2d, "AdaptiveAveragePooling2D", NULL, &op_average_pool, FORM_ADAPTIVE, 2, 0)
POOLING(adaptive_average_pooling3d, "AdaptiveAveragePooling3D", NULL, &op_average_pool, FORM_ADAPTIVE, 3, 0)
