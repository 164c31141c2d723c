/* convolution.c - conv2d and its two gradients. NHWC data, HWIO kernels,
   explicit padding, cut by sample.

   All three walk the same index space: for an output cell (oy, ox) and a
   kernel cell (ky, kx) the input cell is (oy * stride - top + ky, ...), or
   none when that lies in the padding. */
#include "ops/helpers.h"

#define MOST_SIZE ((int64_t)1 << 30)

/* One convolution with its sizes spelt out. */
struct sizes {
    int64_t height, width, in; /* x: [N, height, width, in] */
    int64_t kernel[2], out;    /* k: [kernel[0], kernel[1], in, out] */
    int64_t rows, columns;     /* y: [N, rows, columns, out] */
    const struct conv2d_attributes *conv;
};

/* Where kernel cell k of output cell o lies along one axis; -1: padding. */
static int64_t input_cell(int64_t o, int64_t k, int64_t stride, int64_t pad, int64_t extent)
{
    int64_t at = o * stride - pad + k;
    return at < 0 || at >= extent ? -1 : at;
}

/* The first element of the input cell's channels, or -1. */
static int64_t x_at(const struct sizes *s, int64_t n, const int64_t o[2], const int64_t k[2])
{
    int64_t y = input_cell(o[0], k[0], s->conv->stride[0], s->conv->pad[0], s->height);
    int64_t x = input_cell(o[1], k[1], s->conv->stride[1], s->conv->pad[2], s->width);
    return y < 0 || x < 0 ? -1 : ((n * s->height + y) * s->width + x) * s->in;
}

static int64_t y_at(const struct sizes *s, int64_t n, const int64_t o[2])
{
    return ((n * s->rows + o[0]) * s->columns + o[1]) * s->out;
}

static int64_t k_at(const struct sizes *s, const int64_t k[2], int64_t in)
{
    return ((k[0] * s->kernel[1] + k[1]) * s->in + in) * s->out;
}

static plim_status check_attributes(const struct node *node, const struct conv2d_attributes *conv, plim_error *error)
{
    for (int i = 0; i < 2; i++) {
        if (conv->stride[i] < 1 || conv->stride[i] > MOST_SIZE)
            return misfit(node, error, "a stride of %lld is not possible", (long long)conv->stride[i]);
    }
    for (int i = 0; i < 4; i++) {
        if (conv->pad[i] < 0 || conv->pad[i] > MOST_SIZE)
            return misfit(node, error, "a padding of %lld is not possible", (long long)conv->pad[i]);
    }
    return PLIM_OK;
}

/* Sizes of y from those of x and k. */
static plim_status output_sizes(struct sizes *s, const struct node *node, plim_error *error)
{
    TRY(check_attributes(node, s->conv, error));
    int64_t height = s->height + s->conv->pad[0] + s->conv->pad[1];
    int64_t width = s->width + s->conv->pad[2] + s->conv->pad[3];
    if (s->kernel[0] < 1 || s->kernel[1] < 1 || s->kernel[0] > height || s->kernel[1] > width)
        return misfit(node, error, "a kernel of %lldx%lld does not fit in a padded input of %lldx%lld",
                      (long long)s->kernel[0], (long long)s->kernel[1], (long long)height, (long long)width);
    s->rows = (height - s->kernel[0]) / s->conv->stride[0] + 1;
    s->columns = (width - s->kernel[1]) / s->conv->stride[1] + 1;
    return PLIM_OK;
}

static double work_of(const struct sizes *s, int64_t samples)
{
    double kernel = (double)s->kernel[0] * (double)s->kernel[1] * (double)s->in * (double)s->out;
    return (double)samples * (double)s->rows * (double)s->columns * kernel;
}

static plim_status check_data(const struct node *node, int input, plim_error *error)
{
    TRY(need_real(node, input, error));
    TRY(need_rank(node, input, 4, error));
    return need_batched(node, input, error);
}

