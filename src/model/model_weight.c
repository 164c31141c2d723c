/* model_weight.c - creates the weights of layers while a graph is built: names, sharing, parameter counts. */
#include <stdio.h>
#include <string.h>

#include "model/layers/layer_options.h"

static bool weight_room(struct build *build, struct arena *arena)
{
    if (build->weight_count < build->weight_capacity)
        return true;
    int larger = build->weight_capacity ? 2 * build->weight_capacity : 2 * build->model->layer_count + 6;
    struct weight *copy = arena_array(arena, (size_t)larger, sizeof *copy);
    if (!copy)
        return false;
    if (build->weight_count)
        memcpy(copy, build->weight, (size_t)build->weight_count * sizeof *copy);
    build->weight = copy;
    build->weight_capacity = larger;
    return true;
}

/* The weights of a layer's nested layers may lie between its own, so weight->layer is compared. */
static const struct weight *find_weight(const struct build *build, const struct layer *layer, const char *suffix)
{
    const struct layer_figures *figures = figures_of(build, layer);
    size_t length = strlen(layer->name);
    for (int i = figures->first_weight; i < figures->first_weight + figures->weight_count; i++) {
        const struct weight *weight = &build->weight[i];
        if (weight->layer == layer && strcmp(weight->name + length + 1, suffix) == 0)
            return weight;
    }
    return NULL;
}

bool layer_has_weight(const struct layer *layer, const struct graph *graph, const char *suffix)
{
    return find_weight(graph->build, layer, suffix) != NULL;
}

/* The existing weight, if an earlier call of this layer has created it; NULL if not, or if its shape differs (an
   error). */
static struct tensor *weight_there(const struct layer *layer, struct graph *graph, const char *suffix,
                                   const struct shape *shape)
{
    char had[96], want[96];
    const struct weight *weight = find_weight(graph->build, layer, suffix);
    if (!weight || shape_equal(&weight->tensor->shape, shape))
        return weight ? weight->tensor : NULL;
    shape_text(had, sizeof had, &weight->tensor->shape, false);
    shape_text(want, sizeof want, shape, false);
    return graph_fail(graph, PLIM_BAD_JOB, "%s is %s after the layer's first use; this one wants %s", weight->name, had,
                      want);
}

static void count_weight(const struct build *build, const struct layer *layer, const struct shape *shape,
                         bool trainable)
{
    for (; layer; layer = layer->outer) {
        struct layer_figures *figures = figures_of(build, layer);
        if (!figures->weight_count)
            figures->first_weight = build->weight_count;
        figures->weight_count = build->weight_count + 1 - figures->first_weight;
        figures->parameters += shape_count(shape);
        figures->trainable_parameters += trainable ? shape_count(shape) : 0;
    }
}

/* "dense_1/kernel". The graph copies the name, so most names are built on the stack. NULL: out of memory. */
static const char *weight_name(char room[256], struct arena *arena, const struct layer *layer, const char *suffix)
{
    int length = snprintf(room, 256, "%s/%s", layer->name, suffix);
    return length < 256 ? room : arena_format(arena, "%s/%s", layer->name, suffix);
}

static struct tensor *add_weight(const struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                                 struct initializer initializer, bool trainable, bool fixed)
{
    struct build *build = graph->build;
    char room[256];
    struct tensor *there = graph->failed ? NULL : weight_there(layer, graph, suffix, &shape);
    if (there || graph->failed)
        return there;
    const char *name =
        weight_room(build, &graph->build_arena) ? weight_name(room, &graph->build_arena, layer, suffix) : NULL;
    if (!name) {
        graph->failed = arena_refused(&graph->build_arena, &graph->error);
        return NULL;
    }
    struct tensor *tensor = graph_weight(graph, name, TYPE_F32, shape, trainable);
    if (!tensor)
        return NULL;
    initializer.columns = (int32_t)(shape.rank ? shape.dim[shape.rank - 1] : 1);
    count_weight(build, layer, &shape, trainable);
    build->weight[build->weight_count++] = (struct weight){.name = tensor->name,
                                                           .layer = layer,
                                                           .tensor = tensor,
                                                           .initializer = initializer,
                                                           .trainable = trainable,
                                                           .fixed = fixed};
    if (layer->outer && layer->outer->type->inner_weight)
        layer->outer->type->inner_weight(layer->outer, graph, tensor, suffix);
    return tensor;
}

struct tensor *model_weight(const struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                            struct initializer initializer)
{
    return add_weight(layer, graph, suffix, shape, initializer, layer_trainable(layer), false);
}

/* A build has one cast per weight, however often the layer is called. */
struct tensor *model_compute_weight(const struct layer *layer, struct graph *graph, const char *suffix,
                                    struct shape shape, struct initializer initializer)
{
    struct tensor *tensor = model_weight(layer, graph, suffix, shape, initializer);
    enum type compute = layer_compute(layer);
    if (!tensor || compute == TYPE_F32)
        return tensor;
    const struct layer_figures *figures = figures_of(graph->build, layer);
    for (int i = figures->first_weight; i < figures->first_weight + figures->weight_count; i++) {
        struct weight *weight = &graph->build->weight[i];
        if (weight->tensor == tensor && !weight->cast)
            weight->cast = policy_cast(graph, tensor, compute);
        if (weight->tensor == tensor)
            return weight->cast;
    }
    return NULL;
}

struct initializer initializer_with_fans(struct initializer initializer, const struct shape *shape)
{
    int64_t field = 1;
    uint64_t bytes;
    int last = shape->rank - 1;
    if (!shape_bytes(&bytes, shape, TYPE_F32)) /* such a weight is refused */
        return initializer;
    for (int i = 0; i < last - 1; i++)
        field *= shape->dim[i];
    initializer.fan_in = field * shape->dim[last > 0 ? last - 1 : 0];
    initializer.fan_out = field * shape->dim[last];
    return initializer;
}

struct tensor *model_kernel(const struct layer *layer, struct graph *graph, const char *suffix, struct shape shape,
                            struct initializer initializer)
{
    return model_compute_weight(layer, graph, suffix, shape, initializer_with_fans(initializer, &shape));
}

struct tensor *model_bias(const struct layer *layer, struct graph *graph, const char *suffix, int64_t count,
                          struct initializer initializer)
{
    struct shape shape = shape_of(1, &count);
    return model_weight(layer, graph, suffix, shape, initializer_with_fans(initializer, &shape));
}

struct tensor *model_fixed_weight(const struct layer *layer, struct graph *graph, const char *suffix,
                                  struct shape shape, struct initializer initializer)
{
    return add_weight(layer, graph, suffix, shape, initializer, false, true);
}

struct tensor *model_iteration(struct graph *graph)
{
    const struct shape one = {.rank = 1, .dim = {1}};
    if (!graph->build->iteration)
        graph->build->iteration = graph_state(graph, "optimizer/iteration", TYPE_I64, one);
    return graph->build->iteration;
}
