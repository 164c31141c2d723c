/* convolution_sizes.c - the sizes of a convolution from its operands, checks of them, and its index space.

   For an output cell o and a kernel cell k the input cell along an axis is o * stride - before + k * (gap + 1), or
   none when that lies in the padding. */
#include "ops/products/convolution_own.h"

#include <stdio.h>

#define MOST_SIZE ((int64_t)1 << 30)

const struct conv_attributes *conv_attributes_of(const struct node *node)
{
    enum conv_role role;
    conv_family_of(&role, node->op);
    if (role == CONV_FORWARD)
        return node->attributes;
    return &((const struct conv_gradient_attributes *)node->attributes)->conv;
}

/* The axes of a shape of data or of a kernel that begin at `from`, behind as many of 1 as are missing. */
static void take_axes(int64_t out[MOST_SPACE], const int64_t *from, int axes)
{
    for (int i = 0; i < MOST_SPACE; i++)
        out[i] = i < MOST_SPACE - axes ? 1 : from[i - (MOST_SPACE - axes)];
}

static void take_attributes(struct conv_sizes *s, const struct conv_attributes *conv, int axes)
{
    for (int i = 0; i < MOST_SPACE; i++)
        s->stride[i] = 1;
    for (int i = 0; i < axes; i++) {
        int to = MOST_SPACE - axes + i;
        s->stride[to] = conv->stride[i];
        s->before[to] = conv->pad[2 * i];
        s->after[to] = conv->pad[2 * i + 1];
        s->gap[to] = conv->gap[i];
    }
}

/* Channels and groups from a kernel's shape; in: channels of x where they are known, else 0. */
static void take_kernel(struct conv_sizes *s, const struct conv_family *family, const struct shape *k, int64_t in,
                        int64_t groups)
{
    int64_t own = k->dim[family->axes], last = k->dim[family->axes + 1];
    take_axes(s->k, k->dim, family->axes);
    s->in = in ? in : family->depthwise ? own : own * groups;
    s->groups = family->depthwise ? own : in ? in / (own > 0 ? own : 1) : groups;
    s->out = family->depthwise ? own * last : last;
}

void conv_sizes_of(struct conv_sizes *s, const struct node *node)
{
    enum conv_role role;
    const struct conv_family *family = conv_family_of(&role, node->op);
    const struct conv_gradient_attributes *back = node->attributes;
    const struct shape *first = &node->input[0]->shape, *second = &node->input[1]->shape;
    int axes = family->axes;
    *s = (struct conv_sizes){0};
    take_attributes(s, conv_attributes_of(node), axes);
    if (role == CONV_FORWARD) {
        take_axes(s->x, &first->dim[1], axes);
        take_kernel(s, family, second, first->dim[axes + 1], 0);
        if (node->output[0])
            take_axes(s->y, &node->output[0]->shape.dim[1], axes);
    } else if (role == CONV_INPUT_GRADIENT) {
        take_axes(s->x, back->input, axes);
        take_kernel(s, family, second, 0, back->groups);
        take_axes(s->y, &first->dim[1], axes);
    } else {
        take_axes(s->x, &first->dim[1], axes);
        take_axes(s->k, back->kernel, axes);
        take_axes(s->y, &second->dim[1], axes);
        s->in = first->dim[axes + 1];
        s->out = second->dim[axes + 1];
        s->groups = family->depthwise ? s->in : back->groups;
    }
}

/* "3x5", "7" or "2x3x4": the axes that the family has. */
static const char *extents_text(char out[96], const struct node *node, const int64_t extents[MOST_SPACE])
{
    enum conv_role role;
    int axes = conv_family_of(&role, node->op)->axes, used = 0;
    for (int i = MOST_SPACE - axes; i < MOST_SPACE; i++)
        used += snprintf(out + used, 96 - (size_t)used, "%s%lld", used ? "x" : "", (long long)extents[i]);
    return out;
}

static plim_status check_axis(const struct conv_sizes *s, const struct node *node, int i, plim_error *error)
{
    if (s->stride[i] < 1 || s->stride[i] > MOST_SIZE)
        return misfit(node, error, "a stride of %lld is not possible", (long long)s->stride[i]);
    if (s->gap[i] < 0 || s->gap[i] >= MOST_SIZE)
        return misfit(node, error, "a dilation of %lld is not possible", (long long)s->gap[i] + 1);
    if (s->before[i] < 0 || s->before[i] > MOST_SIZE || s->after[i] < 0 || s->after[i] > MOST_SIZE)
        return misfit(node, error, "a padding of %lld and %lld is not possible", (long long)s->before[i],
                      (long long)s->after[i]);
    if (s->k[i] < 1 || s->k[i] > MOST_SIZE || s->x[i] < 1 || s->x[i] > MOST_SIZE)
        return misfit(node, error, "a kernel of %lld over an input of %lld is not possible", (long long)s->k[i],
                      (long long)s->x[i]);
    return PLIM_OK;
}

