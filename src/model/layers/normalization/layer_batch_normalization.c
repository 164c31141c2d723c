/* layer_batch_normalization.c - BatchNormalization over the last axis. While
   fitting, with the figures of the batch, which move the averages; else, and always when it is
   not trainable, with the averages: as in Keras. */
#include "model/layers/layer_options.h"
#include "ops/ops.h"

struct batch_normalization {
    struct layer_keys keys;
    int64_t axis;
    double momentum, epsilon;
    bool center, scale;
    struct initializer gamma, beta, mean, variance;
};

#define TO(field) .offset = offsetof(struct batch_normalization, field)
static const struct model_option batch_options[] = {
    {"axis", option_whole, TO(axis), .least = -MOST_AXES},
    {"momentum", option_number, TO(momentum)},
    {"epsilon", option_positive, TO(epsilon)},
    SCALE_AND_CENTER,
    {"moving_mean_initializer", option_initializer, TO(mean)},
    {"moving_variance_initializer", option_initializer, TO(variance)},
    {"renorm", option_only, .with = "false"},
    {"renorm_clipping", option_only, .with = "null"},
    {"renorm_momentum", option_only, .with = "0.99"},
    {"synchronized", option_only, .with = "false"},
};

/* The moving figures. */
static void follow(struct graph *graph, const struct batch_normalization *options, struct tensor *const inputs[5],
                   struct tensor *mean, struct tensor *variance)
{
    struct batch_moving_attributes moving = {options->momentum};
    graph_add(graph, &op_batch_moving, (struct tensor *[]){inputs[1], inputs[2], mean, variance}, 4, &moving,
              sizeof moving);
}

/* Mean and variance of this batch; the moving ones follow. */
static void batch_figures(struct tensor *inputs[5], struct graph *graph, const struct batch_normalization *options)
{
    struct batch_statistics_attributes type = {TYPE_F32};
    struct tensor *moments[2] = {unary(graph, &op_batch_moments, inputs[0]), NULL};
    moments[1] = graph_output(moments[0], 1);
    struct tensor *mean = graph_add(graph, &op_batch_statistics, moments, 2, &type, sizeof type);
    struct tensor *variance = graph_output(mean, 1);
    follow(graph, options, inputs, mean, variance);
    inputs[1] = mean;
    inputs[2] = variance;
}

/* ---- under a mask ---- */

#define KERAS_EPSILON 1e-7 /* what counts of steps get besides: of no step at all the mean is 0 */

/* Over what the mask leaves, divided by how many steps those are. */
static struct tensor *mean_of(struct graph *graph, struct tensor *x, struct tensor *mask, struct tensor *count)
{
    const struct sum_time_attributes sum = {0};
    const struct batch_sum_attributes all = {0};
    struct tensor *sums = graph_add(graph, &op_sum_time, (struct tensor *[]){x, mask}, 2, &sum, sizeof sum);
    return binary(graph, &op_divide, graph_add(graph, &op_batch_sum, &sums, 1, &all, sizeof all), count);
}

static struct tensor *count_steps(struct graph *graph, struct tensor *mask)
{
    const struct batch_sum_attributes all = {0};
    const struct rescale_attributes more = {.scale = 1, .offset = KERAS_EPSILON};
    struct tensor *count = unary(graph, &op_mask_count, mask);
    count = graph_add(graph, &op_batch_sum, &count, 1, &all, sizeof all);
    return graph_add(graph, &op_rescale, &count, 1, &more, sizeof more);
}

/* Keras's: masked steps are normalised with the others, and are no part of mean and variance. x is [N, T, c]. */
static struct tensor *under_mask(struct graph *graph, const struct batch_normalization *options,
                                 struct tensor *const inputs[5], struct tensor *mask)
{
    const struct rescale_attributes more = {.scale = 1, .offset = options->epsilon};
    struct tensor *x = policy_cast(graph, inputs[0], TYPE_F32), *count = count_steps(graph, mask);
    struct tensor *mean = mean_of(graph, x, mask, count), *off = binary(graph, &op_subtract, x, mean);
    struct tensor *variance = mean_of(graph, unary(graph, &op_square, off), mask, count);
    follow(graph, options, inputs, mean, variance);
    struct tensor *rate = unary(graph, &op_rsqrt, graph_add(graph, &op_rescale, &variance, 1, &more, sizeof more));
    if (inputs[3])
        rate = binary(graph, &op_multiply, rate, inputs[3]);
    struct tensor *y = binary(graph, &op_multiply, off, rate);
    return inputs[4] ? binary(graph, &op_add, y, inputs[4]) : y;
}

static bool mask_fits(const struct layer *layer, struct graph *graph, const struct tensor *x, const struct tensor *mask)
{
    char shapes[2][96], name[96];
    if (x->shape.rank == 3)
        return true;
    input_name(name, graph, 0);
    shape_text(shapes[0], sizeof shapes[0], &x->shape, true);
    shape_text(shapes[1], sizeof shapes[1], &mask->shape, true);
    graph_fail(graph, PLIM_BAD_JOB, "%s: a mask %s goes with (batch, steps, channels), got %s %s", layer->name,
               shapes[1], name, shapes[0]);
    return false;
}

static struct tensor *batch_normalization_build(const struct layer *layer, struct graph *graph, struct tensor *x)
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
    bool of_batch = graph->build->fitting && layer_trainable(layer);
    struct tensor *mask = layer_mask(graph, 0);
    if (mask && !mask_fits(layer, graph, x, mask))
        return NULL;
    if (of_batch && mask)
        return under_mask(graph, options, inputs, mask);
    if (of_batch)
        batch_figures(inputs, graph, options);
    return graph_add(graph, &op_batch_normalize, inputs, 5, &attributes, sizeof attributes);
}

const struct layer_type layer_batch_normalization = {
    NAMES("BatchNormalization", "batch_normalization"),
    .keeps_mask = true,
    OPTIONS(struct batch_normalization, batch_options),
    .defaults = &(const struct batch_normalization){.axis = -1,
                                                    .momentum = 0.99,
                                                    .epsilon = 1e-3,
                                                    .center = true,
                                                    .scale = true,
                                                    .gamma = {.kind = INITIAL_ONES},
                                                    .variance = {.kind = INITIAL_ONES}},
    .build = batch_normalization_build,
};
