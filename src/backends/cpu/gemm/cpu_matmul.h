/* cpu_matmul.h - the sizes of matmul and its weight gradient, for the kernels of f32 and of bf16. */
#ifndef CPU_MATMUL_H
#define CPU_MATMUL_H

#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* Elements of the first axes of w, those that are summed over (or are columns, where w is transposed). */
INLINE int64_t matmul_first(const struct shape *w, int64_t inner_axes)
{
    int64_t first = 1;
    for (int i = 0; i < (inner_axes ? inner_axes : 1); i++)
        first *= w->dim[i];
    return first;
}

/* size[0]: inner extent, size[1]: columns of the output, size[2]: whether columns are cut, size[3]: rows a sample. */
INLINE void matmul_take_sizes(struct cpu_kernel *out, const struct node *node)
{
    const struct matmul_attributes *attributes = node->attributes;
    const struct shape *w = &node->input[1]->shape;
    int64_t first = matmul_first(w, attributes->inner_axes), second = shape_count(w) / first;
    struct cut cut;
    node->op->cut(&cut, node);
    out->size[0] = attributes->transposed ? second : first;
    out->size[1] = attributes->transposed ? first : second;
    out->size[2] = cut.output[0] == PART_WHOLE;
    out->size[3] = shape_row(&node->input[0]->shape) / out->size[0];
}

/* The same, but size[2]: rows of the product in a row of dw. Returns whether slices are shares of the samples. */
INLINE bool matmul_take_gradient_sizes(struct cpu_kernel *out, const struct node *node)
{
    const struct matmul_weight_gradient_attributes *attributes = node->attributes;
    const struct shape *dw = &node->output[0]->shape;
    struct cut cut;
    node->op->cut(&cut, node);
    out->size[0] = matmul_first(dw, attributes->inner_axes);
    out->size[1] = shape_count(dw) / out->size[0];
    out->size[2] = out->size[0] / dw->dim[0];
    out->size[3] = shape_row(&node->input[0]->shape) / out->size[0];
    return cut.output[0] == PART_SUM;
}

#endif
