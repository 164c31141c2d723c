/* examples_elementwise.c - examples of the ops of src/ops/elementwise/. */
#include "base/numbers/count.h"
#include "examples.h"

/* ---- elementwise ----------------------------------------------------------- */

static struct tensor *elementwise_example_pair(struct graph *graph, int variant, enum type type, const struct op *op,
                                               const char *second)
{
    struct tensor *a = example_plain(graph, variant, type, "a");
    struct tensor *b = example_plain(graph, variant, type, second);
    return a && b ? binary(graph, op, a, b) : NULL;
}

struct tensor *relu_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = example_plain(graph, variant, type, "x");
    return x ? unary(graph, &op_relu, x) : NULL;
}

struct tensor *relu_gradient_example(struct graph *graph, int variant, enum type type)
{
    return elementwise_example_pair(graph, variant, type, &op_relu_gradient, "y");
}

struct tensor *sigmoid_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = example_plain(graph, variant, type, "x");
    return x ? unary(graph, &op_sigmoid, x) : NULL;
}

struct tensor *sigmoid_gradient_example(struct graph *graph, int variant, enum type type)
{
    return elementwise_example_pair(graph, variant, type, &op_sigmoid_gradient, "positive:y");
}

struct tensor *scale_example(struct graph *graph, int variant, enum type type)
{
    struct scale_attributes attributes = {variant == 1 ? 0.25 : -3.5};
    struct tensor *x = example_plain(graph, variant, type, "x");
    return x ? graph_add(graph, &op_scale, &x, 1, &attributes, sizeof(attributes)) : NULL;
}

struct tensor *rescale_example(struct graph *graph, int variant, enum type type)
{
    static const enum type from[] = {TYPE_U8, TYPE_F32, TYPE_I16, TYPE_U8, TYPE_F64};
    struct rescale_attributes attributes = {1.0 / 127.5, -1, variant == 4 && type == TYPE_F32};
    if (variant > 4)
        return NULL;
    struct tensor *x = example_plain(graph, variant % 3, variant == 1 ? type : from[variant], "x");
    return graph_add(graph, &op_rescale, &x, 1, &attributes, sizeof(attributes));
}

struct tensor *clip_log_example(struct graph *graph, int variant, enum type type)
{
    struct clip_log_attributes attributes = {variant == 0 ? 1e-7 : 0.3, variant == 0 ? 1 - 1e-7 : 0.7};
    struct tensor *x = example_plain(graph, variant, type, "positive:x");
    return x ? graph_add(graph, &op_clip_log, &x, 1, &attributes, sizeof(attributes)) : NULL;
}

struct tensor *clip_log_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct clip_log_attributes attributes = {0.3, 0.7};
    struct tensor *dy = example_plain(graph, variant, type, "dy");
    struct tensor *x = example_plain(graph, variant, type, "positive:x");
    if (!dy)
        return NULL;
    return graph_add(graph, &op_clip_log_gradient, (struct tensor *[]){dy, x}, 2, &attributes, sizeof(attributes));
}

/* ---- activation_bits -------------------------------------------------------------- */

/* relu's, a slope below 0, one that ends, both. */
static const struct slope_attributes activation_bits_examples[] = {
    {0, NAN, {0, 1, 0}, 1, 0},
    {0, 6, {0, 1, 0}, 1, 1},
    {-1, 1.5, {0, 0.25, 0}, 1, 1},
    {0, 2, {0.3, 1, 0}, 2, 1},
};

/* Rows of 7, 1, 3x2x37 and 2x64 elements with each of them. */
static struct tensor *example_row(struct graph *graph, int variant, enum type type, const char *name)
{
    int which = variant / COUNT(activation_bits_examples);
    return which == 3 ? example_input(graph, name, type, ROW(2, 64)) : example_plain(graph, which, type, name);
}

struct tensor *slope_bits_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = example_row(graph, variant, type, "wide");
    const struct slope_attributes *slopes = &activation_bits_examples[variant % COUNT(activation_bits_examples)];
    return x ? graph_add(graph, &op_slope_bits, &x, 1, slopes, sizeof *slopes) : NULL;
}

