/* noise.c - dropout, gaussian_noise and gaussian_dropout. Nothing random is kept: see noise.h. */
#include <math.h>

#include "ops/helpers.h"

static plim_status noise_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *x = node->input[0];
    TRY(need_real(node, 0, error));
    TRY(need_batched(node, 0, error));
    TRY(need_type(node, 1, TYPE_I64, error));
    if (node->input[1]->batched || shape_count(&node->input[1]->shape) != 1)
        return misfit(node, error, "iteration must be one value");
    if (x->shape.dim[0] > UINT32_MAX || shape_row(&x->shape) > (int64_t)UINT32_MAX * 4)
        return misfit(node, error, "more elements than there are numbers");
    return output_like(graph, node, 0, x);
}

static uint64_t step_of(const struct call *call)
{
    return (uint64_t) * (const int64_t *)call->input[1];
}

/* ---- dropout ------------------------------------------------------------ */

static plim_status dropout_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct dropout_attributes *attributes = node->attributes;
    if (!(attributes->rate >= 0 && attributes->rate <= 1))
        return misfit(node, error, "a rate of %g; it must be in [0, 1]", attributes->rate);
    return noise_infer(graph, node, error);
}

/* Place of element `i` of a sample among the numbers of the sample: shared axes count for nothing. */
static int64_t number_of(const struct shape *shape, int64_t shared, int64_t i)
{
    int64_t place = 0, step = 1;
    for (int axis = shape->rank - 1; axis > 0; axis--) {
        int64_t at = i % shape->dim[axis];
        i /= shape->dim[axis];
        if (shared >> axis & 1)
            continue;
        place += at * step;
        step *= shape->dim[axis];
    }
    return place;
}

static void dropout_reference(const struct call *call)
{
    const struct dropout_attributes *attributes = call->node->attributes;
    const struct tensor *y = call->node->output[0];
    int64_t rows = call_rows(call, y), row = shape_row(&y->shape);
    uint64_t threshold = dropout_threshold(attributes->rate);
    for (int64_t n = 0; n < rows; n++) {
        int64_t sample = attributes->shared & 1 ? 0 : call->begin + n;
        for (int64_t i = 0; i < row; i++) {
            uint32_t bits[4];
            int64_t number = number_of(&y->shape, attributes->shared, i);
            noise_bits(bits, attributes->seed, step_of(call), sample, number);
            bool kept = bits[noise_word(number)] >= threshold;
            double value = get(call, 0, n * row + i) * attributes->scale + attributes->offset;
            set(call, 0, n * row + i, kept ? value : attributes->dropped);
        }
    }
}

static void dropout_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                         struct tensor **d_input)
{
    struct dropout_attributes back = *(const struct dropout_attributes *)node->attributes;
    back.offset = back.dropped = 0;
    if (wanted[0])
        d_input[0] =
            graph_add(graph, &op_dropout, (struct tensor *[]){d_output[0], node->input[1]}, 2, &back, sizeof(back));
}

const struct op op_dropout = {
    OP_HEAD(dropout, 2, 1, dropout_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct dropout_attributes),
    .gradient = dropout_back,
    .keeps_inputs = 1 << 1,
    .in_place = 1 << 0,
};

/* ---- gaussian_noise, gaussian_dropout ----------------------------------- */

/* Words 0 and 1 of a block make two normal numbers, and so do 2 and 3: radius of one, turn of the other. */
static double normal(const struct call *call, int64_t sample, int64_t i)
{
    const struct noise_attributes *attributes = call->node->attributes;
    uint32_t bits[4];
    int word = noise_word(i);
    noise_bits(bits, attributes->seed, step_of(call), sample, i);
    double radius = sqrt(-2 * log(1 - (double)random_unit(bits[word & 2])));
    double turn = 6.283185307179586 * (double)random_unit(bits[word | 1]);
    return radius * (word & 1 ? sin(turn) : cos(turn));
}

/* y = x * (1 + a z) + b z */
static void noisy(const struct call *call, double a, double b)
{
    const struct tensor *y = call->node->output[0];
    int64_t rows = call_rows(call, y), row = shape_row(&y->shape);
    for (int64_t n = 0; n < rows; n++) {
        for (int64_t i = 0; i < row; i++) {
            double z = normal(call, call->begin + n, i);
            set(call, 0, n * row + i, get(call, 0, n * row + i) * (1 + a * z) + b * z);
        }
    }
}

static void gaussian_noise_reference(const struct call *call)
{
    noisy(call, 0, ((const struct noise_attributes *)call->node->attributes)->stddev);
}

static void gaussian_dropout_reference(const struct call *call)
{
    noisy(call, ((const struct noise_attributes *)call->node->attributes)->stddev, 0);
}

/* What is added does not depend on x. */
static void gaussian_noise_back(struct graph *graph, struct node *node, struct tensor *const *d_output,
                                const bool *wanted, struct tensor **d_input)
{
    (void)graph, (void)node;
    if (wanted[0])
        d_input[0] = d_output[0];
}

const struct op op_gaussian_noise = {
    OP_HEAD(gaussian_noise, 2, 1, noise_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct noise_attributes),
    .gradient = gaussian_noise_back,
    .in_place = 1 << 0,
};

const struct op op_gaussian_dropout = {
    OP_HEAD(gaussian_dropout, 2, 1, noise_infer, cut_elementwise),
    .attributes_bytes = sizeof(struct noise_attributes),
    .gradient_op = &op_gaussian_dropout,
    .gradient_reads = {READ_D, READ_X1},
    .keeps_inputs = 1 << 1,
    .in_place = 1 << 0,
};
