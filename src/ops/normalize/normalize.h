/* normalize.h - contracts of the ops that normalise: by the batch, by the
   layer, by groups of channels, to length one. c is the last axis; formulas
   divide by the count (the biased variance), as Keras does. */
#ifndef OPS_NORMALIZE_NORMALIZE_H
#define OPS_NORMALIZE_NORMALIZE_H

#include "ops/ops.h"

/* Batch normalisation is four steps, so that only the statistics stop a chain of
   slices and nothing but x is read again in backward:
     batch_moments     x[N, ..., c] -> f64 [c] twice: mean of x, mean of x * x; by sample, SUM
     batch_statistics  those -> mean[c], variance[c]
     batch_moving      moving_mean, moving_variance (written), mean, variance: m += (new - m) * (1 - momentum)
     batch_normalize   x, mean, variance, gamma, beta (both optional) -> y like x; by sample
   A square of an f32 is exact in f64: the difference of the two moments loses nothing that f32 had, however
   far the mean is from 0. Means are over the samples that the batch has.

   batch_normalize: z = (x - mean) * gamma / sqrt(variance + epsilon) + beta, y = activation(z). Its gradient
   takes mean and variance as functions of x when batch_statistics of that x made them, else as
   constants. It reads x, never y: z is computed again.
     batch_normalize_sums      dy, x, mean, variance, gamma, beta -> dgamma[c], dbeta[c]: SUM
     batch_normalize_gradient  the same and dgamma, dbeta (absent: mean and variance are constants) -> dx; by sample */
struct batch_statistics_attributes {
    int64_t type; /* enum type of mean and variance */
};
struct batch_moving_attributes {
    double momentum;
};
struct batch_normalize_attributes {
    double epsilon;
    enum activation activation; /* set by fusion only */
    int reserved;               /* 0: attributes are compared by their bytes */
};

/* layer_normalize: x[N, ..., w] is taken as rows of the last `axes` axes, w elements together; gamma and beta (both
   optional) have those axes. Outputs y like x, and statistics[N, rows, 2] (mean, rate) or [N, rows, 1] (rate): all
   that backward reads besides x.
     y = (x - mean) * rate * gamma + beta, and by kind:
     NORMAL_LAYER  rate = 1 / sqrt(mean of (x - mean)^2 + epsilon)
     NORMAL_RMS    mean is 0, rate = 1 / sqrt(mean of x^2 + epsilon)
     NORMAL_UNIT   mean is 0, rate = min(1 / sqrt(sum of x^2), 1 / epsilon)
   By sample. layer_normalize_gradient: dy, x, statistics, gamma -> dx; by sample; dgamma, dbeta: SUM (both 0 unless
   `sums`). With g = dy * gamma, n = (x - mean) * rate: dx = rate * (g - mean(g) - n * mean(g * n)); without
   mean(g) where the mean is 0, and with a sum in the place of the last mean for NORMAL_UNIT. */
enum normal { NORMAL_LAYER, NORMAL_RMS, NORMAL_UNIT, NORMALS };
struct layer_normalize_attributes {
    double epsilon;
    int64_t axes; /* how many, counted from the end */
    int64_t kind; /* enum normal */
};
struct layer_normalize_gradient_attributes {
    struct layer_normalize_attributes layer;
    int64_t sums; /* dgamma and dbeta are wanted */
};
struct shape layer_normalize_axes(const struct layer_normalize_attributes *attributes, const struct tensor *x);
struct shape layer_normalize_statistics(const struct layer_normalize_attributes *attributes, const struct tensor *x);

/* group_normalize: x[N, ..., c], gamma[c] and beta[c] (optional): channels in `groups` groups of neighbours, each
   normalised over its channels and all positions of a sample as NORMAL_LAYER is. Outputs y like x, statistics[N,
   groups, 2]. By sample. group_normalize_gradient: dy, x, statistics, gamma -> dx, dgamma, dbeta as above. */
struct group_normalize_attributes {
    double epsilon;
    int64_t groups;
};

/* standardize: y = (x - mean[k]) / deviation[k], or with `invert` x * deviation[k] + mean[k]; k is the place on the
   last axis, or 0 when `count` is 1. The numbers are the graph's own (in its arena), not tensors: a layer that was
   given them has no weights. mean may be NULL: 0. By sample. */
struct standardize_attributes {
    const float *mean, *deviation;
    int64_t count, invert;
};

#endif
