/* model_weight.c - the weights of layers while a graph is built: names, sharing, counting. */
#include <string.h>

#include "model/model_scope.h"

const char *layer_full_name(struct layer *layer)
{
    if (layer->name)
        return layer->name;
    const struct layer_words *words = layer->options;
    const char *outer = layer_full_name(layer->outer);
    if (outer)
        layer->name =
            arena_format(&layer->model->arena, "%s/%s", outer, words->name ? words->name : layer->type->snake);
    return layer->name;
}

/* The name of weight number `i`: the same in every build. */
static const char *weight_name(struct model *model, int i, struct layer *layer, const char *suffix)
{
    const char *own = layer_full_name(layer), *old = i < model->weight_capacity ? model->weight[i].name : NULL;
    size_t length = own ? strlen(own) : 0;
    if (!own)
        return NULL;
    if (old && strncmp(old, own, length) == 0 && old[length] == '/' && strcmp(old + length + 1, suffix) == 0)
        return old;
    return arena_format(&model->arena, "%s/%s", own, suffix);
}

static bool weight_room(struct model *model)
{
    if (model->weight_count < model->weight_capacity)
        return true;
    int larger = model->weight_capacity ? 2 * model->weight_capacity : 2 * model->layer_count + 6;
    struct weight *copy = arena_array(&model->arena, (size_t)larger, sizeof *copy);
    if (!copy)
        return false;
    if (model->weight_count)
        memcpy(copy, model->weight, (size_t)model->weight_count * sizeof *copy);
    model->weight = copy;
    model->weight_capacity = larger;
    return true;
}

/* A layer that is used again has its weights already. Of a layer with layers inside, theirs may lie in between. */
static struct tensor *weight_there(const struct layer *layer, struct graph *graph, const char *suffix,
                                   const struct shape *shape)
{
    char had[96], want[96];
    size_t length = layer->name ? strlen(layer->name) : 0;
    for (int i = layer->first_weight; i < layer->first_weight + layer->weight_count; i++) {
        const struct weight *weight = &layer->model->weight[i];
        if (weight->layer != layer || strcmp(weight->name + length + 1, suffix) != 0)
            continue;
        if (shape_equal(&weight->tensor->shape, shape))
            return weight->tensor;
        shape_text(had, sizeof had, &weight->tensor->shape, false);
        shape_text(want, sizeof want, shape, false);
        graph_fail(graph, PLIM_BAD_JOB, "%s is %s after the layer's first use; this one wants %s", weight->name, had,
                   want);
    }
    return NULL;
}

/* Of a layer inside another nobody else forgets the last build. */
static void begin_layer(struct layer *layer)
{
    for (; layer && layer->build != layer->model->builds; layer = layer->outer) {
        layer->build = layer->model->builds;
        layer->weight_count = 0;
        layer->parameters = layer->trainable_parameters = 0;
    }
}

static void count_weight(struct layer *layer, const struct shape *shape, bool trainable)
{
    struct model *model = layer->model;
    for (; layer; layer = layer->outer) {
        if (!layer->weight_count)
            layer->first_weight = model->weight_count;
        layer->weight_count = model->weight_count + 1 - layer->first_weight;
        layer->parameters += shape_count(shape);
        layer->trainable_parameters += trainable ? shape_count(shape) : 0;
    }
}

static struct tensor *add_weight(struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                                 struct initializer initializer, bool trainable, bool fixed)
{
    struct model *model = layer->model;
    begin_layer(layer);
    struct tensor *there = graph->failed ? NULL : weight_there(layer, graph, suffix, &shape);
    if (there || graph->failed)
        return there;
    const char *name = weight_room(model) ? weight_name(model, model->weight_count, layer, suffix) : NULL;
    if (!name) {
        graph->failed = arena_refused(&model->arena, &graph->error);
        return NULL;
    }
    struct tensor *tensor = graph_weight(graph, name, TYPE_F32, shape, trainable);
    if (!tensor)
        return NULL;
    initializer.columns = (int32_t)(shape.rank ? shape.dim[shape.rank - 1] : 1);
    count_weight(layer, &shape, trainable);
    model->weight[model->weight_count++] = (struct weight){.name = name,
                                                           .layer = layer,
                                                           .tensor = tensor,
                                                           .initializer = initializer,
                                                           .trainable = trainable,
                                                           .fixed = fixed};
    if (layer->outer && layer->outer->type->inner_weight)
        layer->outer->type->inner_weight(layer->outer, graph, tensor, suffix);
    return tensor;
}

struct tensor *model_weight(struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                            struct initializer initializer)
{
    return add_weight(layer, graph, suffix, shape, initializer, layer_trainable(layer), false);
}

/* One cast a build, however often the layer is used. */
struct tensor *model_compute_weight(struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                                    struct initializer initializer)
{
    struct tensor *tensor = model_weight(layer, graph, suffix, shape, initializer);
    enum type compute = layer_compute(layer);
    if (!tensor || compute == TYPE_F32)
        return tensor;
    for (int i = layer->first_weight; i < layer->first_weight + layer->weight_count; i++) {
        struct weight *weight = &layer->model->weight[i];
        if (weight->tensor == tensor && !weight->cast)
            weight->cast = policy_cast(graph, tensor, compute);
        if (weight->tensor == tensor)
            return weight->cast;
    }
    return NULL;
}

struct tensor *model_fixed_weight(struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                                  struct initializer initializer)
{
    return add_weight(layer, graph, suffix, shape, initializer, false, true);
}

struct tensor *model_iteration(struct model *model, struct graph *graph)
{
    const struct shape one = {.rank = 1, .dim = {1}};
    if (!model->iteration)
        model->iteration = graph_state(graph, "optimizer/iteration", TYPE_I64, one);
    return model->iteration;
}
