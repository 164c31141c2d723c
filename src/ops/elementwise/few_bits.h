/* few_bits.h - whole numbers of 1, 2 or 4 bits, as backward reads them again: which slope, which cell of a window.

   A row (a sample) begins at a byte, so that slices never share one: element i of a row lies in byte i * bits / 8, from
   bit i * bits % 8 upwards. What is left of the last byte is 0.

   slope_bits: x -> bits, u8 [N, bytes of a row]: in which of two or three pieces of a line that bends x lies.
     1 bit:  x > low and not x >= high
     2 bits: 0 unless x > low, then 1, from high on 2
     Nothing is >= a high that is NaN, and NaN lies in piece 0.
   slope_gradient: inputs dy, bits -> dx = dy * slope[piece]; without `product` dy where the piece is not 0, else 0.
   Both by sample. */
#ifndef OPS_ELEMENTWISE_FEW_BITS_H
#define OPS_ELEMENTWISE_FEW_BITS_H

#include "graph/op.h"

struct slope_attributes {
    double low, high;
    double slope[3];
    int64_t bits, product;
};

/* For gradients whose inputs are dy and what the slope depends on. */
void slope_encoding(struct encoded_input *out, const struct slope_attributes *slopes);
bool relu_encoding(struct encoded_input *out, const struct node *node);

/* Bytes of a row of so many elements. */
static inline int64_t packed_bytes(int64_t elements, int64_t bits)
{
    return (elements * bits + 7) / 8;
}

static inline int packed_get(const uint8_t *row, int64_t bits, int64_t i)
{
    return row[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

/* In order: the first element of a byte clears it. */
static inline void packed_set(uint8_t *row, int64_t bits, int64_t i, int value)
{
    uint8_t *byte = &row[i * bits / 8];
    int shift = (int)(i * bits % 8);
    *byte = (uint8_t)((shift ? *byte : 0) | value << shift);
}

#endif
