/* matmul.c - dense layers over the last axis: y = act(x . w + bias), and the
   gradient of w. What lies between the batch and the last axis is rows like any other.

   Light weights: cut by sample, so that it may stand in a chain. Heavy ones
   (more than HEAVY_BYTES) would be read again by each slice: there the output
   columns are cut, each slice reads its own part of w and all samples. The same where
   a few samples of many rows would leave workers without work. */
#include "ops/helpers.h"

/* Columns of heavy outputs and rows of heavy gradients come in cache lines; rows of
   gradients over many samples in so many that what is read for them pays. */
#define COLUMN_GRAIN   16
#define ROW_GRAIN      8
#define MANY_ROW_GRAIN 96
#define MANY_SAMPLES   256

/* Fewer samples than this with more work than that are not cut by sample. */
#define FEW_SAMPLES 4
#define MUCH_WORK   2e6

/* Rows of one sample: the product of the axes between the first and the last. */
static int64_t inner_rows(const struct tensor *x)
{
    return last_dim(x) ? shape_row(&x->shape) / last_dim(x) : 0;
}

static double product_work(const struct tensor *x, const struct tensor *w)
{
    return (double)(x->shape.dim[0] * inner_rows(x)) * (double)shape_count(&w->shape);
}

/* x: samples; w: the weight or its gradient. */
static bool heavy(const struct tensor *x, const struct tensor *w)
{
    if (shape_count(&w->shape) * (int64_t)type_bytes(w->type) > HEAVY_BYTES)
        return true;
    return x->shape.dim[0] < FEW_SAMPLES && inner_rows(x) > 1 && product_work(x, w) > MUCH_WORK;
}

static plim_status need_rows(const struct node *node, int input, plim_error *error)
{
    TRY(need_batched(node, input, error));
    if (node->input[input]->shape.rank < 2)
        return misfit(node, error, "input %d has a batch axis alone and no last axis", input);
    return PLIM_OK;
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
    TRY(need_rows(node, 0, error));
    TRY(need_type(node, 1, x->type, error));
    TRY(need_rank(node, 1, 2, error));
    int64_t inner = w->shape.dim[attributes->transposed ? 1 : 0];
    int64_t columns = w->shape.dim[attributes->transposed ? 0 : 1];
    if (w->batched)
        return misfit(node, error, "input 1 is a batch; it must be a weight");
    if (last_dim(x) != inner)
        return misfit(node, error, "inner sizes %lld and %lld differ", (long long)last_dim(x), (long long)inner);
    TRY(matmul_bias(node, columns, error));
    struct shape shape = x->shape;
    shape.dim[shape.rank - 1] = columns;
    output_of(graph, node, 0, x->type, shape, true);
    return PLIM_OK;
}

static void matmul_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *y = node->output[0];
    double work = product_work(node->input[0], node->input[1]);
    cut_rows(cut, node, y, work);
    if (!heavy(node->input[0], node->input[1]))
        return;
    *cut = (struct cut){.extent = last_dim(y), .grain = COLUMN_GRAIN, .work = work};
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = PART_WHOLE;
    cut->output[0] = PART_WHOLE;
}

