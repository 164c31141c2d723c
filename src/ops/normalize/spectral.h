/* spectral.h - a weight divided by its largest singular value, as power iteration finds it.

   W[m, n] is a weight of any axes, the last one n, the others together m; u[1, n] what the iteration has come to.
   spectral_sums: inputs W, u -> s[n + 1]: s_j = sum_i r_i W_ij with r = W u, and last sum_i r_i^2. Along axis 0 of W;
     SUM.
   spectral_vector: inputs s, u -> u'[1, n], sigma[1]. With v = r / |r| and w = v W: u' = w / |w|, sigma = w . u'. Where
     s is 0 (W is, or W u): u and 1. What is divided by is at least 1e-7, as in Keras. Done in one slice.
   spectral_divide: inputs W, sigma; W becomes W / sigma. Along axis 0 of W. */
#ifndef OPS_NORMALIZE_SPECTRAL_H
#define OPS_NORMALIZE_SPECTRAL_H

#include "graph/graph.h"

#endif
