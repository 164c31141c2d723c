/* layer_normalization.c - layers that normalise each sample alone:
   LayerNormalization, RMSNormalization, UnitNormalization, GroupNormalization. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct normalization {
    struct layer_words words;
    int64_t axis[MOST_AXES], axes; /* as given */
    int64_t groups;
    double epsilon;
    bool center, scale;
    enum normal kind;
    struct initializer gamma, beta;
    /* Nodes of the job file: */
    const struct yaml *axis_word, *gamma_word, *beta_word, *rms_scaling;
};

#define AT(field) offsetof(struct normalization, field)
#define SCALE_AND_CENTER                                                                                               \
    {"center", SETTING_BOOL, AT(center), 0}, {"scale", SETTING_BOOL, AT(scale), 0},                                    \
        {"beta_initializer", SETTING_NODE, AT(beta_word), 0}, {"gamma_initializer", SETTING_NODE, AT(gamma_word), 0},  \
        {"beta_regularizer", SETTING_ELSEWHERE, 0, 0}, {"gamma_regularizer", SETTING_ELSEWHERE, 0, 0},                 \
        {"beta_constraint", SETTING_ELSEWHERE, 0, 0},                                                                  \
    {                                                                                                                  \
        "gamma_constraint", SETTING_ELSEWHERE, 0, 0                                                                    \
    }

/* ---- axes ---------------------------------------------------------------- */

static plim_status read_axis(struct normalization *options, const struct layer *layer, const struct yaml *node,
                             plim_error *error)
{
    const struct setting axis = {"axis", SETTING_WHOLE, 0, -MOST_AXES};
    char where[256];
    if (options->axes == MOST_AXES) {
        yaml_place(where, layer->model->job, node);
        return fail_at(error, PLIM_BAD_JOB, where, "axis: at most %d axes", MOST_AXES);
    }
    return setting_value(&options->axis[options->axes++], &axis, layer->model->job, node, error);
}

/* A number, or a list of them. */
static plim_status read_axes(struct normalization *options, const struct layer *layer, plim_error *error)
{
    const struct yaml *word = options->axis_word;
    options->axes = 0;
    if (word && word->kind == YAML_LIST && word->first) {
        for (const struct yaml *entry = word->first; entry; entry = entry->next)
            TRY(read_axis(options, layer, entry, error));
        return PLIM_OK;
    }
    if (word)
        return read_axis(options, layer, word, error);
    options->axis[options->axes++] = -1;
    return PLIM_OK;
}

/* How many axes from the end they are; 0 when they are others. */
static int64_t trailing_axes(const struct normalization *options, const struct layer *layer, struct graph *graph,
                             const struct tensor *x)
{
    int rank = x->shape.rank;
    bool taken[MOST_AXES] = {false}, inside = rank > 1;
    char shape[96];
    for (int64_t i = 0; i < options->axes && inside; i++) {
        int64_t axis = options->axis[i] + (options->axis[i] < 0 ? rank : 0);
        inside = axis >= 0 && axis < rank && !taken[axis];
        if (inside)
            taken[axis] = true;
    }
    shape_text(shape, sizeof shape, &x->shape, true);
    if (!inside) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: axis does not fit to an input of shape %s", layer->name, shape);
        return 0;
    }
    for (int64_t axis = rank - options->axes; axis < rank; axis++)
        if (axis == 0 || !taken[axis]) {
            graph_fail(graph, PLIM_UNSUPPORTED, "%s: only the last axes of %s, without the batch, are supported yet",
                       layer->name, shape);
            return 0;
        }
    return options->axes;
}

/* ---- what they share ------------------------------------------------------ */

static plim_status read_factors(struct layer *layer, plim_error *error)
{
    struct normalization *options = layer->options;
    TRY(option_positive(layer, "epsilon", options->epsilon, error));
    TRY(option_initializer(&options->gamma, layer, "gamma_initializer", options->gamma_word, error));
    return option_initializer(&options->beta, layer, "beta_initializer", options->beta_word, error);
}

static void set_defaults(struct normalization *options, enum normal kind, double epsilon, bool scale, bool center)
{
    options->kind = kind;
    options->epsilon = epsilon;
    options->scale = scale;
    options->center = center;
    options->gamma.kind = INITIAL_ONES;
}

static struct tensor *rows_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct normalization *options = layer->options;
    int64_t axes = x ? trailing_axes(options, layer, graph, x) : 0;
    struct layer_normalize_attributes attributes = {options->epsilon, axes, options->kind};
    struct tensor *inputs[3] = {x};
    if (axes == 0)
        return NULL;
    struct shape shape = shape_of((int)axes, x->shape.dim + x->shape.rank - axes);
    if (options->scale)
        inputs[1] = model_weight(layer, graph, options->kind == NORMAL_RMS ? "scale" : "gamma", shape, options->gamma);
    if (options->center)
        inputs[2] = model_weight(layer, graph, "beta", shape, options->beta);
    return graph_add(graph, &op_layer_normalize, inputs, 3, &attributes, sizeof attributes);
}

