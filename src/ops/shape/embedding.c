/* embedding.c - rows of a table by number, and the gradient of the table. */
#include <math.h>

#include "ops/helpers.h"

static plim_status need_index(const struct node *node, int input, plim_error *error)
{
    TRY(need_batched(node, input, error));
    if (!is_label(node->input[input]->type))
        return misfit(node, error, "indices of type %s are not offered", type_name(node->input[input]->type));
    return PLIM_OK;
}

/* ids' shape, and one more axis. */
static struct shape deeper(const struct shape *ids, int64_t depth)
{
    struct shape shape = *ids;
    shape.dim[shape.rank++] = depth;
    return shape;
}

static plim_status embedding_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct tensor *ids = node->input[0];
    const struct tensor *w = node->input[1];
    TRY(need_index(node, 0, error));
    TRY(need_real(node, 1, error));
    TRY(need_rank(node, 1, 2, error));
    tensor_ask_ids(ids, w->shape.dim[0]);
    if (w->batched || ids->shape.rank >= MOST_AXES)
        return misfit(node, error, "ids of %d axes; at most %d, and a table without a batch", ids->shape.rank,
                      MOST_AXES - 1);
    return output_of(graph, node, 0, w->type, deeper(&ids->shape, w->shape.dim[1]), true);
}

static void embedding_reference(const struct call *call)
{
    const struct tensor *ids = call->node->input[0], *w = call->node->input[1];
    int64_t count = call_rows(call, ids) * shape_row(&ids->shape), width = w->shape.dim[1];
    for (int64_t i = 0; i < count; i++) {
        double id = get(call, 0, i);
        bool inside = id >= 0 && id < (double)w->shape.dim[0];
        for (int64_t k = 0; k < width; k++)
            set(call, 0, i * width + k, inside ? get(call, 1, (int64_t)id * width + k) : (double)NAN);
    }
}

static void embedding_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                           struct tensor **d_input)
{
    struct embedding_gradient_attributes back = {node->input[1]->shape.dim[0]};
    if (wanted[1])
        d_input[1] = graph_add(graph, &op_embedding_gradient, (struct tensor *[]){node->input[0], d_output[0]}, 2,
                               &back, sizeof(back));
}

const struct op op_embedding = {
    OP_HEAD(embedding, 2, 1, embedding_infer, cut_elementwise),
    .gradient = embedding_back,
    .keeps_inputs = 1 << 0,
};

/* ---- embedding_gradient --------------------------------------------------- */

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct embedding_gradient_attributes *attributes = node->attributes;
    const struct tensor *ids = node->input[0], *dy = node->input[1];
    TRY(need_index(node, 0, error));
    TRY(need_real(node, 1, error));
    TRY(need_batched(node, 1, error));
    struct shape shape = deeper(&ids->shape, last_dim(dy));
    if (ids->shape.rank >= MOST_AXES || !shape_equal(&shape, &dy->shape) || attributes->rows < 1)
        return misfit(node, error, "the gradient has not the shape of the looked up rows");
    return output_of(graph, node, 0, dy->type, shape_2(attributes->rows, last_dim(dy)), false);
}

static void gradient_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *dw = node->output[0], *dy = node->input[1];
    *cut = (struct cut){.extent = dw->shape.dim[0], .grain = 1};
    cut->work = (double)shape_count(&dy->shape) + (double)shape_count(&dw->shape);
    cut->input[0] = cut->input[1] = PART_WHOLE;
    cut->output[0] = PART_CUT;
}

static void embedding_gradient_reference(const struct call *call)
{
    const struct tensor *ids = call->node->input[0], *dw = call->node->output[0];
    int64_t count = call->count * shape_row(&ids->shape), width = dw->shape.dim[1];
    for (int64_t i = 0; i < (call->end - call->begin) * width; i++)
        set(call, 0, i, 0);
    for (int64_t i = 0; i < count; i++) {
        double id = get(call, 0, i) - (double)call->begin;
        if (!(id >= 0 && id < (double)(call->end - call->begin)))
            continue;
        for (int64_t k = 0; k < width; k++) {
            double before = element_get(call->output[0], dw->type, (int64_t)id * width + k);
            set(call, 0, (int64_t)id * width + k, before + get(call, 1, i * width + k));
        }
    }
}

const struct op op_embedding_gradient = {
    OP_HEAD(embedding_gradient, 2, 1, gradient_infer, gradient_cut),
    .attributes_bytes = sizeof(struct embedding_gradient_attributes),
    .no_gradient = NO_SECOND,
};