/* ---- conv2d ------------------------------------------------------------ */

static void forward_sizes(struct sizes *s, const struct node *node)
{
    const struct shape *x = &node->input[0]->shape, *k = &node->input[1]->shape;
    *s = (struct sizes){.height = x->dim[1], .width = x->dim[2], .in = x->dim[3], .out = k->dim[3]};
    s->kernel[0] = k->dim[0];
    s->kernel[1] = k->dim[1];
    s->conv = node->attributes;
    if (node->output[0]) {
        s->rows = node->output[0]->shape.dim[1];
        s->columns = node->output[0]->shape.dim[2];
    }
}

static plim_status conv2d_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0], *k = node->input[1], *bias = node->input[2];
    struct sizes s;
    TRY(check_data(node, 0, error));
    TRY(need_type(node, 1, x->type, error));
    TRY(need_rank(node, 1, 4, error));
    if (k->batched)
        return misfit(node, error, "input 1 is a batch; it must be a weight");
    forward_sizes(&s, node);
    if (k->shape.dim[2] != s.in)
        return misfit(node, error, "a kernel for %lld channels, an input of %lld", (long long)k->shape.dim[2],
                      (long long)s.in);
    TRY(output_sizes(&s, node, error));
    if (bias) {
        TRY(need_type(node, 2, x->type, error));
        TRY(need_rank(node, 2, 1, error));
        if (bias->shape.dim[0] != s.out)
            return misfit(node, error, "a bias of %lld for %lld outputs", (long long)bias->shape.dim[0],
                          (long long)s.out);
    }
    output_of(graph, node, 0, x->type, shape_4(x->shape.dim[0], s.rows, s.columns, s.out), true);
    return PLIM_OK;
}

static void conv2d_cut(struct cut *cut, const struct node *node)
{
    struct sizes s;
    forward_sizes(&s, node);
    cut_rows(cut, node, node->output[0], work_of(&s, node->input[0]->shape.dim[0]));
}

static double conv2d_cell(const struct call *call, const struct sizes *s, int64_t n, const int64_t o[2], int64_t out)
{
    double sum = call->input[2] ? get(call, 2, out) : 0;
    for (int64_t cell = 0; cell < s->kernel[0] * s->kernel[1]; cell++) {
        int64_t k[2] = {cell / s->kernel[1], cell % s->kernel[1]};
        int64_t x = x_at(s, n, o, k);
        for (int64_t in = 0; x >= 0 && in < s->in; in++)
            sum += get(call, 0, x + in) * get(call, 1, k_at(s, k, in) + out);
    }
    return s->conv->activation == ACTIVATION_RELU && sum < 0 ? 0 : sum;
}

static void conv2d_reference(const struct call *call)
{
    struct sizes s;
    forward_sizes(&s, call->node);
    int64_t rows = call_rows(call, call->node->output[0]);
    for (int64_t cell = 0; cell < rows * s.rows * s.columns; cell++) {
        int64_t o[2] = {cell / s.columns % s.rows, cell % s.columns};
        int64_t n = cell / s.columns / s.rows;
        for (int64_t out = 0; out < s.out; out++)
            set(call, 0, y_at(&s, n, o) + out, conv2d_cell(call, &s, n, o, out));
    }
}

static void conv2d_gradient(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                            struct tensor **d_input)
{
    struct sizes s;
    forward_sizes(&s, node);
    struct tensor *dy = d_output[0];
    if (s.conv->activation == ACTIVATION_RELU)
        dy = binary(graph, &op_relu_gradient, dy, node->output[0]);
    struct conv2d_gradient_attributes back = {
        .conv = *s.conv, .input = {s.height, s.width}, .kernel = {s.kernel[0], s.kernel[1]}, .bias = wanted[2]};
    back.conv.activation = ACTIVATION_NONE;
    if (wanted[1] || wanted[2]) {
        struct tensor *dk = graph_add(graph, &op_conv2d_weight_gradient, (struct tensor *[]){node->input[0], dy}, 2,
                                      &back, sizeof(back));
        d_input[1] = dk;
        d_input[2] = wanted[2] ? graph_output(dk, 1) : NULL;
    }
    back.bias = false;
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_conv2d_input_gradient, (struct tensor *[]){dy, node->input[1]}, 2, &back,
                               sizeof(back));
}

