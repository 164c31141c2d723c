/* one_hot.c - one_hot and bucketize: classes from numbers, and numbers of classes as vectors. */
#include "ops/helpers.h"

#define WHOLE_NUMBERS "classes are whole numbers: a small step changes nothing"

/* ---- one_hot --------------------------------------------------------------- */

/* How many indices make one vector. */
static int64_t taken_together(const struct node *node)
{
    const struct one_hot_attributes *attributes = node->attributes;
    return attributes->mode == ONE_HOT || node->input[0]->shape.rank == 1 ? 1 : last_dim(node->input[0]);
}

static plim_status one_hot_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct one_hot_attributes *attributes = node->attributes;
    const struct tensor *index = node->input[0];
    struct shape shape = index->shape;
    TRY(need_batched(node, 0, error));
    if (!is_label(index->type))
        return misfit(node, error, "indices of type %s are not offered", type_name(index->type));
    if (attributes->mode == ONE_HOT || shape.rank == 1)
        shape.rank++;
    if (shape.rank > MOST_AXES || attributes->depth < 1)
        return misfit(node, error, "a depth of %lld for %d axes", (long long)attributes->depth, index->shape.rank);
    shape.dim[shape.rank - 1] = attributes->depth;
    return output_of(graph, node, 0, TYPE_F32, shape, true);
}

static void one_hot_reference(const struct call *call)
{
    const struct one_hot_attributes *attributes = call->node->attributes;
    const struct tensor *y = call->node->output[0];
    int64_t groups = call_rows(call, y) * (shape_row(&y->shape) / attributes->depth);
    int64_t together = taken_together(call->node);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t k = 0; k < attributes->depth; k++) {
            int64_t hits = 0;
            for (int64_t i = 0; i < together; i++)
                hits += get(call, 0, g * together + i) == (double)k;
            set(call, 0, g * attributes->depth + k, (double)(attributes->mode == ONE_HOT_COUNT ? hits : hits > 0));
        }
    }
}

const struct op op_one_hot = {
    OP_HEAD(one_hot, 1, 1, one_hot_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct one_hot_attributes),
    .no_gradient = WHOLE_NUMBERS,
};

/* ---- bucketize -------------------------------------------------------------- */

static plim_status bucketize_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct bucketize_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    if (!is_label(x->type))
        return misfit(node, error, "numbers of type %s are not offered", type_name(x->type));
    if (attributes->count < 1 || attributes->count > MOST_BOUNDARIES)
        return misfit(node, error, "%lld boundaries; from 1 to %d", (long long)attributes->count, MOST_BOUNDARIES);
    for (int64_t i = 1; i < attributes->count; i++)
        if (!(attributes->boundary[i - 1] <= attributes->boundary[i]))
            return misfit(node, error, "boundaries must rise: %g, %g", attributes->boundary[i - 1],
                          attributes->boundary[i]);
    return output_of(graph, node, 0, TYPE_I64, x->shape, x->batched);
}

/* In float32, as TensorFlow compares. */
static void bucketize_reference(const struct call *call)
{
    const struct bucketize_attributes *attributes = call->node->attributes;
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++) {
        int64_t below = 0;
        for (int64_t k = 0; k < attributes->count; k++)
            below += (float)attributes->boundary[k] <= (float)get(call, 0, i);
        set(call, 0, i, (double)below);
    }
}

const struct op op_bucketize = {
    OP_HEAD(bucketize, 1, 1, bucketize_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct bucketize_attributes),
    .no_gradient = WHOLE_NUMBERS,
};
