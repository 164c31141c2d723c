/* layer_time_distributed.c - TimeDistributed: a layer, or a Sequential model of some, on each step of [N, T, ...], with
   the same weights.

   As in Keras the steps are taken one by one, which matters where a layer looks at its whole input
   (BatchNormalization). Layers that treat the last axis alone, as Dense and activations do, are given all steps at
   once: the same numbers in one op. */
#include <string.h>

#include "model/layer_options.h"
#include "ops/ops.h"

#define MOST_INNER 256

struct time_distributed {
    struct layer_words words;
    const struct yaml *layer_word;
    struct layer **inner;
    int count;
    bool by_last_axis; /* all of them */
};

static const struct setting steps_settings[] = {
    {"layer", SETTING_NODE, offsetof(struct time_distributed, layer_word), 0},
    LAYER_WORDS,
};

static plim_status add_inner(struct layer *layer, const struct yaml *entry, plim_error *error)
{
    struct time_distributed *options = layer->options;
    struct layer *inner = NULL;
    char where[256];
    TRY(layer_read_inner(&inner, layer, entry, error));
    layer_place(where, layer);
    if (inner->type->merge || inner->type == &layer_input)
        return fail_at(error, PLIM_BAD_JOB, where, "TimeDistributed: %s is no layer of one input", inner->type->name);
    options->inner[options->count++] = inner;
    options->by_last_axis = options->by_last_axis && inner->type->by_last_axis;
    return PLIM_OK;
}

static bool is_input(const struct yaml *entry)
{
    const char *word = entry->kind == YAML_MAP && entry->first ? entry->first->key : entry->text;
    return word && (strcmp(word, "Input") == 0 || strcmp(word, "InputLayer") == 0);
}

/* {Sequential: [...]} or {Sequential: {layers: [...]}}; what it says of its input is seen from what comes. */
static plim_status read_model(struct layer *layer, const struct yaml *model, plim_error *error)
{
    struct time_distributed *options = layer->options;
    const struct yaml *list = model->kind == YAML_MAP ? yaml_get(model, "layers") : model;
    const struct yaml *trainable = model->kind == YAML_MAP ? yaml_get(model, "trainable") : NULL;
    const struct yaml *word = model->kind == YAML_MAP ? yaml_get(model, "name") : NULL;
    const char *name = word && word->kind == YAML_SCALAR && !word->is_null ? word->text : NULL;
    char where[256];
    yaml_place(where, layer->model->job, model);
    if (name && (!*name || strchr(name, '/')))
        return fail_at(error, PLIM_BAD_JOB, where, "TimeDistributed: the model's name is empty, or has a '/'");
    if (!list || list->kind != YAML_LIST || list->count < 1 || list->count > MOST_INNER)
        return fail_at(error, PLIM_BAD_JOB, where, "TimeDistributed: expected a list of 1 to %d layers", MOST_INNER);
    const char *prefix = arena_format(&layer->model->arena, "%s/", name ? name : "sequential");
    options->inner = arena_array(&layer->model->arena, (size_t)list->count, sizeof(struct layer *));
    if (!options->inner || !prefix)
        return arena_refused(&layer->model->arena, error);
    for (const struct yaml *entry = list->first; entry; entry = entry->next) {
        if (is_input(entry))
            continue;
        TRY(add_inner(layer, entry, error));
        struct layer *inner = options->inner[options->count - 1];
        TRY(layer_name_inner(inner, options->inner, options->count - 1, prefix, "layer/layers/", error));
        if (trainable && trainable->text && strcmp(trainable->text, "false") == 0)
            ((struct layer_words *)inner->options)->trainable = false;
    }
    return PLIM_OK;
}

/* `TimeDistributed: {layer: {Dense: 10}}`, `TimeDistributed: Flatten`, `TimeDistributed: {layer: {Sequential: [...]}}`.
 */
static plim_status steps_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct time_distributed *options = layer->options;
    char where[256];
    TRY(layer_read(layer, steps_settings, LENGTH(steps_settings), yaml, error));
    const struct yaml *word = options->layer_word;
    if (!word)
        return layer_missing(layer, "layer", "TimeDistributed: {layer: {Dense: 10}}", error);
    const char *key = word->kind == YAML_MAP && word->count == 1 ? word->first->key : "";
    options->by_last_axis = true;
    yaml_place(where, layer->model->job, word);
    if (strcmp(key, "Sequential") == 0)
        return read_model(layer, word->first, error);
    if (strcmp(key, "Functional") == 0) /* NEEDSWORK: a graph of layers inside a layer */
        return hint(
            error,
            fail_at(error, PLIM_UNSUPPORTED, where, "TimeDistributed: a Functional model inside is not supported yet"),
            "a Sequential one");
    options->inner = arena_array(&layer->model->arena, 1, sizeof(struct layer *));
    return options->inner ? add_inner(layer, word, error) : arena_refused(&layer->model->arena, error);
}

static struct tensor *build_all(struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct time_distributed *options = layer->options;
    for (int i = 0; i < options->count && x; i++)
        x = options->inner[i]->type->build(options->inner[i], graph, x);
    return x;
}

static struct tensor *steps_build(struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct time_distributed *options = layer->options;
    char shape[96];
    if (!x)
        return NULL;
    if (x->shape.rank < 3) {
        shape_text(shape, sizeof shape, &x->shape, true);
        graph_fail(graph, PLIM_BAD_JOB, "%s: expected (batch, steps, ...), got %s", layer->name, shape);
        return NULL;
    }
    if (options->by_last_axis)
        return build_all(layer, graph, x);
    int64_t steps = x->shape.dim[1];
    struct tensor **y = arena_array(&graph->arena, (size_t)steps, sizeof(struct tensor *));
    if (!y) {
        graph_refused(graph, 0);
        return NULL;
    }
    struct shape row = {.rank = x->shape.rank - 2};
    for (int i = 0; i < row.rank; i++)
        row.dim[i] = x->shape.dim[i + 2];
    for (int64_t t = 0; t < steps && !graph->failed; t++)
        y[t] = build_all(layer, graph, reshape(graph, slice_axis(graph, x, 1, t, 1, 1), row));
    return graph->failed ? NULL : stack(graph, y, (int)steps, 1);
}

const struct layer_type layer_time_distributed = {
    .name = "TimeDistributed",
    .snake = "time_distributed",
    .keeps_mask = true,
    .options_bytes = sizeof(struct time_distributed),
    .read = steps_read,
    .build = steps_build,
};
