/* convolution.c - the forward convolutions: y = act(x * k + bias), cut by sample. */
#include "ops/products/convolution_own.h"

plim_status conv_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0];
    struct conv_sizes s;
    TRY(conv_check_data(node, 0, error));
    TRY(conv_check_kernel(node, 0, error));
    conv_sizes_of(&s, node);
    if (conv_attributes_of(node)->activation > ACTIVATION_RELU)
        return misfit(node, error, "of activations only relu is taken in");
    TRY(conv_output_sizes(s.y, &s, node, error));
    TRY(conv_check_bias(node, s.out, error));
    return output_of(graph, node, 0, x->type, conv_data_shape(node, x->shape.dim[0], s.y, s.out), true);
}

/* Of all three ops: each pairs every cell of y with the cells of a kernel. */
void conv_cut(struct cut *cut, const struct node *node)
{
    struct conv_sizes s;
    conv_sizes_of(&s, node);
    double kernel = (double)conv_cells(s.k) * (double)(s.in / s.groups) * (double)s.out;
    double samples = (double)node->input[0]->shape.dim[0];
    cut_rows(cut, node, node->input[0], samples * (double)conv_cells(s.y) * kernel);
}

/* One element of y: cell `cell` of sample n, channel `out`. */
static double forward_element(const struct call *call, const struct conv_sizes *s, int64_t n, int64_t cell, int64_t out)
{
    int64_t each = s->in / s->groups, group = out / (s->out / s->groups);
    double sum = call->input[2] ? get(call, 2, out) : 0;
    for (int64_t k = 0; k < conv_cells(s->k); k++) {
        int64_t x = conv_x_at(s, n, cell, k);
        for (int64_t i = 0; x >= 0 && i < each; i++)
            sum += get(call, 0, x + group * each + i) * get(call, 1, (k * each + i) * s->out + out);
    }
    return sum;
}

void conv_reference(const struct call *call)
{
    struct conv_sizes s;
    conv_sizes_of(&s, call->node);
    int64_t rows = call_rows(call, call->node->output[0]), cells = conv_cells(s.y);
    bool relu = conv_attributes_of(call->node)->activation == ACTIVATION_RELU;
    for (int64_t i = 0; i < rows * cells * s.out; i++) {
        double y = forward_element(call, &s, i / s.out / cells, i / s.out % cells, i % s.out);
        set(call, 0, i, relu && y < 0 ? 0 : y);
    }
}

/* The attributes of both gradients. */
static struct conv_gradient_attributes backward_of(const struct node *node, const struct conv_sizes *s, int axes)
{
    struct conv_gradient_attributes back = {.conv = *conv_attributes_of(node), .groups = s->groups};
    back.conv.activation = ACTIVATION_NONE;
    for (int i = 0; i < axes; i++) {
        back.input[i] = s->x[MOST_SPACE - axes + i];
        back.kernel[i] = s->k[MOST_SPACE - axes + i];
    }
    return back;
}

void conv_gradient(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                   struct tensor **d_input)
{
    struct conv_sizes s;
    enum conv_role role;
    const struct conv_family *family = conv_family_of(&role, node->op);
    struct tensor *dy = d_output[0], *x = node->input[0], *k = node->input[1];
    conv_sizes_of(&s, node);
    if (conv_attributes_of(node)->activation == ACTIVATION_RELU)
        dy = binary(graph, &op_relu_gradient, dy, node->output[0]);
    struct conv_gradient_attributes back = backward_of(node, &s, family->axes);
    if (wanted[1] || wanted[2]) {
        back.bias = wanted[2];
        d_input[1] =
            graph_add(graph, family->op[CONV_WEIGHT_GRADIENT], (struct tensor *[]){x, dy}, 2, &back, sizeof(back));
        d_input[2] = wanted[2] ? graph_output(d_input[1], 1) : NULL;
    }
    back.bias = false;
    if (wanted[0])
        d_input[0] =
            graph_add(graph, family->op[CONV_INPUT_GRADIENT], (struct tensor *[]){dy, k}, 2, &back, sizeof(back));
}
