/* layer_convolution_build.c - nodes and weights of the convolutional layers. Data is [N, ..., channels]. */
#include "model/layers/convolution/layer_convolution.h"

#include <stdio.h>

/* Extent of a kernel with its gaps. */
static int64_t reach(const struct convolution *conv, int axis)
{
    return (conv->kernel_size[axis] - 1) * conv->dilation_rate[axis] + 1;
}

static bool refuse_kernel(const struct layer *layer, struct graph *graph, const struct tensor *x)
{
    const struct convolution *conv = layer->options;
    char kernel[96];
    int used = 0;
    for (int i = 0; i < layer->type->axes; i++)
        used += snprintf(kernel + used, sizeof kernel - (size_t)used, "%s%lld", i ? "x" : "",
                         (long long)conv->kernel_size[i]);
    return layer_misfit(layer, graph, x, "a kernel of %s does not fit into", kernel) != NULL;
}

static void set_axis(struct conv_attributes *out, const struct convolution *conv, int axis)
{
    out->stride[axis] = conv->strides[axis];
    out->gap[axis] = conv->dilation_rate[axis] - 1;
}

/* Padding and a check that the kernel fits. */
static bool place_kernel(struct conv_attributes *out, const struct layer *layer, struct graph *graph,
                         const struct tensor *x)
{
    const struct convolution *conv = layer->options;
    bool fits = true;
    for (int axis = 0; fits && axis < layer->type->axes; axis++) {
        int64_t extent, in = x->shape.dim[1 + axis], kernel = reach(conv, axis);
        set_axis(out, conv, axis);
        if (conv->padding == PADDING_CAUSAL)
            out->pad[0] = kernel - 1; /* an output reads nothing that comes after it */
        else
            fits = window_place(&extent, &out->pad[2 * axis], in, kernel, conv->strides[axis],
                                conv->padding == PADDING_SAME);
    }
    return fits || refuse_kernel(layer, graph, x);
}

/* Keras's sizes of what a transposed convolution makes; it is the gradient of a convolution that would make x. */
static bool place_transposed(struct conv_gradient_attributes *out, const struct layer *layer, struct graph *graph,
                             const struct tensor *x)
{
    const struct convolution *conv = layer->options;
    for (int axis = 0; axis < layer->type->axes; axis++) {
        int64_t in = x->shape.dim[1 + axis], stride = conv->strides[axis], kernel = reach(conv, axis);
        int64_t more = conv->output_padding[axis], span = (in - 1) * stride + kernel;
        set_axis(&out->conv, conv, axis);
        out->kernel[axis] = conv->kernel_size[axis];
        if (conv->padding == PADDING_SAME) {
            out->input[axis] = more < 0 ? in * stride : (in - 1) * stride + kernel % 2 + more;
            int64_t missing = span > out->input[axis] ? span - out->input[axis] : 0;
            out->conv.pad[2 * axis] = missing / 2;
            out->conv.pad[2 * axis + 1] = missing - missing / 2;
        } else {
            out->input[axis] = span + (more >= 0 ? more : kernel < stride ? stride - kernel : 0);
        }
        if (out->input[axis] < 1 || out->input[axis] > MOST_EXTENT)
            return refuse_kernel(layer, graph, x);
    }
    return true;
}

struct shape kernel_shape(const struct layer *layer, const int64_t *kernel_size, int64_t before_last, int64_t last)
{
    int axes = layer->type->axes;
    struct shape shape = shape_of(axes, kernel_size);
    shape.dim[axes] = before_last;
    shape.dim[axes + 1] = last;
    shape.rank = axes + 2;
    return shape;
}

static struct tensor *bias_weight(const struct layer *layer, struct graph *graph, int64_t channels)
{
    const struct convolution *conv = layer->options;
    return conv->use_bias ? model_bias(layer, graph, "bias", channels, conv->bias) : NULL;
}

static struct tensor *build_plain(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct convolution *conv = layer->options;
    struct conv_attributes attributes = {.activation = ACTIVATION_NONE};
    int64_t channels = x->shape.dim[layer->type->axes + 1];
    if (!place_kernel(&attributes, layer, graph, x))
        return NULL;
    if (channels % conv->groups)
        return graph_fail(graph, PLIM_BAD_JOB, "%s: %lld channels in %lld groups", layer->name, (long long)channels,
                          (long long)conv->groups);
    struct tensor *inputs[3] = {x};
    inputs[1] =
        model_kernel(layer, graph, "kernel",
                     kernel_shape(layer, conv->kernel_size, channels / conv->groups, conv->filters), conv->kernel);
    inputs[2] = bias_weight(layer, graph, conv->filters);
    return graph_add(graph, layer->type->op, inputs, conv->use_bias ? 3 : 2, &attributes, sizeof attributes);
}

/* Its kernel is Keras's (..., out, in): what a convolution the other way round would have. */
static struct tensor *build_transposed(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct convolution *conv = layer->options;
    struct conv_gradient_attributes attributes = {.groups = 1};
    if (!place_transposed(&attributes, layer, graph, x))
        return NULL;
    struct tensor *inputs[3] = {x};
    inputs[1] = model_kernel(layer, graph, "kernel",
                             kernel_shape(layer, conv->kernel_size, conv->filters, x->shape.dim[layer->type->axes + 1]),
                             conv->kernel);
    inputs[2] = bias_weight(layer, graph, conv->filters);
    return graph_add(graph, layer->type->op, inputs, conv->use_bias ? 3 : 2, &attributes, sizeof attributes);
}

static struct tensor *build_depthwise(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct convolution *conv = layer->options;
    struct conv_attributes attributes = {.activation = ACTIVATION_NONE}, next = {.activation = ACTIVATION_NONE};
    static const int64_t point[MOST_SPACE] = {1, 1, 1};
    static const struct op *const plain[MOST_SPACE] = {&op_conv1d, &op_conv2d, &op_conv3d};
    int64_t channels = x->shape.dim[layer->type->axes + 1], made = channels * conv->depth_multiplier;
    bool separable = layer->type->form == FORM_SEPARABLE;
    if (!place_kernel(&attributes, layer, graph, x))
        return NULL;
    struct tensor *inputs[3] = {x};
    inputs[1] = model_kernel(layer, graph, separable ? "depthwise_kernel" : "kernel",
                             kernel_shape(layer, conv->kernel_size, channels, conv->depth_multiplier), conv->kernel);
    inputs[2] = separable ? NULL : bias_weight(layer, graph, made);
    x = graph_add(graph, layer->type->op, inputs, inputs[2] ? 3 : 2, &attributes, sizeof attributes);
    if (!separable)
        return x;
    for (int i = 0; i < layer->type->axes; i++)
        next.stride[i] = 1;
    inputs[0] = x;
    inputs[1] = model_kernel(layer, graph, "pointwise_kernel", kernel_shape(layer, point, made, conv->filters),
                             conv->pointwise);
    inputs[2] = bias_weight(layer, graph, conv->filters);
    return graph_add(graph, plain[layer->type->axes - 1], inputs, inputs[2] ? 3 : 2, &next, sizeof next);
}

struct tensor *convolution_build(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct convolution *conv = layer->options;
    if (!x || !has_spatial_axes(layer, graph, x))
        return NULL;
    if (layer->type->form == FORM_PLAIN)
        x = build_plain(layer, graph, x);
    else if (layer->type->form == FORM_TRANSPOSED)
        x = build_transposed(layer, graph, x);
    else
        x = build_depthwise(layer, graph, x);
    return activation_apply(layer, graph, conv->activation, x);
}
