/* sample_sums.h - what is counted over samples: weights of classes, and sums that metrics are made of
   when an epoch is over.

   class_weight: labels [N], [N, 1] (class numbers) or targets [N, c] (the first largest is the class) -> f32 [N]: the
   factor of each label's class, 1 for those without one. Factors are of `count` classes from `first` on.
   sample_sums: inputs scores [N, ..., c], labels of any type, and perhaps weights [N] or [N, 1] that samples count by
   (else 1) -> f64 [rows, columns], sums over all samples:
     thresholds  [2, size + 1]: labels that are 0, and others, by how many thresholds their score passes. Even ones
                 are i / (size - 1): ceil(score (size - 1)) are passed by a score in [0, 1], with `lowest` at least one;
                 else those in `level`, or one, which a larger score passes. `apart`: [2 c, size + 1], two rows for each
                 place of the last axis.
     classes     [3, c]: of scores above the threshold (without one: the row's largest, unless it is 0): the sum of
                 their targets, of 1 - their targets, and of the targets of the others.
     confusion   [size, size]: row: the label's class, column: the score's. A class is the number itself
                 (sparse_labels, sparse_scores), score >= threshold (binary), or the first largest of the last axis.
                 What is no class, or an ignored label, is not counted.
     squares     [5, c], of scores [N, c]: sums of t, t^2, (t - score)^2, of weights, and of 1.
     means       [1, 2], without labels: of the mean of a sample's values, and of weights.
   `results`: one more row, of zeros, for what is made of the sums. */
#ifndef OPS_LOSS_SAMPLE_SUMS_H
#define OPS_LOSS_SAMPLE_SUMS_H

#include "graph/op.h"

#define MOST_CLASS_WEIGHTS 256 /* of one node: attributes are part of a kernel's key */

struct class_weight_attributes {
    int64_t first, count;
    float factor[MOST_CLASS_WEIGHTS];
};

enum sample_sums_formula {
    SUMS_THRESHOLDS,
    SUMS_CLASSES,
    SUMS_CONFUSION,
    SUMS_SQUARES,
    SUMS_MEANS,
    SUMS_FORMULA_COUNT
};

struct sample_sums_attributes {
    enum sample_sums_formula formula;
    int64_t size; /* thresholds, or classes */
    bool even;    /* thresholds: many of them */
    bool lowest;  /* even ones: the first is below 0 */
    bool limited; /* classes: `threshold` is one */
    bool apart;   /* thresholds: by place in the row */
    bool results;
    const float *level; /* thresholds: `size` of them, rising, which outlive the graph; NULL: even, or one */
    double threshold;
    int64_t top;  /* thresholds: only so many of the largest of a row can pass; 0: all */
    int64_t only; /* thresholds: this place of a row alone; -1: all */
    bool sparse_labels, sparse_scores, binary;
    bool ignores;
    double ignored;
};
/* A score that is not among the top: it passes no threshold. */
#define SUMS_NOTHING (-1e10)

#endif
