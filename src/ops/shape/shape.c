/* shape.c - the same bytes under another shape, flatten and unflatten, or for forward alone, stop_gradient. */
#include <string.h>

#include "ops/helpers.h"

/* Any type; in place there is nothing to do. */
static void copy_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    int64_t count = call_rows(call, y) * shape_row(&y->shape);
    if (call->output[0] != call->input[0])
        memmove(call->output[0], call->input[0], (size_t)count * type_bytes(y->type));
}

/* Back to the shape that the input has. */
static void reshape_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                         struct tensor **d_input)
{
    const struct shape *x = &node->input[0]->shape;
    struct unflatten_attributes back = {.row = shape_of(x->rank - 1, x->dim + 1)};
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_unflatten, d_output, 1, &back, sizeof(back));
}

/* ---- flatten: [N, ...] -> [N, count] ----------------------------------- */

static plim_status flatten_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0];
    TRY(need_batched(node, 0, error));
    return output_of(graph, node, 0, x->type, shape_2(x->shape.dim[0], shape_row(&x->shape)), true);
}

const struct op op_flatten = {
    .name = "flatten",
    .inputs = 1,
    .outputs = 1,
    .infer = flatten_infer,
    .gradient = reshape_back,
    .hands_on = hands_on_always,
    .in_place = 1 << 0,
    .cut = cut_elementwise,
    .reference = copy_reference,
};

/* ---- unflatten: [N, ...] -> [N, row...] -------------------------------- */

static plim_status unflatten_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct unflatten_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    struct shape shape = {.rank = attributes->row.rank + 1, .dim = {x->shape.dim[0]}};
    uint64_t bytes;
    char text[160];
    TRY(need_batched(node, 0, error));
    shape_text(text, sizeof(text), &attributes->row, false);
    if (attributes->row.rank < 0 || attributes->row.rank >= MOST_AXES ||
        !shape_bytes(&bytes, &attributes->row, x->type) || shape_count(&attributes->row) != shape_row(&x->shape))
        return misfit(node, error, "%lld elements a sample do not make %s", (long long)shape_row(&x->shape), text);
    for (int i = 0; i < attributes->row.rank; i++)
        shape.dim[i + 1] = attributes->row.dim[i];
    return output_of(graph, node, 0, x->type, shape, true);
}

const struct op op_unflatten = {
    .name = "unflatten",
    .inputs = 1,
    .outputs = 1,
    .attributes_bytes = sizeof(struct unflatten_attributes),
    .infer = unflatten_infer,
    .gradient = reshape_back,
    .hands_on = hands_on_always,
    .in_place = 1 << 0,
    .cut = cut_elementwise,
    .reference = copy_reference,
};

/* ---- stop_gradient ------------------------------------------------------ */

static plim_status stop_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)error;
    return output_like(graph, node, 0, node->input[0]);
}

const struct op op_stop_gradient = {
    .name = "stop_gradient",
    .inputs = 1,
    .outputs = 1,
    .infer = stop_gradient_infer,
    .no_gradient = "it is there to stop it",
    .stops_gradient = true,
    .hands_on = hands_on_always,
    .in_place = 1 << 0,
    .cut = cut_elementwise,
    .reference = copy_reference,
};
