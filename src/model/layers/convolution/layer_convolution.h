/* layer_convolution.h - the convolutional layers: one set of options for all of them. */
#ifndef MODEL_LAYERS_CONVOLUTION_LAYER_CONVOLUTION_H
#define MODEL_LAYERS_CONVOLUTION_LAYER_CONVOLUTION_H

#include "model/layers/layer_options.h"
#include "ops/ops.h"

enum convolution_form { FORM_PLAIN, FORM_TRANSPOSED, FORM_DEPTHWISE, FORM_SEPARABLE };
enum convolution_padding { PADDING_VALID, PADDING_SAME, PADDING_CAUSAL };

struct convolution {
    struct layer_keys keys;
    int64_t filters, depth_multiplier, groups;
    int64_t kernel_size[MOST_SPACE], strides[MOST_SPACE], dilation_rate[MOST_SPACE];
    int64_t output_padding[MOST_SPACE]; /* transposed; -1: Keras's None */
    bool use_bias;
    enum convolution_padding padding;
    const struct activation_type *activation;
    struct initializer kernel, pointwise, bias; /* kernel: depthwise where there are two */
};

/* PLIM_BAD_JOB where both are above 1 on some axis of the layer; of ConvLSTM layers too. */
plim_status check_strides(const struct layer *layer, const int64_t *strides, const int64_t *dilation_rate,
                          plim_error *error);
/* layer_convolution_build.c */
/* [kernel_size..., before_last, last]; one size for each axis of the layer's type. */
struct shape kernel_shape(const struct layer *layer, const int64_t *kernel_size, int64_t before_last, int64_t last);
struct tensor *convolution_build(const struct layer *layer, struct graph *graph, struct tensor *x);

#endif
