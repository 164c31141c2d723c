/* in_place.h - how many bytes a tensor has, and whose an output may take over: one rule for those who size slices
   and those who give places. */
#ifndef TRANSFORM_IN_PLACE_H
#define TRANSFORM_IN_PLACE_H

#include "graph/op.h"

static inline uint64_t tensor_bytes(const struct tensor *tensor)
{
    return (uint64_t)shape_count(&tensor->shape) * type_bytes(tensor->type);
}

static inline uint64_t tensor_row_bytes(const struct tensor *tensor)
{
    return (uint64_t)shape_row(&tensor->shape) * type_bytes(tensor->type);
}

/* The input whose bytes output 0 can take over as far as the op goes: a value, as large, both walked row by
   row. Whether anybody still reads it is the caller's to know. NULL: none. */
static inline const struct tensor *in_place_input(const struct node *node, const struct cut *cut)
{
    int input = op_in_place(node->op);
    if (input < 0 || node->output_count < 1 || !node->input[input])
        return NULL;
    const struct tensor *from = node->input[input];
    bool fits = from->kind == KIND_VALUE && tensor_bytes(from) == tensor_bytes(node->output[0]);
    return fits && cut->input[input] == PART_CUT && cut->output[0] == PART_CUT ? from : NULL;
}

#endif
