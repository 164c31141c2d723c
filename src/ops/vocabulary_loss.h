/* vocabulary_loss.h - softmax cross-entropy over many classes, whose logits never exist as a whole.

   vocabulary_crossentropy: loss[N, ...] = logsumexp over v of h . w[v] - h . w[label]. Inputs h[N, ..., d], w[V, d]
     (an embedding that is used again, or the kernel of a dense layer turned over), labels[N, ...] of any whole type.
     Outputs loss and logsumexp, both [N, ...]. A label outside [0, V) makes the loss of its token NaN.
     Cut along tokens (samples times what lies between), operands WHOLE.
   vocabulary_crossentropy_gradient: dh, dw from h, w, labels, logsumexp, dloss; logits are made again, a block of
   classes at a time. Cut along V: w and dw CUT, so that an update may follow in the same chain; dh is a SUM. */
#ifndef OPS_VOCABULARY_LOSS_H
#define OPS_VOCABULARY_LOSS_H

#define VOCABULARY_TOKEN_GRAIN 256
#define VOCABULARY_CLASS_GRAIN 192

#endif
