/* layer_batch_normalization.c - BatchNormalization over the last axis. While
   fitting, with the figures of the batch, which move the averages; else, and always when it is
   not trainable, with the averages: as in Keras. */
#include "model/layer_options.h"
#include "ops/ops.h"

struct batch_normalization {
    struct layer_words words;
    int64_t axis;
    double momentum, epsilon;
    bool center, scale;
    struct initializer gamma, beta, mean, variance;
    /* Nodes of the job file: */
    const struct yaml *gamma_word, *beta_word, *mean_word, *variance_word;
    const struct yaml *renorm, *renorm_clipping, *renorm_momentum, *synchronized;
};

#define AT(field) offsetof(struct batch_normalization, field)
static const struct setting settings[] = {
    {"axis", SETTING_WHOLE, AT(axis), -MOST_AXES},
    {"momentum", SETTING_NUMBER, AT(momentum), 0},
    {"epsilon", SETTING_NUMBER, AT(epsilon), 0},
    {"center", SETTING_BOOL, AT(center), 0},
    {"scale", SETTING_BOOL, AT(scale), 0},
    {"beta_initializer", SETTING_NODE, AT(beta_word), 0},
    {"gamma_initializer", SETTING_NODE, AT(gamma_word), 0},
    {"moving_mean_initializer", SETTING_NODE, AT(mean_word), 0},
    {"moving_variance_initializer", SETTING_NODE, AT(variance_word), 0},
    {"beta_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"gamma_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"beta_constraint", SETTING_ELSEWHERE, 0, 0},
    {"gamma_constraint", SETTING_ELSEWHERE, 0, 0},
    {"renorm", SETTING_NODE, AT(renorm), 0},
    {"renorm_clipping", SETTING_NODE, AT(renorm_clipping), 0},
    {"renorm_momentum", SETTING_NODE, AT(renorm_momentum), 0},
    {"synchronized", SETTING_NODE, AT(synchronized), 0},
    LAYER_WORDS,
};

static plim_status read_unsupported(const struct layer *layer, plim_error *error)
{
    const struct batch_normalization *options = layer->options;
    const char *name = layer->type->name, *job = layer->model->job;
    TRY(option_default(name, job, "renorm", "false", options->renorm, error));
    TRY(option_default(name, job, "renorm_clipping", "null", options->renorm_clipping, error));
    TRY(option_default(name, job, "renorm_momentum", "0.99", options->renorm_momentum, error));
    return option_default(name, job, "synchronized", "false", options->synchronized, error);
}

static plim_status batch_normalization_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct batch_normalization *options = layer->options;
    options->axis = -1;
    options->momentum = 0.99;
    options->epsilon = 1e-3;
    options->center = options->scale = true;
    options->gamma.kind = options->variance.kind = INITIAL_ONES;
    TRY(layer_read(layer, settings, LENGTH(settings), yaml, error));
    TRY(option_initializer(&options->gamma, layer, "gamma_initializer", options->gamma_word, error));
    TRY(option_initializer(&options->beta, layer, "beta_initializer", options->beta_word, error));
    TRY(option_initializer(&options->mean, layer, "moving_mean_initializer", options->mean_word, error));
    TRY(option_initializer(&options->variance, layer, "moving_variance_initializer", options->variance_word, error));
    TRY(option_positive(layer, "epsilon", options->epsilon, error));
    return read_unsupported(layer, error);
}

/* Mean and variance of this batch; the moving ones follow. */
static void batch_figures(struct tensor *inputs[3], struct graph *graph, const struct batch_normalization *options)
{
    struct batch_statistics_attributes type = {TYPE_F32};
    struct batch_moving_attributes moving = {options->momentum};
    struct tensor *moments[2] = {unary(graph, &op_batch_moments, inputs[0]), NULL};
    moments[1] = graph_output(moments[0], 1);
    struct tensor *mean = graph_add(graph, &op_batch_statistics, moments, 2, &type, sizeof type);
    struct tensor *variance = graph_output(mean, 1);
    graph_add(graph, &op_batch_moving, (struct tensor *[]){inputs[1], inputs[2], mean, variance}, 4, &moving,
              sizeof moving);
    inputs[1] = mean;
    inputs[2] = variance;
}

static struct tensor *batch_normalization_build(struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct batch_normalization *options = layer->options;
    struct batch_normalize_attributes attributes = {.epsilon = options->epsilon};
    if (!x || !layer_last_axis(layer, graph, x, options->axis))
        return NULL;
    struct shape channels = shape_of(1, &x->shape.dim[x->shape.rank - 1]);
    struct tensor *inputs[5] = {x};
    if (options->scale)
        inputs[3] = model_weight(layer, graph, "gamma", channels, options->gamma);
    if (options->center)
        inputs[4] = model_weight(layer, graph, "beta", channels, options->beta);
    inputs[1] = model_fixed_weight(layer, graph, "moving_mean", channels, options->mean);
    inputs[2] = model_fixed_weight(layer, graph, "moving_variance", channels, options->variance);
    bool of_batch = layer->model->fitting && options->words.trainable;
    if (of_batch && layer_mask(layer, 0)) { /* NEEDSWORK: Keras leaves masked steps out of mean and variance */
        graph_fail(graph, PLIM_UNSUPPORTED, "%s: a masked input is not supported yet", layer->name);
        return NULL;
    }
    if (of_batch)
        batch_figures(inputs, graph, options);
    return graph_add(graph, &op_batch_normalize, inputs, 5, &attributes, sizeof attributes);
}

const struct layer_type layer_batch_normalization = {
    .name = "BatchNormalization",
    .snake = "batch_normalization",
    .keeps_mask = true,
    .options_bytes = sizeof(struct batch_normalization),
    .read = batch_normalization_read,
    .build = batch_normalization_build,
};
