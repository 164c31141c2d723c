/* examples_normalize.c - examples of the ops of src/ops/normalize/. */
#include "base/numbers/count.h"
#include "examples.h"

/* ---- batch_normalize ------------------------------------------------------- */

static struct tensor *batch_normalize_example_x(struct graph *graph, int variant, enum type type, const char *name)
{
    switch (variant) {
    case 0:
        return example_input(graph, name, type, ROW(3, 2, 5));
    case 1:
        return example_input(graph, name, type, ROW(1));
    case 2:
        return example_input(graph, name, type, ROW(37));
    case 3:
        return example_input(graph, name, type, ROW(3, 16));
    case 4:
        return example_input(graph, name, type, ROW(70, 3));
    case 5:
        return example_input(graph, name, type, ROW(2, 131));
    default:
        return NULL;
    }
}

struct tensor *batch_moments_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *x = batch_normalize_example_x(graph, variant, type, "x");
    return x ? unary(graph, &op_batch_moments, x) : NULL;
}

struct tensor *batch_statistics_example(struct graph *graph, int variant, enum type type)
{
    static const int64_t extents[] = {7, 1, 37};
    struct batch_statistics_attributes attributes = {type};
    if (variant > 2)
        return NULL;
    struct tensor *moments[2] = {graph_state(graph, "mean", TYPE_F64, shape_1(extents[variant])),
                                 graph_state(graph, "positive:squares", TYPE_F64, shape_1(extents[variant]))};
    return graph_add(graph, &op_batch_statistics, moments, 2, &attributes, sizeof(attributes));
}

struct tensor *batch_moving_example(struct graph *graph, int variant, enum type type)
{
    static const int64_t extents[] = {7, 1, 37};
    struct batch_moving_attributes attributes = {variant == 1 ? 0.5 : 0.99};
    if (variant > 2)
        return NULL;
    struct shape shape = shape_1(extents[variant]);
    struct tensor *inputs[] = {
        graph_weight(graph, "moving_mean", type, shape, false),
        graph_weight(graph, "moving_variance", type, shape, false),
        graph_state(graph, "mean", type, shape),
        graph_state(graph, "positive:variance", type, shape),
    };
    return graph_add(graph, &op_batch_moving, inputs, 4, &attributes, sizeof(attributes));
}

/* x, mean, variance, gamma, beta: with all activations, with and without gamma and beta. */
static bool batch_normalize_example_operands(struct tensor *inputs[5], struct batch_normalize_attributes *attributes,
                                             struct graph *graph, int variant, enum type type, bool of_batch)
{
    struct batch_statistics_attributes kind = {wide_type(type)};
    struct tensor *x = batch_normalize_example_x(graph, variant, type, "x");
    if (!x)
        return false;
    inputs[0] = x;
    if (of_batch) {
        struct tensor *moments = unary(graph, &op_batch_moments, x);
        inputs[1] = graph_add(graph, &op_batch_statistics, (struct tensor *[]){moments, graph_output(moments, 1)}, 2,
                              &kind, sizeof(kind));
        inputs[2] = graph_output(inputs[1], 1);
    } else {
        inputs[1] = graph_weight(graph, "mean", type, shape_1(last_dim(x)), false);
        inputs[2] = graph_weight(graph, "positive:variance", type, shape_1(last_dim(x)), false);
    }
    inputs[3] = variant != 2 ? graph_weight(graph, "gamma", type, shape_1(last_dim(x)), true) : NULL;
    inputs[4] = variant != 2 && variant != 3 ? graph_weight(graph, "beta", type, shape_1(last_dim(x)), true) : NULL;
    *attributes = (struct batch_normalize_attributes){
        .epsilon = 1e-3, .activation = variant == 0 || variant == 5 ? ACTIVATION_NONE : ACTIVATION_RELU};
    if (variant == 4)
        attributes->activation = ACTIVATION_RELU6;
    return true;
}

/* Six variants with statistics that are given, six with those of the batch. Of a batch of one value a channel, the
   gradient is 0 but for rounding. */
struct tensor *batch_normalize_example(struct graph *graph, int variant, enum type type)
{
    struct batch_normalize_attributes attributes;
    struct tensor *inputs[5];
    if (!batch_normalize_example_operands(inputs, &attributes, graph, variant < 6 ? variant : variant - 6, type,
                                          variant >= 6))
        return NULL;
    return graph_add(graph, &op_batch_normalize, inputs, 5, &attributes, sizeof(attributes));
}

struct tensor *batch_normalize_sums_example(struct graph *graph, int variant, enum type type)
{
    struct batch_normalize_attributes attributes;
    struct tensor *inputs[6] = {batch_normalize_example_x(graph, variant, type, "dy")};
    if (!inputs[0] || !batch_normalize_example_operands(inputs + 1, &attributes, graph, variant, type, false))
        return NULL;
    return graph_add(graph, &op_batch_normalize_sums, inputs, 6, &attributes, sizeof(attributes));
}

