/* cpu_conv_axis.h - a convolution and the gradient of its input as one sum: along each axis output t is a sum of the
   inputs t * stride + at + j * at_step times the weights weight + j * weight_step, j < taps. Forward is one such sum
   with the stride of the convolution; the gradient is one of stride 1 over dy for each residue of the stride. */
#ifndef CPU_CONV_AXIS_H
#define CPU_CONV_AXIS_H

#include "backends/cpu/vector.h"
#include "ops/products/convolution.h"

/* Gradients of weights and bias are sums over slices, of which the first begins with zeros. */
INLINE void begin_weight_sums(const struct call *call, int64_t weights, int64_t channels)
{
    if (call->add)
        return;
    memset(call->output[0], 0, (size_t)weights * sizeof(float));
    memset(call->output[1], 0, (size_t)channels * sizeof(float));
}

/* One axis of the sum above: where outputs, inputs and weights lie along it. */
struct conv_axis {
    int64_t count, out, out_step; /* outputs: out + t * out_step */
    int64_t extent;               /* of the inputs */
    int64_t stride, at, at_step;
    int64_t taps, weight, weight_step;
};

INLINE struct conv_axis forward_axis(const struct conv_sizes *s, int axis)
{
    return (struct conv_axis){
        .count = s->y[axis],
        .out_step = 1,
        .extent = s->x[axis],
        .stride = s->stride[axis],
        .at = -s->before[axis],
        .at_step = s->gap[axis] + 1,
        .taps = s->k[axis],
        .weight_step = 1,
    };
}

/* The cells residue, residue + stride... of dx. Kernel cell j meets them where residue + before - j * dilation is a
   multiple of the stride; from the last such j down, dy's cells go up. */
INLINE struct conv_axis backward_axis(const struct conv_sizes *s, int axis, int64_t residue)
{
    int64_t stride = s->stride[axis], dilation = s->gap[axis] + 1, from = residue + s->before[axis];
    struct conv_axis along = {
        .count = (s->x[axis] - residue + stride - 1) / stride,
        .out = residue,
        .out_step = stride,
        .extent = s->y[axis],
        .stride = 1,
        .at_step = 1,
    };
    int64_t last = -1;
    for (int64_t j = s->k[axis] - 1; j >= 0; j--) {
        if ((from - j * dilation) % stride != 0)
            continue;
        int64_t at = (from - j * dilation) / stride;
        if (along.taps == 0) {
            along.at = at;
            along.weight = j;
        } else if (along.taps == 1) {
            along.at_step = at - along.at;
            along.weight_step = j - last;
        }
        last = j;
        along.taps++;
    }
    return along;
}

#endif
