/* batch_normalize.c - batch normalisation: moments of a batch, what is made of
   them, and applying them; forward and backward. */
#include <math.h>

#include "ops/helpers.h"

static plim_status need_positions(const struct node *node, int at, plim_error *error)
{
    TRY(need_real(node, at, error));
    TRY(need_batched(node, at, error));
    if (node->input[at]->shape.rank < 2 || last_dim(node->input[at]) < 1)
        return misfit(node, error, "an input of a batch axis alone has no channels");
    return PLIM_OK;
}

static struct shape channels_of(const struct tensor *x)
{
    return shape_1(last_dim(x));
}

/* ---- batch_moments: x -> mean of x, mean of x * x ---------------------- */

static plim_status batch_moments_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_positions(node, 0, error));
    output_of(graph, node, 0, TYPE_F64, channels_of(node->input[0]), false);
    return output_of(graph, node, 1, TYPE_F64, channels_of(node->input[0]), false);
}

static void rows_cut(struct cut *cut, const struct node *node)
{
    cut_rows(cut, node, node->input[0], 2 * (double)shape_count(&node->input[0]->shape));
}

static void batch_moments_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    int64_t width = last_dim(x), count = call_rows(call, x) * shape_row(&x->shape);
    double values = (double)call->count * (double)(shape_row(&x->shape) / width);
    for (int64_t channel = 0; channel < width; channel++) {
        double sum = 0, squares = 0;
        for (int64_t i = channel; i < count; i += width) {
            sum += get(call, 0, i);
            squares += get(call, 0, i) * get(call, 0, i);
        }
        share(call, 0, channel, sum / values);
        share(call, 1, channel, squares / values);
    }
}

const struct op op_batch_moments = {
    OP_HEAD(batch_moments, 1, 2, batch_moments_infer, rows_cut),
    .no_gradient = "batch_normalize has the gradient of the whole",
};

/* ---- batch_statistics: moments -> mean, variance ----------------------- */

static plim_status batch_statistics_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct batch_statistics_attributes *attributes = node->attributes;
    TRY(need_type(node, 0, TYPE_F64, error));
    TRY(need_alike(node, 0, 1, error));
    TRY(need_rank(node, 0, 1, error));
    if (node->input[0]->batched || attributes->type < 0 || attributes->type >= TYPE_COUNT ||
        !is_real((enum type)attributes->type))
        return misfit(node, error, "moments of a batch become float32 or float64");
    for (int k = 0; k < 2; k++)
        output_of(graph, node, k, (enum type)attributes->type, node->input[0]->shape, false);
    return PLIM_OK;
}

/* Rounding may leave a variance below 0. */
static void batch_statistics_reference(const struct call *call)
{
    int64_t count = call_rows(call, call->node->output[0]);
    for (int64_t i = 0; i < count; i++) {
        double mean = get(call, 0, i), variance = get(call, 1, i) - mean * mean;
        set(call, 0, i, mean);
        set(call, 1, i, variance < 0 ? 0 : variance);
    }
}

const struct op op_batch_statistics = {
    OP_HEAD(batch_statistics, 2, 2, batch_statistics_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct batch_statistics_attributes),
    .no_gradient = "batch_normalize has the gradient of the whole",
};

/* ---- batch_moving: moving averages, written in place ------------------- */

static plim_status batch_moving_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    for (int i = 0; i < 2; i++) {
        TRY(need_real(node, i, error));
        TRY(need_alike(node, i, i + 2, error));
        if (node->input[i]->kind != KIND_WEIGHT && node->input[i]->kind != KIND_STATE)
            return misfit(node, error, "only a weight can be updated");
    }
    return need_alike(node, 0, 1, error);
}

static void batch_moving_reference(const struct call *call)
{
    const struct batch_moving_attributes *attributes = call->node->attributes;
    int64_t count = (call->end - call->begin) * shape_row(&call->node->input[0]->shape);
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < 2; k++) {
            double moved = get(call, k, i) * attributes->momentum + get(call, k + 2, i) * (1 - attributes->momentum);
            element_set(call->input[k], call->node->input[k]->type, i, moved);
        }
    }
}

const struct op op_batch_moving = {
    OP_HEAD(batch_moving, 4, 0, batch_moving_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct batch_moving_attributes),
    .no_gradient = "moving averages are not trained",
    .updates = 1 << 0 | 1 << 1,
};

/* ---- batch_normalize: x, mean, variance, gamma, beta -> y -------------- */

/* Inputs from `x` on: x, mean, variance, gamma, beta. */
struct channel {
    double mean, rate, gamma, beta; /* rate: 1 / sqrt(variance + epsilon) */
};

static struct channel channel_of(const struct call *call, int x, int64_t i)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    return (struct channel){
        .mean = get(call, x + 1, i),
        .rate = 1 / sqrt(get(call, x + 2, i) + attributes->epsilon),
        .gamma = call->input[x + 3] ? get(call, x + 3, i) : 1,
        .beta = call->input[x + 4] ? get(call, x + 4, i) : 0,
    };
}

static double before_activation(const struct channel *channel, double x)
{
    return (x - channel->mean) * channel->rate * channel->gamma + channel->beta;
}

static plim_status batch_normalize_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_positions(node, 0, error));
    for (int i = 1; i < 5; i++)
        TRY(need_channels(node, i, 0, error));
    return output_like(graph, node, 0, node->input[0]);
}

static double activated(enum activation activation, double z)
{
    if (activation != ACTIVATION_NONE && z < 0)
        return 0;
    return activation == ACTIVATION_RELU6 && z > 6 ? 6 : z;
}

