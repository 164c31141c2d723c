/* group_normalize.c - normalising groups of channels of a sample over all of
   its positions; with as many groups as channels it is instance normalisation. */
#include <math.h>

#include "ops/helpers.h"

struct groups {
    int64_t groups, width;       /* of them; channels of all */
    int64_t channels, positions; /* of a group; of a sample */
    double values;               /* in a group */
};

static struct groups groups_of(int64_t groups, const struct tensor *x)
{
    int64_t width = last_dim(x), positions = shape_row(&x->shape) / width;
    return (struct groups){groups, width, width / groups, positions, (double)(width / groups) * (double)positions};
}

static plim_status need_groups(const struct node *node, plim_error *error)
{
    const struct group_normalize_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    if (x->shape.rank < 2 || shape_row(&x->shape) < 1)
        return misfit(node, error, "an input of a batch axis alone has no channels");
    if (attributes->groups < 1 || last_dim(x) % attributes->groups != 0)
        return misfit(node, error, "%lld channels cannot be put into %lld groups", (long long)last_dim(x),
                      (long long)attributes->groups);
    if (!(attributes->epsilon > 0))
        return misfit(node, error, "an epsilon of %g is not possible", attributes->epsilon);
    return PLIM_OK;
}

static struct shape statistics_shape(const struct group_normalize_attributes *attributes, const struct tensor *x)
{
    return shape_of(3, (int64_t[]){x->shape.dim[0], attributes->groups, 2});
}

static plim_status group_normalize_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_groups(node, error));
    TRY(need_channels(node, 1, 0, error));
    TRY(need_channels(node, 2, 0, error));
    output_like(graph, node, 0, node->input[0]);
    return output_of(graph, node, 1, wide_type(node->input[0]->type),
                     statistics_shape(node->attributes, node->input[0]), true);
}

/* ---- forward ------------------------------------------------------------- */

/* One group: `first` is the element of its first channel at position 0. */
struct group {
    const struct groups *all;
    int64_t first, channel;
    double mean, rate;
};

/* Element of value i of the group, and its channel among all. */
static int64_t element_of(const struct group *group, int64_t i)
{
    return group->first + i / group->all->channels * group->all->width + i % group->all->channels;
}

static int64_t channel_of(const struct group *group, int64_t i)
{
    return group->channel + i % group->all->channels;
}

static void measure(struct group *group, const struct call *call, double epsilon)
{
    int64_t count = group->all->channels * group->all->positions;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += get(call, 0, element_of(group, i));
    group->mean = sum / group->all->values;
    for (int64_t i = 0; i < count; i++)
        squares += pow(get(call, 0, element_of(group, i)) - group->mean, 2);
    group->rate = 1 / sqrt(squares / group->all->values + epsilon);
}

static void group_normalize_reference(const struct call *call)
{
    const struct group_normalize_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0];
    struct groups all = groups_of(attributes->groups, x);
    int64_t count = call_rows(call, x) * all.groups;
    for (int64_t k = 0; k < count; k++) {
        struct group group = {.all = &all, .channel = k % all.groups * all.channels};
        group.first = k / all.groups * all.width * all.positions + group.channel;
        measure(&group, call, attributes->epsilon);
        for (int64_t i = 0; i < all.channels * all.positions; i++) {
            int64_t at = element_of(&group, i), channel = channel_of(&group, i);
            double gamma = call->input[1] ? get(call, 1, channel) : 1;
            double beta = call->input[2] ? get(call, 2, channel) : 0;
            set(call, 0, at, (get(call, 0, at) - group.mean) * group.rate * gamma + beta);
        }
        set(call, 1, 2 * k, group.mean);
        set(call, 1, 2 * k + 1, group.rate);
    }
}

