/* layer_dropout.c - layers that act in training only: Dropout, SpatialDropout1D to 3D, GaussianNoise,
   GaussianDropout, AlphaDropout, and StochasticDepth, which Keras's ConvNeXt brings along. What they draw is a function
   of the job's seed, the layer's name and the step. */
#include <math.h>
#include <string.h>

#include "base/numbers/hash.h"
#include "base/numbers/random.h"
#include "model/layers/shape_options.h"
#include "ops/ops.h"

struct dropout {
    struct layer_keys keys;
    double rate; /* of GaussianNoise: stddev */
    int64_t seed;
    struct shape noise; /* rank 0: none given; -1: as the input has it */
};

/* What a rate may be, by layer_type.form. */
enum { UP_TO_ONE, BELOW_ONE, ANY_DEVIATION };

static OPTION_READER(read_rate)
{
    static const double most[] = {1, 0.99999994 /* the last float before 1 */, INFINITY};
    int form = at->layer->type->form;
    double rate;
    TRY(option_number(&rate, option, at, node, error));
    if (!(rate >= 0 && rate <= most[form]) && form == ANY_DEVIATION)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "%s: must be at least 0, got %g", option->word, rate);
    if (!(rate >= 0 && rate <= most[form]))
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "%s: must be from 0 to %s, got %g", option->word,
                         form == BELOW_ONE ? "below 1" : "1", rate);
    *(double *)out = rate;
    return PLIM_OK;
}

static OPTION_READER(read_noise_shape)
{
    if (node->kind != YAML_LIST || node->count < 1 || node->count > MOST_AXES)
        return yaml_fail(error, PLIM_BAD_JOB, at->job, node,
                         "noise_shape: expected a list of at most %d whole numbers or null", MOST_AXES);
    return option_open_shape(out, option, at, node, error);
}

#define TO(field) .offset = offsetof(struct dropout, field)
#define RATE_AND_SEED                                                                                                  \
    {"rate", read_rate, TO(rate), .required = true},                                                                   \
    {                                                                                                                  \
        "seed", option_whole, TO(seed), .nullable = true                                                               \
    }

static const struct model_option dropout_options[] = {
    RATE_AND_SEED,
    {"noise_shape", read_noise_shape, TO(noise), .least = 1, .nullable = true},
};
static const struct model_option spatial_options[] = {RATE_AND_SEED, DATA_FORMAT};
static const struct model_option noise_options[] = {
    {"stddev", read_rate, TO(rate), .required = true},
    {"seed", option_whole, TO(seed), .nullable = true},
};
static const struct model_option depth_options[] = {{"drop_path_rate", read_rate, TO(rate), .required = true}};
static const struct model_option gaussian_options[] = {RATE_AND_SEED};

/* Which use of the layer is built: 0 for the first, so that a layer with one use draws what its name says. */
static uint64_t use_number(const struct layer *layer, const struct build *build)
{
    while (layer->outer)
        layer = layer->outer;
    return build->now ? (uint64_t)(build->now - build->model->use - layer->first_use) : 0;
}

uint64_t layer_seed(const struct layer *layer, const struct graph *graph, uint64_t own)
{
    const struct build *build = graph->build;
    uint64_t use = use_number(layer, build);
    uint64_t hash = fnv1a_text(layer->name);
    for (; use; use >>= 8)
        hash = fnv1a_step(hash, use & 0xff);
    if (build->inner_now) /* inside another: each use of one of the outer layer's */
        hash = fnv1a_step(hash, build->inner_now->number);
    return random_key(build->training ? build->training->seed : 0, hash, own); /* nothing is drawn without training */
}

/* ---- building ---- */

static bool is_on(const struct layer *layer, const struct graph *graph)
{
    const struct dropout *dropout = layer->options;
    return graph->build->fitting && dropout->rate > 0;
}

static struct tensor *with_iteration(struct graph *graph, const struct op *op, struct tensor *x, const void *attributes,
                                     size_t bytes)
{
    struct tensor *inputs[2] = {x, model_iteration(graph)};
    return graph_add(graph, op, inputs, 2, attributes, bytes);
}

/* Axes of which noise_shape says 1, where the input has more. */
static bool find_shared(int64_t *out, const struct layer *layer, struct graph *graph, const struct tensor *x)
{
    const struct dropout *dropout = layer->options;
    const struct shape *noise = &dropout->noise;
    char texts[2][96];
    bool fits = noise->rank == 0 || noise->rank == x->shape.rank;
    *out = 0;
    for (int axis = 0; fits && axis < noise->rank; axis++) {
        int64_t extent = noise->dim[axis];
        if (extent == 1 && (axis == 0 || x->shape.dim[axis] != 1))
            *out |= (int64_t)1 << axis;
        else
            fits = extent < 0 || extent == x->shape.dim[axis];
    }
    if (fits)
        return true;
    shape_text(texts[0], sizeof texts[0], noise, false);
    shape_text(texts[1], sizeof texts[1], &x->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: a noise_shape of %s does not fit %s (-1: null)", layer->name, texts[0],
               texts[1]);
    return false;
}