plim_status conv_output_sizes(int64_t y[MOST_SPACE], const struct conv_sizes *s, const struct node *node,
                              plim_error *error)
{
    int64_t padded[MOST_SPACE], kernel[MOST_SPACE];
    bool fits = true;
    char texts[2][96];
    if (s->groups < 1 || s->in % s->groups || s->out % s->groups)
        return misfit(node, error, "%lld and %lld channels in %lld groups", (long long)s->in, (long long)s->out,
                      (long long)s->groups);
    for (int i = 0; i < MOST_SPACE; i++) {
        TRY(check_axis(s, node, i, error));
        padded[i] = s->x[i] + s->before[i] + s->after[i];
        kernel[i] = (s->k[i] - 1) * (s->gap[i] + 1) + 1;
        fits = fits && kernel[i] <= padded[i];
        y[i] = (padded[i] - kernel[i]) / s->stride[i] + 1;
    }
    if (fits)
        return PLIM_OK;
    return misfit(node, error, "a kernel of %s does not fit in a padded input of %s",
                  extents_text(texts[0], node, kernel), extents_text(texts[1], node, padded));
}

plim_status conv_check_data(const struct node *node, int input, plim_error *error)
{
    enum conv_role role;
    TRY(need_real(node, input, error));
    TRY(need_rank(node, input, conv_family_of(&role, node->op)->axes + 2, error));
    return need_batched(node, input, error);
}

plim_status conv_check_kernel(const struct node *node, int data, plim_error *error)
{
    enum conv_role role;
    const struct conv_family *family = conv_family_of(&role, node->op);
    const struct tensor *x = node->input[data], *k = node->input[1];
    TRY(need_type(node, 1, x->type, error));
    TRY(need_rank(node, 1, family->axes + 2, error));
    if (k->batched)
        return misfit(node, error, "input 1 is a batch; it must be a weight");
    int64_t own = k->shape.dim[family->axes], in = x->shape.dim[family->axes + 1];
    if (role == CONV_FORWARD && (own < 1 || (family->depthwise ? own != in : in % own != 0)))
        return misfit(node, error, "a kernel for %lld channels, an input of %lld", (long long)own, (long long)in);
    return PLIM_OK;
}

plim_status conv_check_bias(const struct node *node, int64_t channels, plim_error *error)
{
    const struct tensor *bias = node->input_count > 2 ? node->input[2] : NULL;
    if (!bias)
        return PLIM_OK;
    TRY(need_type_of(node, 2, 0, error));
    TRY(need_rank(node, 2, 1, error));
    if (bias->shape.dim[0] != channels)
        return misfit(node, error, "a bias of %lld for %lld outputs", (long long)bias->shape.dim[0],
                      (long long)channels);
    return PLIM_OK;
}

struct shape conv_data_shape(const struct node *node, int64_t samples, const int64_t extents[MOST_SPACE],
                             int64_t channels)
{
    enum conv_role role;
    int axes = conv_family_of(&role, node->op)->axes;
    struct shape shape = {.rank = axes + 2, .dim = {samples}};
    for (int i = 0; i < axes; i++)
        shape.dim[1 + i] = extents[MOST_SPACE - axes + i];
    shape.dim[axes + 1] = channels;
    return shape;
}

struct shape conv_kernel_shape(const struct conv_family *family, const struct conv_sizes *s)
{
    struct shape shape = {.rank = family->axes + 2};
    for (int i = 0; i < family->axes; i++)
        shape.dim[i] = s->k[MOST_SPACE - family->axes + i];
    shape.dim[family->axes] = family->depthwise ? s->in : s->in / s->groups;
    shape.dim[family->axes + 1] = family->depthwise ? s->out / s->in : s->out;
    return shape;
}

int64_t conv_cells(const int64_t extents[MOST_SPACE])
{
    return extents[0] * extents[1] * extents[2];
}

int64_t conv_x_at(const struct conv_sizes *s, int64_t n, int64_t y_cell, int64_t k_cell)
{
    int64_t at = 0, step = 1;
    for (int i = MOST_SPACE - 1; i >= 0; i--) {
        int64_t cell = y_cell % s->y[i] * s->stride[i] - s->before[i] + k_cell % s->k[i] * (s->gap[i] + 1);
        if (cell < 0 || cell >= s->x[i])
            return -1;
        at += cell * step;
        step *= s->x[i];
        y_cell /= s->y[i];
        k_cell /= s->k[i];
    }
    return (n * step + at) * s->in;
}
