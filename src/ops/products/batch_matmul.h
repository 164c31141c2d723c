/* batch_matmul.h - products of stacks of matrices.

   batch_matmul: c[N, ..., m, n] = op(a) . op(b), op: as it is or its last two axes turned over. The axes between the
   batch and the last two are the same in both. One of the operands may have no batch axis: the same matrices for every
   sample; if it has two axes, one matrix for all.
   batch_matmul_sum: the same product summed over the samples, c[..., m, n] without a batch axis; with `shared` over the
   axes between, too: c[m, n]. It is the gradient of an operand without a batch axis.
   By sample; with fewer samples than BATCH_MATMUL_FEW_SAMPLES (and several matrices a sample) each matrix is a row of
   the cut, operands WHOLE. */
#ifndef OPS_PRODUCTS_BATCH_MATMUL_H
#define OPS_PRODUCTS_BATCH_MATMUL_H

#include "graph/op.h"

#define BATCH_MATMUL_FEW_SAMPLES 4

struct batch_matmul_attributes {
    int64_t transpose_a, transpose_b;
    int64_t shared; /* batch_matmul_sum only */
};

/* What shapes and attributes say; strides in elements, 0: the same for all. */
struct batch_matmul_sizes {
    int64_t samples, inner, m, n, k;
    int64_t a_sample, a_matrix, a_row, a_step; /* element (i, s) of op(a) */
    int64_t b_sample, b_matrix, b_step, b_column;
};
struct batch_matmul_sizes batch_matmul_sizes(const struct node *node);

#endif
