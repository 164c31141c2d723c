/* pooling.c - max-pooling, average pooling and their gradients. */
#include "ops/image/pooling.h"

#include "base/numbers/count.h"
#include "ops/helpers.h"

#define MOST_SIZE ((int64_t)1 << 30)

static bool is_gradient(const struct node *node)
{
    return node->op == &op_max_pool_gradient || node->op == &op_average_pool_gradient;
}

static const struct pool_attributes *attributes_of(const struct node *node)
{
    const struct pool_gradient_attributes *back = node->attributes;
    return is_gradient(node) ? &back->pool : node->attributes;
}

/* Without y. */
static void input_sizes(struct pool_sizes *s, const struct node *node)
{
    const struct pool_gradient_attributes *back = node->attributes;
    const struct pool_attributes *pool = attributes_of(node);
    const struct shape *data = &node->input[0]->shape;
    int axes = data->rank - 2;
    *s = (struct pool_sizes){.channels = data->dim[axes + 1], .adaptive = pool->adaptive};
    for (int i = 0; i < MOST_SPACE; i++)
        s->x[i] = s->y[i] = s->window[i] = s->stride[i] = 1;
    for (int i = 0; i < axes; i++) {
        int to = MOST_SPACE - axes + i;
        s->x[to] = is_gradient(node) ? back->input[i] : data->dim[1 + i];
        s->window[to] = pool->window[i];
        s->stride[to] = pool->adaptive ? 1 : pool->stride[i];
        s->before[to] = pool->pad[2 * i];
    }
}

void pool_sizes_of(struct pool_sizes *s, const struct node *node)
{
    const struct shape *y = is_gradient(node) ? &node->input[0]->shape : &node->output[0]->shape;
    input_sizes(s, node);
    for (int i = 0; i < y->rank - 2; i++)
        s->y[MOST_SPACE - (y->rank - 2) + i] = y->dim[1 + i];
}

/* The most cells that a window can have. */
static double most_cells(const struct pool_sizes *s)
{
    double cells = 1;
    for (int i = 0; i < MOST_SPACE; i++)
        cells *= (double)(s->adaptive ? s->x[i] / s->y[i] + (s->x[i] % s->y[i] ? 2 : 0) : s->window[i]);
    return cells;
}

int pool_index_bits(const struct pool_sizes *s)
{
    static const struct {
        int cells, bits;
    } kinds[] = {{2, 1}, {4, 2}, {16, 4}, {255, 8}};
    double cells = most_cells(s);
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (cells <= kinds[i].cells)
            return kinds[i].bits;
    return 32;
}

/* ---- shapes ------------------------------------------------------------ */

/* Padding below the window's size: no window lies in padding alone. */
static plim_status check_axis(const struct node *node, const struct pool_sizes *s, int i, int64_t after,
                              plim_error *error)
{
    if (s->window[i] < 1 || s->window[i] > MOST_SIZE || s->x[i] < 1 || s->x[i] > MOST_SIZE)
        return misfit(node, error, "a window of %lld over an input of %lld is not possible", (long long)s->window[i],
                      (long long)s->x[i]);
    if (s->stride[i] < 1 || s->stride[i] > MOST_SIZE)
        return misfit(node, error, "a stride of %lld is not possible", (long long)s->stride[i]);
    for (int k = 0; k < 2; k++) {
        int64_t pad = k ? after : s->before[i];
        if (pad < 0 || pad >= s->window[i] || (s->adaptive && pad))
            return misfit(node, error, "a padding of %lld for a window of %lld", (long long)pad,
                          (long long)s->window[i]);
    }
    if (!s->adaptive && s->x[i] + s->before[i] + after < s->window[i])
        return misfit(node, error, "a window of %lld does not fit in a padded input of %lld", (long long)s->window[i],
                      (long long)(s->x[i] + s->before[i] + after));
    return PLIM_OK;
}

/* With the extents of y. */
static plim_status output_sizes(struct pool_sizes *s, const struct node *node, plim_error *error)
{
    const struct pool_attributes *pool = attributes_of(node);
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    int axes = node->input[0]->shape.rank - 2;
    if (axes < 1 || axes > MOST_SPACE)
        return misfit(node, error, "an input of %d axes; pooling takes 3 to 5", axes + 2);
    input_sizes(s, node);
    for (int i = MOST_SPACE - axes; i < MOST_SPACE; i++) {
        int64_t after = pool->pad[2 * (i - MOST_SPACE + axes) + 1];
        TRY(check_axis(node, s, i, after, error));
        s->y[i] = s->adaptive ? s->window[i] : (s->x[i] + s->before[i] + after - s->window[i]) / s->stride[i] + 1;
    }
    if (most_cells(s) > (double)INT32_MAX)
        return misfit(node, error, "a window of %.0f cells", most_cells(s));
    return PLIM_OK;
}

