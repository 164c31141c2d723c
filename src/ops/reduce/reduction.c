/* reduction.c - sums, means, extremes, products, variances and log-sum-exp over
   any axes but the batch, and their gradients. */
#include <math.h>

#include "ops/helpers.h"

/* ---- axes ---------------------------------------------------------------- */

static void set_strides(struct reduce_strides *strides)
{
    strides->in = strides->out = strides->values = 1;
    for (int axis = strides->rank - 1; axis >= 0; axis--) {
        strides->from[axis] = strides->in;
        strides->to[axis] = strides->reduced[axis] ? 0 : strides->out;
        strides->in *= strides->dim[axis];
        if (strides->reduced[axis])
            strides->values *= strides->dim[axis];
        else
            strides->out *= strides->dim[axis];
    }
}

void reduce_strides_init(struct reduce_strides *strides, int64_t axes, int rank, const int64_t *row)
{
    *strides = (struct reduce_strides){0};
    for (int i = 0; i < rank; i++) {
        bool reduced = axes >> (i + 1) & 1;
        if (row[i] == 1)
            continue;
        if (strides->rank && strides->reduced[strides->rank - 1] == reduced) {
            strides->dim[strides->rank - 1] *= row[i];
            continue;
        }
        strides->dim[strides->rank] = row[i];
        strides->reduced[strides->rank++] = reduced;
    }
    if (strides->rank == 0)
        strides->dim[strides->rank++] = 1;
    set_strides(strides);
}

static int64_t strided_offset(const struct reduce_strides *strides, int64_t i, bool reduced)
{
    int64_t offset = 0;
    for (int axis = strides->rank - 1; axis >= 0; axis--) {
        if (strides->reduced[axis] != reduced)
            continue;
        offset += i % strides->dim[axis] * strides->from[axis];
        i /= strides->dim[axis];
    }
    return offset;
}

int64_t reduce_first(const struct reduce_strides *strides, int64_t o)
{
    return strided_offset(strides, o, false);
}

int64_t reduce_value(const struct reduce_strides *strides, int64_t r)
{
    return strided_offset(strides, r, true);
}

struct shape reduced_shape(const struct shape *shape, int64_t axes, bool keep)
{
    struct shape out = {0};
    for (int i = 0; i < shape->rank; i++) {
        bool reduced = axes >> i & 1;
        if (!reduced || keep)
            out.dim[out.rank++] = reduced ? 1 : shape->dim[i];
    }
    return out;
}

static plim_status need_axes(const struct node *node, int input, int64_t axes, plim_error *error)
{
    const struct shape *shape = &node->input[input]->shape;
    TRY(need_batched(node, input, error));
    if (axes < 0 || axes & 1 || axes >> shape->rank)
        return misfit(node, error, "axes that an input of rank %d has besides the batch are needed", shape->rank);
    if (shape_row(shape) < 1)
        return misfit(node, error, "a sample of no elements cannot be reduced");
    return PLIM_OK;
}

/* ---- what all of them share ---------------------------------------------- */

static plim_status reduce_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct reduce_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    TRY(need_real(node, 0, error));
    TRY(need_axes(node, 0, attributes->axes, error));
    return output_of(graph, node, 0, x->type, reduced_shape(&x->shape, attributes->axes, attributes->keep), true);
}

/* Calls `one` for each element of y: it sees the elements of x that belong to it. */
struct one {
    const struct call *call;
    const struct reduce_strides *strides;
    int x;         /* which input */
    int64_t first; /* element of x */
    int64_t y;     /* element of y */
};

static double value_of(const struct one *one, int64_t r)
{
    return get(one->call, one->x, one->first + reduce_value(one->strides, r));
}

static void strides_of_input(struct reduce_strides *strides, const struct call *call, int x)
{
    const struct reduce_attributes *attributes = call->node->attributes;
    const struct shape *shape = &call->node->input[x]->shape;
    reduce_strides_init(strides, attributes->axes, shape->rank - 1, shape->dim + 1);
}

static void for_each(const struct call *call, int x, void (*visit)(const struct one *one))
{
    struct reduce_strides strides;
    strides_of_input(&strides, call, x);
    int64_t count = call_rows(call, call->node->input[x]) * strides.out;
    for (int64_t y = 0; y < count; y++) {
        struct one one = {call, &strides, x, y / strides.out * strides.in + reduce_first(&strides, y % strides.out), y};
        visit(&one);
    }
}

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct reduce_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[1];
    struct shape shape = reduced_shape(&x->shape, attributes->axes, attributes->keep);
    TRY(need_real(node, 1, error));
    TRY(need_axes(node, 1, attributes->axes, error));
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *y = node->input[i];
        if (i != 1 && (y->type != x->type || !y->batched || !shape_equal(&y->shape, &shape)))
            return misfit(node, error, "input %d is not what the reduction makes", i);
    }
    return output_like(graph, node, 0, x);
}

/* reduce_KIND and its gradient, which reads dy, x and, where `y` is 1, y: KIND_one and KIND_back_one of each
   element. */
