/* layer_convolution.c - the options of convolutional layers: Conv, ConvTranspose, DepthwiseConv and SeparableConv. */
#include "model/layers/convolution/layer_convolution.h"

/* valid, same; Conv1D also causal. */
static OPTION_READER(read_padding)
{
    const struct layer_type *type = at->layer->type;
    enum convolution_padding *padding = out;
    bool same = false;
    *padding = PADDING_CAUSAL;
    if (node->kind == YAML_SCALAR && same_word(node->text, "causal") && type->axes == 1 && type->form == FORM_PLAIN)
        return PLIM_OK;
    TRY(option_padding(&same, option, at, node, error));
    *padding = same ? PADDING_SAME : PADDING_VALID;
    return PLIM_OK;
}

#define TO(field) .offset = offsetof(struct convolution, field)
#define FILTERS                                                                                                        \
    {                                                                                                                  \
        "filters", option_extent, TO(filters), .least = 1, .required = true                                            \
    }
/* What all of them take. */
#define COMMON                                                                                                         \
    {"kernel_size", option_axes, TO(kernel_size), .least = 1, .required = true, .nullable = true},                     \
        {"strides", option_axes, TO(strides), .least = 1}, {"padding", read_padding, TO(padding)}, DATA_FORMAT,        \
        {"dilation_rate", option_axes, TO(dilation_rate), .least = 1},                                                 \
        {"activation", option_activation, TO(activation)}, {"use_bias", option_flag, TO(use_bias)},                    \
        {"bias_initializer", option_initializer, TO(bias)}, {.word = "bias_regularizer"},                              \
        {.word = "activity_regularizer"},                                                                              \
    {                                                                                                                  \
        .word = "bias_constraint"                                                                                      \
    }
#define KERNEL                                                                                                         \
    {"kernel_initializer", option_initializer, TO(kernel)}, {.word = "kernel_regularizer"},                            \
    {                                                                                                                  \
        .word = "kernel_constraint"                                                                                    \
    }
#define DEPTHWISE                                                                                                      \
    {"depth_multiplier", option_extent, TO(depth_multiplier), .least = 1},                                             \
        {"depthwise_initializer", option_initializer, TO(kernel)}, {.word = "depthwise_regularizer"},                  \
    {                                                                                                                  \
        .word = "depthwise_constraint"                                                                                 \
    }

static const struct model_option plain_options[] = {
    FILTERS,
    COMMON,
    KERNEL,
    {"groups", option_extent, TO(groups), .least = 1},
};
static const struct model_option transposed_options[] = {
    FILTERS,
    COMMON,
    KERNEL,
    {"output_padding", option_axes, TO(output_padding), .least = 0},
};
static const struct model_option depthwise_options[] = {COMMON, DEPTHWISE};
static const struct model_option separable_options[] = {
    FILTERS,
    COMMON,
    DEPTHWISE,
    {"pointwise_initializer", option_initializer, TO(pointwise)},
    {.word = "pointwise_regularizer"},
    {.word = "pointwise_constraint"},
};

static const struct convolution defaults = {.use_bias = true,
                                            .groups = 1,
                                            .depth_multiplier = 1,
                                            .kernel = {.kind = INITIAL_GLOROT_UNIFORM},
                                            .pointwise = {.kind = INITIAL_GLOROT_UNIFORM},
                                            .strides = {1, 1, 1},
                                            .dilation_rate = {1, 1, 1},
                                            .output_padding = {-1, -1, -1}};

plim_status check_strides(const struct layer *layer, const int64_t *strides, const int64_t *dilation_rate,
                          plim_error *error)
{
    bool strided = false, dilated = false;
    for (int i = 0; i < layer->type->axes; i++) {
        strided |= strides[i] > 1;
        dilated |= dilation_rate[i] > 1;
    }
    if (strided && dilated)
        return layer_fail(layer, error, PLIM_BAD_JOB, "strides above 1 and a dilation_rate above 1 do not go together");
    return PLIM_OK;
}

static plim_status convolution_check(struct layer *layer, plim_error *error)
{
    const struct convolution *conv = layer->options;
    for (int i = 0; i < layer->type->axes; i++)
        if (conv->output_padding[i] >= conv->strides[i])
            return layer_fail(layer, error, PLIM_BAD_JOB, "output_padding %lld must be below the stride %lld",
                              (long long)conv->output_padding[i], (long long)conv->strides[i]);
    TRY(check_strides(layer, conv->strides, conv->dilation_rate, error));
    if (conv->filters % conv->groups)
        return layer_fail(layer, error, PLIM_BAD_JOB, "%lld filters in %lld groups", (long long)conv->filters,
                          (long long)conv->groups);
    return PLIM_OK;
}

#define CONVOLUTION(id, keras, second, of, what, space, table, most)                                                   \
    const struct layer_type layer_##id = {                                                                             \
        .name = keras,                                                                                                 \
        .alias = second,                                                                                               \
        .snake = #id,                                                                                                  \
        OPTIONS(struct convolution, table),                                                                            \
        .defaults = &defaults,                                                                                         \
        .example = most,                                                                                               \
        .check = convolution_check,                                                                                    \
        .form = what,                                                                                                  \
        .axes = space,                                                                                                 \
        .op = of,                                                                                                      \
        .build = convolution_build,                                                                                    \
    }
#define PLAIN(id, keras, second, space)                                                                                \
    CONVOLUTION(id, keras, second, &op_##id, FORM_PLAIN, space, plain_options, FULL_EXAMPLE)
#define TRANSPOSED(id, keras, second, of, space)                                                                       \
    CONVOLUTION(id, keras, second, of, FORM_TRANSPOSED, space, transposed_options, FULL_EXAMPLE)
#define SEPARABLE(id, keras, second, of, space)                                                                        \
    CONVOLUTION(id, keras, second, of, FORM_SEPARABLE, space, separable_options, FULL_EXAMPLE)
#define DEPTHWISE_ONLY(id, keras, space)                                                                               \
    CONVOLUTION(id, keras, NULL, &op_##id, FORM_DEPTHWISE, space, depthwise_options, "%s: {kernel_size: 3}")
#define FULL_EXAMPLE "%s: {filters: 32, kernel_size: 3}"

PLAIN(conv1d, "Conv1D", "Convolution1D", 1);
PLAIN(conv2d, "Conv2D", "Convolution2D", 2);
PLAIN(conv3d, "Conv3D", "Convolution3D", 3);
TRANSPOSED(conv1d_transpose, "Conv1DTranspose", "Convolution1DTranspose", &op_conv1d_input_gradient, 1);
TRANSPOSED(conv2d_transpose, "Conv2DTranspose", "Convolution2DTranspose", &op_conv2d_input_gradient, 2);
TRANSPOSED(conv3d_transpose, "Conv3DTranspose", "Convolution3DTranspose", &op_conv3d_input_gradient, 3);
DEPTHWISE_ONLY(depthwise_conv1d, "DepthwiseConv1D", 1);
DEPTHWISE_ONLY(depthwise_conv2d, "DepthwiseConv2D", 2);
SEPARABLE(separable_conv1d, "SeparableConv1D", "SeparableConvolution1D", &op_depthwise_conv1d, 1);
SEPARABLE(separable_conv2d, "SeparableConv2D", "SeparableConvolution2D", &op_depthwise_conv2d, 2);
