/* reduction.h - contracts of the reduction ops, and how their axes are traversed. */
#ifndef OPS_REDUCE_REDUCTION_H
#define OPS_REDUCE_REDUCTION_H

#include "ops/ops.h"

/* x[N, ...] -> y, reduced over `axes` (bit i: axis i; never axis 0). `keep` is keepdims: the reduced axes stay with
   extent 1 if it is set and are removed otherwise. The ops are cut by sample.
     reduce_sum       sum, or with `mean` the mean. Its gradient is reduce_broadcast.
     reduce_max       maximum, or with `least` the minimum; NaN propagates. The gradient is shared equally among all
                      elements that equal the maximum (or minimum).
     reduce_prod      product. The gradient is dy times the product of the other elements, also where elements are 0.
     reduce_variance  mean of (x - mean)^2.
     reduce_logsumexp log(sum(exp(x))), without overflow.
     reduce_any       for bool or u8: whether any element is not 0, or with `every` whether all elements are not 0; y is
                      bool. It has no gradient.
   reduce_broadcast: y -> x: broadcasts each element of y (times factor) to the elements of x that were reduced to it;
   the attributes hold the shape of a sample of x and the reduced axes.
   reduce_max_gradient, reduce_prod_gradient, reduce_variance_gradient, reduce_logsumexp_gradient: dx from dy and x;
   the first and the last of them also read y. */
struct reduce_attributes {
    int64_t axes, keep;
    int64_t choice; /* reduce_sum: mean; reduce_max: least; reduce_any: every */
};
struct reduce_broadcast_attributes {
    int64_t axes, keep;
    double factor;
    int64_t rank, row[MOST_AXES]; /* shape of a sample of x */
};

/* arg_max: x -> i32 index of the first maximum (with `least`: minimum) along `axis` (>= 1). `keep` is keepdims: the
   axis stays with extent 1 if it is set and is removed otherwise. NaN counts as the maximum and as the minimum. The op
   has no gradient and is cut by sample. */
struct arg_max_attributes {
    int64_t axis, keep, least;
};

/* cumulative_sum: prefix sum y[i] = x[0] + ... + x[i] along `axis` (>= 1); with `reverse` the suffix sum
   x[i] + ... + x[last]. The op is cut by sample. */
struct cumulative_sum_attributes {
    int64_t axis, reverse;
};

/* top_k: x[N, ..., c] -> values[N, ..., k], largest first, and their i32 indices; among equal values the lower index
   comes first. top_k_gradient: dy, indices -> dx; the attributes hold c. Both are cut by sample. */
struct top_k_attributes {
    int64_t k;
};
struct top_k_gradient_attributes {
    int64_t extent;
};

/* batch_sum: x[N, ...] -> [...] ([1] from [N]): the sum over the samples of the batch, or with `mean` their mean; the
   output is PART_SUM.
   batch_broadcast: d[...] -> [N, ...]: broadcasts d, or with `mean` d / samples, to each sample. `flat`: [1] -> [N]. */
struct batch_sum_attributes {
    int64_t mean, flat;
};

/* The axes of a sample of x with their strides in x and in y. Axes of extent 1 are left out, adjacent axes are merged
   where both are reduced or both are kept. */
struct reduce_strides {
    int rank; /* at least 1 */
    int64_t dim[MOST_AXES];
    bool reduced[MOST_AXES];
    int64_t from[MOST_AXES]; /* stride in x */
    int64_t to[MOST_AXES];   /* stride in y; 0 where reduced */
    int64_t in, out;         /* elements of a sample of x, and of y */
    int64_t values;          /* elements of x per element of y */
};
struct shape reduced_shape(const struct shape *shape, int64_t axes, bool keep);
void reduce_strides_init(struct reduce_strides *strides, int64_t axes, int rank, const int64_t *row);
/* reduce_first: index of the first element of x that belongs to element o of y. reduce_value: offset from there to the
   r-th such element. */
int64_t reduce_first(const struct reduce_strides *strides, int64_t o);
int64_t reduce_value(const struct reduce_strides *strides, int64_t r);

/* Position of a run, which covers the last axis; reduce_next advances through the other axes in memory order. */
struct reduce_runs {
    int64_t at[MOST_AXES];
    int64_t to; /* element of y that the run's first element belongs to */
};
static inline void reduce_next(struct reduce_runs *runs, const struct reduce_strides *strides)
{
    for (int axis = strides->rank - 2; axis >= 0; axis--) {
        runs->to += strides->to[axis];
        if (++runs->at[axis] < strides->dim[axis])
            return;
        runs->to -= strides->to[axis] * strides->dim[axis];
        runs->at[axis] = 0;
    }
}

#endif
