/* examples_reduce.c - examples of the ops of src/ops/reduce/. */
#include "examples.h"

#include "base/numbers/count.h"
#include "ops/broadcast.h"

/* ---- cumulative ------------------------------------------------------------ */

struct tensor *cumulative_sum_example(struct graph *graph, int variant, enum type type)
{
    struct cumulative_sum_attributes attributes = {1, variant % 2};
    struct tensor *x;
    switch (variant) {
    case 0:
        x = example_input(graph, "x", type, ROW(6, 21));
        break;
    case 1:
        x = example_input(graph, "x", type, ROW(9));
        break;
    case 2:
        x = example_input(graph, "x", type, ROW(3, 40));
        attributes.axis = 2;
        break;
    case 3:
        x = example_input(graph, "x", type, ROW(2, 3, 1));
        attributes.axis = 2;
        break;
    default:
        return NULL;
    }
    return graph_add(graph, &op_cumulative_sum, &x, 1, &attributes, sizeof(attributes));
}

struct tensor *batch_sum_example(struct graph *graph, int variant, enum type type)
{
    struct batch_sum_attributes attributes = {variant % 2, 0};
    struct tensor *x;
    switch (variant) {
    case 0:
        x = example_input(graph, "x", type, ROW(3, 21));
        break;
    case 1:
        x = example_input(graph, "x", type, ROW(2, 1, 5));
        break;
    case 2:
        x = example_input(graph, "x", type, 0, NULL);
        break;
    default:
        return NULL;
    }
    return graph_add(graph, &op_batch_sum, &x, 1, &attributes, sizeof(attributes));
}

struct tensor *batch_broadcast_example(struct graph *graph, int variant, enum type type)
{
    struct batch_sum_attributes attributes = {variant % 2, variant == 2};
    static const struct shape shapes[] = {{2, {3, 21}}, {3, {2, 1, 5}}, {1, {1}}};
    if (variant > 2)
        return NULL;
    struct tensor *d = graph_weight(graph, "d", type, shapes[variant], true);
    return graph_add(graph, &op_batch_broadcast, &d, 1, &attributes, sizeof(attributes));
}

/* ---- ranking --------------------------------------------------------------- */

struct tensor *arg_max_example(struct graph *graph, int variant, enum type type)
{
    struct arg_max_attributes attributes = {.keep = variant % 2, .least = variant % 3 == 1};
    struct tensor *x;
    switch (variant) {
    case 0:
        attributes.axis = 2;
        x = example_input(graph, "x", type, ROW(3, 37));
        break;
    case 1:
        attributes.axis = 1;
        x = example_input(graph, "label:3 of x", type, ROW(9));
        break;
    case 2:
        attributes.axis = 1;
        x = example_input(graph, "label:4 of x", type, ROW(7, 21));
        break;
    case 3:
        attributes.axis = 2;
        x = example_input(graph, "x", type, ROW(2, 1, 5));
        break;
    case 4:
        attributes.axis = 3;
        x = example_input(graph, "label:2 of x", type, ROW(2, 3, 70));
        break;
    default:
        return NULL;
    }
    return graph_add(graph, &op_arg_max, &x, 1, &attributes, sizeof(attributes));
}

struct tensor *top_k_example(struct graph *graph, int variant, enum type type)
{
    static const int64_t ks[] = {3, 1, 5, 40};
    struct top_k_attributes attributes = {ks[variant & 3]};
    struct tensor *x;
    switch (variant) {
    case 0:
        x = example_input(graph, "x", type, ROW(2, 17));
        break;
    case 1:
        x = example_input(graph, "x", type, ROW(1));
        break;
    case 2:
        x = example_input(graph, "x", type, ROW(5));
        break;
    case 3:
        x = example_input(graph, "label:6 of x", type, ROW(3, 100));
        break;
    default:
        return NULL;
    }
    return graph_add(graph, &op_top_k, &x, 1, &attributes, sizeof(attributes));
}

struct tensor *top_k_gradient_example(struct graph *graph, int variant, enum type type)
{
    struct top_k_gradient_attributes attributes = {variant ? 19 : 5};
    if (variant > 1)
        return NULL;
    struct tensor *dy = example_input(graph, "dy", type, ROW(3, 1)), *places;
    places = example_input(graph, variant ? "index:19" : "index:5", TYPE_I32, ROW(3, 1));
    return graph_add(graph, &op_top_k_gradient, (struct tensor *[]){dy, places}, 2, &attributes, sizeof(attributes));
}

/* ---- reduce ---------------------------------------------------------------- */

