/* recurrent.h - whole sequences through a recurrent cell: simple_rnn, gru, lstm.

   N samples, T steps, U units, G gates (1, 3 or 4, in Keras's order: z r h; i f c o). What a step takes from its input,
   x . kernel + bias of all steps, is a matmul before these ops: here come only the steps themselves, one after another,
   from the last to the first with `reverse`. Values stay where their step lies in time.

   simple_rnn: inputs z[N, T, U], kernel[U, U], no bias -> h[N, T, U] = a(z + h' . kernel), h' the state before.
   gru: z[N, T, 3U], kernel[U, 3U], bias[2, 3U] (optional, not with RECURRENT_GRU_BEFORE): row 0 is added to z, row 1 to
     h' . kernel -> gates[N, T, 3U] (z, r, candidate), h[N, T, U], inner[N, T, U]:
       z, r = s(z + h' . kernel), h = z * h' + (1 - z) * candidate,
       RECURRENT_GRU:        candidate = a(z_h + r * inner), inner = h' . kernel_h + bias_h
       RECURRENT_GRU_BEFORE: candidate = a(z_h + inner . kernel_h), inner = r * h'
   lstm: z[N, T, 4U], kernel[U, 4U], no bias -> gates[N, T, 4U] (i, f, candidate, o), h[N, T, U], c[N, T, U]:
       c = f * c' + i * candidate, h = o * a(c)
   a and s are `activation` and `recurrent_activation`.

   More inputs, all optional: mask (bool [N, T]): a step that is not there leaves the state as it is, its gates are 0
   (inner too); h0 and of lstm c0 [N, U]: the state before the first step, else 0; iteration with `dropout`: h' is
   multiplied by 1 / (1 - dropout) or 0 on its way into the kernel, drawn for each sample, gate and unit (element g U +
   u of the sample), the same in all steps.

   The gates take the place of z, and the gradient of z theirs. <name>_gradient: the steps backwards, inputs in the
   order of enum recurrent_gradient_input; dz, dh0, and lstm: dc0 [N, U], RECURRENT_GRU: what flows into inner
   [N, T, U] (r * dz_h), RECURRENT_GRU_BEFORE: the same (dz_h . kernel_h^T).
   recurrent_weight_gradient: dkernel[U, G U] and, where `bias` says so, dbias[2, G U] from all steps at once; SUM.

   All are cut by sample; slices of a large batch are large enough that a read of the kernel serves many samples. */
#ifndef OPS_RECURRENT_RECURRENT_H
#define OPS_RECURRENT_RECURRENT_H

#include "graph/graph.h"

enum recurrent_kind { RECURRENT_SIMPLE, RECURRENT_GRU, RECURRENT_GRU_BEFORE, RECURRENT_LSTM, RECURRENT_KINDS };

/* Those whose slope can be told from their value. */
enum recurrent_activation {
    RECURRENT_LINEAR,
    RECURRENT_TANH,
    RECURRENT_SIGMOID,
    RECURRENT_RELU,
    RECURRENT_HARD_SIGMOID,
    RECURRENT_ELU,
    RECURRENT_SOFTSIGN,
    RECURRENT_ACTIVATIONS
};

/* Whole numbers of one size: attributes are compared by their bytes. */
struct recurrent_attributes {
    int64_t kind; /* gru has two */
    int64_t reverse;
    int64_t activation, recurrent_activation;
    double dropout;
    uint64_t seed;
    int64_t bias; /* of the weight gradient: dbias is wanted */
};

enum recurrent_input {
    RECURRENT_Z,
    RECURRENT_KERNEL,
    RECURRENT_BIAS,
    RECURRENT_MASK,
    RECURRENT_H0,
    RECURRENT_C0,
    RECURRENT_ITERATION,
    RECURRENT_INPUTS
};
/* Outputs of gru and lstm; simple_rnn has h alone. */
enum recurrent_output { RECURRENT_GATES, RECURRENT_H, RECURRENT_EXTRA };

/* dh may be absent where dc is there. other: gru: h, lstm: dc or nothing. initial: gru: h0, lstm: c0. simple_rnn has h
 * for gates. */
enum recurrent_gradient_input {
    RECURRENT_DH,
    RECURRENT_DONE_GATES,
    RECURRENT_DONE_EXTRA,
    RECURRENT_OTHER,
    RECURRENT_BACK_KERNEL,
    RECURRENT_BACK_MASK,
    RECURRENT_INITIAL,
    RECURRENT_BACK_ITERATION,
    RECURRENT_BACK_INPUTS
};

/* extra: RECURRENT_GRU: output 2 of gru_gradient, RECURRENT_GRU_BEFORE: inner; else nothing. */
enum recurrent_weight_input {
    RECURRENT_ALL_H,
    RECURRENT_DZ,
    RECURRENT_WEIGHT_EXTRA,
    RECURRENT_WEIGHT_H0,
    RECURRENT_WEIGHT_ITERATION,
    RECURRENT_WEIGHT_INPUTS
};

struct recurrent_sizes {
    int64_t units, gates, steps, columns; /* columns: units * gates */
};
/* Of any of the ops, from their z, gates or dz. */
struct recurrent_sizes recurrent_sizes(const struct node *node);

/* The state behind step t is that of t - 1, or with reverse of t + 1. */
static inline int64_t recurrent_before(const struct recurrent_attributes *attributes, int64_t t)
{
    return attributes->reverse ? t + 1 : t - 1;
}
/* Step number i in the order of running. */
static inline int64_t recurrent_step(const struct recurrent_attributes *attributes, int64_t steps, int64_t i)
{
    return attributes->reverse ? steps - 1 - i : i;
}

#endif
