/* examples_products.c - examples of the ops of src/ops/products/. */
#include "base/numbers/count.h"
#include "examples.h"

/* ---- batch_matmul ---------------------------------------------------------- */

/* A stack of `inner` (0: no such axis) matrices, batched or not. */
static struct tensor *example_stack(struct graph *graph, const char *name, enum type type, bool batched, int64_t inner,
                                    const int64_t matrix[2])
{
    struct shape shape = {0};
    if (batched)
        shape.dim[shape.rank++] = graph->batch;
    if (inner)
        shape.dim[shape.rank++] = inner;
    shape.dim[shape.rank++] = matrix[0];
    shape.dim[shape.rank++] = matrix[1];
    return batched ? graph_input(graph, name, 0, type, shape) : graph_weight(graph, name, type, shape, true);
}

static struct tensor *batch_matmul_example_of(struct graph *graph, int variant, enum type type, const struct op *op)
{
    static const struct {
        int64_t inner, m, k, n;
        bool turn_a, turn_b, a_batched, b_batched;
        int64_t a_inner, b_inner; /* 0: as `inner`; -1: no such axis */
    } cases[] = {
        {0, 3, 4, 5, false, false, true, true, 0, 0},    {2, 5, 3, 1, true, false, true, true, 0, 0},
        {3, 1, 7, 4, false, true, true, true, 0, 0},     {2, 17, 9, 33, true, true, true, true, 0, 0},
        {2, 3, 4, 5, false, false, true, false, 0, 0},   {2, 3, 4, 5, false, true, true, false, 0, -1},
        {2, 4, 3, 6, true, false, false, true, -1, 0},   {0, 30, 5, 40, false, false, false, true, 0, 0},
        {0, 31, 19, 35, true, false, true, false, 0, 0},
    };
    if (variant >= COUNT(cases))
        return NULL;
    struct batch_matmul_attributes attributes = {cases[variant].turn_a, cases[variant].turn_b, 0};
    if (op == &op_batch_matmul_sum)
        attributes.shared = variant % 2;
    int64_t inner = cases[variant].inner, m = cases[variant].m, k = cases[variant].k, n = cases[variant].n;
    const int64_t a_matrix[2] = {attributes.transpose_a ? k : m, attributes.transpose_a ? m : k};
    const int64_t b_matrix[2] = {attributes.transpose_b ? n : k, attributes.transpose_b ? k : n};
    struct tensor *a =
        example_stack(graph, "a", type, cases[variant].a_batched, cases[variant].a_inner ? 0 : inner, a_matrix);
    struct tensor *b =
        example_stack(graph, "b", type, cases[variant].b_batched, cases[variant].b_inner ? 0 : inner, b_matrix);
    return graph_add(graph, op, (struct tensor *[]){a, b}, 2, &attributes, sizeof(attributes));
}

struct tensor *batch_matmul_example(struct graph *graph, int variant, enum type type)
{
    return batch_matmul_example_of(graph, variant, type, &op_batch_matmul);
}

struct tensor *batch_matmul_sum_example(struct graph *graph, int variant, enum type type)
{
    return batch_matmul_example_of(graph, variant, type, &op_batch_matmul_sum);
}

/* ---- matmul ---------------------------------------------------------------- */

/* [N, rows, width], or [N, width] where rows is 0. */
static struct tensor *example_rows(struct graph *graph, const char *name, enum type type, int64_t rows, int64_t width)
{
    if (rows == 0)
        return example_input(graph, name, type, ROW(width));
    return example_input(graph, name, type, ROW(rows, width));
}

/* Heads: [4, 3, 5] kernels apart and together again, light and heavy. */
static struct tensor *example_heads(struct graph *graph, int variant, enum type type)
{
    const int64_t wide = variant / 4 ? 131 : 5;
    bool apart = variant % 2 == 0, transposed = variant / 2 % 2;
    struct matmul_attributes attributes = {.transposed = transposed, .inner_axes = apart ? 1 : 2};
    struct shape w = apart ? shape_of(3, (int64_t[]){wide, 4, wide + 2}) : shape_of(3, (int64_t[]){4, wide, wide + 2});
    bool two = apart == transposed; /* x ends in two axes */
    struct tensor *x = two ? example_input(graph, "x", type, ROW(7, 4, apart ? wide + 2 : wide))
                           : example_input(graph, "x", type, ROW(7, transposed ? wide + 2 : wide));
    struct tensor *weight = graph_weight(graph, "w", type, w, true);
    struct shape rest = apart ? shape_2(4, wide + 2) : shape_1(wide + 2);
    struct tensor *bias = transposed ? NULL : graph_weight(graph, "bias", type, rest, true);
    return graph_add(graph, &op_matmul, (struct tensor *[]){x, weight, bias}, 3, &attributes, sizeof(attributes));
}

