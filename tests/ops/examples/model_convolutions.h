/* model_convolutions.h - every distinct convolution of ResNet-50 and of MobileNetV2 on pictures of 224 x 224, depthwise
   kernels of 5 x 5, and some over one and three axes: for the speed table and for the test of what runs them. */
#ifndef TESTS_OPS_EXAMPLES_MODEL_CONVOLUTIONS_H
#define TESTS_OPS_EXAMPLES_MODEL_CONVOLUTIONS_H

#include "ops/products/convolution.h"

struct speed;

struct model_convolution {
    const char *model;
    int64_t size, in, out, kernel, stride; /* the same along each axis */
    int64_t before, after;                 /* padding, of each axis */
    bool depthwise;
    bool first; /* reads the picture: nobody wants a gradient of it */
    int axes;
};

extern const struct model_convolution model_convolutions[];
extern const int model_convolutions_count;

/* Adds one of its three ops to an empty graph. */
struct tensor *model_convolution_add(struct graph *graph, const struct model_convolution *c, enum conv_role role,
                                     enum type type);
/* speed_add, of the convolutions with this op. */
struct tensor *model_convolution_speed(struct graph *graph, struct speed *line, const struct op *op, int variant,
                                       enum type type);

#endif