static struct tensor *example_rows(struct graph *graph, int variant, enum type type, const char *name)
{
    switch (variant) {
    case 0:
        return example_input(graph, name, type, ROW(10));
    case 1:
        return example_input(graph, name, type, ROW(1));
    case 2:
        return example_input(graph, name, type, ROW(3, 2, 37));
    default:
        return NULL;
    }
}

struct tensor *sum_rows_example(struct graph *graph, int variant, enum type type)
{
    struct sum_rows_attributes two = {2};
    if (variant == 3) {
        struct tensor *heads = example_input(graph, "x", type, ROW(3, 2, 37));
        return graph_add(graph, &op_sum_rows, &heads, 1, &two, sizeof(two));
    }
    struct tensor *x = example_rows(graph, variant, type, "x");
    return x ? unary(graph, &op_sum_rows, x) : NULL;
}

struct tensor *batch_mean_example(struct graph *graph, int variant, enum type type)
{
    if (variant > 0)
        return NULL;
    return unary(graph, &op_batch_mean, example_input(graph, "x", type, 0, NULL));
}

struct tensor *batch_mean_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant > 1)
        return NULL;
    struct tensor *d = variant ? graph_weight(graph, "d", type, shape_1(1), false) : NULL;
    return binary(graph, &op_batch_mean_gradient, d, example_input(graph, "x", type, 0, NULL));
}

/* ---- reduction ------------------------------------------------------------- */

/* Several axes, one, none, all; kept and not. */
static const struct {
    int64_t axes, keep;
    int rank;
    int64_t row[4];
} reduction_examples[] = {
    {1 << 2, 0, 2, {3, 37}},
    {1 << 1, 1, 2, {7, 19}},
    {1 << 1 | 1 << 3, 0, 4, {2, 3, 4, 5}},
    {1 << 1 | 1 << 2, 0, 3, {3, 2, 40}},
    {0, 0, 1, {5}},
    {1 << 1, 1, 1, {1}},
    {1 << 2 | 1 << 4, 1, 4, {2, 3, 4, 5}},
    {1 << 1 | 1 << 2 | 1 << 3, 0, 3, {4, 3, 5}},
};

static struct tensor *reduction_example_x(struct graph *graph, int variant, enum type type, const char *name)
{
    return variant < COUNT(reduction_examples)
               ? example_input(graph, name, type, reduction_examples[variant].rank, reduction_examples[variant].row)
               : NULL;
}

/* With both values of `choice` where an op has one. */
static struct tensor *reduction_example_of(struct graph *graph, int variant, enum type type, const struct op *op,
                                           int choices, const char *name)
{
    int choice = variant / COUNT(reduction_examples);
    if (choice >= choices)
        return NULL;
    struct reduce_attributes attributes = {reduction_examples[variant % COUNT(reduction_examples)].axes,
                                           reduction_examples[variant % COUNT(reduction_examples)].keep, choice};
    struct tensor *x = reduction_example_x(graph, variant % COUNT(reduction_examples), type, name);
    return graph_add(graph, op, &x, 1, &attributes, sizeof(attributes));
}

/* dy, x and, with `last`, y. */
static struct tensor *reduction_gradient_example(struct graph *graph, int variant, enum type type, const struct op *op,
                                                 const char *name, const char *last)
{
    if (variant >= COUNT(reduction_examples))
        return NULL;
    struct reduce_attributes attributes = {reduction_examples[variant].axes, reduction_examples[variant].keep, 0};
    struct tensor *x = reduction_example_x(graph, variant, type, name);
    struct shape shape = reduced_shape(&x->shape, attributes.axes, attributes.keep);
    struct tensor *inputs[3] = {graph_input(graph, "dy", 1, type, shape), x, NULL};
    if (last)
        inputs[2] = graph_input(graph, last, 2, type, shape);
    return graph_add(graph, op, inputs, last ? 3 : 2, &attributes, sizeof(attributes));
}

struct tensor *reduce_sum_example(struct graph *graph, int variant, enum type type)
{
    return reduction_example_of(graph, variant, type, &op_reduce_sum, 2, "x");
}

struct tensor *reduce_broadcast_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(reduction_examples))
        return NULL;
    struct reduce_broadcast_attributes attributes = {reduction_examples[variant].axes,
                                                     reduction_examples[variant].keep,
                                                     variant % 2 ? 0.25 : 1,
                                                     reduction_examples[variant].rank,
                                                     {0}};
    struct shape shape = {.rank = 1, .dim = {graph->batch}};
    for (int i = 0; i < reduction_examples[variant].rank; i++)
        shape.dim[shape.rank++] = attributes.row[i] = reduction_examples[variant].row[i];
    struct tensor *y = graph_input(graph, "y", 0, type, reduced_shape(&shape, attributes.axes, attributes.keep));
    return graph_add(graph, &op_reduce_broadcast, &y, 1, &attributes, sizeof(attributes));
}

