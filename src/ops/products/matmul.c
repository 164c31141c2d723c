/* matmul.c - dense layers over the last axis: y = act(x . w + bias), and the
   gradient of w. What lies between the batch and the last axis is rows like any other.
   A weight of more than two axes has two sides all the same: those that are summed over
   and those that come in their place, each as if it were one axis.

   Light weights: cut by sample, so that it may stand in a chain. Heavy ones
   (more than HEAVY_BYTES) would be read again by each slice: there the output
   columns are cut, each slice reads its own part of w and all samples. The same where
   a few samples of many rows would leave workers without work. */
#include "ops/helpers.h"

/* Columns of heavy outputs and rows of heavy gradients come in cache lines; rows of
   gradients over many samples in so many that what is read for them pays. */
#define COLUMN_GRAIN   16
#define ROW_GRAIN      8
#define MANY_ROW_GRAIN 96
#define MANY_SAMPLES   256

/* Fewer samples than this with more work than that are not cut by sample. */
#define FEW_SAMPLES 4
#define MUCH_WORK   2e6

/* Elements of the last `axes` axes. */
static int64_t last_count(const struct shape *shape, int axes)
{
    int64_t count = 1;
    for (int i = shape->rank - axes; i < shape->rank; i++)
        count *= shape->dim[i];
    return count;
}

/* How many axes of w are summed over, and how many of x and y that makes. */
struct sides {
    int inner, outer;      /* axes of w: first side, second side */
    int64_t in, out;       /* their elements */
    int from, to;          /* axes of x that go, axes of y that come */
    int64_t step, columns; /* elements of those */
};

static struct sides sides_of(const struct node *node)
{
    const struct matmul_attributes *attributes = node->attributes;
    const struct shape *w = &node->input[1]->shape;
    struct sides s = {.inner = attributes->inner_axes ? attributes->inner_axes : 1};
    s.outer = w->rank - s.inner;
    s.out = last_count(w, s.outer);
    s.in = s.out ? shape_count(w) / s.out : 0;
    s.from = attributes->transposed ? s.outer : s.inner;
    s.to = attributes->transposed ? s.inner : s.outer;
    s.step = attributes->transposed ? s.out : s.in;
    s.columns = attributes->transposed ? s.in : s.out;
    return s;
}

/* Rows of one sample, where a row has `width` elements. */
static int64_t inner_rows(const struct tensor *x, int64_t width)
{
    return width ? shape_row(&x->shape) / width : 0;
}

/* x: samples; width: elements of a row; w: the weight or its gradient. */
static double product_work(const struct tensor *x, int64_t width, const struct tensor *w)
{
    return (double)(x->shape.dim[0] * inner_rows(x, width)) * (double)shape_count(&w->shape);
}

static bool heavy(const struct tensor *x, int64_t width, const struct tensor *w)
{
    if (shape_count(&w->shape) * (int64_t)sizeof(float) > HEAVY_BYTES)
        return true;
    return x->shape.dim[0] < FEW_SAMPLES && inner_rows(x, width) > 1 && product_work(x, width, w) > MUCH_WORK;
}

static plim_status need_rows(const struct node *node, int input, int axes, plim_error *error)
{
    TRY(need_batched(node, input, error));
    if (node->input[input]->shape.rank < 1 + axes)
        return misfit(node, error, "input %d has %d axes; it needs a batch axis and %d more", input,
                      node->input[input]->shape.rank, axes);
    return PLIM_OK;
}

/* ---- matmul ------------------------------------------------------------ */

/* The last axes of x are the side of w that is summed over. */
static bool sides_fit(const struct tensor *x, const struct tensor *w, const struct sides *s, bool transposed)
{
    const int64_t *side = &w->shape.dim[transposed ? s->inner : 0];
    for (int i = 0; i < s->from; i++)
        if (x->shape.dim[x->shape.rank - s->from + i] != side[i])
            return false;
    return true;
}

static plim_status matmul_bias(struct node *node, const struct sides *s, plim_error *error)
{
    const struct matmul_attributes *attributes = node->attributes;
    const struct tensor *bias = node->input[2];
    if (attributes->transposed && (bias || attributes->activation))
        return misfit(node, error, "a transposed kernel goes with neither bias nor activation");
    if (!bias)
        return PLIM_OK;
    TRY(need_type_of(node, 2, 0, error));
    TRY(need_rank(node, 2, s->outer, error));
    if (shape_count(&bias->shape) != s->out)
        return misfit(node, error, "a bias of %lld for %lld outputs", (long long)shape_count(&bias->shape),
                      (long long)s->out);
    return PLIM_OK;
}

