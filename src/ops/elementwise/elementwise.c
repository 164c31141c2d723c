/* elementwise.c - ops that treat each element alone and are used most: relu, sigmoid, clip_log
   and their gradients, scale, rescale. More of them: unary.c, binary.c.

   A reference calls a formula of one or two elements for each row of its
   slice. Each element is read before it is written: in place is fine. */
#include <math.h>

#include "ops/helpers.h"

/* ---- relu: y = max(x, 0) ----------------------------------------------- */

static void relu_reference(const struct call *call)
{
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++) {
        double x = get(call, 0, i);
        set(call, 0, i, x < 0 ? 0 : x);
    }
}

/* dx = dy where y > 0. */
static void relu_gradient_reference(const struct call *call)
{
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 1, i) > 0 ? get(call, 0, i) : 0);
}

/* ---- sigmoid: y = 1 / (1 + exp(-x)) ------------------------------------ */

static void sigmoid_reference(const struct call *call)
{
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, 1 / (1 + exp(-get(call, 0, i))));
}

/* dx = dy * y * (1 - y). */
static void sigmoid_gradient_reference(const struct call *call)
{
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++) {
        double y = get(call, 1, i);
        set(call, 0, i, get(call, 0, i) * y * (1 - y));
    }
}

/* ---- scale: y = x * factor --------------------------------------------- */

static void scale_reference(const struct call *call)
{
    const struct scale_attributes *attributes = call->node->attributes;
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 0, i) * attributes->factor);
}

const struct op op_scale = {
    OP_HEAD(scale, 1, 1, infer_alike, cut_elementwise),
    .attributes_bytes = sizeof(struct scale_attributes),
    .gradient_op = &op_scale,
    .gradient_reads = {READ_D},
    .in_place = 1 << 0,
};

/* ---- rescale: y = x * scale + offset, from any type -------------------- */

static plim_status rescale_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0];
    const struct rescale_attributes *attributes = node->attributes;
    (void)error;
    bool wide = x->type == TYPE_F64 && !attributes->single;
    return output_of(graph, node, 0, wide ? TYPE_F64 : TYPE_F32, x->shape, x->batched);
}

static void rescale_reference(const struct call *call)
{
    const struct rescale_attributes *attributes = call->node->attributes;
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 0, i) * attributes->scale + attributes->offset);
}

/* Whole types and small floats: none flows. */
static void rescale_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                         struct tensor **d_input)
{
    const struct rescale_attributes *attributes = node->attributes;
    struct scale_attributes back = {attributes->scale};
    if (wanted[0] && node->input[0]->type == node->output[0]->type)
        d_input[0] = graph_add(graph, &op_scale, d_output, 1, &back, sizeof(back));
}

/* What makes floats of whole numbers. */
static bool rescale_hands_on(const struct node *node)
{
    const struct rescale_attributes *attributes = node->attributes;
    return attributes->scale == 1 && attributes->offset == 0;
}

const struct op op_rescale = {
    OP_HEAD(rescale, 1, 1, rescale_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct rescale_attributes),
    .gradient = rescale_back,
    .hands_on = rescale_hands_on,
    .in_place = 1 << 0, /* from f32 to f32 only: equally many bytes */
};

/* ---- clip_log: y = log(min(max(x, low), high)) ------------------------- */

static plim_status clip_log_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct clip_log_attributes *attributes = node->attributes;
    if (!(attributes->low > 0) || !(attributes->high >= attributes->low))
        return misfit(node, error, "clipping to [%g, %g] is not possible", attributes->low, attributes->high);
    return infer_alike(graph, node, error);
}

static void clip_log_reference(const struct call *call)
{
    const struct clip_log_attributes *attributes = call->node->attributes;
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++) {
        double x = get(call, 0, i);
        x = x < attributes->low ? attributes->low : x > attributes->high ? attributes->high : x;
        set(call, 0, i, log(x));
    }
}

/* dx = dy / x inside [low, high], 0 outside; inputs dy, x. */
static void clip_log_gradient_reference(const struct call *call)
{
    const struct clip_log_attributes *attributes = call->node->attributes;
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++) {
        double x = get(call, 1, i);
        bool outside = x < attributes->low || x > attributes->high;
        set(call, 0, i, outside ? 0 : get(call, 0, i) / x);
    }
}

/* ---- the ops that have a gradient of their own ------------------------------ */

/* from, keeps: what the gradient reads besides dy, x or y. */
#define PAIR(word, bytes, infer_, from, keeps, encoding_)                                                              \
    const struct op op_##word = {                                                                                      \
        OP_HEAD(word, 1, 1, infer_, cut_elementwise),                                                                  \
        .attributes_bytes = bytes,                                                                                     \
        .gradient_op = &op_##word##_gradient,                                                                          \
        .gradient_reads = {READ_D, from},                                                                              \
        .keeps = 1 << 0,                                                                                               \
        .in_place = 1 << 0,                                                                                            \
    };                                                                                                                 \
    const struct op op_##word##_gradient = {                                                                           \
        OP_HEAD(word##_gradient, 2, 1, infer_, cut_elementwise),                                                       \
        .attributes_bytes = bytes,                                                                                     \
        .no_gradient = NO_SECOND,                                                                                      \
        .in_place = 1 << 0,                                                                                            \
        .encoding = encoding_,                                                                                         \
    };

PAIR(relu, 0, infer_alike, READ_Y0, keeps_outputs, relu_encoding)
PAIR(sigmoid, 0, infer_alike, READ_Y0, keeps_outputs, NULL)
PAIR(clip_log, sizeof(struct clip_log_attributes), clip_log_infer, READ_X0, keeps_inputs, NULL)
