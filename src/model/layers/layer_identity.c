/* layer_identity.c - layers that hand on what they get: Identity, and ActivityRegularization, which adds a penalty on
   it to the loss. */
#include "model/layers/layer_options.h"

struct identity {
    struct layer_words words;
    double l1, l2;
};

static const struct setting identity_settings[] = {LAYER_WORDS};

static const struct setting activity_settings[] = {
    {"l1", SETTING_NUMBER, offsetof(struct identity, l1), 0},
    {"l2", SETTING_NUMBER, offsetof(struct identity, l2), 0},
    LAYER_WORDS,
};

static plim_status identity_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    char where[256];
    layer_place(where, layer);
    if (yaml && yaml->kind != YAML_MAP && !(yaml->kind == YAML_SCALAR && yaml->is_null))
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "Identity: takes no argument"),
                    "- Identity: {inputs: a, name: b}");
    return layer_read(layer, identity_settings, LENGTH(identity_settings), yaml, error);
}

/* The penalty is the one that activity_regularizer: says of other layers. */
static plim_status activity_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    const struct identity *options = layer->options;
    char where[256];
    TRY(layer_read(layer, activity_settings, LENGTH(activity_settings), yaml, error));
    layer_place(where, layer);
    if (!(options->l1 >= 0 && options->l2 >= 0))
        return fail_at(error, PLIM_BAD_JOB, where, "%s: %s must not be negative, got %g", layer->type->name,
                       options->l1 >= 0 ? "l2" : "l1", options->l1 >= 0 ? options->l2 : options->l1);
    struct weight_option *penalty = arena_take(&layer->model->arena, sizeof *penalty);
    if (!penalty)
        return arena_refused(&layer->model->arena, error);
    *penalty = (struct weight_option){.weight = "activity", .penalty = {options->l1, options->l2}};
    layer->weight_option = penalty;
    return PLIM_OK;
}

static struct tensor *identity_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    (void)layer;
    (void)graph;
    return x;
}

const struct layer_type layer_identity = {
    .name = "Identity",
    .snake = "identity",
    .any_type = true,
    .by_last_axis = true,
    .keeps_mask = true,
    .options_bytes = sizeof(struct identity),
    .read = identity_read,
    .build = identity_build,
};

const struct layer_type layer_activity_regularization = {
    .name = "ActivityRegularization",
    .snake = "activity_regularization",
    .keeps_mask = true,
    .options_bytes = sizeof(struct identity),
    .read = activity_read,
    .build = identity_build,
};
