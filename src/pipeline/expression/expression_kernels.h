/* expression_kernels.h - the typed loops that expressions are made of: up to EXPRESSION_BLOCK values at a time. */
#ifndef PIPELINE_EXPRESSION_EXPRESSION_KERNELS_H
#define PIPELINE_EXPRESSION_EXPRESSION_KERNELS_H

#include "graph/tensor.h"

#define EXPRESSION_BLOCK 256

/* What values are computed in. A string is a `const struct string *`. */
enum lane { LANE_BOOL, LANE_INT, LANE_FLOAT, LANE_DOUBLE, LANE_STRING, LANE_COUNT };

enum operation {
#define OPERATION(name, text, rule, kernels) OPERATION_##name,
#include "pipeline/expression/expression_operations.def"
#undef OPERATION
    OPERATION_COUNT
};

/* to[i] = operation(a[i], b[i], c[i]). Buffers are apart, or `to` is one of the others exactly. */
typedef void expression_kernel(void *to, const void *a, const void *b, const void *c, int64_t n);
/* By the lane of the operands (of the last two for where); NULL when there is none. */
expression_kernel *expression_kernel_of(enum operation operation, enum lane lane);
/* From one lane to another; NULL to or from strings. */
expression_kernel *expression_convert(enum lane to, enum lane from);
/* Rounds or wraps values, in their lane, to what the type holds; NULL when the lane is the type. */
expression_kernel *expression_narrow(enum type type);

enum lane lane_of(enum type type);
size_t lane_bytes(enum lane lane);

/* Elements of a column into a lane, `stride` bytes apart, and back. Any alignment. */
typedef void expression_load(void *to, const uint8_t *from, uint64_t stride, int64_t n);
/* Into the lane of its type, or, for small whole numbers, at once into floats; NULL: not in one step. */
expression_load *expression_load_of(enum type type, enum lane lane);
typedef void expression_store(uint8_t *to, uint64_t stride, const void *from, int64_t n);
expression_store *expression_store_of(enum type type);

/* What a reduction has seen of a row so far. */
struct reduction {
    double real;
    uint64_t whole;
    bool begun;
};
enum reduce { REDUCE_SUM, REDUCE_MEAN, REDUCE_MIN, REDUCE_MAX };
/* Ints or doubles; bools and floats were converted. */
void expression_reduce(struct reduction *reduction, enum reduce reduce, enum lane lane, const void *values, int64_t n);

#endif