static struct shape data_shape(const struct node *node, const int64_t extents[MOST_SPACE])
{
    struct shape shape = node->input[0]->shape;
    for (int i = 0; i < shape.rank - 2; i++)
        shape.dim[1 + i] = extents[MOST_SPACE - (shape.rank - 2) + i];
    return shape;
}

static int64_t y_row_of(const struct pool_sizes *s)
{
    return s->y[0] * s->y[1] * s->y[2] * s->channels;
}

static enum type index_type(const struct pool_sizes *s)
{
    return pool_index_bits(s) > 8 ? TYPE_I32 : TYPE_U8;
}

static struct shape index_shape(const struct node *node, const struct pool_sizes *s)
{
    int bits = pool_index_bits(s);
    return bits >= 8 ? data_shape(node, s->y) : shape_2(node->input[0]->shape.dim[0], packed_bytes(y_row_of(s), bits));
}

static plim_status pool_infer(struct graph *graph, struct node *node, plim_error *error)
{
    struct pool_sizes s;
    TRY(output_sizes(&s, node, error));
    output_of(graph, node, 0, node->input[0]->type, data_shape(node, s.y), true);
    if (node->op == &op_max_pool)
        output_of(graph, node, 1, index_type(&s), index_shape(node, &s), true);
    return PLIM_OK;
}

static plim_status pool_gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *dy = node->input[0], *index = node->input_count > 1 ? node->input[1] : NULL;
    struct pool_sizes s;
    TRY(output_sizes(&s, node, error));
    struct shape expected = data_shape(node, s.y), packed = index_shape(node, &s);
    if (index) {
        TRY(need_type(node, 1, index_type(&s), error));
        TRY(need_batched(node, 1, error));
    }
    if (!shape_equal(&dy->shape, &expected) || (index && !shape_equal(&index->shape, &packed)))
        return misfit(node, error, "gradient, index and output sizes differ");
    return output_of(graph, node, 0, dy->type, data_shape(node, s.x), true);
}

static void pool_cut(struct cut *cut, const struct node *node)
{
    struct pool_sizes s;
    pool_sizes_of(&s, node);
    double work = (double)(node->input[0]->shape.dim[0] * s.channels);
    for (int i = 0; i < MOST_SPACE; i++)
        work *= (double)s.y[i] * (double)(s.adaptive ? s.x[i] / s.y[i] + 1 : s.window[i]);
    cut_rows(cut, node, node->input[0], work);
}

/* ---- the cells of a window --------------------------------------------- */

struct window {
    struct pool_span span[MOST_SPACE];
    int64_t cells; /* inside */
};

/* Of element i of y (or dy). */
static struct window window_of(const struct pool_sizes *s, int64_t i)
{
    struct window w = {.cells = 1};
    i /= s->channels;
    for (int axis = MOST_SPACE - 1; axis >= 0; axis--) {
        w.span[axis] = pool_span(s, axis, i % s->y[axis]);
        w.cells *= w.span[axis].end - w.span[axis].begin;
        i /= s->y[axis];
    }
    return w;
}

/* The element of x at cell number `cell` of those inside, for element i of y; place: its number in the window. */
static int64_t window_element(int64_t *place, const struct pool_sizes *s, const struct window *w, int64_t cell,
                              int64_t i)
{
    int64_t at = i / s->channels / (s->y[0] * s->y[1] * s->y[2]), in[MOST_SPACE];
    for (int axis = MOST_SPACE - 1; axis >= 0; axis--) {
        int64_t extent = w->span[axis].end - w->span[axis].begin;
        in[axis] = cell % extent;
        cell /= extent;
    }
    *place = 0;
    for (int axis = 0; axis < MOST_SPACE; axis++) {
        at = at * s->x[axis] + w->span[axis].begin + in[axis];
        *place = *place * w->span[axis].width + w->span[axis].skipped + in[axis];
    }
    return at * s->channels + i % s->channels;
}

/* ---- places in windows, by element of y ---------------------------------- */

static int64_t place_at(const struct call *call, const struct pool_sizes *s, int64_t i)
{
    int bits = pool_index_bits(s);
    int64_t row = y_row_of(s);
    const uint8_t *packed = call->input[1];
    return bits >= 8 ? (int64_t)get(call, 1, i) : packed_get(packed + i / row * packed_bytes(row, bits), bits, i % row);
}

static void set_place(const struct call *call, const struct pool_sizes *s, int64_t i, int64_t place)
{
    int bits = pool_index_bits(s);
    int64_t row = y_row_of(s);
    uint8_t *packed = call->output[1];
    if (bits >= 8)
        set(call, 1, i, (double)place);
    else
        packed_set(packed + i / row * packed_bytes(row, bits), bits, i % row, (int)place);
}

