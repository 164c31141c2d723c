/* gemm.h - matrix products in f32 over matrices where they lie: nothing is
   packed, A by any strides, rows of B and C contiguous. */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/vector.h"

/* c[i, j] = act(start + sum over s of a[i, s] * b[s, j]), for i < m, j < n, s < k.
   Each c[i, j] is one chain of multiply-adds in the order of s, whatever the
   blocking, so a cut of rows or columns does not change its bits. */
struct gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_step; /* floats between i and i + 1, between s and s + 1 */
    const float *b;
    int64_t b_step; /* between s and s + 1 */
    float *c;
    int64_t c_row;
    const float *bias; /* [n], or NULL: where the sum starts */
    bool add;          /* the sum starts with c (then no bias) */
    bool relu;
};

void VARIANT(gemm)(const struct gemm *g);

/* y[i] = act(bias + sum over s of x[i, s] * w[s]): n = 1, lanes along s. */
struct gemv {
    int64_t m, k;
    const float *x;
    int64_t x_row;
    const float *w;
    float *y;
    int64_t y_row;
    float bias;
    bool relu;
};

void VARIANT(gemv)(const struct gemv *g);

/* to[j, i] = from[i, j] for i < rows, j < columns. */
void VARIANT(transpose)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns);

#endif
