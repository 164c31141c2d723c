/* op_word_reduce.c - op words that make fewer elements of many. */
#include "model/layers/layer_options.h"
#include "model/ops/op_words.h"
#include "ops/ops.h"

/* Sums and means take whole numbers and truth values too. */
static struct tensor *real_input(const struct op_call *call)
{
    struct tensor *x = call->x[0];
    struct cast_attributes single = {TYPE_F32};
    return type_is_float(x->type) || call->word->op != &op_reduce_sum
               ? x
               : graph_add(call->graph, &op_cast, &x, 1, &single, sizeof single);
}

/* Bits of the axes: all of them where there is no word. */
static bool find_axes(int64_t *out, const struct op_call *call)
{
    const struct yaml *node = call->arguments.axis;
    int rank = call->x[0]->shape.rank, axis;
    *out = 0;
    if (!node || (node->kind == YAML_SCALAR && node->is_null))
        *out = ((int64_t)1 << rank) - 1;
    else if (node->kind != YAML_LIST && word_axis(&axis, call, node, 0, 0, 0))
        *out = (int64_t)1 << axis;
    for (const struct yaml *at = node && node->kind == YAML_LIST ? node->first : NULL; at; at = at->next) {
        if (!word_axis(&axis, call, at, 0, 0, 0))
            return false;
        *out |= (int64_t)1 << axis;
    }
    return !call->graph->failed;
}

/* Over the samples: what the other axes have left. The batch's axis goes, also where others are kept. */
static struct tensor *over_batch(const struct op_call *call, struct tensor *x)
{
    struct batch_sum_attributes attributes = {.mean = call->word->choice};
    if (call->word->op != &op_reduce_sum)
        return graph_fail(call->graph, PLIM_UNSUPPORTED,
                          "%s over the batch is not offered; sum and mean are, or give axis", call->word->name);
    if (call->word->choice && x && x->shape.rank == 1)
        return unary(call->graph, &op_batch_mean, x);
    return graph_add(call->graph, &op_batch_sum, &x, 1, &attributes, sizeof attributes);
}

struct tensor *word_reduce(const struct op_call *call)
{
    struct reduce_attributes attributes = {.keep = call->arguments.keepdims, .choice = call->word->choice};
    struct tensor *x = real_input(call);
    int64_t axes;
    if (!x || !find_axes(&axes, call))
        return NULL;
    if (!x->batched)
        return graph_fail(call->graph, PLIM_UNSUPPORTED,
                          "%s: over values of a batch only; for a weight's squares there is penalty", call->word->name);
    attributes.axes = axes & ~(int64_t)1;
    if (attributes.axes)
        x = graph_add(call->graph, call->word->op, &x, 1, &attributes, sizeof attributes);
    return axes & 1 ? over_batch(call, x) : x;
}

struct tensor *word_deviation(const struct op_call *call)
{
    return unary(call->graph, &op_sqrt, word_reduce(call));
}

struct tensor *word_place(const struct op_call *call)
{
    int axis;
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 0))
        return NULL;
    struct arg_max_attributes attributes = {axis, call->arguments.keepdims, call->word->choice};
    return graph_add(call->graph, call->word->op, call->x, 1, &attributes, sizeof attributes);
}

struct tensor *word_cumulate(const struct op_call *call)
{
    int axis;
    if (!word_axis(&axis, call, call->arguments.axis, -1, 1, 0))
        return NULL;
    struct cumulative_sum_attributes attributes = {axis, call->arguments.reverse};
    return graph_add(call->graph, call->word->op, call->x, 1, &attributes, sizeof attributes);
}

struct tensor *word_top_k(const struct op_call *call)
{
    struct top_k_attributes attributes = {call->arguments.whole ? call->arguments.whole : 1};
    return graph_add(call->graph, call->word->op, call->x, 1, &attributes, sizeof attributes);
}