static double dot(const struct call *call, int64_t row, int64_t column)
{
    const struct matmul_attributes *attributes = call->node->attributes;
    const struct shape *w = &call->node->input[1]->shape;
    int64_t inner = last_dim(call->node->input[0]);
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
    int64_t columns = last_dim(y);
    bool by_column = heavy(call->node->input[0], call->node->input[1]);
    int64_t rows = (by_column ? call->count : call_rows(call, y)) * inner_rows(y);
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

/* [N, rows, width], or [N, width] where rows is 0. */
static struct tensor *example_rows(struct graph *graph, const char *name, enum type type, int64_t rows, int64_t width)
{
    if (rows == 0)
        return example_input(graph, name, type, ROW(width));
    return example_input(graph, name, type, ROW(rows, width));
}

static struct tensor *matmul_example(struct graph *graph, int variant, enum type type)
{
    static const struct {
        int64_t in, out;
        bool bias;
        struct matmul_attributes attributes;
        int64_t rows; /* of a sample; 0: no axis between */
    } cases[] = {
        {5, 3, true, {false, ACTIVATION_NONE}, 0},      {7, 1, false, {false, ACTIVATION_NONE}, 0},
        {17, 33, true, {false, ACTIVATION_RELU}, 0},    {9, 13, false, {true, ACTIVATION_NONE}, 0},
        {257, 263, true, {false, ACTIVATION_RELU}, 0}, /* heavy */
        {259, 261, false, {true, ACTIVATION_NONE}, 0}, /* heavy */
        {17, 33, true, {false, ACTIVATION_RELU}, 3},    {9, 35, false, {true, ACTIVATION_NONE}, 70},
        {4, 1, true, {false, ACTIVATION_NONE}, 5},      {257, 259, true, {false, ACTIVATION_NONE}, 31}, /* heavy */
        {259, 257, false, {true, ACTIVATION_NONE}, 27},                                                 /* heavy */
    };
    if (variant >= (int)(sizeof(cases) / sizeof(cases[0])))
        return NULL;
    int64_t in = cases[variant].in, out = cases[variant].out;
    bool transposed = cases[variant].attributes.transposed;
    struct tensor *x = example_rows(graph, "x", type, cases[variant].rows, in);
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
    TRY(need_rows(node, 0, error));
    TRY(need_rows(node, 1, error));
    TRY(need_rank(node, 1, x->shape.rank, error));
    for (int i = 1; i < x->shape.rank - 1; i++)
        if (x->shape.dim[i] != dy->shape.dim[i])
            return misfit(node, error, "%lld and %lld rows on axis %d", (long long)x->shape.dim[i],
                          (long long)dy->shape.dim[i], i);
    output_of(graph, node, 0, x->type, shape_2(last_dim(x), last_dim(dy)), false);
    return PLIM_OK;
}

static void weight_gradient_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *dw = node->output[0];
    const struct tensor *x = node->input[0];
    double work = product_work(x, dw);
    if (!heavy(x, dw)) {
        cut_rows(cut, node, x, work);
        return;
    }
    int64_t grain = x->shape.dim[0] * inner_rows(x) < MANY_SAMPLES ? ROW_GRAIN : MANY_ROW_GRAIN;
    *cut = (struct cut){.extent = dw->shape.dim[0], .grain = grain, .work = work};
    cut->input[0] = cut->input[1] = PART_WHOLE;
    cut->output[0] = PART_CUT;
}

/* Element (i, j) of x^T . dy over the first `rows` rows of both. */
static double column_dot(const struct call *call, int64_t rows, int64_t i, int64_t j)
{
    int64_t in = last_dim(call->node->input[0]), out = last_dim(call->node->input[1]);
    double sum = 0;
    for (int64_t n = 0; n < rows; n++)
        sum += get(call, 0, n * in + i) * get(call, 1, n * out + j);
    return sum;
}

static void weight_gradient_reference(const struct call *call)
{
    const struct tensor *dw = call->node->output[0];
    const struct tensor *x = call->node->input[0];
    int64_t in = dw->shape.dim[0], out = dw->shape.dim[1], rows = inner_rows(x);
    if (heavy(x, dw)) {
        for (int64_t i = call->begin; i < call->end; i++) {
            for (int64_t j = 0; j < out; j++)
                set(call, 0, (i - call->begin) * out + j, column_dot(call, call->count * rows, i, j));
        }
        return;
    }
    rows *= call_rows(call, x);
    for (int64_t i = 0; i < in; i++) {
        for (int64_t j = 0; j < out; j++)
            share(call, 0, i * out + j, column_dot(call, rows, i, j));
    }
}

static struct tensor *weight_gradient_example(struct graph *graph, int variant, enum type type)
{
    static const int64_t cases[][3] = {{5, 3},      {33, 1},     {17, 29},  {263, 257},
                                       {17, 29, 3}, {9, 35, 70}, {5, 1, 4}, {261, 257, 61}};
    if (variant >= (int)(sizeof(cases) / sizeof(cases[0])))
        return NULL;
    struct tensor *x = example_rows(graph, "x", type, cases[variant][2], cases[variant][0]);
    struct tensor *dy = example_rows(graph, "dy", type, cases[variant][2], cases[variant][1]);
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
