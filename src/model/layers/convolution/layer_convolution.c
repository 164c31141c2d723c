/* layer_convolution.c - the convolutional layers' words: Conv, ConvTranspose, DepthwiseConv and SeparableConv. */
#include "model/layers/convolution/layer_convolution.h"

#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(struct convolution, field)

/* What all of them take. */
#define COMMON_WORDS                                                                                                   \
    {"kernel_size", SETTING_NODE, AT(size_word), 0}, {"strides", SETTING_NODE, AT(strides_word), 0},                   \
        {"padding", SETTING_NODE, AT(padding_word), 0}, {"data_format", SETTING_NODE, AT(data_format), 0},             \
        {"dilation_rate", SETTING_NODE, AT(dilation_word), 0}, {"activation", SETTING_NODE, AT(activation_word), 0},   \
        {"use_bias", SETTING_BOOL, AT(use_bias), 0}, {"bias_initializer", SETTING_NODE, AT(bias_word), 0},             \
        {"bias_regularizer", SETTING_ELSEWHERE, 0, 0}, {"activity_regularizer", SETTING_ELSEWHERE, 0, 0},              \
        {"bias_constraint", SETTING_ELSEWHERE, 0, 0}, LAYER_WORDS
#define KERNEL_WORDS                                                                                                   \
    {"kernel_initializer", SETTING_NODE, AT(kernel_word), 0}, {"kernel_regularizer", SETTING_ELSEWHERE, 0, 0},         \
    {                                                                                                                  \
        "kernel_constraint", SETTING_ELSEWHERE, 0, 0                                                                   \
    }
#define DEPTHWISE_WORDS                                                                                                \
    {"depth_multiplier", SETTING_WHOLE, AT(depth_multiplier), 1},                                                      \
        {"depthwise_initializer", SETTING_NODE, AT(kernel_word), 0},                                                   \
        {"depthwise_regularizer", SETTING_ELSEWHERE, 0, 0},                                                            \
    {                                                                                                                  \
        "depthwise_constraint", SETTING_ELSEWHERE, 0, 0                                                                \
    }

static const struct setting plain_settings[] = {
    {"filters", SETTING_WHOLE, AT(filters), 1},
    COMMON_WORDS,
    KERNEL_WORDS,
    {"groups", SETTING_WHOLE, AT(groups), 1},
};
static const struct setting transposed_settings[] = {
    {"filters", SETTING_WHOLE, AT(filters), 1},
    COMMON_WORDS,
    KERNEL_WORDS,
    {"output_padding", SETTING_NODE, AT(output_padding_word), 0},
};
static const struct setting depthwise_settings[] = {COMMON_WORDS, DEPTHWISE_WORDS};
static const struct setting separable_settings[] = {
    {"filters", SETTING_WHOLE, AT(filters), 1},
    COMMON_WORDS,
    DEPTHWISE_WORDS,
    {"pointwise_initializer", SETTING_NODE, AT(pointwise_word), 0},
    {"pointwise_regularizer", SETTING_ELSEWHERE, 0, 0},
    {"pointwise_constraint", SETTING_ELSEWHERE, 0, 0},
};

static const struct {
    const struct setting *settings;
    int count;
} words_of[] = {
    [FORM_PLAIN] = {plain_settings, LENGTH(plain_settings)},
    [FORM_TRANSPOSED] = {transposed_settings, LENGTH(transposed_settings)},
    [FORM_DEPTHWISE] = {depthwise_settings, LENGTH(depthwise_settings)},
    [FORM_SEPARABLE] = {separable_settings, LENGTH(separable_settings)},
};

/* valid, same; Conv1D also causal. */
static plim_status read_padding(struct convolution *conv, const struct layer *layer, plim_error *error)
{
    const struct yaml *node = conv->padding_word;
    bool same = false;
    if (node && node->kind == YAML_SCALAR && same_word(node->text, "causal") && conv->kind->axes == 1 &&
        conv->kind->form == FORM_PLAIN) {
        conv->padding = PADDING_CAUSAL;
        return PLIM_OK;
    }
    TRY(option_padding(&same, layer, node, error));
    conv->padding = same ? PADDING_SAME : PADDING_VALID;
    return PLIM_OK;
}

static plim_status read_output_padding(struct convolution *conv, const struct layer *layer, plim_error *error)
{
    char where[256];
    for (int i = 0; i < MOST_SPACE; i++)
        conv->output_padding[i] = -1;
    TRY(option_axes(conv->output_padding, conv->kind->axes, 0, layer, "output_padding", conv->output_padding_word,
                    error));
    for (int i = 0; i < conv->kind->axes; i++) {
        if (conv->output_padding[i] < conv->strides[i])
            continue;
        layer_place(where, layer);
        return fail_at(error, PLIM_BAD_JOB, where, "%s: output_padding %lld must be below the stride %lld",
                       layer->type->name, (long long)conv->output_padding[i], (long long)conv->strides[i]);
    }
    return PLIM_OK;
}

static plim_status check_numbers(const struct convolution *conv, const struct layer *layer, plim_error *error)
{
    char where[256];
    bool strided = false, dilated = false;
    TRY(option_extent(layer, "filters", conv->filters, error));
    TRY(option_extent(layer, "groups", conv->groups, error));
    TRY(option_extent(layer, "depth_multiplier", conv->depth_multiplier, error));
    for (int i = 0; i < conv->kind->axes; i++) {
        strided |= conv->strides[i] > 1;
        dilated |= conv->dilation_rate[i] > 1;
    }
    layer_place(where, layer);
    if (strided && dilated)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: strides above 1 and a dilation_rate above 1 do not go together",
                       layer->type->name);
    if (conv->filters % conv->groups)
        return fail_at(error, PLIM_BAD_JOB, where, "%s: %lld filters in %lld groups", layer->type->name,
                       (long long)conv->filters, (long long)conv->groups);
    return PLIM_OK;
}