struct tensor *slope_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *dy = example_row(graph, variant, type, "dy"), *y = example_row(graph, variant, type, "wide:y");
    const struct slope_attributes *slopes = &activation_bits_examples[variant % COUNT(activation_bits_examples)];
    if (!dy || !y)
        return NULL;
    struct tensor *bits = graph_add(graph, &op_slope_bits, &y, 1, slopes, sizeof *slopes);
    return graph_add(graph, &op_slope_gradient, (struct tensor *[]){dy, bits}, 2, slopes, sizeof *slopes);
}

/* ---- glu ------------------------------------------------------------------- */

static const struct {
    int rank;
    int64_t row[3];
    int64_t from_end;
} glu_examples[] = {{1, {74}, 0}, {1, {2}, 0}, {3, {2, 4, 3}, 1}, {2, {6, 5}, 1}, {2, {3, 10}, 0}};

static struct tensor *glu_example_x(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(glu_examples))
        return NULL;
    return example_input(graph, "wide", type, glu_examples[variant].rank, glu_examples[variant].row);
}

struct tensor *glu_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = glu_example_x(graph, variant, type);
    if (!x)
        return NULL;
    struct axis_attributes attributes = {glu_examples[variant].from_end};
    return graph_add(graph, &op_glu, &x, 1, &attributes, sizeof(attributes));
}

struct tensor *glu_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = glu_example_x(graph, variant, type);
    if (!x)
        return NULL;
    struct axis_attributes attributes = {glu_examples[variant].from_end};
    struct shape shape = x->shape;
    shape.dim[shape.rank - 1 - attributes.from_end] /= 2;
    struct tensor *dy = graph_input(graph, "dy", 1, type, shape);
    return graph_add(graph, &op_glu_gradient, (struct tensor *[]){dy, x}, 2, &attributes, sizeof(attributes));
}

/* ---- noise ----------------------------------------------------------------- */

static struct tensor *example_operand(struct graph *graph, int variant, enum type type)
{
    switch (variant) {
    case 0:
        return example_input(graph, "x", type, ROW(203));
    case 1:
        return example_input(graph, "x", type, 0, NULL);
    case 2:
        return example_input(graph, "x", type, ROW(3, 2, 67));
    case 3:
        return example_input(graph, "x", type, ROW(5, 3));
    default:
        return example_input(graph, "x", type, ROW(2, 3, 4, 5));
    }
}

static struct tensor *example_iteration(struct graph *graph)
{
    return graph_state(graph, "iteration", TYPE_I64, shape_1(1));
}

struct tensor *dropout_example(struct graph *graph, int variant, enum type type)
{
    static const struct dropout_attributes cases[] = {
        {0.5, 2, 0, 0, 7, 0},          {0.25, 1 / 0.75, 0, 0, 1ull << 40, 0},
        {0.1, 0.9, 0.3, -1.5, 9, 0},   {0.4, 1 / 0.6, 0, 0, 11, 1 << 1},
        {0.3, 1.25, 0, 0, 12, 1 << 2}, {0.6, 1.5, 0.5, 0.25, 13, 1 << 0 | 1 << 1 | 1 << 4},
        {0.5, 2, 0, 0, 14, 31},        {1, 0, 0, 0, 15, 0},
        {0, 1, 0, 0, 15, 6},
    };
    if (variant >= COUNT(cases))
        return NULL;
    struct tensor *inputs[2] = {example_operand(graph, variant, type), example_iteration(graph)};
    return graph_add(graph, &op_dropout, inputs, 2, &cases[variant], sizeof(cases[variant]));
}

static struct tensor *gaussian_example(struct graph *graph, int variant, enum type type, const struct op *op)
{
    struct noise_attributes attributes = {variant == 1 ? 2 : 0.3, 77};
    if (variant > 3)
        return NULL;
    struct tensor *inputs[2] = {example_operand(graph, variant, type), example_iteration(graph)};
    return graph_add(graph, op, inputs, 2, &attributes, sizeof(attributes));
}

struct tensor *gaussian_noise_example(struct graph *graph, int variant, enum type type)
{
    return gaussian_example(graph, variant, type, &op_gaussian_noise);
}

struct tensor *gaussian_dropout_example(struct graph *graph, int variant, enum type type)
{
    return gaussian_example(graph, variant, type, &op_gaussian_dropout);
}
