/* layer_spectral.c - SpectralNormalization: a layer whose kernel is divided by its largest singular value before each
   training step.

   As in Keras the weight itself is replaced: gradients are those of the divided kernel, which the optimizer then moves;
   evaluation takes it as training left it. One step of power iteration (or power_iterations) goes on from vector_u,
   which the step before left. A layer that is used several times in a step is divided once. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

#include <string.h>

struct spectral {
    struct layer_keys keys;
    int64_t power_iterations;
    const struct yaml *layer_word;
    struct layer *inner;
};

#define TO(field) .offset = offsetof(struct spectral, field)
static const struct model_option spectral_options[] = {
    {"layer", option_node, TO(layer_word), .required = true},
    {"power_iterations", option_whole, TO(power_iterations), .least = 1},
};

#define MOST_ITERATIONS 100
#define VECTOR          "vector_u"

/* `SpectralNormalization: {layer: {Conv2D: {filters: 32, kernel_size: 3}}}` */
static plim_status spectral_check(struct layer *layer, plim_error *error)
{
    struct spectral *options = layer->options;
    TRY(layer_read_inner(&options->inner, layer, options->layer_word, error));
    if (options->power_iterations > MOST_ITERATIONS)
        return layer_fail(layer, error, PLIM_BAD_JOB, "power_iterations: at most %d, got %lld", MOST_ITERATIONS,
                          (long long)options->power_iterations);
    if (options->inner->type->merge || options->inner->type == &layer_input)
        return layer_fail(layer, error, PLIM_BAD_JOB, "%s is no layer of one input", options->inner->type->name);
    layer->any_type = options->inner->type->any_type;
    return PLIM_OK;
}

static void divide(const struct layer *layer, struct graph *graph, struct tensor *w, struct tensor *vector)
{
    const struct spectral *options = layer->options;
    const struct assign_attributes replaces = {0};
    struct tensor *u = vector, *sigma = NULL;
    for (int64_t i = 0; i < options->power_iterations && u; i++) {
        u = binary(graph, &op_spectral_vector, binary(graph, &op_spectral_sums, w, u), u);
        sigma = u ? graph_output(u, 1) : NULL;
    }
    graph_add(graph, &op_assign, (struct tensor *[]){vector, u}, 2, &replaces, sizeof replaces);
    binary(graph, &op_spectral_divide, w, sigma);
}

/* Between the making of a weight and its first reader. */
static void spectral_inner_weight(const struct layer *layer, struct graph *graph, struct tensor *w, const char *suffix)
{
    const struct initializer small = {.kind = INITIAL_TRUNCATED_NORMAL, .value = 0.02};
    if (strcmp(suffix, "kernel") != 0 && strcmp(suffix, "embeddings") != 0)
        return;
    struct shape row = shape_of(2, (int64_t[]){1, w->shape.dim[w->shape.rank - 1]});
    struct tensor *vector = model_fixed_weight(layer, graph, VECTOR, row, small);
    if (vector && graph->build->fitting)
        divide(layer, graph, w, vector);
}

static struct tensor *spectral_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct spectral *options = layer->options;
    x = x ? options->inner->type->build(options->inner, graph, x) : NULL;
    if (x && !layer_has_weight(layer, graph, VECTOR))
        return graph_fail(graph, PLIM_BAD_JOB, "%s: a %s has neither a kernel nor embeddings", layer->name,
                          options->inner->type->name);
    return x;
}

const struct layer_type layer_spectral_normalization = {
    NAMES("SpectralNormalization", "spectral_normalization"),
    .saved_before = 1, /* its layer's kernel, a second time */
    OPTIONS(struct spectral, spectral_options),
    .defaults = &(const struct spectral){.power_iterations = 1},
    .example = "SpectralNormalization: {layer: {Dense: 10}}",
    .check = spectral_check,
    .build = spectral_build,
    .inner_weight = spectral_inner_weight,
};