struct tensor *batch_normalize_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct batch_normalize_attributes attributes;
    struct tensor *inputs[8] = {batch_normalize_example_x(graph, variant < 6 ? variant : variant - 6, type, "dy")};
    if (!inputs[0] || !batch_normalize_example_operands(inputs + 1, &attributes, graph,
                                                        variant < 6 ? variant : variant - 6, type, false))
        return NULL;
    if (variant >= 6) {
        inputs[6] = graph_weight(graph, "dgamma", type, shape_1(last_dim(inputs[0])), false);
        inputs[7] = graph_weight(graph, "dbeta", type, shape_1(last_dim(inputs[0])), false);
    }
    return graph_add(graph, &op_batch_normalize_gradient, inputs, 8, &attributes, sizeof(attributes));
}

/* ---- group_normalize ------------------------------------------------------- */

static struct tensor *group_normalize_example_x(struct graph *graph, int variant, enum type type, const char *name)
{
    switch (variant) {
    case 0:
        return example_input(graph, name, type, ROW(3, 2, 6));
    case 1:
        return example_input(graph, name, type, ROW(2));
    case 2:
        return example_input(graph, name, type, ROW(7, 5));
    case 3:
        return example_input(graph, name, type, ROW(3, 136));
    case 4:
        return example_input(graph, name, type, ROW(60, 9));
    default:
        return NULL;
    }
}

static struct group_normalize_attributes group_normalize_example_attributes(int variant)
{
    static const int64_t groups[] = {3, 1, 5, 4, 3};
    return (struct group_normalize_attributes){.epsilon = 1e-3, .groups = groups[variant]};
}

struct tensor *group_normalize_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *inputs[3] = {group_normalize_example_x(graph, variant, type, "x")};
    if (!inputs[0])
        return NULL;
    struct group_normalize_attributes attributes = group_normalize_example_attributes(variant);
    if (variant != 2)
        inputs[1] = graph_weight(graph, "gamma", type, shape_1(last_dim(inputs[0])), true);
    if (variant != 2 && variant != 3)
        inputs[2] = graph_weight(graph, "beta", type, shape_1(last_dim(inputs[0])), true);
    return graph_add(graph, &op_group_normalize, inputs, 3, &attributes, sizeof(attributes));
}

struct tensor *group_normalize_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *inputs[4] = {group_normalize_example_x(graph, variant, type, "dy"),
                                group_normalize_example_x(graph, variant, type, "x")};
    if (!inputs[0])
        return NULL;
    struct group_normalize_attributes attributes = group_normalize_example_attributes(variant);
    inputs[2] = graph_input(graph, "positive:statistics", 2, type,
                            shape_of(3, (int64_t[]){graph->batch, attributes.groups, 2}));
    if (variant != 2)
        inputs[3] = graph_weight(graph, "gamma", type, shape_1(last_dim(inputs[0])), true);
    return graph_add(graph, &op_group_normalize_gradient, inputs, 4, &attributes, sizeof(attributes));
}

/* ---- layer_normalize ------------------------------------------------------- */

/* Shapes by variant % 6, kinds by variant / 6. */
#define LAYER_NORMALIZE_SHAPES 6

static struct tensor *layer_normalize_example_x(struct graph *graph, int variant, enum type type, const char *name)
{
    switch (variant % LAYER_NORMALIZE_SHAPES) {
    case 0:
        return example_input(graph, name, type, ROW(5, 19));
    case 1:
        return example_input(graph, name, type, ROW(1));
    case 2:
        return example_input(graph, name, type, ROW(3, 2, 5));
    case 3:
        return example_input(graph, name, type, ROW(2, 67));
    case 4:
        return example_input(graph, name, type, ROW(45, 32));
    default:
        return example_input(graph, name, type, ROW(4, 3, 2));
    }
}

static struct layer_normalize_attributes layer_normalize_example_attributes(int variant)
{
    int shape = variant % LAYER_NORMALIZE_SHAPES;
    int64_t axes = shape == 2 ? 3 : shape == 5 ? 2 : 1;
    return (struct layer_normalize_attributes){.epsilon = 1e-3, .axes = axes, .kind = variant / LAYER_NORMALIZE_SHAPES};
}

struct tensor *layer_normalize_example(struct graph *graph, int variant, enum type type)
{
    struct layer_normalize_attributes attributes = layer_normalize_example_attributes(variant);
    if (attributes.kind >= NORMALS)
        return NULL;
    struct tensor *inputs[3] = {layer_normalize_example_x(graph, variant, type, "x")};
    struct shape shape = layer_normalize_axes(&attributes, inputs[0]);
    if (variant % LAYER_NORMALIZE_SHAPES != 3)
        inputs[1] = graph_weight(graph, "gamma", type, shape, true);
    if (variant % LAYER_NORMALIZE_SHAPES < 3)
        inputs[2] = graph_weight(graph, "beta", type, shape, true);
    return graph_add(graph, &op_layer_normalize, inputs, 3, &attributes, sizeof(attributes));
}

