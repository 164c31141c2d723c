/* layer_activation.c - activations, as an option of layers and as layers of
   their own: Activation, ReLU, LeakyReLU, ELU, Softmax. */
#include <math.h>

#include "model/layers/layer_options.h"
#include "ops/ops.h"

/* Keras's words; numbers are its defaults. */
static const struct activation_type activations[] = {
    {.name = "linear"},
    {.name = "relu", .op = &op_relu},
    {.name = "sigmoid", .op = &op_sigmoid, .has_logits = true, .loss = LOSS_BINARY},
    {.name = "softmax", .op = &op_softmax, .has_logits = true, .loss = LOSS_SPARSE_CATEGORICAL},
    {.name = "relu6", .op = &op_rectify, .numbers = {0, 6, 0}},
    {.name = "leaky_relu", .op = &op_rectify, .numbers = {0.2, INFINITY, 0}},
    {.name = "elu", .op = &op_elu, .numbers = {.a = 1}},
    {.name = "selu", .op = &op_selu},
    {.name = "celu", .op = &op_celu, .numbers = {.a = 1}},
    {.name = "gelu", .op = &op_gelu},
    {.name = "silu", .op = &op_silu},
    {.name = "swish", .op = &op_silu},
    {.name = "mish", .op = &op_mish},
    {.name = "tanh", .op = &op_tanh},
    {.name = "softplus", .op = &op_softplus},
    {.name = "softsign", .op = &op_softsign},
    {.name = "exponential", .op = &op_exp},
    {.name = "log_sigmoid", .op = &op_log_sigmoid},
    {.name = "hard_sigmoid", .op = &op_hard_sigmoid},
    {.name = "hard_silu", .op = &op_hard_silu},
    {.name = "hard_swish", .op = &op_hard_silu},
    {.name = "hard_tanh", .op = &op_hard_tanh},
    {.name = "tanh_shrink", .op = &op_tanh_shrink},
    {.name = "soft_shrink", .op = &op_soft_shrink, .numbers = {.a = 0.5}},
    {.name = "hard_shrink", .op = &op_hard_shrink, .numbers = {.a = 0.5}},
    {.name = "squareplus", .op = &op_squareplus, .numbers = {.a = 4}},
    {.name = "sparse_plus", .op = &op_sparse_plus},
    {.name = "sparse_sigmoid", .op = &op_sparse_sigmoid},
    {.name = "log_softmax", .op = &op_log_softmax},
    {.name = "sparsemax", .op = &op_sparsemax},
    {.name = "glu", .op = &op_glu},
};

const int activations_count = COUNT(activations);

const char *activation_name(int i)
{
    return activations[i].name;
}

const struct activation_type *activation_named(const char *name)
{
    for (int i = 0; i < COUNT(activations); i++)
        if (same_word(name, activations[i].name))
            return &activations[i];
    return NULL;
}

/* A word of Keras's that it cannot apply either: it has arguments without defaults. */
static const char *const keras_activations[] = {"threshold"};

OPTION_READER(option_activation)
{
    const char *words[COUNT(activations)];
    char where[256];
    int found;
    (void)option;
    if (yaml_absent(node))
        return PLIM_OK;
    yaml_place(where, at->job, node);
    if (node->kind != YAML_SCALAR)
        return fail_at(error, PLIM_BAD_JOB, where, "activation: expected a word, got a %s", yaml_kind_name(node));
    for (int i = 0; i < COUNT(activations); i++)
        words[i] = activations[i].name;
    TRY(choose_word(&found, "activation", node->text, CHOICES_OF(words, keras_activations), where, error));
    *(const struct activation_type **)out = &activations[found];
    return PLIM_OK;
}

/* Attributes are numbers, an axis (0: the last one) or none. */
struct tensor *activation_add(struct graph *graph, const struct activation_type *type, struct tensor *x)
{
    if (!type->op)
        return x;
    struct axis_attributes last = {0};
    if (type->op->attributes_bytes == sizeof type->numbers)
        return graph_add(graph, type->op, &x, 1, &type->numbers, sizeof type->numbers);
    if (type->op->attributes_bytes == sizeof last)
        return graph_add(graph, type->op, &x, 1, &last, sizeof last);
    return unary(graph, type->op, x);
}

struct tensor *activation_apply(const struct layer *layer, struct graph *graph, const struct activation_type *type,
                                struct tensor *x)
{
    struct build *build = graph->build;
    if (!type || !type->op)
        return x;
    bool left = layer_is_last(layer, graph) && type->has_logits && !layer_has_activity_penalty(layer);
    if (left && build->training && build->training->output_loss[build->now->output_index].kind == type->loss) {
        build->logits[build->now->output_index] = true;
        return x;
    }
    return activation_add(graph, type, x);
}