const struct op op_group_normalize = {
    OP_HEAD(group_normalize, 3, 2, group_normalize_infer, cut_elementwise),
    .optional = 1 << 1 | 1 << 2,
    .attributes_bytes = sizeof(struct group_normalize_attributes),
    .gradient_op = &op_group_normalize_gradient,
    .gradient_reads = {READ_D, READ_X0, READ_Y1, READ_X1},
    .keeps_inputs = 1 << 0 | 1 << 1,
    .keeps_outputs = 1 << 1,
};

/* ---- backward: dy, x, statistics, gamma -> dx, dgamma, dbeta ------------- */

static plim_status group_normalize_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[1];
    struct shape statistics = statistics_shape(node->attributes, x);
    TRY(need_groups(node, error));
    TRY(need_alike(node, 0, 1, error));
    TRY(need_batched(node, 2, error));
    TRY(need_channels(node, 3, 0, error));
    if (!is_real(node->input[2]->type) || !shape_equal(&node->input[2]->shape, &statistics))
        return misfit(node, error, "input 2 is not what group_normalize made");
    output_like(graph, node, 0, node->input[0]);
    for (int k = 1; k < 3; k++)
        output_of(graph, node, k, wide_type(x->type), shape_1(last_dim(x)), false);
    return PLIM_OK;
}

static void group_normalize_gradient_cut(struct cut *cut, const struct node *node)
{
    cut_rows(cut, node, node->input[0], 4 * (double)shape_count(&node->input[0]->shape));
}

static struct group group_at(const struct call *call, const struct groups *all, int64_t k)
{
    int64_t channel = k % all->groups * all->channels;
    return (struct group){all, k / all->groups * all->width * all->positions + channel, channel, get(call, 2, 2 * k),
                          get(call, 2, 2 * k + 1)};
}

static double normal_of(const struct call *call, const struct group *group, int64_t i)
{
    return (get(call, 1, element_of(group, i)) - group->mean) * group->rate;
}

static double g_of(const struct call *call, const struct group *group, int64_t i)
{
    return get(call, 0, element_of(group, i)) * (call->input[3] ? get(call, 3, channel_of(group, i)) : 1);
}

static void group_back(const struct call *call, const struct group *group)
{
    int64_t count = group->all->channels * group->all->positions;
    double direct = 0, normal = 0;
    for (int64_t i = 0; i < count; i++) {
        direct += g_of(call, group, i) / group->all->values;
        normal += g_of(call, group, i) * normal_of(call, group, i) / group->all->values;
    }
    for (int64_t i = 0; i < count; i++)
        set(call, 0, element_of(group, i),
            group->rate * (g_of(call, group, i) - direct - normal_of(call, group, i) * normal));
}

static void channel_sums(const struct call *call, const struct groups *all, int64_t samples, int64_t channel)
{
    double dgamma = 0, dbeta = 0;
    for (int64_t sample = 0; sample < samples; sample++) {
        struct group group = group_at(call, all, sample * all->groups + channel / all->channels);
        for (int64_t i = channel % all->channels; i < all->channels * all->positions; i += all->channels) {
            dgamma += get(call, 0, element_of(&group, i)) * normal_of(call, &group, i);
            dbeta += get(call, 0, element_of(&group, i));
        }
    }
    share(call, 1, channel, dgamma);
    share(call, 2, channel, dbeta);
}

/* The sums first: dx may take the place of dy. */
static void group_normalize_gradient_reference(const struct call *call)
{
    const struct group_normalize_attributes *attributes = call->node->attributes;
    struct groups all = groups_of(attributes->groups, call->node->input[1]);
    int64_t samples = call_rows(call, call->node->input[1]);
    for (int64_t channel = 0; channel < all.width; channel++)
        channel_sums(call, &all, samples, channel);
    for (int64_t k = 0; k < samples * all.groups; k++) {
        struct group group = group_at(call, &all, k);
        group_back(call, &group);
    }
}

const struct op op_group_normalize_gradient = {
    OP_HEAD(group_normalize_gradient, 4, 3, group_normalize_gradient_infer, group_normalize_gradient_cut),
    .optional = 1 << 3,
    .attributes_bytes = sizeof(struct group_normalize_attributes),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};