struct tensor *reduce_max_example(struct graph *graph, int variant, enum type type)
{
    return reduction_example_of(graph, variant, type, &op_reduce_max, 2, "x");
}

/* Whole numbers: several are the largest. */
struct tensor *reduce_max_gradient_example(struct graph *graph, int variant, enum type type)
{
    return reduction_gradient_example(graph, variant, type, &op_reduce_max_gradient, "label:3 of x", "label:3 of y");
}

struct tensor *reduce_prod_example(struct graph *graph, int variant, enum type type)
{
    return reduction_example_of(graph, variant, type, &op_reduce_prod, 1, "x");
}

/* Half of them with zeros. */
struct tensor *reduce_prod_gradient_example(struct graph *graph, int variant, enum type type)
{
    return reduction_gradient_example(graph, variant, type, &op_reduce_prod_gradient,
                                      variant % 2 ? "label:7 of x" : "x", NULL);
}

struct tensor *reduce_variance_example(struct graph *graph, int variant, enum type type)
{
    return reduction_example_of(graph, variant, type, &op_reduce_variance, 1, "x");
}

struct tensor *reduce_variance_gradient_example(struct graph *graph, int variant, enum type type)
{
    return reduction_gradient_example(graph, variant, type, &op_reduce_variance_gradient, "x", NULL);
}

struct tensor *reduce_logsumexp_example(struct graph *graph, int variant, enum type type)
{
    return reduction_example_of(graph, variant, type, &op_reduce_logsumexp, 1, "x");
}

struct tensor *reduce_logsumexp_gradient_example(struct graph *graph, int variant, enum type type)
{
    return reduction_gradient_example(graph, variant, type, &op_reduce_logsumexp_gradient, "x", "y");
}

struct tensor *reduce_any_example(struct graph *graph, int variant, enum type type)
{
    (void)type;
    return reduction_example_of(graph, variant, variant % 2 ? TYPE_BOOL : TYPE_U8, &op_reduce_any, 2, "label:2 of x");
}

/* ---- sum_to ---------------------------------------------------------------- */

struct sum_to_case {
    int rank, to_rank;
    int64_t row[4], to[4]; /* of one sample, where there is a batch */
    bool batched, to_batched, factor;
};

static const struct sum_to_case sum_to_examples[] = {
    {3, 1, {2, 3, 37}, {37}, true, false, false},
    {3, 3, {2, 3, 70}, {1, 1, 70}, true, true, true},
    {3, 3, {2, 3, 70}, {1, 1, 70}, true, true, false},
    {2, 1, {3, 19}, {1}, true, false, false},
    {2, 1, {3, 19}, {1}, true, false, true},
    {2, 2, {3, 19}, {3, 1}, true, true, false},
    {2, 3, {3, 19}, {1, 3, 1}, true, false, true},
    {3, 4, {2, 3, 5}, {1, 2, 1, 5}, true, false, true},
    {3, 1, {2, 3, 5}, {5}, true, true, false},
    {4, 4, {2, 3, 2, 5}, {2, 1, 2, 1}, true, true, true},
    {0, 1, {0}, {1}, true, false, true},
    {2, 2, {3, 4}, {3, 1}, false, false, true},
    {2, 1, {3, 4}, {4}, false, false, false},
    {3, 2, {300, 2, 3}, {1, 3}, true, false, true},
    {1, 1, {700}, {1}, true, true, true},
    {4, 4, {2, 3, 2, 5}, {1, 3, 1, 5}, true, false, false},
};

static struct tensor *example_side(struct graph *graph, const struct sum_to_case *c, const char *name, enum type type)
{
    if (c->batched)
        return example_input(graph, name, type, c->rank, c->row);
    return graph_weight(graph, name, type, shape_of(c->rank, c->row), true);
}

struct tensor *sum_to_example(struct graph *graph, int variant, enum type type)
{
    struct sum_to_attributes attributes = {0};
    if (variant >= COUNT(sum_to_examples))
        return NULL;
    const struct sum_to_case *c = &sum_to_examples[variant];
    struct tensor *x = example_side(graph, c, "x", type);
    struct tensor *factor = c->factor ? example_side(graph, c, "factor", type) : NULL;
    attributes.batched = c->to_batched;
    if (c->to_batched)
        attributes.shape.dim[attributes.shape.rank++] = graph->batch;
    for (int k = 0; k < c->to_rank; k++)
        attributes.shape.dim[attributes.shape.rank++] = c->to[k];
    return graph_add(graph, &op_sum_to, (struct tensor *[]){x, factor}, 2, &attributes, sizeof(attributes));
}
