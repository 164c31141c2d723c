/* layer_convolution.c - Conv2D over NHWC data with an HWIO kernel. */
#include "model/layer_options.h"
#include "ops/ops.h"

struct convolution {
    struct layer_words words;
    int64_t filters, kernel_size[2], strides[2];
    bool use_bias, same;
    const struct activation_type *activation;
    struct initializer kernel, bias;
    /* Nodes of the job file: */
    const struct yaml *size_word, *strides_word, *padding_word, *activation_word, *kernel_word, *bias_word;
    const struct yaml *data_format, *dilation_rate, *groups;
    const struct yaml *kernel_regularizer, *bias_regularizer, *activity_regularizer, *kernel_constraint,
        *bias_constraint;
};

#define AT(field) offsetof(struct convolution, field)
static const struct setting settings[] = {
    {"filters", SETTING_WHOLE, AT(filters), 1},
    {"kernel_size", SETTING_NODE, AT(size_word), 0},
    {"strides", SETTING_NODE, AT(strides_word), 0},
    {"padding", SETTING_NODE, AT(padding_word), 0},
    {"activation", SETTING_NODE, AT(activation_word), 0},
    {"use_bias", SETTING_BOOL, AT(use_bias), 0},
    {"kernel_initializer", SETTING_NODE, AT(kernel_word), 0},
    {"bias_initializer", SETTING_NODE, AT(bias_word), 0},
    {"data_format", SETTING_NODE, AT(data_format), 0},
    {"dilation_rate", SETTING_NODE, AT(dilation_rate), 0},
    {"groups", SETTING_NODE, AT(groups), 0},
    {"kernel_regularizer", SETTING_NODE, AT(kernel_regularizer), 0},
    {"bias_regularizer", SETTING_NODE, AT(bias_regularizer), 0},
    {"activity_regularizer", SETTING_NODE, AT(activity_regularizer), 0},
    {"kernel_constraint", SETTING_NODE, AT(kernel_constraint), 0},
    {"bias_constraint", SETTING_NODE, AT(bias_constraint), 0},
    LAYER_WORDS,
};

static plim_status read_unsupported(const struct convolution *conv, const char *job, plim_error *error)
{
    TRY(option_default("Conv2D", job, "data_format", "channels_last", conv->data_format, error));
    TRY(option_default("Conv2D", job, "dilation_rate", "1", conv->dilation_rate, error));
    TRY(option_default("Conv2D", job, "groups", "1", conv->groups, error));
    TRY(option_default("Conv2D", job, "kernel_regularizer", "null", conv->kernel_regularizer, error));
    TRY(option_default("Conv2D", job, "bias_regularizer", "null", conv->bias_regularizer, error));
    TRY(option_default("Conv2D", job, "activity_regularizer", "null", conv->activity_regularizer, error));
    TRY(option_default("Conv2D", job, "kernel_constraint", "null", conv->kernel_constraint, error));
    return option_default("Conv2D", job, "bias_constraint", "null", conv->bias_constraint, error);
}

static plim_status convolution_read(struct layer *layer, const struct yaml *yaml, plim_error *error)
{
    struct convolution *conv = layer->options;
    conv->use_bias = true;
    conv->strides[0] = conv->strides[1] = 1;
    conv->kernel.kind = INITIAL_GLOROT_UNIFORM;
    TRY(layer_read(layer, settings, LENGTH(settings), yaml, error));
    if (!conv->filters)
        return layer_missing(layer, "filters", "Conv2D: {filters: 32, kernel_size: 3}", error);
    TRY(option_extent(layer, "filters", conv->filters, error));
    TRY(option_pair(conv->kernel_size, layer, "kernel_size", conv->size_word, error));
    if (!conv->kernel_size[0])
        return layer_missing(layer, "kernel_size", "Conv2D: {filters: 32, kernel_size: 3}", error);
    TRY(option_pair(conv->strides, layer, "strides", conv->strides_word, error));
    TRY(option_padding(&conv->same, layer, conv->padding_word, error));
    TRY(option_activation(&conv->activation, layer, conv->activation_word, error));
    TRY(option_initializer(&conv->kernel, layer, "kernel_initializer", conv->kernel_word, error));
    TRY(option_initializer(&conv->bias, layer, "bias_initializer", conv->bias_word, error));
    return read_unsupported(conv, layer->model->job, error);
}

/* Padding and a check that the kernel fits. */
static bool place_kernel(struct conv_attributes *out, const struct layer *layer, struct graph *graph,
                         const struct tensor *x)
{
    const struct convolution *conv = layer->options;
    char shape[96];
    bool fits = x->shape.rank == 4;
    for (int axis = 0; fits && axis < 2; axis++) {
        int64_t extent;
        out->stride[axis] = conv->strides[axis];
        fits = window_place(&extent, &out->pad[2 * axis], &out->pad[2 * axis + 1], x->shape.dim[1 + axis],
                            conv->kernel_size[axis], conv->strides[axis], conv->same);
    }
    if (fits)
        return true;
    shape_text(shape, sizeof shape, &x->shape, true);
    if (x->shape.rank != 4)
        graph_fail(graph, PLIM_BAD_JOB, "%s: wants (batch, height, width, channels), got %s", layer->name, shape);
    else
        graph_fail(graph, PLIM_BAD_JOB, "%s: a kernel of %lldx%lld does not fit into %s", layer->name,
                   (long long)conv->kernel_size[0], (long long)conv->kernel_size[1], shape);
    return false;
}

static struct tensor *convolution_build(struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct convolution *conv = layer->options;
    struct conv_attributes attributes = {.activation = ACTIVATION_NONE};
    if (!x || !place_kernel(&attributes, layer, graph, x))
        return NULL;
    int64_t field = conv->kernel_size[0] * conv->kernel_size[1], channels = x->shape.dim[3];
    struct shape shape = shape_of(4, (int64_t[]){conv->kernel_size[0], conv->kernel_size[1], channels, conv->filters});
    struct tensor *inputs[3] = {x, NULL, NULL};
    struct initializer kernel = conv->kernel, bias = conv->bias;
    uint64_t bytes;
    if (shape_bytes(&bytes, &shape, TYPE_F32)) { /* else the weight is refused */
        kernel.fan_in = field * channels;
        kernel.fan_out = field * conv->filters;
    }
    bias.fan_in = bias.fan_out = conv->filters;
    inputs[1] = model_weight(layer, graph, "kernel", shape, kernel);
    if (conv->use_bias)
        inputs[2] = model_weight(layer, graph, "bias", shape_of(1, &conv->filters), bias);
    x = graph_add(graph, &op_conv2d, inputs, conv->use_bias ? 3 : 2, &attributes, sizeof attributes);
    return activation_apply(layer, graph, conv->activation, x);
}

const struct layer_type layer_conv2d = {
    .name = "Conv2D",
    .alias = "Convolution2D",
    .snake = "conv2d",
    .options_bytes = sizeof(struct convolution),
    .read = convolution_read,
    .build = convolution_build,
};
