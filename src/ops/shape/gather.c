/* gather.c - gather and scatter_add along an axis, by one index for all or one for each element. */
#include <math.h>

#include "ops/helpers.h"

/* x and y are as outer x axis x inner a sample. */
struct layout {
    int64_t outer, inner, count; /* count: places of the index along the axis */
};

static struct layout layout_of(const struct shape *shape, const struct gather_attributes *attributes)
{
    struct layout layout = {1, 1, shape->dim[attributes->axis]};
    for (int axis = 1; axis < shape->rank; axis++) {
        if (axis < attributes->axis)
            layout.outer *= shape->dim[axis];
        else if (axis > attributes->axis)
            layout.inner *= shape->dim[axis];
    }
    return layout;
}

/* Of x (or values) against the index; *out is how many places the index has along the axis. */
static plim_status check_index(int64_t *out, const struct node *node, const struct gather_attributes *attributes,
                               plim_error *error)
{
    const struct shape *x = &node->input[0]->shape, *index = &node->input[1]->shape;
    TRY(need_batched(node, 0, error));
    TRY(need_batched(node, 1, error));
    if (!is_label(node->input[1]->type))
        return misfit(node, error, "indices of type %s are not offered", type_name(node->input[1]->type));
    if (attributes->axis < 1 || attributes->axis >= x->rank)
        return misfit(node, error, "there is no axis %lld to look along", (long long)attributes->axis);
    bool fits = attributes->along ? index->rank == x->rank : index->rank <= 2;
    for (int axis = 1; fits && attributes->along && axis < x->rank; axis++)
        fits = axis == attributes->axis || index->dim[axis] == x->dim[axis];
    if (!fits)
        return misfit(node, error, "the index does not have the shape of what it looks up");
    *out = attributes->along ? index->dim[attributes->axis] : index->rank == 2 ? index->dim[1] : 1;
    return PLIM_OK;
}

/* The index for place (outer, k, inner) of sample n. */
static double index_at(const struct call *call, const struct gather_attributes *attributes, const struct layout *layout,
                       int64_t n, int64_t outer, int64_t k, int64_t inner)
{
    if (!attributes->along)
        return get(call, 1, n * layout->count + k);
    return get(call, 1, ((n * layout->outer + outer) * layout->count + k) * layout->inner + inner);
}

/* ---- gather ---------------------------------------------------------------- */

static plim_status gather_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct gather_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    struct shape shape = x->shape;
    int64_t count;
    TRY(need_real(node, 0, error));
    TRY(check_index(&count, node, attributes, error));
    shape.dim[attributes->axis] = count;
    return output_of(graph, node, 0, x->type, shape, true);
}

static void gather_reference(const struct call *call)
{
    const struct gather_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0], *y = call->node->output[0];
    struct layout layout = layout_of(&y->shape, attributes);
    int64_t rows = call_rows(call, y), extent = x->shape.dim[attributes->axis], at = 0;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t outer = 0; outer < layout.outer; outer++)
            for (int64_t k = 0; k < layout.count; k++)
                for (int64_t inner = 0; inner < layout.inner; inner++) {
                    double index = index_at(call, attributes, &layout, n, outer, k, inner);
                    bool inside = index >= 0 && index < (double)extent;
                    int64_t row = (n * layout.outer + outer) * extent + (inside ? (int64_t)index : 0);
                    set(call, 0, at++, inside ? get(call, 0, row * layout.inner + inner) : (double)NAN);
                }
}

static void gather_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                        struct tensor **d_input)
{
    const struct gather_attributes *attributes = node->attributes;
    struct scatter_attributes back = {*attributes, node->input[0]->shape.dim[attributes->axis]};
    if (wanted[0])
        d_input[0] =
            graph_add(graph, &op_scatter_add, (struct tensor *[]){d_output[0], node->input[1]}, 2, &back, sizeof(back));
}

const struct op op_gather = {
    OP_HEAD(gather, 2, 1, gather_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct gather_attributes),
    .gradient = gather_back,
    .keeps_inputs = 1 << 1,
};

/* ---- scatter_add ----------------------------------------------------------- */

static plim_status scatter_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct scatter_attributes *attributes = node->attributes;
    const struct tensor *values = node->input[0];
    struct shape shape = values->shape;
    int64_t count;
    TRY(need_real(node, 0, error));
    TRY(check_index(&count, node, &attributes->gather, error));
    if (count != shape.dim[attributes->gather.axis] || attributes->extent < 1)
        return misfit(node, error, "%lld indices for %lld values", (long long)count,
                      (long long)shape.dim[attributes->gather.axis]);
    shape.dim[attributes->gather.axis] = attributes->extent;
    return output_of(graph, node, 0, values->type, shape, true);
}

static void scatter_values(const struct scatter *scatter)
{
    const struct call *call = scatter->call;
    const struct scatter_attributes *attributes = call->node->attributes;
    const struct tensor *values = call->node->input[0], *y = call->node->output[0];
    struct layout layout = layout_of(&values->shape, &attributes->gather);
    int64_t rows = call_rows(call, y), at = 0;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t outer = 0; outer < layout.outer; outer++)
            for (int64_t k = 0; k < layout.count; k++)
                for (int64_t inner = 0; inner < layout.inner; inner++, at++) {
                    double index = index_at(call, &attributes->gather, &layout, n, outer, k, inner);
                    if (!(index >= 0 && index < (double)attributes->extent))
                        continue;
                    int64_t row = (n * layout.outer + outer) * attributes->extent + (int64_t)index;
                    scatter_add(scatter, row * layout.inner + inner, get(call, 0, at));
                }
}

static void scatter_add_reference(const struct call *call)
{
    scatter_sums(call, NULL, scatter_values);
}

static void scatter_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                         struct tensor **d_input)
{
    const struct scatter_attributes *attributes = node->attributes;
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_gather, (struct tensor *[]){d_output[0], node->input[1]}, 2,
                               &attributes->gather, sizeof(attributes->gather));
}

const struct op op_scatter_add = {
    OP_HEAD(scatter_add, 2, 1, scatter_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct scatter_attributes),
    .gradient = scatter_back,
    .keeps_inputs = 1 << 1,
};
