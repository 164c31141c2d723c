/* losses.h - Keras's losses over outputs of any rank: a value for each row of
   the last axis, then one number of the batch.

   elementwise_loss: inputs scores [N, ..., c], targets of any type with as many elements, others f32 [1] (optional)
     -> [N, ...]: the mean over c of a formula of score and target; the sum with `sums`. Targets are smoothed first:
     t (1 - smoothing) + smoothing / 2. Hinges take targets 0 and 1 as -1 and 1 where `others` (how many targets of the
   batch are neither) is 0. elementwise_loss_gradient: inputs scores, targets, d [N, ...], others (optional) -> like
   scores. row_loss: inputs scores [N, ..., c], targets alike -> [N, ...]; smoothing is t (1 - s) + s / c.
   row_loss_gradient: inputs scores, targets, d.
   weigh: inputs v [N, ...], w [N], [N, 1] or like v, of any type -> v w. No gradient flows to w.
   loss_mean: inputs v [N, ...], count f32 [1] (optional) -> [1]: the sum over count, or over as many values as there
   are in this batch; the sum alone with `sums`. A count of 0 gives 0. loss_mean_gradient: inputs d (optional: 1), v
   (for its shape), count (optional). count_valid: input labels or a mask -> f32 [1]: how many are not `ignored` (an
   ignored label 0 is what a mask says). count_others: targets -> f32 [1]: how many are neither 0 nor 1. */
#ifndef OPS_LOSS_LOSSES_H
#define OPS_LOSS_LOSSES_H

#include "graph/op.h"

enum loss_formula {
    FORMULA_SQUARED,
    FORMULA_ABSOLUTE,
    FORMULA_PERCENTAGE,
    FORMULA_LOGARITHMIC,
    FORMULA_HUBER,
    FORMULA_LOG_COSH,
    FORMULA_HINGE,
    FORMULA_SQUARED_HINGE,
    FORMULA_POISSON,
    FORMULA_DIVERGENCE,
    FORMULA_BINARY, /* from probabilities */
    FORMULA_BINARY_LOGITS,
    FORMULA_BINARY_FOCAL, /* from probabilities */
    FORMULA_COUNT
};

struct elementwise_loss_attributes {
    enum loss_formula formula;
    bool sums, balances; /* balances: focal, apply_class_balancing */
    double smoothing;
    double delta; /* huber */
    double alpha, gamma;
};

enum row_formula {
    ROW_CATEGORICAL,
    ROW_CATEGORICAL_LOGITS,
    ROW_CATEGORICAL_FOCAL,
    ROW_COSINE,
    ROW_CATEGORICAL_HINGE,
    ROW_FORMULA_COUNT
};

struct row_loss_attributes {
    enum row_formula formula;
    double smoothing, alpha, gamma;
};

struct loss_mean_attributes {
    bool sums;
};

struct count_valid_attributes {
    double ignored;
};

/* ranked_accuracy: inputs scores [N, ..., c], labels: class numbers with `sparse`, else targets like the scores, of
   which the first largest is right -> f32 [N, ...]: 1 where fewer than k scores are larger than that of the right
   class; with k 0 where the first largest score is the right one. */
struct ranked_accuracy_attributes {
    int64_t k;
    bool sparse;
};

/* softmax_crossentropy, any rank: rows whose label is ignored have loss and gradient 0. */
struct crossentropy_attributes {
    bool ignores;
    double ignored;
};

#endif
