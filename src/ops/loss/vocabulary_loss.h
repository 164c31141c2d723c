/* vocabulary_loss.h - softmax cross-entropy over many classes, whose logits never exist as a whole.

   vocabulary_crossentropy: loss[N, ...] = logsumexp over v of (h . w[v] + bias[v]) - (h . w[label] + bias[label]).
     Inputs h[N, ..., d], w[V, d] (an embedding that is used again) or, with `columns`, w[d, V] (the kernel of a dense
     layer), labels[N, ...] of any whole type, bias[V] or NULL. Outputs loss and logsumexp, both [N, ...], and the
     accuracy: f32 [N, ...], 1 where the first largest of a token's logits is the label's, else 0. A label outside [0,
     V) makes the loss of its token NaN; an ignored one has loss and gradient 0. Cut along tokens (samples times what
     lies between), operands WHOLE.
   vocabulary_crossentropy_gradient: dh, dw, dbias from h, w, labels, logsumexp, dloss, bias; logits are made again, a
     block of classes at a time. Of bf16 the gradients of logits are rounded to bf16 before they are multiplied and
     summed, as they would be behind a dense layer of bf16. Cut along V: w[V, d] and its gradient CUT, so that an update
     may follow in the same chain; dh is a SUM. */
#ifndef OPS_LOSS_VOCABULARY_LOSS_H
#define OPS_LOSS_VOCABULARY_LOSS_H

#include <stdbool.h>

#define VOCABULARY_TOKEN_GRAIN 256
#define VOCABULARY_CLASS_GRAIN 96

struct vocabulary_attributes {
    bool columns; /* w is [d, V] */
    bool rounds;  /* gradients of logits, to bf16; of the gradient alone */
    bool ignores;
    double ignored; /* label */
};

#endif
