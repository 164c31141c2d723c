/* convolution_ops.c - the table entries of all convolutions, three ops a family. */
#include "base/numbers/count.h"
#include "ops/products/convolution_own.h"

#define FAMILY(what, space, by_channel)                                                                                \
    {                                                                                                                  \
        .name = #what, .axes = (space), .depthwise = (by_channel),                                                     \
        .op = {&op_##what, &op_##what##_input_gradient, &op_##what##_weight_gradient},                                 \
    }

static const struct conv_family families[] = {
    FAMILY(conv1d, 1, false),          FAMILY(conv2d, 2, false),          FAMILY(conv3d, 3, false),
    FAMILY(depthwise_conv1d, 1, true), FAMILY(depthwise_conv2d, 2, true),
};

const struct conv_family *conv_family_of(enum conv_role *role, const struct op *op)
{
    for (int i = 0; i < COUNT(families); i++)
        for (int r = 0; r < 3; r++)
            if (families[i].op[r] == op) {
                *role = (enum conv_role)r;
                return &families[i];
            }
    return NULL;
}

/* ---- the ops ----------------------------------------------------------- */

/* Forward keeps its output with a fused activation only. */
#define CONVOLUTION(what)                                                                                              \
    const struct op op_##what = {                                                                                      \
        .name = #what,                                                                                                 \
        .inputs = 3,                                                                                                   \
        .outputs = 1,                                                                                                  \
        .optional = 1 << 2,                                                                                            \
        .attributes_bytes = sizeof(struct conv_attributes),                                                            \
        .infer = conv_infer,                                                                                           \
        .gradient = conv_gradient,                                                                                     \
        .keeps_inputs = 1 << 0 | 1 << 1,                                                                               \
        .keeps_outputs = 1 << 0,                                                                                       \
        .cut = conv_cut,                                                                                               \
        .reference = conv_reference,                                                                                   \
    };                                                                                                                 \
    const struct op op_##what##_input_gradient = {                                                                     \
        .name = #what "_input_gradient",                                                                               \
        .inputs = 3,                                                                                                   \
        .outputs = 1,                                                                                                  \
        .optional = 1 << 2,                                                                                            \
        .attributes_bytes = sizeof(struct conv_gradient_attributes),                                                   \
        .infer = conv_input_gradient_infer,                                                                            \
        .gradient = conv_input_gradient_gradient,                                                                      \
        .keeps_inputs = 1 << 0 | 1 << 1,                                                                               \
        .cut = conv_cut,                                                                                               \
        .reference = conv_input_gradient_reference,                                                                    \
    };                                                                                                                 \
    const struct op op_##what##_weight_gradient = {                                                                    \
        .name = #what "_weight_gradient",                                                                              \
        .inputs = 2,                                                                                                   \
        .outputs = 2,                                                                                                  \
        .attributes_bytes = sizeof(struct conv_gradient_attributes),                                                   \
        .infer = conv_weight_gradient_infer,                                                                           \
        .no_gradient = NO_SECOND,                                                                                      \
        .cut = conv_cut,                                                                                               \
        .reference = conv_weight_gradient_reference,                                                                   \
    };

CONVOLUTION(conv1d)
CONVOLUTION(conv2d)
CONVOLUTION(conv3d)
CONVOLUTION(depthwise_conv1d)
CONVOLUTION(depthwise_conv2d)
