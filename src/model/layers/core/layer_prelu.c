/* layer_prelu.c - PReLU: alpha * x below 0, alpha learned; one for each element of a sample, or shared along axes. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct prelu {
    struct layer_keys keys;
    struct initializer alpha;
    int64_t shared[MOST_AXES];
    int shared_count;
};

/* A whole number or a list of them, from 1: the batch is none. */
static OPTION_READER(read_shared)
{
    struct prelu *prelu = out;
    bool list = node->kind == YAML_LIST;
    for (const struct yaml *entry = list ? node->first : node; entry; entry = list ? entry->next : NULL) {
        if (prelu->shared_count == MOST_AXES)
            return yaml_fail(error, PLIM_BAD_JOB, at->job, node, "shared_axes: more than %d axes", MOST_AXES);
        TRY(option_whole(&prelu->shared[prelu->shared_count++], option, at, entry, error));
    }
    return PLIM_OK;
}

#define TO(field) .offset = offsetof(struct prelu, field)
static const struct model_option prelu_options[] = {
    {"alpha_initializer", option_initializer, TO(alpha)},
    {.word = "alpha_regularizer"},
    {.word = "alpha_constraint"},
    {"shared_axes", read_shared, TO(keys), .least = 1, .nullable = true},
};

static struct tensor *prelu_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct prelu *prelu = layer->options;
    struct initializer initializer = prelu->alpha;
    struct shape shape = {.rank = 0};
    if (!x)
        return NULL;
    for (int k = 1; k < x->shape.rank; k++)
        shape.dim[shape.rank++] = x->shape.dim[k];
    for (int i = 0; i < prelu->shared_count; i++) {
        if (prelu->shared[i] > shape.rank)
            return layer_misfit(layer, graph, x, "shared_axes: there is no axis %lld in", (long long)prelu->shared[i]);
        shape.dim[prelu->shared[i] - 1] = 1;
    }
    if (shape.rank == 0)
        return layer_misfit(layer, graph, x, "wants an axis beside the batch, got");
    initializer.fan_in = initializer.fan_out = shape.dim[shape.rank - 1];
    return binary(graph, &op_prelu, x, model_compute_weight(layer, graph, "alpha", shape, initializer));
}

const struct layer_type layer_prelu = {
    NAMES("PReLU", "p_re_lu"),
    .keeps_mask = true,
    OPTIONS(struct prelu, prelu_options),
    .build = prelu_build,
};