struct tensor *matmul_example(struct graph *graph, int variant, enum type type)
{
    static const struct {
        int64_t in, out;
        bool bias;
        struct matmul_attributes attributes;
        int64_t rows; /* of a sample; 0: no axis between */
    } cases[] = {
        {5, 3, true, {false, ACTIVATION_NONE, 0}, 0},
        {7, 1, false, {false, ACTIVATION_NONE, 0}, 0},
        {17, 33, true, {false, ACTIVATION_RELU, 0}, 0},
        {9, 13, false, {true, ACTIVATION_NONE, 0}, 0},
        {257, 263, true, {false, ACTIVATION_RELU, 0}, 0}, /* heavy */
        {259, 261, false, {true, ACTIVATION_NONE, 0}, 0}, /* heavy */
        {17, 33, true, {false, ACTIVATION_RELU, 0}, 3},
        {9, 35, false, {true, ACTIVATION_NONE, 0}, 70},
        {4, 1, true, {false, ACTIVATION_NONE, 0}, 5},
        {257, 259, true, {false, ACTIVATION_NONE, 0}, 31}, /* heavy */
        {259, 257, false, {true, ACTIVATION_NONE, 0}, 27}, /* heavy */
    };
    const int count = COUNT(cases);
    if (variant >= count)
        return variant < count + 8 ? example_heads(graph, variant - count, type) : NULL;
    int64_t in = cases[variant].in, out = cases[variant].out;
    bool transposed = cases[variant].attributes.transposed;
    struct tensor *x = example_rows(graph, "x", type, cases[variant].rows, in);
    struct tensor *w = graph_weight(graph, "w", type, transposed ? shape_2(out, in) : shape_2(in, out), true);
    struct tensor *bias = cases[variant].bias ? graph_weight(graph, "bias", type, shape_1(out), true) : NULL;
    return graph_add(graph, &op_matmul, (struct tensor *[]){x, w, bias}, 3, &cases[variant].attributes,
                     sizeof(cases[variant].attributes));
}

struct tensor *matmul_weight_gradient_example(struct graph *graph, int variant, enum type type)
{
    static const int64_t cases[][3] = {{5, 3},      {33, 1},     {17, 29},  {263, 257},
                                       {17, 29, 3}, {9, 35, 70}, {5, 1, 4}, {261, 257, 61}};
    const int count = COUNT(cases);
    if (variant >= count + 4)
        return NULL;
    if (variant >= count) { /* heads: a kernel of three axes, light and heavy */
        int64_t wide = variant < count + 2 ? 5 : 131;
        struct matmul_weight_gradient_attributes axes = {1 + variant % 2, 2 - variant % 2};
        struct tensor *one = example_input(graph, "one", type, ROW(7, wide));
        struct tensor *heads = example_input(graph, "heads", type, ROW(7, 4, wide + 2));
        struct tensor *pair[2] = {variant % 2 ? heads : one, variant % 2 ? one : heads};
        return graph_add(graph, &op_matmul_weight_gradient, pair, 2, &axes, sizeof(axes));
    }
    struct tensor *x = example_rows(graph, "x", type, cases[variant][2], cases[variant][0]);
    struct tensor *dy = example_rows(graph, "dy", type, cases[variant][2], cases[variant][1]);
    return binary(graph, &op_matmul_weight_gradient, x, dy);
}

/* ---- convolution_ops ------------------------------------------------------- */

/* Extents follow the family's axes. out of depthwise: its multiplier. Sizes that leave a rest under the stride,
   padding on one side only and more than the kernel, gaps, groups, kernels of 1, channels about a vector's, and one and
   a half. */