/* ---- LayerNormalization ---------------------------------------------------- */

static const struct setting layer_settings[] = {
    {"axis", SETTING_NODE, AT(axis_word), 0},
    {"epsilon", SETTING_NUMBER, AT(epsilon), 0},
    {"rms_scaling", SETTING_NODE, AT(rms_scaling), 0},
    SCALE_AND_CENTER,
    LAYER_WORDS,
};

static plim_status layer_normalization_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct normalization *options = layer->options;
    set_defaults(options, NORMAL_LAYER, 1e-3, true, true);
    TRY(layer_read(layer, layer_settings, LENGTH(layer_settings), yaml, error));
    TRY(read_axes(options, layer, error));
    TRY(option_default(layer->type->name, layer->model->job, "rms_scaling", "false", options->rms_scaling, error));
    return read_factors(layer, error);
}

const struct layer_type layer_layer_normalization = {
    .name = "LayerNormalization",
    .snake = "layer_normalization",
    .keeps_mask = true,
    .options_bytes = sizeof(struct normalization),
    .read = layer_normalization_read,
    .build = rows_build,
};

/* ---- RMSNormalization and UnitNormalization -------------------------------- */

static const struct setting rms_settings[] = {
    {"axis", SETTING_NODE, AT(axis_word), 0},
    {"epsilon", SETTING_NUMBER, AT(epsilon), 0},
    LAYER_WORDS,
};

static plim_status rms_normalization_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct normalization *options = layer->options;
    set_defaults(options, NORMAL_RMS, 1e-6, true, false);
    TRY(layer_read(layer, rms_settings, LENGTH(rms_settings), yaml, error));
    TRY(option_positive(layer, "epsilon", options->epsilon, error));
    return read_axes(options, layer, error);
}

const struct layer_type layer_rms_normalization = {
    .name = "RMSNormalization",
    .snake = "rms_normalization",
    .options_bytes = sizeof(struct normalization),
    .read = rms_normalization_read,
    .build = rows_build,
};

static const struct setting unit_settings[] = {
    {"axis", SETTING_NODE, AT(axis_word), 0},
    LAYER_WORDS,
};

static plim_status unit_normalization_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    set_defaults(layer->options, NORMAL_UNIT, 1e-12, false, false);
    TRY(layer_read(layer, unit_settings, LENGTH(unit_settings), yaml, error));
    return read_axes(layer->options, layer, error);
}

const struct layer_type layer_unit_normalization = {
    .name = "UnitNormalization",
    .snake = "unit_normalization",
    .keeps_mask = true,
    .options_bytes = sizeof(struct normalization),
    .read = unit_normalization_read,
    .build = rows_build,
};

/* ---- GroupNormalization ----------------------------------------------------- */

static const struct setting group_settings[] = {
    {"groups", SETTING_WHOLE, AT(groups), -1},
    {"axis", SETTING_WHOLE, AT(axis), -MOST_AXES},
    {"epsilon", SETTING_NUMBER, AT(epsilon), 0},
    SCALE_AND_CENTER,
    LAYER_WORDS,
};

static plim_status group_normalization_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct normalization *options = layer->options;
    char where[256];
    set_defaults(options, NORMAL_LAYER, 1e-3, true, true);
    options->groups = 32;
    options->axis[0] = -1;
    TRY(layer_read(layer, group_settings, LENGTH(group_settings), yaml, error));
    layer_place(where, layer);
    if (options->groups == 0)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: groups must be 1 or more, or -1 for one a channel",
                       layer->type->name);
    return read_factors(layer, error);
}

static struct tensor *group_normalization_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct normalization *options = layer->options;
    struct group_normalize_attributes attributes = {.epsilon = options->epsilon, .groups = options->groups};
    struct tensor *inputs[3] = {x};
    if (!x || !layer_last_axis(layer, graph, x, options->axis[0]))
        return NULL;
    struct shape channels = shape_of(1, &x->shape.dim[x->shape.rank - 1]);
    if (attributes.groups == -1)
        attributes.groups = channels.dim[0];
    if (options->scale)
        inputs[1] = model_weight(layer, graph, "gamma", channels, options->gamma);
    if (options->center)
        inputs[2] = model_weight(layer, graph, "beta", channels, options->beta);
    return graph_add(graph, &op_group_normalize, inputs, 3, &attributes, sizeof attributes);
}

const struct layer_type layer_group_normalization = {
    .name = "GroupNormalization",
    .snake = "group_normalization",
    .keeps_mask = true,
    .options_bytes = sizeof(struct normalization),
    .read = group_normalization_read,
    .build = group_normalization_build,
};