/* Sizes that leave a rest under the stride, padding on one side only, 1x1. */
struct example_case {
    int64_t height, width, in, kernel[2], out;
    bool bias;
    struct conv2d_attributes conv;
};
static const struct example_case cases[] = {
    {5, 6, 3, {3, 3}, 4, true, {{1, 1}, {0, 0, 0, 0}, ACTIVATION_NONE}},
    {7, 5, 2, {3, 2}, 3, true, {{2, 1}, {1, 1, 0, 1}, ACTIVATION_RELU}},
    {6, 9, 1, {2, 4}, 5, false, {{2, 3}, {0, 1, 2, 0}, ACTIVATION_NONE}},
    {4, 3, 17, {1, 1}, 9, true, {{1, 1}, {0, 0, 0, 0}, ACTIVATION_RELU}},
};
#define CASES (int)(sizeof(cases) / sizeof(cases[0]))

static struct tensor *conv2d_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= CASES)
        return NULL;
    const struct example_case *c = &cases[variant];
    struct tensor *x = example_input(graph, "x", type, ROW(c->height, c->width, c->in));
    struct tensor *k = graph_weight(graph, "k", type, shape_4(c->kernel[0], c->kernel[1], c->in, c->out), true);
    struct tensor *bias = c->bias ? graph_weight(graph, "bias", type, shape_1(c->out), true) : NULL;
    return graph_add(graph, &op_conv2d, (struct tensor *[]){x, k, bias}, 3, &c->conv, sizeof(c->conv));
}

const struct op op_conv2d = {
    .name = "conv2d",
    .inputs = 3,
    .outputs = 1,
    .optional = 1 << 2,
    .attributes_bytes = sizeof(struct conv2d_attributes),
    .infer = conv2d_infer,
    .gradient = conv2d_gradient,
    .keeps_inputs = 1 << 0 | 1 << 1,
    .keeps_outputs = 1 << 0, /* with a fused activation only */
    .in_place = NO_INPUT,
    .cut = conv2d_cut,
    .reference = conv2d_reference,
    .example = conv2d_example,
};

/* ---- what the gradients share ------------------------------------------ */

/* `dy` is the input with that tensor; channels of x are the caller's. */
static void backward_sizes(struct sizes *s, const struct node *node, int dy, int64_t in)
{
    const struct conv2d_gradient_attributes *attributes = node->attributes;
    const struct shape *y = &node->input[dy]->shape;
    *s = (struct sizes){.height = attributes->input[0], .width = attributes->input[1], .in = in};
    s->kernel[0] = attributes->kernel[0];
    s->kernel[1] = attributes->kernel[1];
    s->rows = y->dim[1];
    s->columns = y->dim[2];
    s->out = y->dim[3];
    s->conv = &attributes->conv;
}

static plim_status check_backward(const struct sizes *s, const struct node *node, plim_error *error)
{
    struct sizes expected = *s;
    if (s->conv->activation)
        return misfit(node, error, "the activation comes before");
    if (s->height < 1 || s->width < 1 || s->height > MOST_SIZE || s->width > MOST_SIZE)
        return misfit(node, error, "an input of %lldx%lld is not possible", (long long)s->height, (long long)s->width);
    TRY(output_sizes(&expected, node, error));
    if (expected.rows != s->rows || expected.columns != s->columns)
        return misfit(node, error, "a gradient of %lldx%lld where the output is %lldx%lld", (long long)s->rows,
                      (long long)s->columns, (long long)expected.rows, (long long)expected.columns);
    return PLIM_OK;
}

