/* activation_bits.h - packed integers of 1, 2 or 4 bits that the forward pass saves for the backward pass: the segment
   of a piecewise-linear activation, the position of the maximum in a pooling window.

   A row (a sample) begins at a byte boundary, so slices never share a byte: element i of a row lies in byte
   i * bits / 8, from bit i * bits % 8 upwards. The unused bits of the last byte are 0.

   slope_bits: x -> bits, u8 [N, bytes of a row]: the segment, out of two or three, of a piecewise-linear activation
   that x falls in (`piece` in the code).
     1 bit:  1 if x > low and not x >= high, else 0
     2 bits: 0 unless x > low; then 1 below high, and 2 from high on
     No x is >= high if high is NaN, and an x that is NaN falls in segment 0.
   slope_gradient: inputs dy, bits -> dx = dy * slope[segment]; without `product` dx is dy where the segment is not 0,
   and 0 elsewhere.
   Both ops are cut by sample. */
#ifndef OPS_ELEMENTWISE_ACTIVATION_BITS_H
#define OPS_ELEMENTWISE_ACTIVATION_BITS_H

#include "graph/op.h"

struct slope_attributes {
    double low, high;
    double slope[3];
    int64_t bits, product;
};

/* For gradient ops whose inputs are dy and the value that the slope depends on. */
void slope_encoding(struct encoded_input *out, const struct slope_attributes *slopes);
bool relu_encoding(struct encoded_input *out, const struct node *node);

/* Bytes of a row of `elements` elements. */
static inline int64_t packed_bytes(int64_t elements, int64_t bits)
{
    return (elements * bits + 7) / 8;
}

static inline int packed_get(const uint8_t *row, int64_t bits, int64_t i)
{
    return row[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

/* Call it in the order of i, because the first element of a byte clears the byte. */
static inline void packed_set(uint8_t *row, int64_t bits, int64_t i, int value)
{
    uint8_t *byte = &row[i * bits / 8];
    int shift = (int)(i * bits % 8);
    *byte = (uint8_t)((shift ? *byte : 0) | value << shift);
}

#endif