static void batch_normalize_reference(const struct call *call)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    int64_t width = last_dim(x), count = call_rows(call, x) * shape_row(&x->shape);
    for (int64_t k = 0; k < width; k++) {
        struct channel channel = channel_of(call, 0, k);
        for (int64_t i = k; i < count; i += width)
            set(call, 0, i, activated(attributes->activation, before_activation(&channel, get(call, 0, i))));
    }
}

/* Whether the mean of `node` was computed from its x. */
static bool of_this_batch(const struct node *node)
{
    const struct node *statistics = node->input[1]->producer;
    if (!statistics || statistics->op != &op_batch_statistics || node->input[2]->producer != statistics)
        return false;
    const struct node *moments = statistics->input[0]->producer;
    return moments && moments->op == &op_batch_moments && moments->input[0] == node->input[0];
}

static void batch_normalize_back(struct graph *graph, struct node *node, struct tensor *const *d_output,
                                 const bool *wanted, struct tensor **d_input)
{
    const struct batch_normalize_attributes *attributes = node->attributes;
    bool whole = of_this_batch(node), sums = wanted[3] || wanted[4] || (whole && wanted[0]);
    struct tensor *inputs[8] = {d_output[0], node->input[0], node->input[1], node->input[2], node->input[3]};
    if (!whole && (wanted[1] || wanted[2])) {
        graph_fail(graph, PLIM_UNSUPPORTED, "batch_normalize: no gradient to a mean or variance of something else");
        return;
    }
    inputs[5] = attributes->activation ? node->input[4] : NULL;
    if (sums) {
        struct tensor *dgamma = graph_add(graph, &op_batch_normalize_sums, inputs, 6, attributes, sizeof(*attributes));
        d_input[3] = wanted[3] ? dgamma : NULL;
        d_input[4] = wanted[4] ? graph_output(dgamma, 1) : NULL;
        inputs[6] = whole ? dgamma : NULL;
        inputs[7] = whole ? graph_output(dgamma, 1) : NULL;
    }
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_batch_normalize_gradient, inputs, 8, attributes, sizeof(*attributes));
}

const struct op op_batch_normalize = {
    OP_HEAD(batch_normalize, 5, 1, batch_normalize_infer, cut_elementwise),
    .optional = 1 << 3 | 1 << 4,
    .attributes_bytes = sizeof(struct batch_normalize_attributes),
    .gradient = batch_normalize_back,
    .keeps_inputs = 0x1f,
    .in_place = 1 << 0,
};

/* ---- backward: the two sums -------------------------------------------- */

/* Inputs dy, x, mean, variance, gamma, beta and, for dx, dgamma, dbeta. */
static plim_status need_backward(const struct node *node, plim_error *error)
{
    TRY(need_positions(node, 0, error));
    TRY(need_alike(node, 0, 1, error));
    for (int i = 2; i < node->input_count; i++)
        TRY(need_channels(node, i, 1, error));
    return PLIM_OK;
}

static plim_status batch_normalize_sums_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_backward(node, error));
    for (int k = 0; k < 2; k++)
        output_of(graph, node, k, node->input[2]->type, channels_of(node->input[1]), false);
    return PLIM_OK;
}

/* dz: dy where the activation let z through. */
static double behind_activation(const struct call *call, const struct channel *channel, int64_t i)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    double dy = get(call, 0, i);
    if (attributes->activation == ACTIVATION_NONE)
        return dy;
    double z = before_activation(channel, get(call, 1, i));
    return z > 0 && (attributes->activation == ACTIVATION_RELU || z < 6) ? dy : 0;
}

static void batch_normalize_sums_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[1];
    int64_t width = last_dim(x), count = call_rows(call, x) * shape_row(&x->shape);
    for (int64_t k = 0; k < width; k++) {
        struct channel channel = channel_of(call, 1, k);
        double dgamma = 0, dbeta = 0;
        for (int64_t i = k; i < count; i += width) {
            double dz = behind_activation(call, &channel, i);
            dbeta += dz;
            dgamma += dz * (get(call, 1, i) - channel.mean) * channel.rate;
        }
        share(call, 0, k, dgamma);
        share(call, 1, k, dbeta);
    }
}

const struct op op_batch_normalize_sums = {
    OP_HEAD(batch_normalize_sums, 6, 2, batch_normalize_sums_infer, rows_cut),
    .optional = 1 << 4 | 1 << 5,
    .attributes_bytes = sizeof(struct batch_normalize_attributes),
    .no_gradient = NO_SECOND,
};

/* ---- backward: dx ------------------------------------------------------ */

static plim_status batch_normalize_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_backward(node, error));
    if (!node->input[6] != !node->input[7])
        return misfit(node, error, "both sums are needed, or none");
    return output_like(graph, node, 0, node->input[0]);
}

/* dx = gamma * rate * (dz - (dbeta + (x - mean) * rate * dgamma) / values) */
static void batch_normalize_gradient_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[1];
    int64_t width = last_dim(x), count = call_rows(call, x) * shape_row(&x->shape);
    double values = (double)call->count * (double)(shape_row(&x->shape) / width);
    for (int64_t k = 0; k < width; k++) {
        struct channel channel = channel_of(call, 1, k);
        double dgamma = call->input[6] ? get(call, 6, k) / values : 0;
        double dbeta = call->input[7] ? get(call, 7, k) / values : 0;
        for (int64_t i = k; i < count; i += width) {
            double normal = (get(call, 1, i) - channel.mean) * channel.rate;
            double dz = behind_activation(call, &channel, i);
            set(call, 0, i, channel.gamma * channel.rate * (dz - dbeta - normal * dgamma));
        }
    }
}

const struct op op_batch_normalize_gradient = {
    OP_HEAD(batch_normalize_gradient, 8, 1, batch_normalize_gradient_infer, cut_elementwise),
    .optional = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7,
    .attributes_bytes = sizeof(struct batch_normalize_attributes),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};
