/* reduction.h - contracts of the ops that make fewer elements of many, and how
   their axes are walked. */
#ifndef OPS_REDUCE_REDUCTION_H
#define OPS_REDUCE_REDUCTION_H

#include "ops/ops.h"

/* x[N, ...] -> y over `axes` (bit i: axis i; never axis 0), which stay as 1 with `keep`, else go. By sample.
     reduce_sum       sum, or with `mean` the mean. Its gradient is reduce_spread.
     reduce_max       the largest, or with `least` the smallest; a NaN stays. Gradient: equal shares to all that are it.
     reduce_prod      product. Gradient: dy times the product of the others, zeros or not.
     reduce_variance  mean of (x - mean)^2.
     reduce_logsumexp log(sum(exp(x))), without overflow.
     reduce_any       of bool or u8: whether any is not 0, or with `every` whether all are; y is bool. No gradient.
   reduce_spread: y -> x: every element gets its y (times factor); the shape of a sample of x and what
   was reduced are in the attributes.
   reduce_max_gradient, reduce_prod_gradient, reduce_variance_gradient, reduce_logsumexp_gradient: dx from dy, x and,
   first and last of them, y. */
struct reduce_attributes {
    int64_t axes, keep;
    int64_t choice; /* reduce_sum: mean; reduce_max: least; reduce_any: every */
};
struct reduce_spread_attributes {
    int64_t axes, keep;
    double factor;
    int64_t rank, row[MOST_AXES]; /* of a sample of x */
};

/* arg_max: x -> i32 place of the first largest (`least`: smallest) along `axis` (>= 1), which goes, or stays as 1.
   A NaN is the largest, and the smallest. No gradient. By sample. */
struct arg_max_attributes {
    int64_t axis, keep, least;
};

/* cumulative_sum: y[i] = x[0] + ... + x[i] along `axis` (>= 1); `reverse`: x[i] + ... + x[last]. By sample. */
struct cumulative_sum_attributes {
    int64_t axis, reverse;
};

/* top_k: x[N, ..., c] -> values[N, ..., k], largest first, and their i32 places; of equals the first comes first.
   top_k_gradient: dy, places -> dx, c in the attributes. By sample. */
struct top_k_attributes {
    int64_t k;
};
struct top_k_gradient_attributes {
    int64_t extent;
};

/* batch_sum: x[N, ...] -> [...] ([1] from [N]): the sum over the samples of the batch, or with `mean` their mean; SUM.
   batch_spread: d[...] -> [N, ...]: d, or with `mean` d / samples, for each sample. `flat`: [1] -> [N]. */
struct batch_sum_attributes {
    int64_t mean, flat;
};

/* A sample of x, its axes joined where neighbours are both reduced or both kept: elements in
   order of memory, and where in y each belongs. */
struct reduce_walk {
    int rank; /* at least 1 */
    int64_t dim[MOST_AXES];
    bool reduced[MOST_AXES];
    int64_t from[MOST_AXES]; /* stride in x */
    int64_t to[MOST_AXES];   /* stride in y; 0 where reduced */
    int64_t in, out;         /* elements of a sample of x, of y */
    int64_t values;          /* of x in one of y */
};
struct shape reduced_shape(const struct shape *shape, int64_t axes, bool keep);
void reduce_walk_init(struct reduce_walk *walk, int64_t axes, int rank, const int64_t *row);
/* The first element of x of element o of y; how far behind it value r is. */
int64_t reduce_first(const struct reduce_walk *walk, int64_t o);
int64_t reduce_value(const struct reduce_walk *walk, int64_t r);

/* Runs over the last axis: steps through the others in order of memory. */
struct reduce_runs {
    int64_t at[MOST_AXES];
    int64_t to; /* element of y of the run's first */
};
static inline void reduce_next(struct reduce_runs *runs, const struct reduce_walk *walk)
{
    for (int axis = walk->rank - 2; axis >= 0; axis--) {
        runs->to += walk->to[axis];
        if (++runs->at[axis] < walk->dim[axis])
            return;
        runs->to -= walk->to[axis] * walk->dim[axis];
        runs->at[axis] = 0;
    }
}

#endif
