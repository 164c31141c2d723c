/* layer_convolution.h - the convolutional layers: one set of options for all of them. */
#ifndef MODEL_LAYERS_CONVOLUTION_LAYER_CONVOLUTION_H
#define MODEL_LAYERS_CONVOLUTION_LAYER_CONVOLUTION_H

#include "model/layers/layer_options.h"
#include "ops/ops.h"

enum convolution_form { FORM_PLAIN, FORM_TRANSPOSED, FORM_DEPTHWISE, FORM_SEPARABLE };

struct convolution_kind {
    enum convolution_form form;
    int axes;
    const struct op *op;        /* of the first kernel; transposed: the input gradient */
    const struct op *pointwise; /* separable: of the second */
};

struct convolution {
    struct layer_words words;
    const struct convolution_kind *kind;
    int64_t filters, depth_multiplier, groups;
    int64_t kernel_size[MOST_SPACE], strides[MOST_SPACE], dilation_rate[MOST_SPACE];
    int64_t output_padding[MOST_SPACE]; /* transposed; -1: Keras's None */
    bool use_bias;
    enum { PADDING_VALID, PADDING_SAME, PADDING_CAUSAL } padding;
    const struct activation_type *activation;
    struct initializer kernel, pointwise, bias; /* kernel: depthwise where there are two */
    /* Nodes of the job file: */
    const struct yaml *size_word, *strides_word, *padding_word, *dilation_word, *output_padding_word;
    const struct yaml *activation_word, *kernel_word, *pointwise_word, *bias_word, *data_format;
};

/* layer_convolution_build.c */
/* A weight of shape [kernel_size..., before_last, last], with Keras's fans. */
struct tensor *convolution_kernel(const struct layer *layer, struct graph *graph, const char *name, int axes,
                                  const int64_t *kernel_size, int64_t before_last, int64_t last,
                                  struct initializer initializer);
struct tensor *convolution_build(const struct layer *layer, struct graph *graph, struct tensor *x);

#endif
