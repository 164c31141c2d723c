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

const int activations_count = LENGTH(activations);

const char *activation_name(int i)
{
    return activations[i].name;
}

const struct activation_type *activation_named(const char *name)
{
    for (int i = 0; i < LENGTH(activations); i++)
        if (same_word(name, activations[i].name))
            return &activations[i];
    return NULL;
}

/* A word of Keras's that it cannot apply either: it has arguments without defaults. */
static const char *const keras_activations[] = {"threshold"};

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
    struct layer_words words;
    const struct activation_type *activation; /* points at `own` where the layer has numbers of its own */
    struct activation_type own;
    double negative_slope, threshold, alpha;
    int64_t axis;
    const struct yaml *activation_word, *max_word, *axis_word;
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

static plim_status not_negative(const struct layer *layer, const char *word, double value, plim_error *error)
{
    char where[256];
    if (value >= 0)
        return PLIM_OK;
    layer_place(where, layer);
    return fail_at(error, PLIM_BAD_JOB, where, "%s: %s must not be negative, got %g", layer->type->name, word, value);
}

static const struct setting relu_settings[] = {
    {"max_value", SETTING_NODE, AT(max_word), 0},
    {"negative_slope", SETTING_NUMBER, AT(negative_slope), 0},
    {"threshold", SETTING_NUMBER, AT(threshold), 0},
    LAYER_WORDS,
};

/* Plain relu where nothing else is asked for: others know it. */
static void choose_rectify(struct activation_layer *options, double most)
{
    bool plain = options->negative_slope == 0 && options->threshold == 0 && isinf(most);
    options->own = (struct activation_type){.name = "relu", .op = &op_rectify};
    options->own.numbers = (struct numbers_attributes){options->negative_slope, most, options->threshold};
    options->activation = plain ? &activations[1] : &options->own;
}

static plim_status relu_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct activation_layer *options = layer->options;
    const struct setting number = {"max_value", SETTING_NUMBER, 0, 0};
    const struct yaml *word;
    double most = INFINITY;
    TRY(layer_read(layer, relu_settings, LENGTH(relu_settings), yaml, error));
    word = options->max_word;
    if (word && !(word->kind == YAML_SCALAR && word->is_null))
        TRY(setting_value(&most, &number, layer->model->job, word, error));
    TRY(not_negative(layer, "max_value", most, error));
    TRY(not_negative(layer, "negative_slope", options->negative_slope, error));
    TRY(not_negative(layer, "threshold", options->threshold, error));
    choose_rectify(options, most);
    return PLIM_OK;
}

static const struct setting leaky_settings[] = {
    {"negative_slope", SETTING_NUMBER, AT(negative_slope), 0},
    LAYER_WORDS,
};

static plim_status leaky_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct activation_layer *options = layer->options;
    options->negative_slope = 0.3;
    TRY(layer_read(layer, leaky_settings, LENGTH(leaky_settings), yaml, error));
    TRY(not_negative(layer, "negative_slope", options->negative_slope, error));
    choose_rectify(options, INFINITY);
    return PLIM_OK;
}

static const struct setting elu_settings[] = {
    {"alpha", SETTING_NUMBER, AT(alpha), 0},
    LAYER_WORDS,
};

static plim_status elu_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct activation_layer *options = layer->options;
    options->alpha = 1;
    TRY(layer_read(layer, elu_settings, LENGTH(elu_settings), yaml, error));
    TRY(not_negative(layer, "alpha", options->alpha, error));
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

static const struct setting softmax_settings[] = {
    {"axis", SETTING_NODE, AT(axis_word), 0},
    LAYER_WORDS,
};

/* A whole number, or a list of one. */
static plim_status softmax_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct activation_layer *options = layer->options;
    const struct setting whole = {"axis", SETTING_WHOLE, 0, -MOST_AXES};
    const char *job = layer->model->job;
    char where[256];
    options->axis = -1;
    options->activation = &activations[3];
    TRY(layer_read(layer, softmax_settings, LENGTH(softmax_settings), yaml, error));
    const struct yaml *word = options->axis_word;
    if (!word || (word->kind == YAML_SCALAR && word->is_null))
        return PLIM_OK;
    yaml_place(where, job, word);
    if (word->kind == YAML_LIST && word->count > 1)
        return fail_at(error, PLIM_UNSUPPORTED, where, "Softmax: several axes at once are not supported yet");
    if (word->kind == YAML_LIST && !word->first)
        return hint(error, fail_at(error, PLIM_BAD_JOB, where, "Softmax: axis: the list is empty"), "axis: -1");
    return setting_value(&options->axis, &whole, job, word->kind == YAML_LIST ? word->first : word, error);
}

static struct tensor *softmax_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct activation_layer *options = layer->options;
    char shape[96];
    if (!x)
        return NULL;
    int64_t axis = options->axis < 0 ? options->axis + x->shape.rank : options->axis;
    if (axis == x->shape.rank - 1)
        return activation_apply(layer, graph, options->activation, x);
    struct axis_attributes attributes = {x->shape.rank - 1 - axis};
    if (axis >= 1 && axis < x->shape.rank)
        return graph_add(graph, &op_softmax, &x, 1, &attributes, sizeof attributes);
    shape_text(shape, sizeof shape, &x->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: axis %lld is none of a sample's of %s", layer->name, (long long)options->axis,
               shape);
    return NULL;
}

const struct layer_type layer_activation = {
    .name = "Activation",
    .snake = "activation",
    .by_last_axis = true,
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .read = activation_read,
    .build = activation_build,
};

const struct layer_type layer_relu = {
    .name = "ReLU",
    .snake = "re_lu",
    .by_last_axis = true,
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .read = relu_read,
    .build = activation_build,
};

const struct layer_type layer_leaky_relu = {
    .name = "LeakyReLU",
    .snake = "leaky_re_lu",
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .read = leaky_read,
    .build = activation_build,
};

const struct layer_type layer_elu = {
    .name = "ELU",
    .snake = "elu",
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .read = elu_read,
    .build = activation_build,
};

const struct layer_type layer_softmax = {
    .name = "Softmax",
    .snake = "softmax",
    .keeps_mask = true,
    .options_bytes = sizeof(struct activation_layer),
    .read = softmax_read,
    .build = softmax_build,
};
