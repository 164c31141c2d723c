/* attention.h - scaled dot-product attention; the matrix of scores never exists.

   attention: out[n, t, h] = sum over s of p[t, s] * v[n, s, g], p = softmax over s of scale * q[n, t, h] . k[n, s, g].
     Inputs q[N, T, H, d], k[N, S, G, d], v[N, S, G, e], mask, iteration (the last two optional). Heads share keys in
     groups: g = h / (H / G). Outputs out[N, T, H, e] and logsumexp[N, H, T], which is all that backward needs to
     make p again.
     causal: keys behind the query (s > t) take no part. mask: bool or u8 (not 0: seen; a hidden key has the score
     ATTENTION_HIDDEN, so a query that sees none takes the mean), or f32, added to the score; of shape [N, S],
     [N, T, S] or [N, H or 1, T or 1, S], and without N: [T, S] or [H or 1, T or 1, S]. No gradient flows to a mask.
     dropout: p is 0 with that probability, else p / (1 - dropout), after the softmax; drawn from (seed, iteration,
     n * H + h, t, s) by the rule of noise.h, where a row of scores begins at a multiple of NOISE_CHUNK.
   attention_gradient: dq, dk, dv from q, k, v, mask, iteration, out, logsumexp, dout:
     dv = p^T . dout, ds = p * (dout . v^T - sum(dout * out)), dq = scale * ds . k, dk = scale * ds^T . q.

   By sample; with fewer samples than ATTENTION_FEW_SAMPLES each head is a row of the cut (of the gradient: each
   group), all operands WHOLE: the kernel reads and writes what its heads have. */
#ifndef OPS_ATTENTION_ATTENTION_H
#define OPS_ATTENTION_ATTENTION_H

#include "graph/op.h"

#define ATTENTION_HIDDEN      (-1e9)
#define ATTENTION_FEW_SAMPLES 4

struct attention_attributes {
    double scale;   /* 0: 1 / sqrt(d) */
    double dropout; /* [0, 1); more than 0 needs `iteration` */
    uint64_t seed;
    int64_t causal;
};

/* What shapes and attributes say; strides in elements. */
struct attention_sizes {
    int64_t samples, queries, keys, heads, groups, depth, value_depth;
    int64_t mask_sample, mask_head, mask_query; /* 0: the same for all */
    int64_t noise_row;                          /* numbers a query */
    double scale;
};
struct attention_sizes attention_sizes(const struct node *node);

#endif