#define REDUCTION(kind, y)                                                                                             \
    static void reduce_##kind##_reference(const struct call *call)                                                     \
    {                                                                                                                  \
        for_each(call, 0, kind##_one);                                                                                 \
    }                                                                                                                  \
    static void reduce_##kind##_gradient_reference(const struct call *call)                                            \
    {                                                                                                                  \
        for_each(call, 1, kind##_back_one);                                                                            \
    }                                                                                                                  \
    const struct op op_reduce_##kind = {                                                                               \
        OP_HEAD(reduce_##kind, 1, 1, reduce_infer, cut_input_rows),                                                    \
        .attributes_bytes = sizeof(struct reduce_attributes),                                                          \
        .gradient_op = &op_reduce_##kind##_gradient,                                                                   \
        .gradient_reads = {READ_D, READ_X0, (y) ? READ_Y0 : READ_NO_MORE},                                             \
        .keeps_inputs = 1 << 0,                                                                                        \
        .keeps_outputs = (y) << 0,                                                                                     \
    };                                                                                                                 \
    const struct op op_reduce_##kind##_gradient = {                                                                    \
        OP_HEAD(reduce_##kind##_gradient, 2 + (y), 1, gradient_infer, cut_elementwise),                                \
        .attributes_bytes = sizeof(struct reduce_attributes),                                                          \
        .no_gradient = NO_SECOND,                                                                                      \
    };

/* ---- reduce_sum and reduce_broadcast ----------------------------------------- */

static void sum_one(const struct one *one)
{
    const struct reduce_attributes *attributes = one->call->node->attributes;
    double sum = 0;
    for (int64_t r = 0; r < one->strides->values; r++)
        sum += value_of(one, r);
    set(one->call, 0, one->y, attributes->choice ? sum / (double)one->strides->values : sum);
}

static void reduce_sum_reference(const struct call *call)
{
    for_each(call, 0, sum_one);
}

static void reduce_sum_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                            struct tensor **d_input)
{
    const struct reduce_attributes *attributes = node->attributes;
    const struct shape *shape = &node->input[0]->shape;
    struct reduce_broadcast_attributes back = {attributes->axes, attributes->keep, 1, shape->rank - 1, {0}};
    double values = 1;
    for (int i = 1; i < shape->rank; i++) {
        back.row[i - 1] = shape->dim[i];
        values *= attributes->axes >> i & 1 ? (double)shape->dim[i] : 1;
    }
    if (attributes->choice)
        back.factor = 1 / values;
    if (wanted[0])
        d_input[0] = graph_add(graph, &op_reduce_broadcast, d_output, 1, &back, sizeof(back));
}

const struct op op_reduce_sum = {
    OP_HEAD(reduce_sum, 1, 1, reduce_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct reduce_attributes),
    .gradient = reduce_sum_back,
};

static plim_status reduce_broadcast_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct reduce_broadcast_attributes *attributes = node->attributes;
    const struct tensor *y = node->input[0];
    struct shape shape = {.rank = 1, .dim = {y->shape.dim[0]}};
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    if (attributes->rank < 0 || attributes->rank >= MOST_AXES || attributes->axes & 1 || attributes->axes < 0 ||
        attributes->axes >> (attributes->rank + 1))
        return misfit(node, error, "axes and shape do not fit together");
    for (int64_t i = 0; i < attributes->rank; i++)
        shape.dim[shape.rank++] = attributes->row[i];
    struct shape expected = reduced_shape(&shape, attributes->axes, attributes->keep);
    if (!shape_equal(&expected, &y->shape))
        return misfit(node, error, "the input is not what the reduction makes");
    return output_of(graph, node, 0, y->type, shape, true);
}

static void reduce_broadcast_reference(const struct call *call)
{
    const struct reduce_broadcast_attributes *attributes = call->node->attributes;
    struct reduce_strides strides;
    reduce_strides_init(&strides, attributes->axes, (int)attributes->rank, attributes->row);
    int64_t count = call_rows(call, call->node->output[0]) * strides.out;
    for (int64_t y = 0; y < count; y++) {
        int64_t first = y / strides.out * strides.in + reduce_first(&strides, y % strides.out);
        for (int64_t r = 0; r < strides.values; r++)
            set(call, 0, first + reduce_value(&strides, r), get(call, 0, y) * attributes->factor);
    }
}

static void reduce_broadcast_back(struct graph *graph, struct node *node, struct tensor *const *d_output,
                                  const bool *wanted, struct tensor **d_input)
{
    const struct reduce_broadcast_attributes *attributes = node->attributes;
    struct reduce_attributes back = {attributes->axes, attributes->keep, 0};
    struct scale_attributes scale = {attributes->factor};
    if (!wanted[0])
        return;
    struct tensor *sum = graph_add(graph, &op_reduce_sum, d_output, 1, &back, sizeof(back));
    d_input[0] = attributes->factor == 1 ? sum : graph_add(graph, &op_scale, &sum, 1, &scale, sizeof(scale));
}

const struct op op_reduce_broadcast = {
    OP_HEAD(reduce_broadcast, 1, 1, reduce_broadcast_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct reduce_broadcast_attributes),
    .gradient = reduce_broadcast_back,
};

