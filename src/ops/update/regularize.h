/* regularize.h - penalties on weights and outputs, and constraints of weights.

   penalty: x -> [1]: l1 sum|x| + l2 sum(x^2); of a batched x divided by the samples of the batch. Cut along axis 0,
   SUM. penalty_gradient: inputs d [1] (optional: 1), x -> d (l1 sign(x) + 2 l2 x), divided likewise. constrain: input
   w, in place, Keras's constraints; norms are taken over `reduced` elements that lie `inner` apart, for each of `outer`
   blocks (axes that follow one another). Done in one slice. */
#ifndef OPS_UPDATE_REGULARIZE_H
#define OPS_UPDATE_REGULARIZE_H

#include "graph/op.h"

struct penalty_attributes {
    double l1, l2;
};

enum constraint_kind {
    CONSTRAINT_NONE,
    CONSTRAINT_MAX_NORM,     /* w min(norm, most) / (e + norm) */
    CONSTRAINT_NON_NEG,      /* w where it is >= 0, else 0 */
    CONSTRAINT_UNIT_NORM,    /* w / (e + norm) */
    CONSTRAINT_MIN_MAX_NORM, /* w (rate clip(norm, least, most) + (1 - rate) norm) / (e + norm) */
    CONSTRAINT_COUNT
};

struct constrain_attributes {
    enum constraint_kind kind;
    double least, most, rate;
    int64_t outer, reduced, inner;
};

/* What a block of that norm is multiplied by. */
double constraint_factor(const struct constrain_attributes *attributes, double norm);

#endif
