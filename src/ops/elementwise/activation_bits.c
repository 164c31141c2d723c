/* activation_bits.c - saves 1 or 2 bits per element instead of the activation (activation_bits.h): the segment of a
   piecewise-linear activation (ReLU, leaky ReLU, ReLU6) that x falls in; the gradient needs no more. */
#include "ops/elementwise/activation_bits.h"

#include <math.h>
#include <string.h>

#include "ops/helpers.h"

static plim_status check(const struct node *node, plim_error *error)
{
    const struct slope_attributes *slopes = node->attributes;
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    if (slopes->bits != 1 && slopes->bits != 2)
        return misfit(node, error, "%lld bits for a piece", (long long)slopes->bits);
    return PLIM_OK;
}

static struct shape bits_shape(const struct tensor *x, const struct slope_attributes *slopes)
{
    return shape_2(x->shape.dim[0], packed_bytes(shape_row(&x->shape), slopes->bits));
}

/* ---- slope_bits ---------------------------------------------------------- */

static plim_status slope_bits_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0];
    TRY(check(node, error));
    return output_of(graph, node, 0, TYPE_U8, bits_shape(x, node->attributes), true);
}

static int piece_of(double x, const struct slope_attributes *slopes)
{
    int above = x > slopes->low, beyond = x >= slopes->high;
    return slopes->bits == 1 ? above && !beyond : above ? 1 + beyond : 0;
}

static void slope_bits_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    const struct slope_attributes *slopes = call->node->attributes;
    int64_t row = shape_row(&x->shape), rows = call_rows(call, x), bytes = packed_bytes(row, slopes->bits);
    for (int64_t i = 0; i < rows * row; i++)
        packed_set((uint8_t *)call->output[0] + i / row * bytes, slopes->bits, i % row,
                   piece_of(get(call, 0, i), slopes));
}

const struct op op_slope_bits = {
    OP_HEAD(slope_bits, 1, 1, slope_bits_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct slope_attributes),
    .no_gradient = "its output is a few bits",
};

/* ---- slope_gradient ------------------------------------------------------ */

static plim_status slope_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *dy = node->input[0], *bits = node->input[1];
    TRY(check(node, error));
    TRY(need_type(node, 1, TYPE_U8, error));
    TRY(need_batched(node, 1, error));
    struct shape expected = bits_shape(dy, node->attributes);
    if (!shape_equal(&bits->shape, &expected))
        return misfit(node, error, "gradient and bits differ in size");
    return output_like(graph, node, 0, dy);
}

static void slope_gradient_reference(const struct call *call)
{
    const struct tensor *dy = call->node->input[0];
    const struct slope_attributes *slopes = call->node->attributes;
    int64_t row = shape_row(&dy->shape), rows = call_rows(call, dy), bytes = packed_bytes(row, slopes->bits);
    for (int64_t i = 0; i < rows * row; i++) {
        int piece = packed_get((const uint8_t *)call->input[1] + i / row * bytes, slopes->bits, i % row);
        double d = get(call, 0, i), slope = piece < 3 ? slopes->slope[piece] : 0;
        set(call, 0, i, slopes->product ? d * slope : piece ? d : 0);
    }
}

const struct op op_slope_gradient = {
    OP_HEAD(slope_gradient, 2, 1, slope_gradient_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct slope_attributes),
    .no_gradient = NO_SECOND,
    .in_place = 1 << 0,
};

/* ---- for gradients that can read the bits -------------------------------- */

void slope_encoding(struct encoded_input *out, const struct slope_attributes *slopes)
{
    *out = (struct encoded_input){
        .input = 1, .encode = &op_slope_bits, .reader = &op_slope_gradient, .attributes_bytes = sizeof *slopes};
    _Static_assert(sizeof *slopes <= sizeof out->attributes, "attributes have no room");
    memcpy(out->attributes, slopes, sizeof *slopes);
}

bool relu_encoding(struct encoded_input *out, const struct node *node)
{
    static const struct slope_attributes relu = {0, NAN, {0, 1, 0}, 1, 0};
    (void)node;
    slope_encoding(out, &relu);
    return true;
}