static struct conv2d_gradient_attributes example_backward(const struct example_case *c, int64_t *rows, int64_t *columns)
{
    struct conv2d_gradient_attributes back = {.conv = c->conv, .input = {c->height, c->width}, .bias = c->bias};
    back.conv.activation = ACTIVATION_NONE;
    back.kernel[0] = c->kernel[0];
    back.kernel[1] = c->kernel[1];
    *rows = (c->height + c->conv.pad[0] + c->conv.pad[1] - c->kernel[0]) / c->conv.stride[0] + 1;
    *columns = (c->width + c->conv.pad[2] + c->conv.pad[3] - c->kernel[1]) / c->conv.stride[1] + 1;
    return back;
}

/* ---- conv2d_input_gradient --------------------------------------------- */

static plim_status input_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *dy = node->input[0], *k = node->input[1];
    struct sizes s;
    TRY(check_data(node, 0, error));
    TRY(need_type(node, 1, dy->type, error));
    TRY(need_rank(node, 1, 4, error));
    backward_sizes(&s, node, 0, k->shape.dim[2]);
    TRY(check_backward(&s, node, error));
    if (k->shape.dim[0] != s.kernel[0] || k->shape.dim[1] != s.kernel[1] || k->shape.dim[3] != s.out)
        return misfit(node, error, "the kernel does not fit the attributes and the gradient");
    output_of(graph, node, 0, dy->type, shape_4(dy->shape.dim[0], s.height, s.width, s.in), true);
    return PLIM_OK;
}

static void input_gradient_cut(struct cut *cut, const struct node *node)
{
    struct sizes s;
    backward_sizes(&s, node, 0, node->input[1]->shape.dim[2]);
    cut_rows(cut, node, node->output[0], work_of(&s, node->input[0]->shape.dim[0]));
}

/* Adds dy's cell times one kernel cell to dx. */
static void spread_cell(const struct call *call, const struct sizes *s, int64_t n, const int64_t o[2],
                        const int64_t k[2])
{
    int64_t x = x_at(s, n, o, k), y = y_at(s, n, o);
    enum type type = call->node->output[0]->type;
    for (int64_t in = 0; x >= 0 && in < s->in; in++) {
        double sum = element_get(call->output[0], type, x + in);
        for (int64_t out = 0; out < s->out; out++)
            sum += get(call, 0, y + out) * get(call, 1, k_at(s, k, in) + out);
        set(call, 0, x + in, sum);
    }
}

static void input_gradient_reference(const struct call *call)
{
    struct sizes s;
    backward_sizes(&s, call->node, 0, call->node->input[1]->shape.dim[2]);
    int64_t rows = call_rows(call, call->node->output[0]);
    for (int64_t i = 0; i < rows * s.height * s.width * s.in; i++)
        set(call, 0, i, 0);
    for (int64_t cell = 0; cell < rows * s.rows * s.columns; cell++) {
        int64_t o[2] = {cell / s.columns % s.rows, cell % s.columns};
        for (int64_t ky = 0; ky < s.kernel[0]; ky++) {
            for (int64_t kx = 0; kx < s.kernel[1]; kx++)
                spread_cell(call, &s, cell / s.columns / s.rows, o, (int64_t[]){ky, kx});
        }
    }
}

static struct tensor *input_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= CASES)
        return NULL;
    const struct example_case *c = &cases[variant];
    int64_t rows, columns;
    struct conv2d_gradient_attributes back = example_backward(c, &rows, &columns);
    struct tensor *dy = example_input(graph, "dy", type, ROW(rows, columns, c->out));
    struct tensor *k = graph_weight(graph, "k", type, shape_4(c->kernel[0], c->kernel[1], c->in, c->out), true);
    return graph_add(graph, &op_conv2d_input_gradient, (struct tensor *[]){dy, k}, 2, &back, sizeof(back));
}

