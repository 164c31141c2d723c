/* elementwise.h - contracts of the ops that treat each element alone.

   Operands of two and three (binary.def, where): one type, shapes that broadcast
   as numpy's do. The output is batched when an operand is. Axis 0 of a batched
   operand is the batch, its other axes are aligned to the right: [N, c] beside
   [N, h, w, c] is [N, 1, 1, c], as in Keras's merging layers. An operand without a batch
   is aligned to the right, an extent of 1 broadcasts (over the batch too). Batched
   operands are CUT, others WHOLE; without any batch, those that reach along axis 0 of the
   output are CUT. Output 0 may take over input 0.

   add subtract multiply divide, power, minimum maximum (NaN wins), squared_difference
   floor_divide mod (the sign of b), as Python has them
   prelu: a < 0 ? b * a : a                a: x, b: alpha
   equal not_equal less less_equal greater greater_equal logical_and logical_or -> bool
   where: inputs condition (0 is false), a, b: a where it holds, else b

   The gradients of the sloped ones (binary.def) are ops of their own,
   <name>_gradient: inputs dy, a, b; `of` says with respect to which operand. What was
   broadcast is summed by sum_to. where_gradient: inputs dy, condition.

   sum_to: inputs x, factor (optional, of x's shape): sums x * factor over what an operand of
   `shape` was broadcast along. Batched -> batched: CUT; batched -> unbatched: SUM.

   One operand (unary.def says formula and derivative of each; a, b, c are its numbers):
   negative; exp expm1 log log1p sqrt rsqrt abs square reciprocal sin cos tan erf
   sign floor ceil round (ties to even): flat, their gradient is 0
   clip (to [a, b]), isfinite logical_not -> bool
   rectify: Keras's relu with negative_slope a >= 0, max_value b (or infinity), threshold c >= 0;
   rectify_any: the same for any numbers, whose derivative needs x
   elu (a) selu celu (a) gelu gelu_tanh silu mish softplus softsign tanh log_sigmoid
   hard_sigmoid hard_silu hard_tanh tanh_shrink soft_shrink (a) hard_shrink (a) squareplus (a)
   sparse_plus sparse_sigmoid, threshold: x > a ? x : b.
   <name>_gradient: inputs dy and x or y. y where it can be: then x need not be kept. */
#ifndef OPS_ELEMENTWISE_ELEMENTWISE_H
#define OPS_ELEMENTWISE_ELEMENTWISE_H

#include "graph/op.h"

/* Of the unary ops that have numbers. */
struct numbers_attributes {
    double a, b, c;
};

struct operand_attributes {
    int64_t of; /* which operand, from 0 */
};

struct sum_to_attributes {
    struct shape shape;
    int64_t batched; /* not bool: attributes are compared by their bytes */
};

/* cast: [...] of any type -> the same of `type`, as element_set has it: whole types towards zero,
   at most their limits, NaN is 0. Gradients flow between real types. */
struct cast_attributes {
    int64_t type; /* enum type */
};

/* softmax, log_softmax, sparsemax: along one axis, counted from the end (0: the last one), never the batch.
   sparsemax: the point of the simplex that is nearest (Martins and Astudillo, 2016).
   <name>_gradient: inputs dy, y.
   glu: [..., 2 c, ...] -> [..., c, ...]: first half * sigmoid(second half) along that axis;
   glu_gradient: inputs dy, x. */
struct axis_attributes {
    int64_t from_end;
};

/* d, of the output's shape, summed to the shape of `like`; d itself when there is nothing to sum. `factor`, if
   not NULL, has d's shape and is multiplied in first. For gradients of broadcasting ops. */
struct tensor *sum_to_like(struct graph *graph, struct tensor *d, struct tensor *factor, const struct tensor *like);

#endif
