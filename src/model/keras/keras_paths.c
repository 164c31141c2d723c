/* keras_paths.c - where .keras files keep a layer's weights.

   Not under the layer's name: under its class's, numbered by class in the order of the list it is in; a model inside is
   a layer with layers of its own: "layers/sequential/layers/dense_1/vars/0". */
#include <stdio.h>
#include <string.h>

#include "model/model_scope.h"

/* The class's name in a path. */
static const char *snake_of(const struct entry *entry)
{
    if (entry->layer)
        return entry->layer->type->snake;
    return strcmp(entry->inside->type_name, "Sequential") == 0 ? "sequential" : "functional";
}

static int same_before(const struct scope *scope, const struct entry *entry)
{
    const char *snake = snake_of(entry);
    int count = 0;
    for (const struct entry *other = scope->entry; other < entry; other++)
        count += other == &scope->entry[other->definition] && strcmp(snake_of(other), snake) == 0;
    return count;
}

/* Calls itself for models inside models, which are counted. */
static plim_status add_paths(const char **paths, const struct model *model, const struct scope *scope,
                             const char *prefix, struct arena *arena, plim_error *error)
{
    for (int i = 0; i < scope->count; i++) {
        const struct entry *entry = &scope->entry[i];
        if (entry->definition != i || (entry->layer && entry->layer->type->hidden))
            continue;
        int number = same_before(scope, entry);
        const char *path = number ? arena_format(arena, "%slayers/%s_%d", prefix, snake_of(entry), number)
                                  : arena_format(arena, "%slayers/%s", prefix, snake_of(entry));
        if (!path)
            return arena_refused(arena, error);
        if (entry->layer) {
            paths[entry->layer - model->layer] = path;
            continue;
        }
        const char *inside = arena_format(arena, "%s/", path);
        if (!inside)
            return arena_refused(arena, error);
        TRY(add_paths(paths, model, entry->inside, inside, arena, error));
    }
    return PLIM_OK;
}

plim_status model_saved_paths(const char ***out, const struct model *model, struct arena *arena, plim_error *error)
{
    const char **paths = arena_array(arena, (size_t)model->layer_count, sizeof *paths);
    if (!paths)
        return arena_refused(arena, error);
    *out = paths;
    return add_paths(paths, model, model->scope, "", arena, error);
}

/* The group inside the layer's that a weight lies in: "" for most, "cell", "query_dense". */
static const char *group_of(const struct layer *layer, const struct weight *weight)
{
    const char *suffix = weight->name + strlen(layer->name) + 1, *slash = strchr(suffix, '/');
    size_t length = slash ? (size_t)(slash - suffix) : 0;
    for (const char *const *pair = layer->type->saved_groups; pair && *pair; pair += 2)
        if (strlen(pair[0]) == length && memcmp(pair[0], suffix, length) == 0)
            return pair[1];
    return "";
}

/* Layers inside a layer have a group each. */
static void add_inner(char *out, size_t capacity, const struct layer *layer)
{
    if (!layer->outer)
        return;
    add_inner(out, capacity, layer->outer);
    size_t length = strlen(out);
    snprintf(out + length, capacity - length, "/%s", layer->saved_part ? layer->saved_part : "layer");
}

/* Those that are trained first, then the others, each in the order of their making. */
static int number_in_group(const struct build *build, const struct weight *weight, const char *group)
{
    const struct layer *layer = weight->layer;
    const struct layer_figures *figures = figures_of(build, layer);
    int number = 0;
    for (int i = figures->first_weight; i < figures->first_weight + figures->weight_count; i++) {
        const struct weight *candidate = &build->weight[i];
        if (candidate->layer != layer || candidate == weight)
            continue;
        bool before = candidate->fixed == weight->fixed ? candidate < weight : weight->fixed;
        number += before && strcmp(group, group_of(layer, candidate)) == 0;
    }
    return number;
}

void weight_saved_path(char *out, size_t capacity, const struct build *build, const char *const *paths,
                       const struct weight *weight)
{
    const struct layer *outermost = weight->layer;
    const char *group = group_of(weight->layer, weight);
    while (outermost->outer)
        outermost = outermost->outer;
    snprintf(out, capacity, "%s", paths[outermost - build->model->layer]);
    add_inner(out, capacity, weight->layer);
    size_t length = strlen(out);
    snprintf(out + length, capacity - length, "%s%s/vars/%d", *group ? "/" : "", group,
             number_in_group(build, weight, group) + (*group ? 0 : weight->layer->type->saved_before));
}
