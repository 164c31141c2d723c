/* pooling.c - max-pooling and its gradient. NHWC, by sample.

   Forward writes where each maximum was (row * width + column in the window,
   first maximum wins); backward reads that alone, never x or y. */
#include "ops/helpers.h"

#define MOST_WINDOW 255 /* an index is one byte */

static plim_status check_window(const struct node *node, const struct max_pool_attributes *pool, plim_error *error)
{
    for (int i = 0; i < 2; i++) {
        if (pool->window[i] < 1 || pool->window[i] > MOST_WINDOW || pool->window[0] * pool->window[1] > MOST_WINDOW)
            return misfit(node, error, "a window of %lldx%lld; at most %d cells are possible",
                          (long long)pool->window[0], (long long)pool->window[1], MOST_WINDOW);
        if (pool->stride[i] < 1)
            return misfit(node, error, "a stride of %lld is not possible", (long long)pool->stride[i]);
    }
    /* Padding below the window's size: no window lies in padding alone. */
    for (int i = 0; i < 4; i++) {
        if (pool->pad[i] < 0 || pool->pad[i] >= pool->window[i / 2])
            return misfit(node, error, "a padding of %lld for a window of %lld", (long long)pool->pad[i],
                          (long long)pool->window[i / 2]);
    }
    return PLIM_OK;
}

/* Rows and columns of the output for an input of these sizes. */
static plim_status pooled_sizes(int64_t out[2], const struct node *node, const struct max_pool_attributes *pool,
                                const int64_t *input, plim_error *error)
{
    TRY(check_window(node, pool, error));
    for (int i = 0; i < 2; i++) {
        int64_t padded = input[i] + pool->pad[2 * i] + pool->pad[2 * i + 1];
        if (padded < pool->window[i])
            return misfit(node, error, "a window of %lld does not fit in a padded input of %lld",
                          (long long)pool->window[i], (long long)padded);
        out[i] = (padded - pool->window[i]) / pool->stride[i] + 1;
    }
    return PLIM_OK;
}

/* ---- max_pool ---------------------------------------------------------- */

static plim_status max_pool_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0];
    int64_t out[2];
    TRY(need_real(node, 0, error));
    TRY(need_rank(node, 0, 4, error));
    TRY(need_batched(node, 0, error));
    TRY(pooled_sizes(out, node, node->attributes, &x->shape.dim[1], error));
    struct shape shape = shape_4(x->shape.dim[0], out[0], out[1], x->shape.dim[3]);
    output_of(graph, node, 0, x->type, shape, true);
    output_of(graph, node, 1, TYPE_U8, shape, true);
    return PLIM_OK;
}

static void max_pool_cut(struct cut *cut, const struct node *node)
{
    const struct max_pool_attributes *pool = node->attributes;
    double work = (double)shape_count(&node->output[0]->shape) * (double)(pool->window[0] * pool->window[1]);
    cut_rows(cut, node, node->input[0], work);
}

/* The maximum of the window of output cell `i`, and its place. */
static double window_max(int64_t *place, const struct call *call, int64_t i)
{
    const struct max_pool_attributes *pool = call->node->attributes;
    const int64_t *x = call->node->input[0]->shape.dim, *y = call->node->output[0]->shape.dim;
    int64_t channel = i % y[3], left = i / y[3] % y[2] * pool->stride[1] - pool->pad[2];
    int64_t top = i / y[3] / y[2] % y[1] * pool->stride[0] - pool->pad[0], n = i / y[3] / y[2] / y[1];
    double best = 0;
    *place = -1;
    for (int64_t cell = 0; cell < pool->window[0] * pool->window[1]; cell++) {
        int64_t row = top + cell / pool->window[1], column = left + cell % pool->window[1];
        if (row < 0 || row >= x[1] || column < 0 || column >= x[2])
            continue;
        double value = get(call, 0, ((n * x[1] + row) * x[2] + column) * x[3] + channel);
        if (*place < 0 || value > best) {
            best = value;
            *place = cell;
        }
    }
    return best;
}

static void max_pool_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    int64_t count = call_rows(call, y) * shape_row(&y->shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t place;
        set(call, 0, i, window_max(&place, call, i));
        set(call, 1, i, (double)place);
    }
}

static void max_pool_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                          struct tensor **d_input)
{
    const struct tensor *x = node->input[0];
    const struct max_pool_attributes *pool = node->attributes;
    struct max_pool_gradient_attributes back = {.pool = *pool, .input = {x->shape.dim[1], x->shape.dim[2]}};
    if (wanted[0] && d_output[0])
        d_input[0] = graph_add(graph, &op_max_pool_gradient, (struct tensor *[]){d_output[0], node->output[1]}, 2,
                               &back, sizeof(back));
}

/* Rests under the stride, overlap, padding on one side, a window to the rim. */
struct example_case {
    int64_t height, width, channels;
    struct max_pool_attributes pool;
};
static const struct example_case cases[] = {
    {4, 6, 3, {{2, 2}, {2, 2}, {0, 0, 0, 0}}},
    {5, 7, 2, {{2, 2}, {2, 2}, {0, 0, 0, 0}}},
    {6, 5, 17, {{3, 2}, {1, 2}, {1, 0, 0, 1}}},
    {15, 17, 1, {{15, 17}, {1, 1}, {0, 0, 0, 0}}},
};
#define CASES (int)(sizeof(cases) / sizeof(cases[0]))

