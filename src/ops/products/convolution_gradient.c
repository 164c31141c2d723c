/* convolution_gradient.c - the gradients of convolutions; the one of x is the transposed convolution too. */
#include "ops/products/convolution_own.h"

/* dy must be what a convolution of x makes. */
static plim_status check_backward(const struct conv_sizes *s, const struct node *node, plim_error *error)
{
    int64_t y[MOST_SPACE];
    if (conv_attributes_of(node)->activation)
        return misfit(node, error, "the activation comes before");
    TRY(conv_output_sizes(y, s, node, error));
    for (int i = 0; i < MOST_SPACE; i++)
        if (y[i] != s->y[i])
            return misfit(node, error, "a gradient of %lldx%lldx%lld where the output is %lldx%lldx%lld",
                          (long long)s->y[0], (long long)s->y[1], (long long)s->y[2], (long long)y[0], (long long)y[1],
                          (long long)y[2]);
    return PLIM_OK;
}

/* ---- with respect to x ------------------------------------------------- */

plim_status conv_input_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *dy = node->input[0];
    const struct conv_gradient_attributes *back = node->attributes;
    enum conv_role role;
    int axes = conv_family_of(&role, node->op)->axes;
    struct conv_sizes s;
    TRY(conv_check_data(node, 0, error));
    TRY(conv_check_kernel(node, 0, error));
    conv_sizes_of(&s, node);
    TRY(check_backward(&s, node, error));
    for (int i = 0; i < axes; i++)
        if (node->input[1]->shape.dim[i] != back->kernel[i])
            return misfit(node, error, "the kernel is not of the size in the attributes");
    if (dy->shape.dim[axes + 1] != s.out)
        return misfit(node, error, "a kernel for %lld outputs, a gradient of %lld", (long long)s.out,
                      (long long)dy->shape.dim[axes + 1]);
    TRY(conv_check_bias(node, s.in, error));
    return output_of(graph, node, 0, dy->type, conv_data_shape(node, dy->shape.dim[0], s.x, s.in), true);
}

/* Adds dy's cell times one kernel cell to dx. */
static void scatter_cell(const struct scatter *scatter, const struct conv_sizes *s, int64_t y, int64_t x, int64_t k)
{
    const struct call *call = scatter->call;
    int64_t each = s->in / s->groups, outs = s->out / s->groups;
    for (int64_t in = 0; in < s->in; in++) {
        double sum = 0;
        for (int64_t out = in / each * outs; out < (in / each + 1) * outs; out++)
            sum += get(call, 0, y + out) * get(call, 1, (k * each + in % each) * s->out + out);
        scatter_add(scatter, x + in, sum);
    }
}

static void scatter_all(const struct scatter *scatter)
{
    struct conv_sizes s;
    conv_sizes_of(&s, scatter->call->node);
    int64_t rows = call_rows(scatter->call, scatter->call->node->output[0]), cells = conv_cells(s.y);
    for (int64_t cell = 0; cell < rows * cells; cell++)
        for (int64_t k = 0; k < conv_cells(s.k); k++) {
            int64_t x = conv_x_at(&s, cell / cells, cell % cells, k);
            if (x >= 0)
                scatter_cell(scatter, &s, cell * s.out, x, k);
        }
}

static double bias_at(const struct call *call, int64_t i)
{
    bool bias = call->node->input_count > 2 && call->input[2];
    return bias ? get(call, 2, i % last_dim(call->node->output[0])) : 0;
}

void conv_input_gradient_reference(const struct call *call)
{
    scatter_sums(call, bias_at, scatter_all);
}

/* dx is linear in dy and in k: the derivatives are the other two ops. */
void conv_input_gradient_gradient(struct graph *graph, struct node *node, struct tensor *const *d_output,
                                  const bool *wanted, struct tensor **d_input)
{
    const struct conv_gradient_attributes *attributes = node->attributes;
    enum conv_role role;
    const struct conv_family *family = conv_family_of(&role, node->op);
    struct conv_gradient_attributes back = *attributes;
    struct tensor *d = d_output[0];
    back.bias = false;
    if (wanted[0])
        d_input[0] = graph_add(graph, family->op[CONV_FORWARD], (struct tensor *[]){d, node->input[1]}, 2, &back.conv,
                               sizeof(back.conv));
    if (wanted[1])
        d_input[1] = graph_add(graph, family->op[CONV_WEIGHT_GRADIENT], (struct tensor *[]){d, node->input[0]}, 2,
                               &back, sizeof(back));
    if (node->input_count > 2 && wanted[2])
        d_input[2] = unary(graph, &op_sum_rows, d);
}

/* ---- with respect to k and bias ---------------------------------------- */

plim_status conv_weight_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0], *dy = node->input[1];
    const struct conv_gradient_attributes *back = node->attributes;
    enum conv_role role;
    const struct conv_family *family = conv_family_of(&role, node->op);
    struct conv_sizes s;
    TRY(conv_check_data(node, 0, error));
    TRY(conv_check_data(node, 1, error));
    TRY(need_type(node, 1, x->type, error));
    conv_sizes_of(&s, node);
    TRY(check_backward(&s, node, error));
    for (int i = 0; i < family->axes; i++)
        if (x->shape.dim[1 + i] != back->input[i])
            return misfit(node, error, "the input is not of the size in the attributes");
    output_of(graph, node, 0, dy->type, conv_kernel_shape(family, &s), false);
    return output_of(graph, node, 1, dy->type, shape_1(s.out), false);
}

/* The sum over samples and cells of y for one element of dk. */
static double kernel_element(const struct call *call, const struct conv_sizes *s, int64_t k, int64_t in, int64_t out)
{
    int64_t rows = call_rows(call, call->node->input[0]), cells = conv_cells(s->y);
    int64_t group = out / (s->out / s->groups);
    double sum = 0;
    for (int64_t cell = 0; cell < rows * cells; cell++) {
        int64_t x = conv_x_at(s, cell / cells, cell % cells, k);
        if (x >= 0)
            sum += get(call, 0, x + group * (s->in / s->groups) + in) * get(call, 1, cell * s->out + out);
    }
    return sum;
}

static double bias_element(const struct call *call, const struct conv_sizes *s, int64_t out)
{
    int64_t rows = call_rows(call, call->node->input[0]);
    double sum = 0;
    for (int64_t cell = 0; cell < rows * conv_cells(s->y); cell++)
        sum += get(call, 1, cell * s->out + out);
    return sum;
}

void conv_weight_gradient_reference(const struct call *call)
{
    const struct conv_gradient_attributes *back = call->node->attributes;
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    int64_t each = s.in / s.groups;
    for (int64_t i = 0; i < conv_cells(s.k) * each * s.out; i++)
        share(call, 0, i, kernel_element(call, &s, i / s.out / each, i / s.out % each, i % s.out));
    for (int64_t out = 0; out < s.out; out++)
        share(call, 1, out, back->bias ? bias_element(call, &s, out) : 0);
}
