/* resize_rows.h - the inner loops of resizing, once an instruction set.

   Every copy does the same operations on each element in the same order, none fused: bits do not depend on the
   machine. resize_rows.c is compiled once for each; VARIANT_ROWS(name) keeps the copies apart. */
#ifndef IMAGE_RESIZE_ROWS_H
#define IMAGE_RESIZE_ROWS_H

#include <stdint.h>

#if defined(__AVX2__)
#define VARIANT_ROWS(name) name##_avx2
#else
#define VARIANT_ROWS(name) name##_plain
#endif

/* Between which two elements of a row a new pixel lies, and where. Where they are the same the fraction is 0. */
struct tap {
    int32_t lower, upper; /* elements: pixels times channels */
    float fraction;
};

struct resize_rows {
    /* Bilinear, three channels. Reads ROWS_BYTES bytes from the lower old pixel on, writes one float more. */
    void (*mix_three)(float *out, const uint8_t *top, const uint8_t *bottom, const struct tap *taps, int64_t count,
                      float fraction);
    /* sum = weight * row; sum += weight * row */
    void (*set_bytes)(float *sum, const uint8_t *row, int64_t count, float weight);
    void (*add_bytes)(float *sum, const uint8_t *row, int64_t count, float weight);
    void (*set_floats)(float *sum, const float *row, int64_t count, float weight);
    void (*add_floats)(float *sum, const float *row, int64_t count, float weight);
    /* The weighted sum of `count` pixels of three channels. Reads and writes one float more. */
    void (*sum_three)(float *out, const float *row, const float *weights, int64_t count, float scale);
};

#define ROWS_BYTES 8

extern const struct resize_rows resize_rows_plain, resize_rows_avx2;

/* The one for this processor. */
const struct resize_rows *resize_rows_choose(void);

#endif