struct conv_case {
    const struct op *forward;
    int64_t x[MOST_SPACE], in, k[MOST_SPACE], out, groups;
    bool bias;
    struct conv_attributes conv;
};
static const struct conv_case conv_cases[] = {
    {&op_conv2d, {5, 6}, 3, {3, 3}, 4, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {&op_conv2d, {7, 5}, 2, {3, 2}, 3, 1, true, {{2, 1}, {1, 1, 0, 1}, {0}, ACTIVATION_RELU}},
    {&op_conv2d, {6, 9}, 1, {2, 4}, 5, 1, false, {{2, 3}, {0, 1, 2, 0}, {0}, ACTIVATION_NONE}},
    {&op_conv2d, {4, 3}, 17, {1, 1}, 9, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_RELU}},
    {&op_conv2d, {8, 9}, 2, {3, 2}, 3, 1, true, {{1, 1}, {2, 1, 0, 3}, {1, 2}, ACTIVATION_NONE}},
    {&op_conv2d, {6, 5}, 6, {3, 3}, 4, 2, true, {{1, 2}, {1, 1, 1, 1}, {0}, ACTIVATION_NONE}},
    {&op_conv2d, {4, 4}, 3, {2, 2}, 6, 3, false, {{1, 1}, {0, 1, 0, 1}, {1, 0}, ACTIVATION_RELU}},
    {&op_conv2d, {5, 5}, 16, {1, 1}, 32, 1, false, {{2, 2}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {&op_conv2d, {5, 7}, 5, {1, 1}, 80, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {&op_conv2d, {4, 5}, 16, {1, 1}, 24, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_RELU}},
    {&op_conv2d, {4, 5}, 24, {1, 1}, 12, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {&op_conv2d, {4, 5}, 12, {1, 1}, 6, 1, false, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_RELU}},
    {&op_conv2d, {1, 3}, 6, {1, 1}, 2, 1, true, {{1, 1}, {0, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {&op_conv1d, {11}, 3, {4}, 5, 1, true, {{1}, {3, 0}, {0}, ACTIVATION_NONE}},
    {&op_conv1d, {9}, 2, {3}, 4, 2, true, {{2}, {1, 1}, {0}, ACTIVATION_RELU}},
    {&op_conv1d, {13}, 4, {2}, 3, 1, false, {{1}, {4, 0}, {3}, ACTIVATION_NONE}},
    {&op_conv3d, {4, 5, 3}, 2, {2, 3, 1}, 3, 1, true, {{1, 2, 1}, {0, 1, 1, 0, 0, 0}, {0}, ACTIVATION_NONE}},
    {&op_conv3d, {5, 4, 4}, 2, {2, 2, 3}, 2, 2, true, {{2, 1, 1}, {1, 0, 0, 0, 1, 1}, {1, 0, 0}, ACTIVATION_RELU}},
    {&op_conv3d, {3, 3, 3}, 1, {3, 3, 3}, 2, 1, false, {{1, 1, 1}, {1, 1, 1, 1, 1, 1}, {0}, ACTIVATION_NONE}},
    {&op_depthwise_conv1d, {9}, 3, {3}, 1, 1, true, {{1}, {2, 0}, {0}, ACTIVATION_NONE}},
    {&op_depthwise_conv1d, {10}, 2, {4}, 3, 1, false, {{3}, {0, 1}, {0}, ACTIVATION_RELU}},
    {&op_depthwise_conv2d, {5, 6}, 3, {3, 3}, 1, 1, true, {{1, 1}, {1, 1, 1, 1}, {0}, ACTIVATION_RELU}},
    {&op_depthwise_conv2d, {6, 7}, 17, {3, 3}, 1, 1, false, {{2, 2}, {0, 1, 0, 1}, {0}, ACTIVATION_NONE}},
    {&op_depthwise_conv2d, {4, 19}, 33, {3, 3}, 1, 1, true, {{1, 1}, {1, 1, 1, 1}, {0}, ACTIVATION_NONE}},
    {&op_depthwise_conv2d, {7, 7}, 2, {5, 5}, 2, 1, true, {{2, 2}, {2, 2, 1, 2}, {0}, ACTIVATION_NONE}},
    {&op_depthwise_conv2d, {6, 18}, 16, {5, 5}, 1, 1, false, {{1, 1}, {2, 2, 2, 2}, {0}, ACTIVATION_NONE}},
    {&op_depthwise_conv2d, {7, 6}, 3, {2, 3}, 2, 1, true, {{1, 1}, {0, 1, 2, 2}, {2, 1}, ACTIVATION_RELU}},
    {&op_depthwise_conv2d, {8, 9}, 2, {2, 3}, 1, 1, false, {{3, 2}, {4, 1, 0, 0}, {1, 2}, ACTIVATION_NONE}},
};

static const struct conv_case *case_of(const struct op *forward, int variant)
{
    for (size_t i = 0; i < COUNT(conv_cases); i++)
        if (conv_cases[i].forward == forward && variant-- == 0)
            return &conv_cases[i];
    return NULL;
}

static const struct conv_family *family_of(const struct conv_case *c)
{
    enum conv_role role;
    return conv_family_of(&role, c->forward);
}

static int64_t output_extent(const struct conv_case *c, int i)
{
    int64_t kernel = (c->k[i] - 1) * (c->conv.gap[i] + 1) + 1;
    return (c->x[i] + c->conv.pad[2 * i] + c->conv.pad[2 * i + 1] - kernel) / c->conv.stride[i] + 1;
}

static struct tensor *conv_example_x(struct graph *graph, const struct conv_case *c, enum type type)
{
    int axes = family_of(c)->axes;
    int64_t row[MOST_SPACE + 1];
    for (int i = 0; i < axes; i++)
        row[i] = c->x[i];
    row[axes] = c->in;
    return example_input(graph, "x", type, axes + 1, row);
}

static struct tensor *conv_example_dy(struct graph *graph, const struct conv_case *c, enum type type)
{
    int axes = family_of(c)->axes;
    int64_t row[MOST_SPACE + 1];
    for (int i = 0; i < axes; i++)
        row[i] = output_extent(c, i);
    row[axes] = family_of(c)->depthwise ? c->in * c->out : c->out;
    return example_input(graph, "dy", type, axes + 1, row);
}

static struct tensor *conv_example_k(struct graph *graph, const struct conv_case *c, enum type type)
{
    int axes = family_of(c)->axes;
    struct shape shape = {.rank = axes + 2};
    for (int i = 0; i < axes; i++)
        shape.dim[i] = c->k[i];
    shape.dim[axes] = c->in / c->groups;
    shape.dim[axes + 1] = c->out;
    return graph_weight(graph, "k", type, shape, true);
}

static struct conv_gradient_attributes conv_example_backward(const struct conv_case *c)
{
    struct conv_gradient_attributes back = {.conv = c->conv, .bias = c->bias, .groups = c->groups};
    back.conv.activation = ACTIVATION_NONE;
    for (int i = 0; i < MOST_SPACE; i++) {
        back.input[i] = c->x[i];
        back.kernel[i] = c->k[i];
    }
    return back;
}

static struct tensor *conv_forward_example(struct graph *graph, int variant, enum type type, const struct op *forward)
{
    const struct conv_case *c = case_of(forward, variant);
    if (!c)
        return NULL;
    int64_t out = family_of(c)->depthwise ? c->in * c->out : c->out;
    struct tensor *inputs[] = {conv_example_x(graph, c, type), conv_example_k(graph, c, type), NULL};
    inputs[2] = c->bias ? graph_weight(graph, "bias", type, shape_1(out), true) : NULL;
    return graph_add(graph, family_of(c)->op[CONV_FORWARD], inputs, 3, &c->conv, sizeof(c->conv));
}

static struct tensor *conv_input_gradient_example(struct graph *graph, int variant, enum type type,
                                                  const struct op *forward)
{
    const struct conv_case *c = case_of(forward, variant);
    if (!c)
        return NULL;
    struct conv_gradient_attributes back = conv_example_backward(c);
    struct tensor *inputs[] = {conv_example_dy(graph, c, type), conv_example_k(graph, c, type), NULL};
    inputs[2] = c->bias ? graph_weight(graph, "bias", type, shape_1(c->in), true) : NULL;
    return graph_add(graph, family_of(c)->op[CONV_INPUT_GRADIENT], inputs, 3, &back, sizeof(back));
}

static struct tensor *conv_weight_gradient_example(struct graph *graph, int variant, enum type type,
                                                   const struct op *forward)
{
    const struct conv_case *c = case_of(forward, variant);
    if (!c)
        return NULL;
    struct conv_gradient_attributes back = conv_example_backward(c);
    struct tensor *inputs[] = {conv_example_x(graph, c, type), conv_example_dy(graph, c, type)};
    return graph_add(graph, family_of(c)->op[CONV_WEIGHT_GRADIENT], inputs, 2, &back, sizeof(back));
}

#define CONVOLUTION(name)                                                                                              \
    struct tensor *name##_example(struct graph *graph, int variant, enum type type)                                    \
    {                                                                                                                  \
        return conv_forward_example(graph, variant, type, &op_##name);                                                 \
    }                                                                                                                  \
    struct tensor *name##_input_gradient_example(struct graph *graph, int variant, enum type type)                     \
    {                                                                                                                  \
        return conv_input_gradient_example(graph, variant, type, &op_##name);                                          \
    }                                                                                                                  \
    struct tensor *name##_weight_gradient_example(struct graph *graph, int variant, enum type type)                    \
    {                                                                                                                  \
        return conv_weight_gradient_example(graph, variant, type, &op_##name);                                         \
    }
CONVOLUTION(conv1d)
CONVOLUTION(conv2d)
CONVOLUTION(conv3d)
CONVOLUTION(depthwise_conv1d)
CONVOLUTION(depthwise_conv2d)
