/* convolution.h - convolutions over one, two or three axes, and what backends want to know of them.

   Families: conv1d, conv2d, conv3d, depthwise_conv1d, depthwise_conv2d, each of three ops. Data is [N, ..., c], the
   axes between N and c in the order (depth,) (height,) width; kernels are [..., in, out].
     NAME                   y = act(x * k + bias); inputs x, k, bias (optional)
     NAME_input_gradient    dx from dy, k, bias (optional: added to dx). With a gradient of its own it is the
                            transposed convolution: its dy is Conv2DTranspose's input, its k Keras's (h, w, out, in).
     NAME_weight_gradient   outputs dk (SUM) and dbias (SUM; 0 when the attributes do not want it) from x, dy
   k of conv is [..., in / groups, out]: output channel o reads the channels of group o / (out / groups). The number of
   groups follows from the shapes. k of depthwise is [..., in, multiplier]: channel c makes the output channels
   c * multiplier ... of its own; its bytes lie as those of conv with as many groups as channels.
   All are cut by sample. Padding is explicit (same and causal are resolved by the layer). */
#ifndef OPS_PRODUCTS_CONVOLUTION_H
#define OPS_PRODUCTS_CONVOLUTION_H

#include "graph/op.h"
#include "ops/elementwise/activation.h"

#define MOST_SPACE 3 /* axes between the batch and the channels */

/* Entries follow the data's axes: width is entry 1 in two axes, entry 0 in one. */
struct conv_attributes {
    int64_t stride[MOST_SPACE];
    int64_t pad[2 * MOST_SPACE]; /* before, after: top, bottom, left, right in two axes */
    int64_t gap[MOST_SPACE];     /* cells left out between two of the kernel: dilation - 1 */
    enum activation activation;
};
struct conv_gradient_attributes {
    struct conv_attributes conv;
    int64_t input[MOST_SPACE];  /* extents of x */
    int64_t kernel[MOST_SPACE]; /* extents of k */
    int64_t bias;               /* weight gradient: the second output is wanted */
    int64_t groups;             /* of conv; depthwise: any */
};

/* A convolution with its sizes spelt out. Always three axes (depth, height, width): those that the data lacks are 1. */
struct conv_sizes {
    int64_t x[MOST_SPACE], in, k[MOST_SPACE], out, y[MOST_SPACE], groups;
    int64_t stride[MOST_SPACE], before[MOST_SPACE], after[MOST_SPACE], gap[MOST_SPACE];
};
enum conv_role { CONV_FORWARD, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT };
struct conv_family {
    const char *name; /* "conv2d" */
    int axes;
    bool depthwise;
    const struct op *op[3]; /* by role */
};
/* The family of a convolution's op, and which of its three ops it is. */
const struct conv_family *conv_family_of(enum conv_role *role, const struct op *op);
/* Of a node that was inferred. */
void conv_sizes_of(struct conv_sizes *sizes, const struct node *node);

#endif
