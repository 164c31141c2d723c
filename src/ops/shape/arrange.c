/* arrange.c - transpose and concatenate, and what is built from them: stack, split, reshape. */
#include "ops/helpers.h"

/* ---- transpose ----------------------------------------------------------- */

static plim_status transpose_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct transpose_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    struct shape shape = x->shape;
    unsigned seen = 0;
    for (int axis = 0; axis < shape.rank; axis++) {
        int64_t from = attributes->axes[axis];
        if (from < 0 || from >= shape.rank || seen >> from & 1 || (axis == 0) != (from == 0))
            return misfit(node, error, "axis %d cannot be axis %lld of %d", axis, (long long)from, shape.rank);
        seen |= 1u << from;
        shape.dim[axis] = x->shape.dim[from];
    }
    return output_of(graph, node, 0, x->type, shape, x->batched);
}

static void transpose_reference(const struct call *call)
{
    const struct transpose_attributes *attributes = call->node->attributes;
    const struct shape *from = &call->node->input[0]->shape, *to = &call->node->output[0]->shape;
    int64_t rows = call_rows(call, call->node->output[0]), row = shape_row(to), step[MOST_AXES];
    for (int64_t axis = from->rank - 1, size = 1; axis >= 0; size *= from->dim[axis--])
        step[axis] = size;
    for (int64_t i = 0; i < rows * row; i++) {
        int64_t rest = i % row, place = i / row * row;
        for (int axis = to->rank - 1; axis > 0; axis--) {
            place += rest % to->dim[axis] * step[attributes->axes[axis]];
            rest /= to->dim[axis];
        }
        set(call, 0, i, get(call, 0, place));
    }
}

static void transpose_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                           struct tensor **d_input)
{
    const struct transpose_attributes *attributes = node->attributes;
    struct transpose_attributes back = {{0}};
    for (int axis = 0; axis < node->input[0]->shape.rank; axis++)
        back.axes[attributes->axes[axis]] = axis;
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_transpose, d_output, 1, &back, sizeof(back));
}

const struct op op_transpose = {
    OP_HEAD(transpose, 1, 1, transpose_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct transpose_attributes),
    .gradient = transpose_back,
    .hands_on = hands_on_always,
};

struct tensor *transpose(struct graph *graph, struct tensor *x, const int *axes)
{
    struct transpose_attributes attributes = {{0}};
    if (!x)
        return NULL;
    for (int axis = 0; axis < x->shape.rank; axis++)
        attributes.axes[axis] = axes[axis];
    return graph_add(graph, &op_transpose, &x, 1, &attributes, sizeof(attributes));
}

/* ---- concatenate --------------------------------------------------------- */

static plim_status concatenate_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct concatenate_attributes *attributes = node->attributes;
    const struct tensor *first = node->input[0];
    struct shape shape = first->shape;
    char texts[2][160];
    if (attributes->axis < 1 || attributes->axis >= shape.rank)
        return misfit(node, error, "there is no axis %lld to join along", (long long)attributes->axis);
    shape.dim[attributes->axis] = 0;
    for (int i = 0; i < node->input_count && node->input[i]; i++) {
        const struct tensor *x = node->input[i];
        struct shape rest = x->shape;
        shape_text(texts[0], sizeof(texts[0]), &first->shape, first->batched);
        shape_text(texts[1], sizeof(texts[1]), &x->shape, x->batched);
        if (x->type != first->type)
            return misfit(node, error, "types %s and %s differ", type_name(first->type), type_name(x->type));
        if (rest.rank == shape.rank)
            rest.dim[attributes->axis] = shape.dim[attributes->axis];
        if (x->batched != first->batched || !shape_equal(&rest, &shape))
            return misfit(node, error, "%s and %s cannot be joined along axis %lld", texts[0], texts[1],
                          (long long)attributes->axis);
        if (__builtin_add_overflow(shape.dim[attributes->axis], x->shape.dim[attributes->axis],
                                   &shape.dim[attributes->axis]))
            return misfit(node, error, "more elements than can be counted");
    }
    return output_of(graph, node, 0, first->type, shape, first->batched);
}

/* Elements from the axis on. */
static int64_t block_of(const struct shape *shape, int64_t axis)
{
    int64_t count = 1;
    for (int64_t i = axis; i < shape->rank; i++)
        count *= shape->dim[i];
    return count;
}

