/* matmul.c - dense layers: y = act(x . w + bias), and the gradient of w.

   Light weights: cut by sample, so that it may stand in a chain. Heavy ones
   (more than HEAVY_BYTES) would be read again by each slice: there the output
   columns are cut, each slice reads its own part of w and all samples. */
#include "ops/helpers.h"

/* Columns of heavy outputs and rows of heavy gradients come in cache lines. */
#define COLUMN_GRAIN 16
#define ROW_GRAIN    8

static bool heavy(const struct tensor *weight)
{
    return shape_count(&weight->shape) * (int64_t)type_bytes(weight->type) > HEAVY_BYTES;
}

/* ---- matmul ------------------------------------------------------------ */

static plim_status matmul_bias(struct node *node, int64_t columns, plim_error *error)
{
    const struct matmul_attributes *attributes = node->attributes;
    const struct tensor *bias = node->input[2];
    if (attributes->transposed && (bias || attributes->activation))
        return misfit(node, error, "a transposed kernel goes with neither bias nor activation");
    if (!bias)
        return PLIM_OK;
    TRY(need_type(node, 2, node->input[0]->type, error));
    TRY(need_rank(node, 2, 1, error));
    if (bias->shape.dim[0] != columns)
        return misfit(node, error, "a bias of %lld for %lld outputs", (long long)bias->shape.dim[0],
                      (long long)columns);
    return PLIM_OK;
}

static plim_status matmul_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct matmul_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0], *w = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_rank(node, 0, 2, error));
    TRY(need_type(node, 1, x->type, error));
    TRY(need_rank(node, 1, 2, error));
    int64_t inner = w->shape.dim[attributes->transposed ? 1 : 0];
    int64_t columns = w->shape.dim[attributes->transposed ? 0 : 1];
    if (w->batched)
        return misfit(node, error, "input 1 is a batch; it must be a weight");
    if (x->shape.dim[1] != inner)
        return misfit(node, error, "inner sizes %lld and %lld differ", (long long)x->shape.dim[1], (long long)inner);
    TRY(matmul_bias(node, columns, error));
    output_of(graph, node, 0, x->type, shape_2(x->shape.dim[0], columns), true);
    return PLIM_OK;
}

static void matmul_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *y = node->output[0];
    double work = (double)shape_count(&y->shape) * (double)node->input[0]->shape.dim[1];
    cut_rows(cut, node, y, work);
    if (!heavy(node->input[1]))
        return;
    *cut = (struct cut){.extent = y->shape.dim[1], .grain = COLUMN_GRAIN, .work = work};
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = PART_WHOLE;
    cut->output[0] = PART_WHOLE;
}

static double dot(const struct call *call, int64_t row, int64_t column)
{
    const struct matmul_attributes *attributes = call->node->attributes;
    const struct shape *w = &call->node->input[1]->shape;
    int64_t inner = call->node->input[0]->shape.dim[1];
    double sum = call->input[2] ? get(call, 2, column) : 0;
    for (int64_t k = 0; k < inner; k++) {
        int64_t at = attributes->transposed ? column * w->dim[1] + k : k * w->dim[1] + column;
        sum += get(call, 0, row * inner + k) * get(call, 1, at);
    }
    return attributes->activation == ACTIVATION_RELU && sum < 0 ? 0 : sum;
}

static void matmul_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    int64_t columns = y->shape.dim[1];
    bool by_column = heavy(call->node->input[1]);
    int64_t rows = by_column ? call->count : call_rows(call, y);
    int64_t first = by_column ? call->begin : 0, last = by_column ? call->end : columns;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = first; column < last; column++)
            set(call, 0, row * columns + column, dot(call, row, column));
    }
}

/* The gradient behind a fused activation. */
static struct tensor *before_activation(struct graph *graph, struct node *node, struct tensor *dy)
{
    const struct matmul_attributes *attributes = node->attributes;
    return attributes->activation == ACTIVATION_RELU ? binary(graph, &op_relu_gradient, dy, node->output[0]) : dy;
}

/* dw = x^T . dy, dbias = sum(dy), dx = dy . w^T. With w transposed, x and dy
   change places in dw, and dx needs no transposing. */
static void matmul_gradient(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                            struct tensor **d_input)
{
    const struct matmul_attributes *attributes = node->attributes;
    struct tensor *x = node->input[0], *w = node->input[1];
    struct tensor *dy = before_activation(graph, node, d_output[0]);
    if (wanted[1])
        d_input[1] = attributes->transposed ? binary(graph, &op_matmul_weight_gradient, dy, x)
                                            : binary(graph, &op_matmul_weight_gradient, x, dy);
    if (wanted[2])
        d_input[2] = unary(graph, &op_sum_rows, dy);
    if (wanted[0]) {
        struct matmul_attributes back = {.transposed = !attributes->transposed};
        d_input[0] = graph_add(graph, &op_matmul, (struct tensor *[]){dy, w}, 2, &back, sizeof(back));
    }
}

