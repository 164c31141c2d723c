/* layer_normalization.c - layers that normalise each sample alone:
   LayerNormalization, RMSNormalization, UnitNormalization, GroupNormalization. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct normalization {
    struct layer_keys keys;
    int64_t axis[MOST_AXES], axes; /* as given */
    int64_t groups;
    double epsilon;
    bool center, scale;
    struct initializer gamma, beta;
};

/* A number, or a list of them. */
static OPTION_READER(read_axes)
{
    struct normalization *options = out;
    bool list = node->kind == YAML_LIST && node->first;
    options->axes = 0;
    for (const struct yaml *entry = list ? node->first : node; entry; entry = list ? entry->next : NULL) {
        if (options->axes == MOST_AXES)
            return yaml_fail(error, PLIM_BAD_JOB, at->job, entry, "axis: at most %d axes", MOST_AXES);
        TRY(option_whole(&options->axis[options->axes++], option, at, entry, error));
    }
    return PLIM_OK;
}

#define TO(field) .offset = offsetof(struct normalization, field)
#define AXES                                                                                                           \
    {                                                                                                                  \
        "axis", read_axes, TO(keys), .least = -MOST_AXES                                                               \
    }

/* How many axes from the end they are; 0 when they are others. */
static int64_t trailing_axes(const struct normalization *options, const struct layer *layer, struct graph *graph,
                             const struct tensor *x)
{
    int rank = x->shape.rank;
    bool taken[MOST_AXES] = {false}, inside = rank > 1;
    for (int64_t i = 0; i < options->axes && inside; i++) {
        int64_t axis = options->axis[i] + (options->axis[i] < 0 ? rank : 0);
        inside = axis >= 0 && axis < rank && !taken[axis];
        if (inside)
            taken[axis] = true;
    }
    if (!inside)
        layer_misfit(layer, graph, x, "axis does not fit to an input of shape");
    for (int64_t axis = rank - options->axes; inside && axis < rank; axis++)
        if (axis == 0 || !taken[axis]) {
            char shape[96];
            shape_text(shape, sizeof shape, &x->shape, true);
            graph_fail(graph, PLIM_UNSUPPORTED, "%s: only the last axes of %s, without the batch, are supported yet",
                       layer->name, shape);
            return 0;
        }
    return inside ? options->axes : 0;
}

static struct tensor *rows_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct normalization *options = layer->options;
    int64_t axes = x ? trailing_axes(options, layer, graph, x) : 0;
    struct layer_normalize_attributes attributes = {options->epsilon, axes, layer->type->form};
    struct tensor *inputs[3] = {x};
    if (axes == 0)
        return NULL;
    struct shape shape = shape_of((int)axes, x->shape.dim + x->shape.rank - axes);
    if (options->scale)
        inputs[1] =
            model_weight(layer, graph, layer->type->form == NORMAL_RMS ? "scale" : "gamma", shape, options->gamma);
    if (options->center)
        inputs[2] = model_weight(layer, graph, "beta", shape, options->beta);
    return graph_add(graph, &op_layer_normalize, inputs, 3, &attributes, sizeof attributes);
}

static const struct model_option layer_options[] = {
    AXES,
    {"epsilon", option_positive, TO(epsilon)},
    {"rms_scaling", option_only, .with = "false"},
    SCALE_AND_CENTER,
};

const struct layer_type layer_layer_normalization = {
    NAMES("LayerNormalization", "layer_normalization"),
    .keeps_mask = true,
    OPTIONS(struct normalization, layer_options),
    .defaults =
        &(const struct normalization){
            .axis = {-1}, .axes = 1, .epsilon = 1e-3, .scale = true, .center = true, .gamma = {.kind = INITIAL_ONES}},
    .form = NORMAL_LAYER,
    .build = rows_build,
};

static const struct model_option rms_options[] = {AXES, {"epsilon", option_positive, TO(epsilon)}};

const struct layer_type layer_rms_normalization = {
    NAMES("RMSNormalization", "rms_normalization"),
    OPTIONS(struct normalization, rms_options),
    .defaults =
        &(const struct normalization){
            .axis = {-1}, .axes = 1, .epsilon = 1e-6, .scale = true, .gamma = {.kind = INITIAL_ONES}},
    .form = NORMAL_RMS,
    .build = rows_build,
};

static const struct model_option unit_options[] = {AXES};

const struct layer_type layer_unit_normalization = {
    NAMES("UnitNormalization", "unit_normalization"),
    .keeps_mask = true,
    OPTIONS(struct normalization, unit_options),
    .defaults = &(const struct normalization){.axis = {-1}, .axes = 1, .epsilon = 1e-12},
    .form = NORMAL_UNIT,
    .build = rows_build,
};

/* ---- GroupNormalization ----------------------------------------------------- */

/* -1: one a channel. */
static OPTION_READER(read_groups)
{
    const int64_t *groups = out;
    TRY(option_whole(out, option, at, node, error));
    return *groups ? PLIM_OK
                   : layer_fail(at->layer, error, PLIM_BAD_JOB, "groups must be 1 or more, or -1 for one a channel");
}

static const struct model_option group_options[] = {
    {"groups", read_groups, TO(groups), .least = -1},
    {"axis", option_whole, TO(axis), .least = -MOST_AXES},
    {"epsilon", option_positive, TO(epsilon)},
    SCALE_AND_CENTER,
};

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
    NAMES("GroupNormalization", "group_normalization"),
    .keeps_mask = true,
    OPTIONS(struct normalization, group_options),
    .defaults = &(const struct normalization){.axis = {-1},
                                              .groups = 32,
                                              .epsilon = 1e-3,
                                              .scale = true,
                                              .center = true,
                                              .gamma = {.kind = INITIAL_ONES}},
    .build = group_normalization_build,
};