/* ---- reduce_max ----------------------------------------------------------- */

static void max_one(const struct one *one)
{
    const struct reduce_attributes *attributes = one->call->node->attributes;
    double most = value_of(one, 0);
    for (int64_t r = 1; r < one->strides->values; r++) {
        double x = value_of(one, r);
        if ((attributes->choice ? x < most : x > most) || isnan(x))
            most = x;
    }
    set(one->call, 0, one->y, most);
}

static void max_back_one(const struct one *one)
{
    double dy = get(one->call, 0, one->y), y = get(one->call, 2, one->y), equals = 0;
    for (int64_t r = 0; r < one->strides->values; r++)
        equals += value_of(one, r) == y;
    for (int64_t r = 0; r < one->strides->values; r++)
        set(one->call, 0, one->first + reduce_value(one->strides, r), value_of(one, r) == y ? dy / equals : 0);
}

REDUCTION(max, 1)

/* ---- reduce_prod ---------------------------------------------------------- */

static void prod_one(const struct one *one)
{
    double product = 1;
    for (int64_t r = 0; r < one->strides->values; r++)
        product *= value_of(one, r);
    set(one->call, 0, one->y, product);
}

/* Of all that are not 0, and how many are: with one 0, only its own gradient is not. */
static void prod_back_one(const struct one *one)
{
    double dy = get(one->call, 0, one->y), product = 1, zeros = 0;
    for (int64_t r = 0; r < one->strides->values; r++) {
        double x = value_of(one, r);
        zeros += x == 0;
        product *= x == 0 ? 1 : x;
    }
    for (int64_t r = 0; r < one->strides->values; r++) {
        double x = value_of(one, r), others = zeros == 0 ? product / x : zeros == 1 && x == 0 ? product : 0;
        set(one->call, 0, one->first + reduce_value(one->strides, r), dy * others);
    }
}

REDUCTION(prod, 0)

/* ---- reduce_variance ------------------------------------------------------ */

static double mean_of(const struct one *one)
{
    double sum = 0;
    for (int64_t r = 0; r < one->strides->values; r++)
        sum += value_of(one, r);
    return sum / (double)one->strides->values;
}

static void variance_one(const struct one *one)
{
    double mean = mean_of(one), squares = 0;
    for (int64_t r = 0; r < one->strides->values; r++)
        squares += (value_of(one, r) - mean) * (value_of(one, r) - mean);
    set(one->call, 0, one->y, squares / (double)one->strides->values);
}

static void variance_back_one(const struct one *one)
{
    double factor = 2 * get(one->call, 0, one->y) / (double)one->strides->values, mean = mean_of(one);
    for (int64_t r = 0; r < one->strides->values; r++)
        set(one->call, 0, one->first + reduce_value(one->strides, r), factor * (value_of(one, r) - mean));
}

REDUCTION(variance, 0)

/* ---- reduce_logsumexp ----------------------------------------------------- */

/* Of nothing but -infinity, that; infinity where one is. */
static void logsumexp_one(const struct one *one)
{
    double most = value_of(one, 0), sum = 0;
    for (int64_t r = 1; r < one->strides->values; r++)
        most = fmax(most, value_of(one, r));
    most = isinf(most) ? 0 : most;
    for (int64_t r = 0; r < one->strides->values; r++)
        sum += exp(value_of(one, r) - most);
    set(one->call, 0, one->y, log(sum) + most);
}

static void logsumexp_back_one(const struct one *one)
{
    double dy = get(one->call, 0, one->y), y = get(one->call, 2, one->y);
    for (int64_t r = 0; r < one->strides->values; r++)
        set(one->call, 0, one->first + reduce_value(one->strides, r), dy * exp(value_of(one, r) - y));
}

REDUCTION(logsumexp, 1)

/* ---- reduce_any ----------------------------------------------------------- */

static plim_status reduce_any_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct reduce_attributes *attributes = node->attributes;
    const struct tensor *x = node->input[0];
    if (x->type != TYPE_BOOL && x->type != TYPE_U8)
        return misfit(node, error, "input 0 is %s; it must be bool or uint8", type_name(x->type));
    TRY(need_axes(node, 0, attributes->axes, error));
    return output_of(graph, node, 0, TYPE_BOOL, reduced_shape(&x->shape, attributes->axes, attributes->keep), true);
}

static void any_one(const struct one *one)
{
    const struct reduce_attributes *attributes = one->call->node->attributes;
    int64_t there = 0;
    for (int64_t r = 0; r < one->strides->values; r++)
        there += value_of(one, r) != 0;
    set(one->call, 0, one->y, attributes->choice ? there == one->strides->values : there > 0);
}

static void reduce_any_reference(const struct call *call)
{
    for_each(call, 0, any_one);
}

const struct op op_reduce_any = {
    OP_HEAD(reduce_any, 1, 1, reduce_any_infer, cut_input_rows),
    .attributes_bytes = sizeof(struct reduce_attributes),
    .no_gradient = "it is no smooth function",
};
