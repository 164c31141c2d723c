/* lstm_step.h - one step of an LSTM whose products come from elsewhere: of convolutions, ConvLSTM.

   U units, at each of any number of places.
   lstm_step: inputs x[N, ..., 4U], h[N, ..., 4U] (optional), c'[N, ..., U] (optional: 0) -> gates[N, ..., 4U] (i, f,
     candidate, o), h[N, ..., U], c[N, ..., U]: with z = x + h: i, f, o = s(z), candidate = a(z), c = f * c' + i *
     candidate, h = o * a(c); a and s are `activation` and `recurrent_activation`. The gates take the place of x.
   lstm_step_gradient: inputs dh (optional), gates, c, dc (optional), c' (optional) -> dz[N, ..., 4U], the gradient of x
     and of h; dc'[N, ..., U]. dz takes the place of the gates.
   Both are cut by sample. */
#ifndef OPS_RECURRENT_LSTM_STEP_H
#define OPS_RECURRENT_LSTM_STEP_H

#include "ops/recurrent/recurrent.h"

struct lstm_step_attributes {
    int64_t activation, recurrent_activation; /* enum recurrent_activation */
};

enum lstm_step_input { LSTM_STEP_X, LSTM_STEP_PRODUCT, LSTM_STEP_C, LSTM_STEP_INPUTS };
enum lstm_step_gradient_input {
    LSTM_STEP_DH,
    LSTM_STEP_GATES,
    LSTM_STEP_DONE_C,
    LSTM_STEP_DC,
    LSTM_STEP_BEFORE,
    LSTM_STEP_BACK_INPUTS
};

#endif