const struct op op_conv2d_input_gradient = {
    .name = "conv2d_input_gradient",
    .inputs = 2,
    .outputs = 1,
    .attributes_bytes = sizeof(struct conv2d_gradient_attributes),
    .infer = input_gradient_infer,
    .no_gradient = NO_SECOND,
    .in_place = NO_INPUT,
    .cut = input_gradient_cut,
    .reference = input_gradient_reference,
    .example = input_gradient_example,
};

/* ---- conv2d_weight_gradient -------------------------------------------- */

static plim_status kernel_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0], *dy = node->input[1];
    struct sizes s;
    TRY(check_data(node, 0, error));
    TRY(check_data(node, 1, error));
    TRY(need_type(node, 1, x->type, error));
    backward_sizes(&s, node, 1, x->shape.dim[3]);
    TRY(check_backward(&s, node, error));
    if (x->shape.dim[1] != s.height || x->shape.dim[2] != s.width)
        return misfit(node, error, "the input is not of the size in the attributes");
    output_of(graph, node, 0, dy->type, shape_4(s.kernel[0], s.kernel[1], s.in, s.out), false);
    output_of(graph, node, 1, dy->type, shape_1(s.out), false);
    return PLIM_OK;
}

static void kernel_gradient_cut(struct cut *cut, const struct node *node)
{
    struct sizes s;
    backward_sizes(&s, node, 1, node->input[0]->shape.dim[3]);
    cut_rows(cut, node, node->input[0], work_of(&s, node->input[0]->shape.dim[0]));
}

/* The sum over samples and output cells for one element of dk; of dy alone
   for k == NULL. */
static double over_cells(const struct call *call, const struct sizes *s, const int64_t *k, int64_t in, int64_t out)
{
    int64_t rows = call_rows(call, call->node->input[0]);
    double sum = 0;
    for (int64_t cell = 0; cell < rows * s->rows * s->columns; cell++) {
        int64_t o[2] = {cell / s->columns % s->rows, cell % s->columns};
        int64_t n = cell / s->columns / s->rows;
        int64_t x = k ? x_at(s, n, o, k) : 0;
        if (x >= 0)
            sum += get(call, 1, y_at(s, n, o) + out) * (k ? get(call, 0, x + in) : 1);
    }
    return sum;
}

static void kernel_gradient_reference(const struct call *call)
{
    struct sizes s;
    backward_sizes(&s, call->node, 1, call->node->input[0]->shape.dim[3]);
    for (int64_t i = 0; i < s.kernel[0] * s.kernel[1] * s.in * s.out; i++) {
        int64_t out = i % s.out, in = i / s.out % s.in, cell = i / s.out / s.in;
        int64_t k[2] = {cell / s.kernel[1], cell % s.kernel[1]};
        share(call, 0, i, over_cells(call, &s, k, in, out));
    }
    for (int64_t out = 0; out < s.out; out++)
        share(call, 1, out, over_cells(call, &s, NULL, 0, out));
}

static struct tensor *kernel_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= CASES)
        return NULL;
    const struct example_case *c = &cases[variant];
    int64_t rows, columns;
    struct conv2d_gradient_attributes back = example_backward(c, &rows, &columns);
    struct tensor *x = example_input(graph, "x", type, ROW(c->height, c->width, c->in));
    struct tensor *dy = example_input(graph, "dy", type, ROW(rows, columns, c->out));
    return graph_add(graph, &op_conv2d_weight_gradient, (struct tensor *[]){x, dy}, 2, &back, sizeof(back));
}

const struct op op_conv2d_weight_gradient = {
    .name = "conv2d_weight_gradient",
    .inputs = 2,
    .outputs = 2,
    .attributes_bytes = sizeof(struct conv2d_gradient_attributes),
    .infer = kernel_gradient_infer,
    .no_gradient = NO_SECOND,
    .in_place = NO_INPUT,
    .cut = kernel_gradient_cut,
    .reference = kernel_gradient_reference,
    .example = kernel_gradient_example,
};
