/* mask.c - masks of time steps, and sums over what they leave. */
#include "ops/helpers.h"

/* [N, T], bool. */
static plim_status need_mask(const struct node *node, int input, int64_t steps, plim_error *error)
{
    if (!node->input[input])
        return PLIM_OK;
    const struct shape *shape = &node->input[input]->shape;
    char text[160];
    TRY(need_type(node, input, TYPE_BOOL, error));
    TRY(need_batched(node, input, error));
    TRY(need_rank(node, input, 2, error));
    shape_text(text, sizeof(text), shape, true);
    if (shape->dim[1] != steps)
        return misfit(node, error, "a mask of shape %s for %lld steps", text, (long long)steps);
    return PLIM_OK;
}

static plim_status need_steps(const struct node *node, int input, plim_error *error)
{
    char text[160];
    TRY(need_batched(node, input, error));
    shape_text(text, sizeof(text), &node->input[input]->shape, true);
    if (node->input[input]->shape.rank < 2)
        return misfit(node, error, "input %d of shape %s has no steps", input, text);
    return PLIM_OK;
}

static bool is_there(const struct call *call, int input, int64_t i)
{
    return !call->input[input] || get(call, input, i) != 0;
}

/* ---- mask_of ----------------------------------------------------------- */

static plim_status mask_of_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct mask_of_attributes *attributes = node->attributes;
    struct shape shape = node->input[0]->shape;
    TRY(need_steps(node, 0, error));
    shape.rank -= attributes->over_last != 0;
    if (shape.rank != 2)
        return misfit(node, error, "an input of %d axes has no steps to be masked", node->input[0]->shape.rank);
    return output_of(graph, node, 0, TYPE_BOOL, shape, true);
}

static void mask_of_reference(const struct call *call)
{
    const struct mask_of_attributes *attributes = call->node->attributes;
    const struct tensor *x = call->node->input[0], *y = call->node->output[0];
    int64_t count = call_rows(call, y) * y->shape.dim[1], width = attributes->over_last ? last_dim(x) : 1;
    for (int64_t i = 0; i < count; i++) {
        bool differs = false;
        for (int64_t k = 0; k < width; k++)
            differs = differs || get(call, 0, i * width + k) != attributes->value;
        set(call, 0, i, differs);
    }
}

const struct op op_mask_of = {
    OP_HEAD(mask_of, 1, 1, mask_of_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct mask_of_attributes),
    .no_gradient = "a mask is no number",
};

/* ---- mask_rows: y = x * mask ------------------------------------------- */

static plim_status mask_rows_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_real(node, 0, error));
    TRY(need_steps(node, 0, error));
    TRY(need_mask(node, 1, node->input[0]->shape.dim[1], error));
    return output_like(graph, node, 0, node->input[0]);
}

static void mask_rows_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    int64_t steps = call_rows(call, x) * x->shape.dim[1], width = shape_row(&x->shape) / x->shape.dim[1];
    for (int64_t t = 0; t < steps; t++)
        for (int64_t k = 0; k < width; k++)
            set(call, 0, t * width + k, get(call, 0, t * width + k) * (is_there(call, 1, t) ? 1 : 0));
}

const struct op op_mask_rows = {
    OP_HEAD(mask_rows, 2, 1, mask_rows_infer, cut_elementwise),
    .gradient_op = &op_mask_rows,
    .gradient_reads = {READ_D, READ_X1},
    .keeps_inputs = 1 << 1,
    .in_place = 1 << 0,
};

/* ---- mask_count: f32 [N] ----------------------------------------------- */

static plim_status mask_count_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *mask = node->input[0];
    TRY(need_mask(node, 0, mask->shape.rank > 1 ? mask->shape.dim[1] : 0, error));
    return output_of(graph, node, 0, TYPE_F32, shape_1(mask->shape.dim[0]), true);
}

static void mask_count_reference(const struct call *call)
{
    const struct tensor *mask = call->node->input[0];
    int64_t rows = call_rows(call, mask), steps = mask->shape.dim[1];
    for (int64_t n = 0; n < rows; n++) {
        double count = 0;
        for (int64_t t = 0; t < steps; t++)
            count += get(call, 0, n * steps + t) != 0;
        set(call, 0, n, count);
    }
}

