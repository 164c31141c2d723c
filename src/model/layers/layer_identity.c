/* layer_identity.c - layers that hand on what they get: Identity, and ActivityRegularization, which adds a penalty on
   it to the loss. */
#include "model/layers/layer_options.h"

struct identity {
    struct layer_keys keys;
    double l1, l2;
};

static const struct model_option activity_options[] = {
    {"l1", option_not_negative, .offset = offsetof(struct identity, l1)},
    {"l2", option_not_negative, .offset = offsetof(struct identity, l2)},
};

static plim_status identity_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    if (!yaml_absent(yaml) && yaml->kind != YAML_MAP)
        return hint(error, layer_fail(layer, error, PLIM_BAD_JOB, "takes no argument"),
                    "- Identity: {inputs: a, name: b}");
    return layer_read(layer, yaml, error);
}

/* The penalty is the one that activity_regularizer: says of other layers. */
static plim_status activity_check(struct layer *layer, plim_error *error)
{
    const struct identity *options = layer->options;
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
    NAMES("Identity", "identity"),
    .any_type = true,
    .by_last_axis = true,
    .keeps_mask = true,
    .options_bytes = sizeof(struct identity),
    .read = identity_read,
    .build = identity_build,
};

const struct layer_type layer_activity_regularization = {
    NAMES("ActivityRegularization", "activity_regularization"),
    .keeps_mask = true,
    OPTIONS(struct identity, activity_options),
    .check = activity_check,
    .build = identity_build,
};