static plim_status missing(const struct layer *layer, const char *word, plim_error *error)
{
    const struct convolution *conv = layer->options;
    char example[96];
    snprintf(example, sizeof example, "%s: {%skernel_size: 3}", layer->type->name,
             conv->kind->form == FORM_DEPTHWISE ? "" : "filters: 32, ");
    return layer_missing(layer, word, example, error);
}

static plim_status read_kind(struct layer *layer, const struct convolution_kind *kind, const struct yaml *yaml,
                             plim_error *error)
{
    struct convolution *conv = layer->options;
    const struct setting *settings = words_of[kind->form].settings;
    int count = words_of[kind->form].count;
    conv->kind = kind;
    conv->use_bias = true;
    conv->groups = conv->depth_multiplier = 1;
    conv->kernel.kind = conv->pointwise.kind = INITIAL_GLOROT_UNIFORM;
    for (int i = 0; i < MOST_SPACE; i++)
        conv->strides[i] = conv->dilation_rate[i] = 1;
    TRY(layer_read(layer, settings, count, yaml, error));
    if (!conv->filters && kind->form != FORM_DEPTHWISE)
        return missing(layer, "filters", error);
    TRY(option_axes(conv->kernel_size, kind->axes, 1, layer, "kernel_size", conv->size_word, error));
    if (!conv->kernel_size[0])
        return missing(layer, "kernel_size", error);
    TRY(option_axes(conv->strides, kind->axes, 1, layer, "strides", conv->strides_word, error));
    TRY(option_axes(conv->dilation_rate, kind->axes, 1, layer, "dilation_rate", conv->dilation_word, error));
    TRY(read_padding(conv, layer, error));
    TRY(read_output_padding(conv, layer, error));
    TRY(check_numbers(conv, layer, error));
    TRY(option_activation(&conv->activation, layer, conv->activation_word, error));
    const char *word =
        kind->form == FORM_PLAIN || kind->form == FORM_TRANSPOSED ? "kernel_initializer" : "depthwise_initializer";
    TRY(option_initializer(&conv->kernel, layer, word, conv->kernel_word, error));
    TRY(option_initializer(&conv->pointwise, layer, "pointwise_initializer", conv->pointwise_word, error));
    TRY(option_initializer(&conv->bias, layer, "bias_initializer", conv->bias_word, error));
    return option_default(layer->type->name, layer->model->job, "data_format", "channels_last", conv->data_format,
                          error);
}

#define CONVOLUTION(id, keras, second, first_op, second_op, what, space)                                               \
    static plim_status id##_read(struct layer *layer, const struct yaml *yaml, plim_error *error)                      \
    {                                                                                                                  \
        static const struct convolution_kind kind = {                                                                  \
            .form = (what), .axes = (space), .op = (first_op), .pointwise = (second_op)};                              \
        return read_kind(layer, &kind, yaml, error);                                                                   \
    }                                                                                                                  \
    const struct layer_type layer_##id = {                                                                             \
        .name = keras,                                                                                                 \
        .alias = second,                                                                                               \
        .snake = #id,                                                                                                  \
        .options_bytes = sizeof(struct convolution),                                                                   \
        .read = id##_read,                                                                                             \
        .build = convolution_build,                                                                                    \
    };

CONVOLUTION(conv1d, "Conv1D", "Convolution1D", &op_conv1d, NULL, FORM_PLAIN, 1)
CONVOLUTION(conv2d, "Conv2D", "Convolution2D", &op_conv2d, NULL, FORM_PLAIN, 2)
CONVOLUTION(conv3d, "Conv3D", "Convolution3D", &op_conv3d, NULL, FORM_PLAIN, 3)
CONVOLUTION(conv1d_transpose, "Conv1DTranspose", "Convolution1DTranspose", &op_conv1d_input_gradient, NULL,
            FORM_TRANSPOSED, 1)
CONVOLUTION(conv2d_transpose, "Conv2DTranspose", "Convolution2DTranspose", &op_conv2d_input_gradient, NULL,
            FORM_TRANSPOSED, 2)
CONVOLUTION(conv3d_transpose, "Conv3DTranspose", "Convolution3DTranspose", &op_conv3d_input_gradient, NULL,
            FORM_TRANSPOSED, 3)
CONVOLUTION(depthwise_conv1d, "DepthwiseConv1D", NULL, &op_depthwise_conv1d, NULL, FORM_DEPTHWISE, 1)
CONVOLUTION(depthwise_conv2d, "DepthwiseConv2D", NULL, &op_depthwise_conv2d, NULL, FORM_DEPTHWISE, 2)
CONVOLUTION(separable_conv1d, "SeparableConv1D", "SeparableConvolution1D", &op_depthwise_conv1d, &op_conv1d,
            FORM_SEPARABLE, 1)
CONVOLUTION(separable_conv2d, "SeparableConv2D", "SeparableConvolution2D", &op_depthwise_conv2d, &op_conv2d,
            FORM_SEPARABLE, 2)