/* ---- max_pool ---------------------------------------------------------- */

static void max_pool_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    struct pool_sizes s;
    pool_sizes_of(&s, call->node);
    for (int64_t i = 0; i < call_rows(call, y) * shape_row(&y->shape); i++) {
        struct window w = window_of(&s, i);
        double best = 0;
        int64_t place, best_place = -1;
        for (int64_t cell = 0; cell < w.cells; cell++) {
            double value = get(call, 0, window_element(&place, &s, &w, cell, i));
            if (best_place < 0 || value > best) {
                best = value;
                best_place = place;
            }
        }
        set(call, 0, i, best);
        set_place(call, &s, i, best_place);
    }
}

static struct pool_gradient_attributes backward_of(const struct node *node)
{
    struct pool_gradient_attributes back = {.pool = *attributes_of(node)};
    for (int i = 0; i < node->input[0]->shape.rank - 2; i++)
        back.input[i] = node->input[0]->shape.dim[1 + i];
    return back;
}

static void scatter_to_largest(const struct scatter *scatter)
{
    const struct call *call = scatter->call;
    const struct tensor *dy = call->node->input[0], *dx = call->node->output[0];
    int64_t rows = call_rows(call, dx);
    struct pool_sizes s;
    pool_sizes_of(&s, call->node);
    for (int64_t i = 0; i < rows * shape_row(&dy->shape); i++) {
        struct window w = window_of(&s, i);
        for (int64_t cell = 0; cell < w.cells; cell++) {
            int64_t place, at = window_element(&place, &s, &w, cell, i);
            if (place == place_at(call, &s, i)) /* an index into padding is nobody's */
                scatter_add(scatter, at, get(call, 0, i));
        }
    }
}

/* ---- average_pool ------------------------------------------------------ */

static void average_pool_reference(const struct call *call)
{
    const struct tensor *y = call->node->output[0];
    struct pool_sizes s;
    pool_sizes_of(&s, call->node);
    for (int64_t i = 0; i < call_rows(call, y) * shape_row(&y->shape); i++) {
        struct window w = window_of(&s, i);
        double sum = 0;
        int64_t place;
        for (int64_t cell = 0; cell < w.cells; cell++)
            sum += get(call, 0, window_element(&place, &s, &w, cell, i));
        set(call, 0, i, sum / (double)w.cells);
    }
}

static void scatter_to_all(const struct scatter *scatter)
{
    const struct call *call = scatter->call;
    const struct tensor *dy = call->node->input[0], *dx = call->node->output[0];
    int64_t rows = call_rows(call, dx);
    struct pool_sizes s;
    pool_sizes_of(&s, call->node);
    for (int64_t i = 0; i < rows * shape_row(&dy->shape); i++) {
        struct window w = window_of(&s, i);
        for (int64_t cell = 0; cell < w.cells; cell++) {
            int64_t place, at = window_element(&place, &s, &w, cell, i);
            scatter_add(scatter, at, get(call, 0, i) / (double)w.cells);
        }
    }
}

/* ---- the ops ------------------------------------------------------------- */

/* dx from dy and, of max_pool, the places of the largest. */
static void pool_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                      struct tensor **d_input)
{
    bool largest = node->op == &op_max_pool;
    struct pool_gradient_attributes back = backward_of(node);
    struct tensor *inputs[] = {d_output[0], largest ? node->output[1] : NULL};
    if (wanted[0] && d_output[0])
        d_input[0] = graph_add(graph, largest ? &op_max_pool_gradient : &op_average_pool_gradient, inputs,
                               largest ? 2 : 1, &back, sizeof(back));
}

#define POOL(word, places, share)                                                                                      \
    static void word##_gradient_reference(const struct call *call)                                                     \
    {                                                                                                                  \
        scatter_sums(call, NULL, share);                                                                               \
    }                                                                                                                  \
    const struct op op_##word = {                                                                                      \
        OP_HEAD(word, 1, 1 + (places), pool_infer, pool_cut),                                                          \
        .attributes_bytes = sizeof(struct pool_attributes),                                                            \
        .gradient = pool_back,                                                                                         \
        .keeps_outputs = (places) << 1,                                                                                \
    };                                                                                                                 \
    const struct op op_##word##_gradient = {                                                                           \
        OP_HEAD(word##_gradient, 1 + (places), 1, pool_gradient_infer, pool_cut),                                      \
        .attributes_bytes = sizeof(struct pool_gradient_attributes),                                                   \
        .no_gradient = NO_SECOND,                                                                                      \
    };

POOL(max_pool, 1, scatter_to_largest)
POOL(average_pool, 0, scatter_to_all)