static plim_status matmul_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct matmul_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0], *w = node->input[1];
    struct sides s = sides_of(node);
    TRY(need_real(node, 0, error));
    TRY(need_type(node, 1, x->type, error));
    if (w->batched)
        return misfit(node, error, "input 1 is a batch; it must be a weight");
    if (s.inner < 1 || s.outer < 1)
        return misfit(node, error, "a weight of %d axes cannot be summed over %d of them", w->shape.rank, s.inner);
    TRY(need_rows(node, 0, s.from, error));
    if (!sides_fit(x, w, &s, attributes->transposed))
        return misfit(node, error, "inner sizes %lld and %lld differ", (long long)last_count(&x->shape, s.from),
                      (long long)s.step);
    TRY(matmul_bias(node, &s, error));
    struct shape shape = x->shape;
    shape.rank += s.to - s.from;
    if (shape.rank > MOST_AXES)
        return misfit(node, error, "an output of %d axes; at most %d", shape.rank, MOST_AXES);
    for (int i = 0; i < s.to; i++)
        shape.dim[shape.rank - s.to + i] = w->shape.dim[(attributes->transposed ? 0 : s.inner) + i];
    return output_of(graph, node, 0, x->type, shape, true);
}

static void matmul_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *x = node->input[0], *w = node->input[1];
    struct sides s = sides_of(node);
    double work = product_work(x, s.step, w);
    cut_rows(cut, node, node->output[0], work);
    if (!heavy(x, s.step, w))
        return;
    *cut = (struct cut){.extent = s.columns, .grain = COLUMN_GRAIN, .work = work};
    for (int i = 0; i < node->input_count; i++)
        cut->input[i] = PART_WHOLE;
    cut->output[0] = PART_WHOLE;
}

static double dot(const struct call *call, const struct sides *s, int64_t row, int64_t column)
{
    const struct matmul_attributes *attributes = call->node->attributes;
    double sum = call->input[2] ? get(call, 2, column) : 0;
    for (int64_t k = 0; k < s->step; k++) {
        int64_t at = attributes->transposed ? column * s->out + k : k * s->out + column;
        sum += get(call, 0, row * s->step + k) * get(call, 1, at);
    }
    return attributes->activation == ACTIVATION_RELU && sum < 0 ? 0 : sum;
}

static void matmul_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0], *x = call->node->input[0];
    struct sides s = sides_of(call->node);
    bool by_column = heavy(x, s.step, call->node->input[1]);
    int64_t rows = (by_column ? call->count : call_rows(call, y)) * inner_rows(x, s.step);
    int64_t first = by_column ? call->begin : 0, last = by_column ? call->end : s.columns;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = first; column < last; column++)
            set(call, 0, row * s.columns + column, dot(call, &s, row, column));
    }
}

/* The gradient behind a fused activation. */
static struct tensor *before_activation(struct graph *graph, struct node *node, struct tensor *dy)
{
    const struct matmul_attributes *attributes = node->attributes;
    return attributes->activation == ACTIVATION_RELU ? binary(graph, &op_relu_gradient, dy, node->output[0]) : dy;
}

/* dw = x^T . dy, dbias = sum(dy), dx = dy . w^T. With w transposed, x and dy
   change places in dw, and dx needs no transposing. */
static void matmul_gradient(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                            struct tensor **d_input)
{
    const struct matmul_attributes *attributes = node->attributes;
    struct tensor *x = node->input[0], *w = node->input[1];
    struct tensor *dy = before_activation(graph, node, d_output[0]);
    struct sides s = sides_of(node);
    if (wanted[1]) {
        struct matmul_weight_gradient_attributes axes = {s.inner, s.outer};
        struct tensor *pair[2] = {attributes->transposed ? dy : x, attributes->transposed ? x : dy};
        d_input[1] = graph_add(graph, &op_matmul_weight_gradient, pair, 2, &axes, sizeof(axes));
    }
    if (wanted[2]) {
        struct sum_rows_attributes axes = {s.outer};
        d_input[2] = graph_add(graph, &op_sum_rows, &dy, 1, &axes, sizeof(axes));
    }
    if (wanted[0]) {
        struct matmul_attributes back = {.transposed = !attributes->transposed, .inner_axes = s.inner};
        d_input[0] = graph_add(graph, &op_matmul, (struct tensor *[]){dy, w}, 2, &back, sizeof(back));
    }
}

