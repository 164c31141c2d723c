/* softmax.c - softmax, log_softmax and sparsemax along one axis, and their
   gradients, which read y, never x: the planner may free x. */
#include <math.h>

#include "ops/helpers.h"

static plim_status axis_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct axis_attributes *attributes = node->attributes;
    int rank = node->input[0]->shape.rank;
    TRY(need_batched(node, 0, error));
    if (rank < 2)
        return misfit(node, error, "an input of a batch axis alone has no axis to sum over");
    if (attributes->from_end < 0 || attributes->from_end > rank - 2)
        return misfit(node, error, "axis %lld from the end is none of the %d of a sample",
                      (long long)attributes->from_end, rank - 1);
    return infer_alike(graph, node, error);
}

/* One group: `count` elements, `step` apart. */
struct group {
    const struct call *call;
    int64_t first, count, step;
};

static double at(const struct group *group, int input, int64_t i)
{
    return get(group->call, input, group->first + i * group->step);
}

static void set_in_group(const struct group *group, int64_t i, double value)
{
    set(group->call, 0, group->first + i * group->step, value);
}

static void each_group(const struct call *call, void (*run)(const struct group *group))
{
    const struct axis_attributes *attributes = call->node->attributes;
    const struct tensor *y = call->node->output[0];
    int axis = y->shape.rank - 1 - (int)attributes->from_end;
    struct group group = {call, 0, y->shape.dim[axis], 1};
    for (int k = axis + 1; k < y->shape.rank; k++)
        group.step *= y->shape.dim[k];
    int64_t block = group.count * group.step, count = call_rows(call, y) * shape_row(&y->shape);
    for (int64_t outer = 0; outer < count; outer += block) {
        for (int64_t inner = 0; inner < group.step; inner++) {
            group.first = outer + inner;
            run(&group);
        }
    }
}

static double largest(const struct group *group)
{
    double most = at(group, 0, 0);
    for (int64_t i = 1; i < group->count; i++)
        most = fmax(most, at(group, 0, i));
    return most;
}

static double exp_sum(const struct group *group, double most)
{
    double sum = 0;
    for (int64_t i = 0; i < group->count; i++)
        sum += exp(at(group, 0, i) - most);
    return sum;
}

/* y = exp(x - max) / sum(exp(x - max)) */
static void softmax_group(const struct group *group)
{
    double most = largest(group), sum = exp_sum(group, most);
    for (int64_t i = 0; i < group->count; i++)
        set_in_group(group, i, exp(at(group, 0, i) - most) / sum);
}

/* y = x - max - log(sum(exp(x - max))) */
static void log_softmax_group(const struct group *group)
{
    double most = largest(group), low = most + log(exp_sum(group, most));
    for (int64_t i = 0; i < group->count; i++)
        set_in_group(group, i, at(group, 0, i) - low);
}

/* y = max(x - t, 0), t so that the sum is 1: the mean of what lies above t, less its share of 1. Starting with all,
   those at or below the mean leave until none does (Michelot): t only grows. */
static void sparsemax_group(const struct group *group)
{
    double threshold = -INFINITY, sum = 0;
    int64_t left = 0, before = -1;
    while (left != before) {
        before = left;
        left = 0;
        sum = 0;
        for (int64_t i = 0; i < group->count; i++) {
            double x = at(group, 0, i);
            bool stays = !(x <= threshold); /* NaN does: it shows */
            left += stays;
            sum += stays ? x : 0;
        }
        threshold = (sum - 1) / (double)left;
    }
    for (int64_t i = 0; i < group->count; i++) {
        double x = at(group, 0, i) - threshold;
        set_in_group(group, i, x < 0 ? 0 : x);
    }
}

/* dx = y (dy - sum(y dy)) */
static void softmax_gradient_group(const struct group *group)
{
    double sum = 0;
    for (int64_t i = 0; i < group->count; i++)
        sum += at(group, 0, i) * at(group, 1, i);
    for (int64_t i = 0; i < group->count; i++)
        set_in_group(group, i, at(group, 1, i) * (at(group, 0, i) - sum));
}

/* dx = dy - exp(y) sum(dy) */
static void log_softmax_gradient_group(const struct group *group)
{
    double sum = 0;
    for (int64_t i = 0; i < group->count; i++)
        sum += at(group, 0, i);
    for (int64_t i = 0; i < group->count; i++)
        set_in_group(group, i, at(group, 0, i) - exp(at(group, 1, i)) * sum);
}

/* dx = dy - mean(dy) over those with y > 0, 0 for the others */
static void sparsemax_gradient_group(const struct group *group)
{
    double sum = 0, count = 0;
    for (int64_t i = 0; i < group->count; i++) {
        bool on = at(group, 1, i) > 0;
        sum += on ? at(group, 0, i) : 0;
        count += on;
    }
    for (int64_t i = 0; i < group->count; i++)
        set_in_group(group, i, at(group, 1, i) > 0 ? at(group, 0, i) - sum / count : 0);
}

/* ---- the ops ------------------------------------------------------------- */

#define AXIS_OP(word, count, ...)                                                                                      \
    static void word##_reference(const struct call *call)                                                              \
    {                                                                                                                  \
        each_group(call, word##_group);                                                                                \
    }                                                                                                                  \
    const struct op op_##word = {OP_HEAD(word, count, 1, axis_infer, cut_elementwise),                                 \
                                 .attributes_bytes = sizeof(struct axis_attributes), __VA_ARGS__};

#define PAIR(word)                                                                                                     \
    AXIS_OP(word, 1, .gradient_op = &op_##word##_gradient, .gradient_reads = {READ_D, READ_Y0},                        \
            .keeps_outputs = 1 << 0)                                                                                   \
    AXIS_OP(word##_gradient, 2, .no_gradient = NO_SECOND)

PAIR(softmax)
PAIR(log_softmax)
PAIR(sparsemax)