static struct tensor *max_pool_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= CASES)
        return NULL;
    const struct example_case *c = &cases[variant];
    struct tensor *x = example_input(graph, "x", type, ROW(c->height, c->width, c->channels));
    return graph_add(graph, &op_max_pool, (struct tensor *[]){x}, 1, &c->pool, sizeof(c->pool));
}

const struct op op_max_pool = {
    .name = "max_pool",
    .inputs = 1,
    .outputs = 2,
    .attributes_bytes = sizeof(struct max_pool_attributes),
    .infer = max_pool_infer,
    .gradient = max_pool_back,
    .keeps_outputs = 1 << 1,
    .in_place = NO_INPUT,
    .cut = max_pool_cut,
    .reference = max_pool_reference,
    .example = max_pool_example,
};

/* ---- max_pool_gradient ------------------------------------------------- */

static plim_status max_pool_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct max_pool_gradient_attributes *attributes = node->attributes;
    const struct tensor *dy = node->input[0];
    int64_t out[2];
    TRY(need_real(node, 0, error));
    TRY(need_rank(node, 0, 4, error));
    TRY(need_batched(node, 0, error));
    TRY(need_type(node, 1, TYPE_U8, error));
    TRY(need_batched(node, 1, error));
    if (attributes->input[0] < 1 || attributes->input[1] < 1)
        return misfit(node, error, "an input without cells");
    TRY(pooled_sizes(out, node, &attributes->pool, attributes->input, error));
    if (!shape_equal(&dy->shape, &node->input[1]->shape) || dy->shape.dim[1] != out[0] || dy->shape.dim[2] != out[1])
        return misfit(node, error, "gradient, index and output sizes differ");
    output_of(graph, node, 0, dy->type,
              shape_4(dy->shape.dim[0], attributes->input[0], attributes->input[1], dy->shape.dim[3]), true);
    return PLIM_OK;
}

/* Where in dx the gradient of output cell `i` goes; -1 for an index that
   points into padding (not one that max_pool wrote). */
static int64_t winner(const struct call *call, int64_t i)
{
    const struct max_pool_gradient_attributes *attributes = call->node->attributes;
    const struct max_pool_attributes *pool = &attributes->pool;
    const int64_t *y = call->node->input[0]->shape.dim, *x = call->node->output[0]->shape.dim;
    int64_t cell = (int64_t)get(call, 1, i), n = i / y[3] / y[2] / y[1];
    int64_t row = i / y[3] / y[2] % y[1] * pool->stride[0] - pool->pad[0] + cell / pool->window[1];
    int64_t column = i / y[3] % y[2] * pool->stride[1] - pool->pad[2] + cell % pool->window[1];
    if (row < 0 || row >= x[1] || column < 0 || column >= x[2])
        return -1;
    return ((n * x[1] + row) * x[2] + column) * x[3] + i % y[3];
}

static void max_pool_gradient_reference(const struct call *call)
{
    const struct tensor *dy = call->node->input[0], *dx = call->node->output[0];
    int64_t rows = call_rows(call, dx);
    for (int64_t i = 0; i < rows * shape_row(&dx->shape); i++)
        set(call, 0, i, 0);
    for (int64_t i = 0; i < rows * shape_row(&dy->shape); i++) {
        int64_t at = winner(call, i);
        if (at >= 0)
            set(call, 0, at, element_get(call->output[0], dx->type, at) + get(call, 0, i));
    }
}

static struct tensor *max_pool_gradient_example(struct graph *graph, int variant, enum type type)
{
    static const char *const index[CASES] = {"index:4", "index:4", "index:6", "index:255"};
    if (variant >= CASES)
        return NULL;
    const struct example_case *c = &cases[variant];
    const int64_t *window = c->pool.window, *stride = c->pool.stride, *pad = c->pool.pad;
    int64_t rows = (c->height + pad[0] + pad[1] - window[0]) / stride[0] + 1;
    int64_t columns = (c->width + pad[2] + pad[3] - window[1]) / stride[1] + 1;
    struct max_pool_gradient_attributes back = {.pool = c->pool, .input = {c->height, c->width}};
    struct tensor *dy = example_input(graph, "dy", type, ROW(rows, columns, c->channels));
    struct tensor *at = example_input(graph, index[variant], TYPE_U8, ROW(rows, columns, c->channels));
    return graph_add(graph, &op_max_pool_gradient, (struct tensor *[]){dy, at}, 2, &back, sizeof(back));
}

const struct op op_max_pool_gradient = {
    .name = "max_pool_gradient",
    .inputs = 2,
    .outputs = 1,
    .attributes_bytes = sizeof(struct max_pool_gradient_attributes),
    .infer = max_pool_gradient_infer,
    .no_gradient = NO_SECOND,
    .in_place = NO_INPUT,
    .cut = cut_elementwise,
    .reference = max_pool_gradient_reference,
    .example = max_pool_gradient_example,
};