static struct tensor *drop(const struct layer *layer, struct graph *graph, struct tensor *x, int64_t shared)
{
    const struct dropout *dropout = layer->options;
    struct dropout_attributes attributes = {.rate = dropout->rate,
                                            .scale = dropout->rate < 1 ? 1 / (1 - dropout->rate) : 0,
                                            .seed = layer_seed(layer, graph, dropout->seed),
                                            .shared = shared};
    return with_iteration(graph, &op_dropout, x, &attributes, sizeof attributes);
}

static struct tensor *dropout_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    int64_t shared;
    if (!x || !find_shared(&shared, layer, graph, x))
        return NULL;
    return is_on(layer, graph) ? drop(layer, graph, x, shared) : x;
}

/* Whole channels: all axes between the batch and the last one share. */
static struct tensor *spatial_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    int rank = layer->type->axes + 2;
    int64_t shared = ((int64_t)1 << (rank - 1)) - 2;
    if (!layer_needs_rank(layer, graph, x, rank))
        return NULL;
    return is_on(layer, graph) ? drop(layer, graph, x, shared) : x;
}

/* Whole samples. */
static struct tensor *depth_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    int64_t shared = x ? ((int64_t)1 << x->shape.rank) - 2 : 0;
    return x && is_on(layer, graph) ? drop(layer, graph, x, shared) : x;
}

/* What SELU makes of minus infinity takes the place of what is dropped; scale and offset keep mean and variance. */
#define ALPHA_PRIME (-1.7580993408473766)

static struct tensor *alpha_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct dropout *dropout = layer->options;
    int64_t shared;
    double rate = dropout->rate, scale = 1 / sqrt((1 - rate) * (1 + rate * ALPHA_PRIME * ALPHA_PRIME));
    if (!x || !find_shared(&shared, layer, graph, x))
        return NULL;
    if (!is_on(layer, graph))
        return x;
    struct dropout_attributes attributes = {
        .rate = rate, .scale = scale, .seed = layer_seed(layer, graph, dropout->seed), .shared = shared};
    attributes.offset = -scale * ALPHA_PRIME * rate;
    attributes.dropped = scale * ALPHA_PRIME + attributes.offset;
    return with_iteration(graph, &op_dropout, x, &attributes, sizeof attributes);
}

static struct tensor *noise_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct dropout *dropout = layer->options;
    struct noise_attributes attributes = {.stddev = dropout->rate, .seed = layer_seed(layer, graph, dropout->seed)};
    return is_on(layer, graph) ? with_iteration(graph, &op_gaussian_noise, x, &attributes, sizeof attributes) : x;
}

static struct tensor *gaussian_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct dropout *dropout = layer->options;
    double rate = dropout->rate;
    struct noise_attributes attributes = {.stddev = sqrt(rate / (1 - rate)),
                                          .seed = layer_seed(layer, graph, dropout->seed)};
    return is_on(layer, graph) ? with_iteration(graph, &op_gaussian_dropout, x, &attributes, sizeof attributes) : x;
}

#define DROPOUT_LAYER(variable, keras, table, bound, builder, space)                                                   \
    const struct layer_type layer_##variable = {                                                                       \
        .name = keras,                                                                                                 \
        .snake = #variable,                                                                                            \
        .keeps_mask = true,                                                                                            \
        OPTIONS(struct dropout, table),                                                                                \
        .example = "Dropout: 0.5",                                                                                     \
        .form = bound,                                                                                                 \
        .axes = space,                                                                                                 \
        .build = builder,                                                                                              \
    }

DROPOUT_LAYER(stochastic_depth, "StochasticDepth", depth_options, UP_TO_ONE, depth_build, 0);
DROPOUT_LAYER(dropout, "Dropout", dropout_options, UP_TO_ONE, dropout_build, 0);
DROPOUT_LAYER(spatial_dropout1d, "SpatialDropout1D", spatial_options, UP_TO_ONE, spatial_build, 1);
DROPOUT_LAYER(spatial_dropout2d, "SpatialDropout2D", spatial_options, UP_TO_ONE, spatial_build, 2);
DROPOUT_LAYER(spatial_dropout3d, "SpatialDropout3D", spatial_options, UP_TO_ONE, spatial_build, 3);
DROPOUT_LAYER(gaussian_noise, "GaussianNoise", noise_options, ANY_DEVIATION, noise_build, 0);
DROPOUT_LAYER(gaussian_dropout, "GaussianDropout", gaussian_options, BELOW_ONE, gaussian_build, 0);
DROPOUT_LAYER(alpha_dropout, "AlphaDropout", dropout_options, BELOW_ONE, alpha_build, 0);
