/* ops.h - the ops by name, their attributes, and short builders.

   Shapes are written beside each op; N is the batch. Data is NHWC, kernels
   are HWIO, dense kernels (in, out): Keras's layouts at the border. */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "graph/op.h"
#include "ops/attention/attention.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/activation_bits.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/noise.h"
#include "ops/image/pooling.h"
#include "ops/image/random_warp.h"
#include "ops/image/resample.h"
#include "ops/loss/losses.h"
#include "ops/loss/sample_sums.h"
#include "ops/loss/vocabulary_loss.h"
#include "ops/normalize/normalize.h"
#include "ops/normalize/spectral.h"
#include "ops/products/batch_matmul.h"
#include "ops/products/convolution.h"
#include "ops/recurrent/lstm_step.h"
#include "ops/recurrent/recurrent.h"
#include "ops/sample_state.h"
#include "ops/shape/indexing.h"
#include "ops/shape/mask.h"
#include "ops/shape/remap.h"
#include "ops/update/regularize.h"
#include "ops/update/schedule.h"
#include "ops/update/update.h"

#define OP(name) extern const struct op op_##name;
#include "ops/ops.def"
#undef OP

/* matmul: y[N, ..., out] = act(x[N, ..., in] . w + bias). Inputs x, w, bias (optional).
   w is [in, out], or [out, in] with transposed (then no bias, no activation:
   it is the gradient with respect to x). w may have more axes: its first inner_axes (0: one)
   stand for `in`, the rest for `out`; x and y end in the same axes, bias has those of `out`.
   Cut by sample while w is light (<= HEAVY_BYTES) and there are samples to share out; else by nothing in common with
   others: its own instruction over blocks of output columns, which is expressed as a
   cut whose axis is the output column (input x WHOLE, w WHOLE, output WHOLE: the
   kernel writes columns begin..end of all rows). */
struct matmul_attributes {
    bool transposed;
    enum activation activation; /* set by fusion only */
    int inner_axes;             /* of w */
};
#define HEAVY_BYTES ((int64_t)256 * 1024)

/* matmul_weight_gradient: dw[in, out] = x[N, ..., in]^T . dy[N, ..., out]; inputs x, dy.
   Light: by sample, dw is a SUM. Heavy: cut along the rows of dw (x WHOLE, dy
   WHOLE, dw CUT), so that an update may follow in the same chain. `in` and `out` may be
   several axes of x and dy (0: one). */
struct matmul_weight_gradient_attributes {
    int inner_axes, outer_axes;
};

/* relu_gradient: dx = dy where y > 0, inputs dy, y (the output of relu).
   sigmoid_gradient: dx = dy * y * (1 - y), inputs dy, y. */

/* flatten: [N, ...] -> [N, count], no bytes moved when in place; unflatten: the shape
   after N is in the attributes. */
struct unflatten_attributes {
    struct shape row; /* shape of one sample */
};

/* stop_gradient: y = x, of any type; no gradient goes through it, while other ways to x have theirs.

   constant: y = data, without inputs and without a batch. */
struct constant_attributes {
    const void *data; /* of that type and shape, in the graph's arena */
    int64_t type;     /* enum type */
    struct shape shape;
};

/* rescale: y = x * scale + offset in f32, from any type; from f64 in f64,
   unless `single` says f32 (a column of data on its way into a model). */
struct rescale_attributes {
    double scale, offset;
    int64_t single; /* not bool: attributes are compared by their bytes */
};
/* scale: y = x * factor. */
struct scale_attributes {
    double factor;
};

/* sum_rows: [N, ..., c] -> [c]: sum over all but the last axis (or axes); by sample, SUM. */
struct sum_rows_attributes {
    int64_t axes; /* 0: one */
};

/* batch_mean: x[N] -> [1]: sum of x[i] / count over the samples of this batch; SUM.
   batch_mean_gradient: d[1] -> [N]: d / count. Reads the batch count, which is
   why it needs a batched companion: inputs d, x (only for its shape). d may be
   absent: 1. */

/* clip_log: y = log(min(max(x, low), high)); gradient 0 outside. Keras's
   cross-entropy from probabilities. */
struct clip_log_attributes {
    double low, high;
};

/* Losses, a value a sample: [N].
   softmax_crossentropy: inputs logits[N, ..., c], labels[N, ...] or [N, ..., 1] of any whole type -> [N, ...].
     gradient: dlogits from logits, labels, d[N].
   sigmoid_crossentropy: inputs logits[N, c], targets [N] (when c == 1) or [N, c]; mean over c.
   binary_crossentropy: the same from probabilities, clipped to [1e-7, 1 - 1e-7].
   A label outside [0, c) makes the loss of its sample NaN. */

/* sparse_accuracy: inputs scores[N, ..., c], labels -> f32 [N, ...], 1 where the first largest is right.
   binary_accuracy: inputs scores[N, c], targets -> f32 [N], mean over c of (score > threshold) == target. */
struct binary_accuracy_attributes {
    double threshold; /* 0.5 for probabilities, 0 for logits */
};

#include "ops/normalize/normalize.h"
#include "ops/reduce/reduction.h"

/* Builders for what layers and gradients use most. */
struct tensor *unary(struct graph *graph, const struct op *op, struct tensor *x);
struct tensor *binary(struct graph *graph, const struct op *op, struct tensor *a, struct tensor *b);

#endif