const struct op op_matmul = {
    OP_HEAD(matmul, 3, 1, matmul_infer, matmul_cut),
    .optional = 1 << 2,
    .attributes_bytes = sizeof(struct matmul_attributes),
    .gradient = matmul_gradient,
    .keeps_inputs = 1 << 0 | 1 << 1,
    .keeps_outputs = 1 << 0, /* with a fused activation only */
};

/* ---- matmul_weight_gradient -------------------------------------------- */

/* Axes of x and dy that are sides of dw, and their elements. */
static struct sides gradient_sides(const struct node *node)
{
    const struct matmul_weight_gradient_attributes *attributes = node->attributes;
    struct sides s = {.inner = attributes->inner_axes ? attributes->inner_axes : 1,
                      .outer = attributes->outer_axes ? attributes->outer_axes : 1};
    s.in = last_count(&node->input[0]->shape, s.inner);
    s.out = last_count(&node->input[1]->shape, s.outer);
    return s;
}

static plim_status weight_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct matmul_weight_gradient_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0], *dy = node->input[1];
    TRY(need_real(node, 0, error));
    TRY(need_type(node, 1, x->type, error));
    TRY(need_rows(node, 0, attributes->inner_axes ? attributes->inner_axes : 1, error));
    TRY(need_rows(node, 1, attributes->outer_axes ? attributes->outer_axes : 1, error));
    struct sides s = gradient_sides(node);
    int rows = x->shape.rank - s.inner;
    TRY(need_rank(node, 1, rows + s.outer, error));
    for (int i = 1; i < rows; i++)
        if (x->shape.dim[i] != dy->shape.dim[i])
            return misfit(node, error, "%lld and %lld rows on axis %d", (long long)x->shape.dim[i],
                          (long long)dy->shape.dim[i], i);
    struct shape shape = {.rank = s.inner + s.outer};
    if (shape.rank > MOST_AXES)
        return misfit(node, error, "a weight of %d axes; at most %d", shape.rank, MOST_AXES);
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i < s.inner ? x->shape.dim[rows + i] : dy->shape.dim[rows + i - s.inner];
    return output_of(graph, node, 0, x->type, shape, false);
}

static void weight_gradient_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *dw = node->output[0], *x = node->input[0];
    struct sides s = gradient_sides(node);
    double work = product_work(x, s.in, dw);
    if (!heavy(x, s.in, dw)) {
        cut_rows(cut, node, x, work);
        return;
    }
    int64_t grain = x->shape.dim[0] * inner_rows(x, s.in) < MANY_SAMPLES ? ROW_GRAIN : MANY_ROW_GRAIN;
    int64_t each = s.in / dw->shape.dim[0]; /* rows of the product in a row of dw */
    *cut = (struct cut){.extent = dw->shape.dim[0], .grain = grain < each ? 1 : grain / each, .work = work};
    cut->input[0] = cut->input[1] = PART_WHOLE;
    cut->output[0] = PART_CUT;
}

/* Element (i, j) of x^T . dy over the first `rows` rows of both. */
static double column_dot(const struct call *call, const struct sides *s, int64_t rows, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t n = 0; n < rows; n++)
        sum += get(call, 0, n * s->in + i) * get(call, 1, n * s->out + j);
    return sum;
}

static void matmul_weight_gradient_reference(const struct call *call)
{
    const struct tensor *dw = call->node->output[0], *x = call->node->input[0];
    struct sides s = gradient_sides(call->node);
    int64_t rows = inner_rows(x, s.in), each = s.in / dw->shape.dim[0];
    if (heavy(x, s.in, dw)) {
        for (int64_t i = call->begin * each; i < call->end * each; i++) {
            for (int64_t j = 0; j < s.out; j++)
                set(call, 0, (i - call->begin * each) * s.out + j, column_dot(call, &s, call->count * rows, i, j));
        }
        return;
    }
    rows *= call_rows(call, x);
    for (int64_t i = 0; i < s.in; i++) {
        for (int64_t j = 0; j < s.out; j++)
            share(call, 0, i * s.out + j, column_dot(call, &s, rows, i, j));
    }
}

const struct op op_matmul_weight_gradient = {
    OP_HEAD(matmul_weight_gradient, 2, 1, weight_gradient_infer, weight_gradient_cut),
    .attributes_bytes = sizeof(struct matmul_weight_gradient_attributes),
    .no_gradient = NO_SECOND,
};
