/* convolution_ops.c - the table entries of all convolutions, three ops a family, and their examples. */
#include "ops/products/convolution_own.h"
#include "ops/products/model_convolutions.h"

#define FAMILY(what, space, by_channel)                                                                                \
    {                                                                                                                  \
        .name = #what, .axes = (space), .depthwise = (by_channel),                                                     \
        .op = {&op_##what, &op_##what##_input_gradient, &op_##what##_weight_gradient},                                 \
    }

enum { CONV1D, CONV2D, CONV3D, DEPTHWISE_CONV1D, DEPTHWISE_CONV2D, FAMILIES };

static const struct conv_family families[FAMILIES] = {
    [CONV1D] = FAMILY(conv1d, 1, false),
    [CONV2D] = FAMILY(conv2d, 2, false),
    [CONV3D] = FAMILY(conv3d, 3, false),
    [DEPTHWISE_CONV1D] = FAMILY(depthwise_conv1d, 1, true),
    [DEPTHWISE_CONV2D] = FAMILY(depthwise_conv2d, 2, true),
};

const struct conv_family *conv_family_of(enum conv_role *role, const struct op *op)
{
    for (int i = 0; i < FAMILIES; i++)
        for (int r = 0; r < 3; r++)
            if (families[i].op[r] == op) {
                *role = (enum conv_role)r;
                return &families[i];
            }
    return NULL;
}

/* ---- examples ---------------------------------------------------------- */

/* Extents follow the family's axes. out of depthwise: its multiplier. Sizes that leave a rest under the stride,
   padding on one side only and more than the kernel, gaps, groups, kernels of 1, channels about a vector's, and one and a
   half. */
struct example_case {
    int family;
    int64_t x[MOST_SPACE], in, k[MOST_SPACE], out, groups;
    bool bias;
    struct conv_attributes conv;
};
static const struct example_case cases[] = {
    {CONV2D, {5, 6}, 3, {3, 3}, 4, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {CONV2D, {7, 5}, 2, {3, 2}, 3, 1, true, {{2, 1}, {1, 1, 0, 1}, {0}, ACTIVATION_RELU}},
    {CONV2D, {6, 9}, 1, {2, 4}, 5, 1, false, {{2, 3}, {0, 1, 2, 0}, {0}, ACTIVATION_NONE}},
    {CONV2D, {4, 3}, 17, {1, 1}, 9, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_RELU}},
    {CONV2D, {8, 9}, 2, {3, 2}, 3, 1, true, {{1, 1}, {2, 1, 0, 3}, {1, 2}, ACTIVATION_NONE}},
    {CONV2D, {6, 5}, 6, {3, 3}, 4, 2, true, {{1, 2}, {1, 1, 1, 1}, {0}, ACTIVATION_NONE}},
    {CONV2D, {4, 4}, 3, {2, 2}, 6, 3, false, {{1, 1}, {0, 1, 0, 1}, {1, 0}, ACTIVATION_RELU}},
    {CONV2D, {5, 5}, 16, {1, 1}, 32, 1, false, {{2, 2}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {CONV2D, {5, 7}, 5, {1, 1}, 80, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {CONV2D, {4, 5}, 16, {1, 1}, 24, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_RELU}},
    {CONV2D, {4, 5}, 24, {1, 1}, 12, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {CONV2D, {4, 5}, 12, {1, 1}, 6, 1, false, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_RELU}},
    {CONV2D, {1, 3}, 6, {1, 1}, 2, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {CONV1D, {11}, 3, {4}, 5, 1, true, {{1}, {3, 0}, {0}, ACTIVATION_NONE}},
    {CONV1D, {9}, 2, {3}, 4, 2, true, {{2}, {1, 1}, {0}, ACTIVATION_RELU}},
    {CONV1D, {13}, 4, {2}, 3, 1, false, {{1}, {4, 0}, {3}, ACTIVATION_NONE}},
    {CONV3D, {4, 5, 3}, 2, {2, 3, 1}, 3, 1, true, {{1, 2, 1}, {0, 1, 1, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {CONV3D, {5, 4, 4}, 2, {2, 2, 3}, 2, 2, true, {{2, 1, 1}, {1, 0, 0, 0, 1, 1}, {1, 0, 0}, ACTIVATION_RELU}},
    {CONV3D, {3, 3, 3}, 1, {3, 3, 3}, 2, 1, false, {{1, 1, 1}, {1, 1, 1, 1, 1, 1}, {0}, ACTIVATION_NONE}},
    {DEPTHWISE_CONV1D, {9}, 3, {3}, 1, 1, true, {{1}, {2, 0}, {0}, ACTIVATION_NONE}},
    {DEPTHWISE_CONV1D, {10}, 2, {4}, 3, 1, false, {{3}, {0, 1}, {0}, ACTIVATION_RELU}},
    {DEPTHWISE_CONV2D, {5, 6}, 3, {3, 3}, 1, 1, true, {{1, 1}, {1, 1, 1, 1}, {0}, ACTIVATION_RELU}},
    {DEPTHWISE_CONV2D, {6, 7}, 17, {3, 3}, 1, 1, false, {{2, 2}, {0, 1, 0, 1}, {0}, ACTIVATION_NONE}},
    {DEPTHWISE_CONV2D, {4, 19}, 33, {3, 3}, 1, 1, true, {{1, 1}, {1, 1, 1, 1}, {0}, ACTIVATION_NONE}},
    {DEPTHWISE_CONV2D, {7, 7}, 2, {5, 5}, 2, 1, true, {{2, 2}, {2, 2, 1, 2}, {0}, ACTIVATION_NONE}},
    {DEPTHWISE_CONV2D, {6, 18}, 16, {5, 5}, 1, 1, false, {{1, 1}, {2, 2, 2, 2}, {0}, ACTIVATION_NONE}},
    {DEPTHWISE_CONV2D, {7, 6}, 3, {2, 3}, 2, 1, true, {{1, 1}, {0, 1, 2, 2}, {2, 1}, ACTIVATION_RELU}},
    {DEPTHWISE_CONV2D, {8, 9}, 2, {2, 3}, 1, 1, false, {{3, 2}, {4, 1, 0, 0}, {1, 2}, ACTIVATION_NONE}},
};

static const struct example_case *case_of(int family, int variant)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (cases[i].family == family && variant-- == 0)
            return &cases[i];
    return NULL;
}

static int64_t output_extent(const struct example_case *c, int i)
{
    int64_t kernel = (c->k[i] - 1) * (c->conv.gap[i] + 1) + 1;
    return (c->x[i] + c->conv.pad[2 * i] + c->conv.pad[2 * i + 1] - kernel) / c->conv.stride[i] + 1;
}

static struct tensor *example_x(struct graph *graph, const struct example_case *c, enum type type)
{
    int axes = families[c->family].axes;
    int64_t row[MOST_SPACE + 1];
    for (int i = 0; i < axes; i++)
        row[i] = c->x[i];
    row[axes] = c->in;
    return example_input(graph, "x", type, axes + 1, row);
}

static struct tensor *example_dy(struct graph *graph, const struct example_case *c, enum type type)
{
    int axes = families[c->family].axes;
    int64_t row[MOST_SPACE + 1];
    for (int i = 0; i < axes; i++)
        row[i] = output_extent(c, i);
    row[axes] = families[c->family].depthwise ? c->in * c->out : c->out;
    return example_input(graph, "dy", type, axes + 1, row);
}

static struct tensor *example_k(struct graph *graph, const struct example_case *c, enum type type)
{
    int axes = families[c->family].axes;
    struct shape shape = {.rank = axes + 2};
    for (int i = 0; i < axes; i++)
        shape.dim[i] = c->k[i];
    shape.dim[axes] = c->in / c->groups;
    shape.dim[axes + 1] = c->out;
    return graph_weight(graph, "k", type, shape, true);
}

static struct conv_gradient_attributes example_backward(const struct example_case *c)
{
    struct conv_gradient_attributes back = {.conv = c->conv, .bias = c->bias, .groups = c->groups};
    back.conv.activation = ACTIVATION_NONE;
    for (int i = 0; i < MOST_SPACE; i++) {
        back.input[i] = c->x[i];
        back.kernel[i] = c->k[i];
    }
    return back;
}

static struct tensor *forward_example(struct graph *graph, int variant, enum type type, int family)
{
    const struct example_case *c = case_of(family, variant);
    if (!c)
        return NULL;
    int64_t out = families[family].depthwise ? c->in * c->out : c->out;
    struct tensor *inputs[] = {example_x(graph, c, type), example_k(graph, c, type), NULL};
    inputs[2] = c->bias ? graph_weight(graph, "bias", type, shape_1(out), true) : NULL;
    return graph_add(graph, families[family].op[CONV_FORWARD], inputs, 3, &c->conv, sizeof(c->conv));
}

static struct tensor *input_gradient_example(struct graph *graph, int variant, enum type type, int family)
{
    const struct example_case *c = case_of(family, variant);
    if (!c)
        return NULL;
    struct conv_gradient_attributes back = example_backward(c);
    struct tensor *inputs[] = {example_dy(graph, c, type), example_k(graph, c, type), NULL};
    inputs[2] = c->bias ? graph_weight(graph, "bias", type, shape_1(c->in), true) : NULL;
    return graph_add(graph, families[family].op[CONV_INPUT_GRADIENT], inputs, 3, &back, sizeof(back));
}

static struct tensor *weight_gradient_example(struct graph *graph, int variant, enum type type, int family)
{
    const struct example_case *c = case_of(family, variant);
    if (!c)
        return NULL;
    struct conv_gradient_attributes back = example_backward(c);
    struct tensor *inputs[] = {example_x(graph, c, type), example_dy(graph, c, type)};
    return graph_add(graph, families[family].op[CONV_WEIGHT_GRADIENT], inputs, 2, &back, sizeof(back));
}

/* ---- the ops ----------------------------------------------------------- */

#define EXAMPLE(what, role, number, which)                                                                             \
    static struct tensor *what##_##role##_example(struct graph *graph, int variant, enum type type)                    \
    {                                                                                                                  \
        return role##_example(graph, variant, type, number);                                                           \
    }                                                                                                                  \
    static struct tensor *what##_##role##_speed(struct graph *graph, struct speed *line, int variant, enum type type)  \
    {                                                                                                                  \
        return model_convolution_speed(graph, line, variant, type, families[number].op[which]);                        \
    }

/* Forward keeps its output with a fused activation only. */
#define CONVOLUTION(what, number)                                                                                      \
    EXAMPLE(what, forward, number, CONV_FORWARD)                                                                       \
    EXAMPLE(what, input_gradient, number, CONV_INPUT_GRADIENT)                                                         \
    EXAMPLE(what, weight_gradient, number, CONV_WEIGHT_GRADIENT)                                                       \
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
        .in_place = NO_INPUT,                                                                                          \
        .cut = conv_cut,                                                                                               \
        .reference = conv_reference,                                                                                   \
        .example = what##_forward_example,                                                                             \
        .speed = what##_forward_speed,                                                                                 \
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
        .in_place = NO_INPUT,                                                                                          \
        .cut = conv_cut,                                                                                               \
        .reference = conv_input_gradient_reference,                                                                    \
        .example = what##_input_gradient_example,                                                                      \
        .speed = what##_input_gradient_speed,                                                                          \
    };                                                                                                                 \
    const struct op op_##what##_weight_gradient = {                                                                    \
        .name = #what "_weight_gradient",                                                                              \
        .inputs = 2,                                                                                                   \
        .outputs = 2,                                                                                                  \
        .attributes_bytes = sizeof(struct conv_gradient_attributes),                                                   \
        .infer = conv_weight_gradient_infer,                                                                           \
        .no_gradient = NO_SECOND,                                                                                      \
        .in_place = NO_INPUT,                                                                                          \
        .cut = conv_cut,                                                                                               \
        .reference = conv_weight_gradient_reference,                                                                   \
        .example = what##_weight_gradient_example,                                                                     \
        .speed = what##_weight_gradient_speed,                                                                         \
    };

CONVOLUTION(conv1d, CONV1D)
CONVOLUTION(conv2d, CONV2D)
CONVOLUTION(conv3d, CONV3D)
CONVOLUTION(depthwise_conv1d, DEPTHWISE_CONV1D)
CONVOLUTION(depthwise_conv2d, DEPTHWISE_CONV2D)
