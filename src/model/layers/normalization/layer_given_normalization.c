/* layer_given_normalization.c - Normalization, with the mean and variance that the
   job file gives: numbers, not weights, as in Keras. One that was adapted to data has them as weights, which a file of
   weights brings. */
#include <math.h>

#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

struct given_normalization {
    struct layer_keys keys;
    bool invert, adapted;
    int64_t count, axis;
    bool any_axis;           /* axis: null */
    float *mean, *deviation; /* `count` of each, in the model's arena */
    const struct yaml *mean_word, *variance_word;
};

/* A number or a list of numbers. */
static plim_status read_numbers(float **out, int64_t *count, struct layer *layer, const char *word,
                                const struct yaml *node, plim_error *error)
{
    const struct setting number = {word, SETTING_NUMBER, 0, 0};
    bool list = node->kind == YAML_LIST && node->first;
    double value = 0;
    *count = list ? node->count : 1;
    *out = arena_array(&layer->model->arena, (size_t)*count, sizeof **out);
    if (!*out)
        return arena_refused(&layer->model->arena, error);
    float *to = *out;
    for (const struct yaml *entry = list ? node->first : node; entry; entry = list ? entry->next : NULL) {
        TRY(setting_value(&value, &number, layer->model->job, entry, error));
        *to++ = (float)value;
    }
    return PLIM_OK;
}

/* deviation = max(sqrt(variance), 1e-7), in f32 as Keras takes it. */
static plim_status read_figures(struct layer *layer, plim_error *error)
{
    struct given_normalization *options = layer->options;
    int64_t variances = 0;
    TRY(read_numbers(&options->mean, &options->count, layer, "mean", options->mean_word, error));
    TRY(read_numbers(&options->deviation, &variances, layer, "variance", options->variance_word, error));
    if (variances != options->count)
        return layer_fail(layer, error, PLIM_BAD_JOB, "%lld means and %lld variances", (long long)options->count,
                          (long long)variances);
    for (int64_t i = 0; i < variances; i++) {
        if (!(options->deviation[i] >= 0))
            return layer_fail(layer, error, PLIM_BAD_JOB, "a variance of %g is not possible",
                              (double)options->deviation[i]);
        options->deviation[i] = fmaxf(sqrtf(options->deviation[i]), 1e-7f);
    }
    return PLIM_OK;
}

/* A number, a list of one, or null: any axis. */
static OPTION_READER(read_axis)
{
    struct given_normalization *options = out;
    options->any_axis = yaml_absent(node);
    if (node->kind == YAML_LIST && node->count == 1)
        node = node->first;
    return options->any_axis ? PLIM_OK : option_whole(&options->axis, option, at, node, error);
}

#define TO(field) .offset = offsetof(struct given_normalization, field)
static const struct model_option given_options[] = {
    {"axis", read_axis, TO(keys), .least = -MOST_AXES},
    {"mean", option_node, TO(mean_word)},
    {"variance", option_node, TO(variance_word)},
    {"invert", option_flag, TO(invert)},
    {"adapted", option_flag, TO(adapted)},
};

static plim_status given_normalization_check(struct layer *layer, plim_error *error)
{
    const struct given_normalization *options = layer->options;
    if (options->adapted && (options->mean_word || options->variance_word || options->any_axis))
        return layer_fail(layer, error, PLIM_UNSUPPORTED, "adapted: it has an axis, and neither mean nor variance");
    if (options->adapted)
        return PLIM_OK;
    if (!options->mean_word && !options->variance_word)
        return hint(error, layer_fail(layer, error, PLIM_UNSUPPORTED, "adapting to data is not supported yet"),
                    "give mean and variance, or adapted: true where a file of weights has them");
    if (!options->mean_word || !options->variance_word)
        return layer_missing(layer, options->mean_word ? "variance" : "mean", error);
    return read_figures(layer, error);
}

static const float *keep(struct graph *graph, const float *values, int64_t count)
{
    float *copy = arena_array(&graph->arena, (size_t)count, sizeof *copy);
    if (!copy)
        graph_refused(graph, (size_t)count * sizeof *copy);
    for (int64_t i = 0; copy && i < count; i++)
        copy[i] = values[i];
    return copy;
}

/* By weights; as Keras has them, until a file says others: 0 and 1. */
static struct tensor *adapted_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct given_normalization *options = layer->options;
    if (!layer_last_axis(layer, graph, x, options->axis))
        return NULL;
    struct shape shape = shape_of(1, (int64_t[]){x->shape.dim[x->shape.rank - 1]});
    struct tensor *mean = model_fixed_weight(layer, graph, "mean", shape, (struct initializer){.kind = INITIAL_ZEROS});
    struct tensor *variance =
        model_fixed_weight(layer, graph, "variance", shape, (struct initializer){.kind = INITIAL_ONES});
    if (!mean || !variance)
        return NULL;
    struct tensor *deviation =
        binary(graph, &op_maximum, unary(graph, &op_sqrt, variance), op_number(graph, TYPE_F32, 1e-7));
    if (options->invert)
        return binary(graph, &op_add, binary(graph, &op_multiply, x, deviation), mean);
    return binary(graph, &op_divide, binary(graph, &op_subtract, x, mean), deviation);
}

/* One number for all is the same on any axis. */
static struct tensor *given_normalization_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct given_normalization *options = layer->options;
    if (x && options->adapted)
        return adapted_build(layer, graph, x);
    if (!x || (options->count > 1 && !layer_last_axis(layer, graph, x, options->axis)))
        return NULL;
    if (options->count > 1 && (options->any_axis || options->count != x->shape.dim[x->shape.rank - 1]))
        return layer_misfit(layer, graph, x, "%lld means for an input of shape", (long long)options->count);
    struct standardize_attributes attributes = {keep(graph, options->mean, options->count),
                                                keep(graph, options->deviation, options->count), options->count,
                                                options->invert};
    if (!attributes.mean || !attributes.deviation)
        return NULL;
    return graph_add(graph, &op_standardize, &x, 1, &attributes, sizeof attributes);
}

const struct layer_type layer_given_normalization = {
    NAMES("Normalization", "normalization"),
    .keeps_mask = true,
    OPTIONS(struct given_normalization, given_options),
    .defaults = &(const struct given_normalization){.axis = -1},
    .example = "Normalization: {mean: 0, variance: 1}",
    .check = given_normalization_check,
    .build = given_normalization_build,
};