/* ---- as layers ---- */

struct activation_layer {
    struct layer_keys keys;
    const struct activation_type *activation; /* points at `own` where the layer has numbers of its own */
    struct activation_type own;
    double max_value, negative_slope, threshold, alpha;
    int64_t axis;
};

#define TO(field) .offset = offsetof(struct activation_layer, field)

static const struct model_option activation_options[] = {
    {"activation", option_activation, TO(activation), .required = true},
};

static const struct model_option relu_options[] = {
    {"max_value", option_not_negative, TO(max_value), .nullable = true},
    {"negative_slope", option_not_negative, TO(negative_slope)},
    {"threshold", option_not_negative, TO(threshold)},
};

static const struct model_option elu_options[] = {{"alpha", option_not_negative, TO(alpha)}};

/* Plain relu where nothing else is asked for: others know it. */
static plim_status choose_rectify(struct layer *layer, plim_error *error)
{
    struct activation_layer *options = layer->options;
    bool plain = options->negative_slope == 0 && options->threshold == 0 && isinf(options->max_value);
    (void)error;
    options->own =
        (struct activation_type){.name = "relu",
                                 .op = &op_rectify,
                                 .numbers = {options->negative_slope, options->max_value, options->threshold}};
    options->activation = plain ? &activations[1] : &options->own;
    return PLIM_OK;
}

static plim_status choose_elu(struct layer *layer, plim_error *error)
{
    struct activation_layer *options = layer->options;
    (void)error;
    options->own = (struct activation_type){.name = "elu", .op = &op_elu, .numbers = {options->alpha, 0, 0}};
    options->activation = &options->own;
    return PLIM_OK;
}

static struct tensor *activation_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct activation_layer *options = layer->options;
    return activation_apply(layer, graph, options->activation, x);
}

/* ---- Softmax: along any axis of a sample ---- */

/* A whole number, or a list of one. */
static OPTION_READER(softmax_axis)
{
    if (node->kind == YAML_LIST && node->count > 1)
        return yaml_fail(error, PLIM_UNSUPPORTED, at->job, node, "Softmax: several axes at once are not supported yet");
    if (node->kind == YAML_LIST && !node->first)
        return hint(error, yaml_fail(error, PLIM_BAD_JOB, at->job, node, "Softmax: axis: the list is empty"),
                    "axis: -1");
    return option_whole(out, option, at, node->kind == YAML_LIST ? node->first : node, error);
}

static const struct model_option softmax_options[] = {
    {"axis", softmax_axis, TO(axis), .least = -MOST_AXES, .nullable = true},
};

static struct tensor *softmax_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct activation_layer *options = layer->options;
    if (!x)
        return NULL;
    int64_t axis = options->axis < 0 ? options->axis + x->shape.rank : options->axis;
    if (axis == x->shape.rank - 1)
        return activation_apply(layer, graph, options->activation, x);
    struct axis_attributes attributes = {x->shape.rank - 1 - axis};
    if (axis >= 1 && axis < x->shape.rank)
        return graph_add(graph, &op_softmax, &x, 1, &attributes, sizeof attributes);
    return layer_misfit(layer, graph, x, "axis %lld is none of a sample's of", (long long)options->axis);
}

const struct layer_type layer_activation = {
    NAMES("Activation", "activation"),
    .by_last_axis = true,
    .keeps_mask = true,
    OPTIONS(struct activation_layer, activation_options),
    .example = "Activation: relu",
    .build = activation_build,
};

const struct layer_type layer_relu = {
    NAMES("ReLU", "re_lu"),
    .by_last_axis = true,
    .keeps_mask = true,
    OPTIONS(struct activation_layer, relu_options),
    .defaults = &(const struct activation_layer){.max_value = INFINITY},
    .check = choose_rectify,
    .build = activation_build,
};

const struct layer_type layer_leaky_relu = {
    NAMES("LeakyReLU", "leaky_re_lu"),
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .option = &relu_options[1], /* negative_slope */
    .option_count = 1,
    .defaults = &(const struct activation_layer){.max_value = INFINITY, .negative_slope = 0.3},
    .check = choose_rectify,
    .build = activation_build,
};

const struct layer_type layer_elu = {
    NAMES("ELU", "elu"),
    .keeps_mask = true,
    OPTIONS(struct activation_layer, elu_options),
    .defaults = &(const struct activation_layer){.alpha = 1},
    .check = choose_elu,
    .build = activation_build,
};

const struct layer_type layer_softmax = {
    NAMES("Softmax", "softmax"),
    .keeps_mask = true,
    OPTIONS(struct activation_layer, softmax_options),
    .defaults = &(const struct activation_layer){.axis = -1, .activation = &activations[3]},
    .build = softmax_build,
};