struct tensor *layer_normalize_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct layer_normalize_gradient_attributes attributes = {layer_normalize_example_attributes(variant),
                                                             variant % 2 == 0};
    if (attributes.layer.kind >= NORMALS)
        return NULL;
    struct tensor *inputs[4] = {layer_normalize_example_x(graph, variant, type, "dy"),
                                layer_normalize_example_x(graph, variant, type, "x")};
    inputs[2] =
        graph_input(graph, "positive:statistics", 2, type, layer_normalize_statistics(&attributes.layer, inputs[1]));
    if (variant % LAYER_NORMALIZE_SHAPES != 3)
        inputs[3] = graph_weight(graph, "gamma", type, layer_normalize_axes(&attributes.layer, inputs[1]), true);
    return graph_add(graph, &op_layer_normalize_gradient, inputs, 4, &attributes, sizeof(attributes));
}

/* ---- softmax --------------------------------------------------------------- */

static const struct {
    int rank;
    int64_t row[3];
    int64_t from_end;
} softmax_cases[] = {{1, {10}, 0},    {1, {1}, 0},       {2, {3, 37}, 0},
                     {2, {3, 37}, 1}, {3, {2, 5, 3}, 1}, {3, {4, 2, 70}, 2}};

static struct tensor *axis_example(struct graph *graph, int variant, enum type type, const struct op *op,
                                   const char *name)
{
    if (variant >= COUNT(softmax_cases))
        return NULL;
    struct axis_attributes attributes = {softmax_cases[variant].from_end};
    struct tensor *inputs[2] = {
        example_input(graph, name, type, softmax_cases[variant].rank, softmax_cases[variant].row)};
    if (op->inputs == 2)
        inputs[1] = example_input(graph, "positive:y", type, softmax_cases[variant].rank, softmax_cases[variant].row);
    return graph_add(graph, op, inputs, op->inputs, &attributes, sizeof(attributes));
}

#define AXIS_OP(name, given)                                                                                           \
    struct tensor *name##_example(struct graph *graph, int variant, enum type type)                                    \
    {                                                                                                                  \
        return axis_example(graph, variant, type, &op_##name, given);                                                  \
    }
AXIS_OP(softmax, "x")
AXIS_OP(softmax_gradient, "dy")
AXIS_OP(log_softmax, "x")
AXIS_OP(log_softmax_gradient, "dy")
AXIS_OP(sparsemax, "x")
AXIS_OP(sparsemax_gradient, "dy")

/* ---- spectral -------------------------------------------------------------- */

static const struct shape kernels[] = {{2, {7, 5}}, {4, {3, 2, 4, 9}}, {2, {1, 1}}, {3, {2, 33, 3}}};

static struct tensor *example_kernel(struct graph *graph, int variant, enum type type)
{
    bool there = variant < COUNT(kernels);
    return there ? graph_weight(graph, "w", type, kernels[variant], true) : NULL;
}

struct tensor *spectral_sums_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *w = example_kernel(graph, variant, type);
    return w ? binary(graph, &op_spectral_sums, w, graph_weight(graph, "u", type, shape_2(1, last_dim(w)), false))
             : NULL;
}

struct tensor *spectral_vector_example(struct graph *graph, int variant, enum type type)
{
    static const int64_t columns[] = {5, 1, 40};
    if (variant >= COUNT(columns))
        return NULL;
    return binary(graph, &op_spectral_vector, graph_state(graph, "positive:s", type, shape_1(columns[variant] + 1)),
                  graph_weight(graph, "u", type, shape_2(1, columns[variant]), false));
}

struct tensor *spectral_divide_example(struct graph *graph, int variant, enum type type)
{
    struct tensor *w = example_kernel(graph, variant, type);
    return w ? binary(graph, &op_spectral_divide, w, graph_state(graph, "positive:sigma", type, shape_1(1))) : NULL;
}

/* ---- standardize ----------------------------------------------------------- */

struct tensor *standardize_example(struct graph *graph, int variant, enum type type)
{
    static const float means[] = {0.5f, -2, 0.25f}, deviations[] = {2, 0.5f, 3};
    struct standardize_attributes attributes = {means, deviations, variant == 0 ? 1 : 3, variant == 2};
    struct tensor *x;
    switch (variant) {
    case 0:
        x = example_input(graph, "x", type, ROW(7));
        break;
    case 1:
        x = example_input(graph, "x", type, ROW(3));
        break;
    case 2:
        x = example_input(graph, "x", type, ROW(50, 3));
        break;
    case 3:
        attributes.mean = NULL;
        x = example_input(graph, "x", type, ROW(2, 1, 3));
        break;
    default:
        return NULL;
    }
    return graph_add(graph, &op_standardize, &x, 1, &attributes, sizeof(attributes));
}