const struct op op_mask_count = {
    OP_HEAD(mask_count, 1, 1, mask_count_infer, cut_input_rows),
    .no_gradient = "a mask is no number",
};

/* ---- sum_time ---------------------------------------------------------- */

static plim_status sum_time_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct shape shape = node->input[0]->shape;
    TRY(need_real(node, 0, error));
    TRY(need_steps(node, 0, error));
    TRY(need_mask(node, 1, shape.dim[1], error));
    for (int i = 1; i + 1 < shape.rank; i++)
        shape.dim[i] = shape.dim[i + 1];
    shape.rank--;
    return output_of(graph, node, 0, node->input[0]->type, shape, true);
}

/* What a sample's sum is divided by. */
static double divisor(const struct call *call, int64_t n, int64_t steps)
{
    const struct sum_time_attributes *attributes = call->node->attributes;
    double count = 0;
    for (int64_t t = 0; t < steps; t++)
        count += is_there(call, 1, n * steps + t);
    return attributes->mean ? count : 1;
}

static void sum_time_reference(const struct call *call)
{
    const struct tensor *x = call->node->input[0];
    int64_t rows = call_rows(call, x), steps = x->shape.dim[1], width = shape_row(&x->shape) / steps;
    for (int64_t n = 0; n < rows; n++) {
        double by = divisor(call, n, steps);
        for (int64_t k = 0; k < width; k++) {
            double sum = 0;
            for (int64_t t = n * steps; t < (n + 1) * steps; t++)
                sum += is_there(call, 1, t) ? get(call, 0, t * width + k) : 0;
            set(call, 0, n * width + k, sum / by);
        }
    }
}

static void sum_time_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                          struct tensor **d_input)
{
    struct sum_time_attributes attributes = *(const struct sum_time_attributes *)node->attributes;
    attributes.steps = node->input[0]->shape.dim[1];
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_sum_time_gradient, (struct tensor *[]){d_output[0], node->input[1]}, 2,
                               &attributes, sizeof(attributes));
}

const struct op op_sum_time = {
    OP_HEAD(sum_time, 2, 1, sum_time_infer, cut_input_rows),
    .optional = 1 << 1,
    .attributes_bytes = sizeof(struct sum_time_attributes),
    .gradient = sum_time_back,
    .keeps_inputs = 1 << 1,
};

/* ---- sum_time_gradient: dx[n, t] = dy[n] / divisor where the mask is ---- */

static plim_status sum_time_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct sum_time_attributes *attributes = node->attributes;
    struct shape shape = node->input[0]->shape;
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_mask(node, 1, attributes->steps, error));
    if (shape.rank >= MOST_AXES || attributes->steps < 1)
        return misfit(node, error, "%lld steps of %d axes", (long long)attributes->steps, shape.rank);
    for (int i = shape.rank++; i > 1; i--)
        shape.dim[i] = shape.dim[i - 1];
    shape.dim[1] = attributes->steps;
    return output_of(graph, node, 0, node->input[0]->type, shape, true);
}

static void sum_time_gradient_reference(const struct call *call)
{
    const struct tensor *dx = call->node->output[0];
    int64_t rows = call_rows(call, dx), steps = dx->shape.dim[1], width = shape_row(&dx->shape) / steps;
    for (int64_t n = 0; n < rows; n++) {
        double by = divisor(call, n, steps);
        for (int64_t t = n * steps; t < (n + 1) * steps; t++)
            for (int64_t k = 0; k < width; k++)
                set(call, 0, t * width + k, is_there(call, 1, t) ? get(call, 0, n * width + k) / by : 0);
    }
}

const struct op op_sum_time_gradient = {
    OP_HEAD(sum_time_gradient, 2, 1, sum_time_gradient_infer, cut_elementwise),
    .optional = 1 << 1,
    .attributes_bytes = sizeof(struct sum_time_attributes),
    .no_gradient = NO_SECOND,
};
