/* mask.h - masks of time steps: bool [N, T], true where there is something.

   mask_of: the steps of x that are not `value`: of numbers x[N, T], or (over_last) of rows x[N, T, c] of which any
     number differs.
   mask_rows: y = x * mask; x[N, T, ...], a step at a time.
   mask_count: f32 [N]: how many steps of each sample are there.
   sum_time: x[N, T, ...] -> [N, ...]: the sum over the steps that the mask (optional) leaves, or with `mean` their
     mean: of no step at all 0 / 0, as in Keras. sum_time_gradient: dx from dy and the mask; T is in the attributes. */
#ifndef OPS_SHAPE_MASK_H
#define OPS_SHAPE_MASK_H

#include <stdint.h>

struct mask_of_attributes {
    double value;
    int64_t over_last; /* not bool: attributes are compared by their bytes */
};
struct sum_time_attributes {
    int64_t mean;
    int64_t steps; /* of the gradient: T */
};

#endif