static void concatenate_reference(const struct call *call)
{
    const struct concatenate_attributes *attributes = call->node->attributes;
    const struct tensor *y = call->node->output[0];
    int64_t width = block_of(&y->shape, attributes->axis), at = 0;
    int64_t groups = call_rows(call, y) * (shape_row(&y->shape) / width);
    for (int i = 0; i < call->node->input_count && call->node->input[i]; i++) {
        int64_t block = block_of(&call->node->input[i]->shape, attributes->axis);
        for (int64_t k = 0; k < groups * block; k++)
            set(call, 0, k / block * width + at + k % block, get(call, i, k));
        at += block;
    }
}

static void concatenate_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                             struct tensor **d_input)
{
    const struct concatenate_attributes *attributes = node->attributes;
    int axis = (int)attributes->axis;
    int64_t begin = 0;
    for (int i = 0; i < node->input_count && node->input[i]; i++) {
        int64_t size = node->input[i]->shape.dim[axis];
        if (wanted[i])
            d_input[i] = slice_axis(graph, d_output[0], axis, begin, size, 1);
        begin += size;
    }
}

const struct op op_concatenate = {
    OP_HEAD(concatenate, MOST_INPUTS, 1, concatenate_infer, cut_elementwise),
    .optional = (1u << MOST_INPUTS) - 2,
    .attributes_bytes = sizeof(struct concatenate_attributes),
    .gradient = concatenate_back,
    .hands_on = hands_on_always,
};

static struct tensor *join(struct graph *graph, struct tensor *const *x, int count, int axis)
{
    struct concatenate_attributes attributes = {axis};
    return count == 1 ? x[0] : graph_add(graph, &op_concatenate, x, count, &attributes, sizeof(attributes));
}

struct tensor *concatenate(struct graph *graph, struct tensor *const *x, int count, int axis)
{
    struct tensor *part[MOST_INPUTS];
    int parts = 0, most = 1;
    while (most * MOST_INPUTS < count)
        most *= MOST_INPUTS;
    for (int i = 0; i < count; i++)
        if (!x[i])
            return NULL;
    if (count <= MOST_INPUTS)
        return join(graph, x, count, axis);
    for (int i = 0; i < count; i += most)
        part[parts++] = concatenate(graph, x + i, count - i < most ? count - i : most, axis);
    return join(graph, part, parts, axis);
}

/* ---- reshape, stack, split ----------------------------------------------- */

struct tensor *reshape(struct graph *graph, struct tensor *x, struct shape row)
{
    struct unflatten_attributes attributes = {row};
    if (!x)
        return NULL;
    struct shape now = shape_of(x->shape.rank - 1, x->shape.dim + 1);
    if (shape_equal(&now, &row))
        return x;
    return graph_add(graph, &op_unflatten, &x, 1, &attributes, sizeof(attributes));
}

static struct tensor *with_axis(struct graph *graph, struct tensor *x, int axis)
{
    struct shape row = {.rank = x->shape.rank};
    if (axis < 1 || axis > x->shape.rank || x->shape.rank >= MOST_AXES) {
        graph_fail(graph, PLIM_BAD_MODEL, "stack: no new axis %d fits into %d", axis, x->shape.rank);
        return NULL;
    }
    for (int i = 1, k = 0; i <= x->shape.rank; i++)
        row.dim[k++] = i < axis ? x->shape.dim[i] : i == axis ? 1 : x->shape.dim[i - 1];
    return reshape(graph, x, row);
}

struct tensor *stack(struct graph *graph, struct tensor *const *x, int count, int axis)
{
    struct tensor *part[MOST_INPUTS];
    int parts = 0, most = 1;
    while (most * MOST_INPUTS < count)
        most *= MOST_INPUTS;
    if (count == 1)
        return x[0] ? with_axis(graph, x[0], axis) : NULL;
    for (int i = 0; i < count; i += most) {
        part[parts] = stack(graph, x + i, count - i < most ? count - i : most, axis);
        if (!part[parts++])
            return NULL;
    }
    return join(graph, part, parts, axis);
}

void split(struct tensor **out, struct graph *graph, struct tensor *x, int axis, const int64_t *sizes, int count)
{
    int64_t begin = 0;
    for (int i = 0; i < count; begin += sizes[i++])
        out[i] = slice_axis(graph, x, axis, begin, sizes[i], 1);
}
