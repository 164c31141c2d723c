/* layer_pooling.c - MaxPooling2D over NHWC data. */
#include "model/layer_options.h"
#include "ops/ops.h"

#define MOST_WINDOW 255 /* a place in the window is kept in one byte */

struct pooling {
    struct layer_words words;
    int64_t pool_size[2], strides[2];
    bool same;
    const struct yaml *size_word, *strides_word, *padding_word, *data_format; /* of the job file */
};

#define AT(field) offsetof(struct pooling, field)
static const struct setting settings[] = {
    {"pool_size", SETTING_NODE, AT(size_word), 0},
    {"strides", SETTING_NODE, AT(strides_word), 0},
    {"padding", SETTING_NODE, AT(padding_word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};

static plim_status pooling_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct pooling *pool = layer->options;
    char where[256];
    pool->pool_size[0] = pool->pool_size[1] = 2;
    TRY(layer_read(layer, settings, LENGTH(settings), yaml, error));
    TRY(option_pair(pool->pool_size, layer, "pool_size", pool->size_word, error));
    pool->strides[0] = pool->pool_size[0];
    pool->strides[1] = pool->pool_size[1];
    TRY(option_pair(pool->strides, layer, "strides", pool->strides_word, error));
    TRY(option_padding(&pool->same, layer, pool->padding_word, error));
    TRY(option_default(layer->type->name, layer->model->job, "data_format", "channels_last", pool->data_format, error));
    if (pool->pool_size[0] * pool->pool_size[1] <= MOST_WINDOW)
        return PLIM_OK;
    layer_place(where, layer);
    return fail_at(error, PLIM_UNSUPPORTED, where, "%s: windows of more than %d cells are not supported yet",
                   layer->type->name, MOST_WINDOW);
}

static struct tensor *pooling_build(struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct pooling *pool = layer->options;
    struct max_pool_attributes attributes = {0};
    char shape[96];
    if (!x)
        return NULL;
    bool fits = x->shape.rank == 4;
    for (int axis = 0; fits && axis < 2; axis++) {
        int64_t extent;
        attributes.window[axis] = pool->pool_size[axis];
        attributes.stride[axis] = pool->strides[axis];
        fits = window_place(&extent, &attributes.pad[2 * axis], &attributes.pad[2 * axis + 1], x->shape.dim[1 + axis],
                            pool->pool_size[axis], pool->strides[axis], pool->same);
    }
    if (fits)
        return graph_add(graph, &op_max_pool, &x, 1, &attributes, sizeof attributes);
    shape_text(shape, sizeof shape, &x->shape, true);
    if (x->shape.rank != 4)
        graph_fail(graph, PLIM_BAD_JOB, "%s: wants (batch, height, width, channels), got %s", layer->name, shape);
    else
        graph_fail(graph, PLIM_BAD_JOB, "%s: a window of %lldx%lld does not fit into %s", layer->name,
                   (long long)pool->pool_size[0], (long long)pool->pool_size[1], shape);
    return NULL;
}

const struct layer_type layer_max_pooling2d = {
    .name = "MaxPooling2D",
    .alias = "MaxPool2D",
    .snake = "max_pooling2d",
    .options_bytes = sizeof(struct pooling),
    .read = pooling_read,
    .build = pooling_build,
};