static struct tensor *matmul_example(struct graph *graph, int variant, enum type type)
{
    static const struct {
        int64_t in, out;
        bool bias;
        struct matmul_attributes attributes;
    } cases[] = {
        {5, 3, true, {false, ACTIVATION_NONE}},     {7, 1, false, {false, ACTIVATION_NONE}},
        {17, 33, true, {false, ACTIVATION_RELU}},   {9, 13, false, {true, ACTIVATION_NONE}},
        {257, 263, true, {false, ACTIVATION_RELU}}, /* heavy */
        {259, 261, false, {true, ACTIVATION_NONE}}, /* heavy */
    };
    if (variant >= (int)(sizeof(cases) / sizeof(cases[0])))
        return NULL;
    int64_t in = cases[variant].in, out = cases[variant].out;
    bool transposed = cases[variant].attributes.transposed;
    struct tensor *x = example_input(graph, "x", type, ROW(in));
    struct tensor *w = graph_weight(graph, "w", type, transposed ? shape_2(out, in) : shape_2(in, out), true);
    struct tensor *bias = cases[variant].bias ? graph_weight(graph, "bias", type, shape_1(out), true) : NULL;
    return graph_add(graph, &op_matmul, (struct tensor *[]){x, w, bias}, 3, &cases[variant].attributes,
                     sizeof(cases[variant].attributes));
}

const struct op op_matmul = {
    .name = "matmul",
    .inputs = 3,
    .outputs = 1,
    .optional = 1 << 2,
    .attributes_bytes = sizeof(struct matmul_attributes),
    .infer = matmul_infer,
    .gradient = matmul_gradient,
    .keeps_inputs = 1 << 0 | 1 << 1,
    .keeps_outputs = 1 << 0, /* with a fused activation only */
    .in_place = NO_INPUT,
    .cut = matmul_cut,
    .reference = matmul_reference,
    .example = matmul_example,
};

/* ---- matmul_weight_gradient -------------------------------------------- */

static plim_status weight_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0], *dy = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_type(node, 1, x->type, error));
    for (int i = 0; i < 2; i++) {
        TRY(need_rank(node, i, 2, error));
        TRY(need_batched(node, i, error));
    }
    output_of(graph, node, 0, x->type, shape_2(x->shape.dim[1], dy->shape.dim[1]), false);
    return PLIM_OK;
}

static void weight_gradient_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *dw = node->output[0];
    double work = (double)shape_count(&dw->shape) * (double)node->input[0]->shape.dim[0];
    if (!heavy(dw)) {
        cut_rows(cut, node, node->input[0], work);
        return;
    }
    *cut = (struct cut){.extent = dw->shape.dim[0], .grain = ROW_GRAIN, .work = work};
    cut->input[0] = cut->input[1] = PART_WHOLE;
    cut->output[0] = PART_CUT;
}

/* Element (i, j) of x^T . dy over the first `rows` rows of both. */
static double column_dot(const struct call *call, int64_t rows, int64_t i, int64_t j)
{
    int64_t in = call->node->input[0]->shape.dim[1], out = call->node->input[1]->shape.dim[1];
    double sum = 0;
    for (int64_t n = 0; n < rows; n++)
        sum += get(call, 0, n * in + i) * get(call, 1, n * out + j);
    return sum;
}

static void weight_gradient_reference(const struct call *call)
{
    const struct tensor *dw = call->node->output[0];
    int64_t in = dw->shape.dim[0], out = dw->shape.dim[1];
    if (heavy(dw)) {
        for (int64_t i = call->begin; i < call->end; i++) {
            for (int64_t j = 0; j < out; j++)
                set(call, 0, (i - call->begin) * out + j, column_dot(call, call->count, i, j));
        }
        return;
    }
    int64_t rows = call_rows(call, call->node->input[0]);
    for (int64_t i = 0; i < in; i++) {
        for (int64_t j = 0; j < out; j++)
            share(call, 0, i * out + j, column_dot(call, rows, i, j));
    }
}

static struct tensor *weight_gradient_example(struct graph *graph, int variant, enum type type)
{
    static const int64_t cases[][2] = {{5, 3}, {33, 1}, {17, 29}, {263, 257}};
    if (variant >= (int)(sizeof(cases) / sizeof(cases[0])))
        return NULL;
    struct tensor *x = example_input(graph, "x", type, ROW(cases[variant][0]));
    struct tensor *dy = example_input(graph, "dy", type, ROW(cases[variant][1]));
    return binary(graph, &op_matmul_weight_gradient, x, dy);
}

const struct op op_matmul_weight_gradient = {
    .name = "matmul_weight_gradient",
    .inputs = 2,
    .outputs = 1,
    .infer = weight_gradient_infer,
    .no_gradient = NO_SECOND,
    .in_place = NO_INPUT,
    .cut = weight_gradient_cut,
    .reference = weight_gradient_reference,
    .example = weight_gradient_example,
};
