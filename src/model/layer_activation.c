/* layer_activation.c - activations, as an option of layers and as layers of
   their own: Activation, ReLU, Softmax. */
#include "model/layer_options.h"
#include "ops/ops.h"

static const struct activation_type activations[] = {
    {.name = "linear"},
    {.name = "relu", .op = &op_relu},
    {.name = "sigmoid", .op = &op_sigmoid, .has_logits = true, .loss = LOSS_BINARY},
    {.name = "softmax", .op = &op_softmax, .has_logits = true, .loss = LOSS_SPARSE_CATEGORICAL},
};

static const char *const keras_activations[] = {
    "relu6",      "leaky_relu",  "elu",         "selu",        "celu",        "gelu",         "silu",
    "swish",      "tanh",        "softplus",    "softsign",    "exponential", "hard_sigmoid", "hard_silu",
    "mish",       "log_softmax", "log_sigmoid", "hard_tanh",   "tanh_shrink", "soft_shrink",  "hard_shrink",
    "squareplus", "glu",         "sparsemax",   "sparse_plus", "threshold",
};

plim_status option_activation(const struct activation_type **out, const struct layer *layer, const struct yaml *node,
                              plim_error *error)
{
    const char *words[LENGTH(activations)];
    char where[256];
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    yaml_place(where, layer->model->job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "activation: expected a word, got a %s",
                       node->kind == YAML_LIST ? "list" : "map");
    for (int i = 0; i < LENGTH(activations); i++) {
        words[i] = activations[i].name;
        if (same_word(node->text, activations[i].name)) {
            *out = &activations[i];
            return PLIM_OK;
        }
    }
    return option_unknown("activation", node->text, where, words, LENGTH(words), keras_activations,
                          LENGTH(keras_activations), error);
}

struct tensor *activation_apply(struct layer *layer, struct graph *graph, const struct activation_type *type,
                                struct tensor *x)
{
    struct model *model = layer->model;
    if (!type || !type->op)
        return x;
    if (layer_is_last(layer) && type->has_logits && model->training && model->training->loss == type->loss) {
        model->from_logits = true;
        return x;
    }
    return unary(graph, type->op, x);
}

/* ---- as layers ---- */

struct activation_layer {
    struct layer_words words;
    const struct activation_type *activation;
    const struct yaml *activation_word;
    const struct yaml *max_value, *negative_slope, *threshold; /* ReLU */
    const struct yaml *axis;                                   /* Softmax */
};

#define AT(field) offsetof(struct activation_layer, field)

static const struct setting activation_settings[] = {
    {"activation", SETTING_NODE, AT(activation_word), 0},
    LAYER_WORDS,
};

static plim_status activation_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct activation_layer *options = layer->options;
    TRY(layer_read(layer, activation_settings, LENGTH(activation_settings), yaml, error));
    if (!options->activation_word)
        return layer_missing(layer, "activation", "Activation: relu", error);
    return option_activation(&options->activation, layer, options->activation_word, error);
}

static const struct setting relu_settings[] = {
    {"max_value", SETTING_NODE, AT(max_value), 0},
    {"negative_slope", SETTING_NODE, AT(negative_slope), 0},
    {"threshold", SETTING_NODE, AT(threshold), 0},
    LAYER_WORDS,
};

static plim_status relu_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct activation_layer *options = layer->options;
    const char *job = layer->model->job;
    TRY(layer_read(layer, relu_settings, LENGTH(relu_settings), yaml, error));
    options->activation = &activations[1];
    TRY(option_default("ReLU", job, "max_value", "null", options->max_value, error));
    TRY(option_default("ReLU", job, "negative_slope", "0", options->negative_slope, error));
    return option_default("ReLU", job, "threshold", "0", options->threshold, error);
}

static const struct setting softmax_settings[] = {
    {"axis", SETTING_NODE, AT(axis), 0},
    LAYER_WORDS,
};

static plim_status softmax_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct activation_layer *options = layer->options;
    TRY(layer_read(layer, softmax_settings, LENGTH(softmax_settings), yaml, error));
    options->activation = &activations[3];
    return option_default("Softmax", layer->model->job, "axis", "-1", options->axis, error);
}

static struct tensor *activation_build(struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct activation_layer *options = layer->options;
    return activation_apply(layer, graph, options->activation, x);
}

const struct layer_type layer_activation = {
    .name = "Activation",
    .snake = "activation",
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .read = activation_read,
    .build = activation_build,
};

const struct layer_type layer_relu = {
    .name = "ReLU",
    .snake = "re_lu",
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .read = relu_read,
    .build = activation_build,
};

const struct layer_type layer_softmax = {
    .name = "Softmax",
    .snake = "softmax",
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .read = softmax_read,
    .build = activation_build,
};
