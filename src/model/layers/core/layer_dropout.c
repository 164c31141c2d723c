/* layer_dropout.c - layers that act in training only: Dropout, SpatialDropout1D to 3D, GaussianNoise,
   GaussianDropout, AlphaDropout, and StochasticDepth, which Keras's ConvNeXt brings along. What they draw is a function of the job's seed, the layer's name and the step. */
#include <math.h>
#include <string.h>

#include "base/numbers/random.h"
#include "model/layers/shape_options.h"
#include "ops/ops.h"

struct dropout {
    struct layer_words words;
    double rate; /* of GaussianNoise: stddev */
    int64_t seed;
    struct shape noise; /* rank 0: none given; -1: as the input has it */
    const struct yaml *rate_word, *seed_word, *noise_word, *data_format;
};

#define AT(field) offsetof(struct dropout, field)
#define RATE_AND_SEED                                                                                                  \
    {"rate", SETTING_NODE, AT(rate_word), 0},                                                                          \
    {                                                                                                                  \
        "seed", SETTING_NODE, AT(seed_word), 0                                                                         \
    }

/* The three of a table: what may be said besides rate and seed. */
static const struct setting dropout_settings[] = {
    RATE_AND_SEED,
    {"noise_shape", SETTING_NODE, AT(noise_word), 0},
    LAYER_WORDS,
};
static const struct setting spatial_settings[] = {
    RATE_AND_SEED,
    {"data_format", SETTING_NODE, AT(data_format), 0},
    LAYER_WORDS,
};
static const struct setting noise_settings[] = {
    {"stddev", SETTING_NODE, AT(rate_word), 0},
    {"seed", SETTING_NODE, AT(seed_word), 0},
    LAYER_WORDS,
};
static const struct setting depth_settings[] = {
    {"drop_path_rate", SETTING_NODE, AT(rate_word), 0},
    LAYER_WORDS,
};
static const struct setting gaussian_settings[] = {
    RATE_AND_SEED,
    LAYER_WORDS,
};

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
    uint64_t hash = 14695981039346656037u; /* FNV-1a of the name */
    for (const char *at = layer->name; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    for (; use; use >>= 8)
        hash = (hash ^ (use & 0xff)) * 1099511628211u;
    if (build->inner_now) /* inside another: each use of one of the outer layer's */
        hash = (hash ^ build->inner_now->number) * 1099511628211u;
    return random_key(build->training ? build->training->seed : 0, hash, own); /* nothing is drawn without training */
}

/* ---- reading ---- */

static plim_status read_noise_shape(struct dropout *dropout, const struct layer *layer, plim_error *error)
{
    const struct setting extent = {"noise_shape", SETTING_WHOLE, 0, 1};
    const struct yaml *node = dropout->noise_word;
    char where[256];
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        return PLIM_OK;
    if (node->kind != YAML_LIST || node->count < 1 || node->count > MOST_AXES) {
        yaml_place(where, layer->model->job, node);
        return fail_at(error, PLIM_BAD_JOB, where, "noise_shape: expected a list of at most %d whole numbers or null",
                       MOST_AXES);
    }
    for (const struct yaml *entry = node->first; entry; entry = entry->next) {
        int64_t *dim = &dropout->noise.dim[dropout->noise.rank++];
        *dim = -1;
        if (entry->kind != YAML_SCALAR || (!entry->is_null && strcmp(entry->text, "None") != 0))
            TRY(setting_value(dim, &extent, layer->model->job, entry, error));
    }
    return PLIM_OK;
}

static plim_status read_words(struct layer *layer, const struct setting *settings, int count, double most,
                              const struct yaml *yaml, plim_error *error)
{
    struct dropout *dropout = layer->options;
    const char *word = settings[0].word, *job = layer->model->job;
    const struct setting number = {word, SETTING_NUMBER, 0, 0}, seed = {"seed", SETTING_WHOLE, 0, 0};
    char where[256];
    TRY(layer_read(layer, settings, count, yaml, error));
    if (!dropout->rate_word)
        return layer_missing(layer, word, "Dropout: 0.5", error);
    TRY(setting_value(&dropout->rate, &number, job, dropout->rate_word, error));
    if (!(dropout->rate >= 0 && dropout->rate <= most)) {
        yaml_place(where, job, dropout->rate_word);
        if (isfinite(most))
            return fail_at(error, PLIM_BAD_JOB, where, "%s: must be from 0 to %s, got %g", word,
                           most < 1 ? "below 1" : "1", dropout->rate);
        return fail_at(error, PLIM_BAD_JOB, where, "%s: must be at least 0, got %g", word, dropout->rate);
    }
    if (dropout->seed_word && !dropout->seed_word->is_null)
        TRY(setting_value(&dropout->seed, &seed, job, dropout->seed_word, error));
    TRY(option_default(layer->type->name, job, "data_format", "channels_last", dropout->data_format, error));
    return read_noise_shape(dropout, layer, error);
}

#define BELOW_ONE 0.99999994 /* the last float before 1 */

static plim_status dropout_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_words(layer, dropout_settings, LENGTH(dropout_settings), 1, yaml, error);
}

static plim_status alpha_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_words(layer, dropout_settings, LENGTH(dropout_settings), BELOW_ONE, yaml, error);
}

static plim_status spatial_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_words(layer, spatial_settings, LENGTH(spatial_settings), 1, yaml, error);
}

static plim_status noise_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_words(layer, noise_settings, LENGTH(noise_settings), (double)INFINITY, yaml, error);
}

static plim_status depth_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_words(layer, depth_settings, LENGTH(depth_settings), 1, yaml, error);
}

static plim_status gaussian_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    return read_words(layer, gaussian_settings, LENGTH(gaussian_settings), BELOW_ONE, yaml, error);
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
static struct tensor *spatial_build(const struct layer *layer, struct graph *graph, struct tensor *x, int rank)
{
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

static struct tensor *spatial1d_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    return spatial_build(layer, graph, x, 3);
}

static struct tensor *spatial2d_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    return spatial_build(layer, graph, x, 4);
}

static struct tensor *spatial3d_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    return spatial_build(layer, graph, x, 5);
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

#define DROPOUT_LAYER(variable, keras, small, reader, builder)                                                         \
    const struct layer_type layer_##variable = {                                                                       \
        .name = keras,                                                                                                 \
        .snake = small,                                                                                                \
        .keeps_mask = true,                                                                                            \
        .options_bytes = sizeof(struct dropout),                                                                       \
        .read = reader,                                                                                                \
        .build = builder,                                                                                              \
    }

DROPOUT_LAYER(stochastic_depth, "StochasticDepth", "stochastic_depth", depth_read, depth_build);
DROPOUT_LAYER(dropout, "Dropout", "dropout", dropout_read, dropout_build);
DROPOUT_LAYER(spatial_dropout1d, "SpatialDropout1D", "spatial_dropout1d", spatial_read, spatial1d_build);
DROPOUT_LAYER(spatial_dropout2d, "SpatialDropout2D", "spatial_dropout2d", spatial_read, spatial2d_build);
DROPOUT_LAYER(spatial_dropout3d, "SpatialDropout3D", "spatial_dropout3d", spatial_read, spatial3d_build);
DROPOUT_LAYER(gaussian_noise, "GaussianNoise", "gaussian_noise", noise_read, noise_build);
DROPOUT_LAYER(gaussian_dropout, "GaussianDropout", "gaussian_dropout", gaussian_read, gaussian_build);
DROPOUT_LAYER(alpha_dropout, "AlphaDropout", "alpha_dropout", alpha_read, alpha_build);
