/* spectral.c - power iteration on a weight: spectral_sums, spectral_vector, spectral_divide. */
#include <math.h>

#include "ops/update/update_own.h"

#define EPSILON     1e-7 /* Keras's */
#define NO_ITERATES "gradients take the divided weight as it is"

static plim_status need_vector(const struct node *node, int64_t columns, plim_error *error)
{
    struct shape shape = shape_2(1, columns);
    TRY(need_type_of(node, 1, 0, error));
    if (node->input[1]->batched || !shape_equal(&node->input[1]->shape, &shape))
        return misfit(node, error, "a vector for %lld columns must be (1, %lld)", (long long)columns,
                      (long long)columns);
    return PLIM_OK;
}

/* ---- spectral_sums ----------------------------------------------------- */

static plim_status sums_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *w = node->input[0];
    TRY(need_real(node, 0, error));
    if (w->batched || w->shape.rank < 2)
        return misfit(node, error, "a weight has rows and columns, and no batch");
    TRY(need_vector(node, last_dim(w), error));
    return output_of(graph, node, 0, wide_type(w->type), shape_1(last_dim(w) + 1), false);
}

static void sums_cut(struct cut *cut, const struct node *node)
{
    cut_rows(cut, node, node->input[0], 2 * (double)shape_count(&node->input[0]->shape));
    cut->input[1] = PART_WHOLE;
    cut->output[0] = PART_SUM;
}

static double row_product(const struct call *call, int64_t row, int64_t columns)
{
    double r = 0;
    for (int64_t j = 0; j < columns; j++)
        r += get(call, 0, row * columns + j) * get(call, 1, j);
    return r;
}

static void spectral_sums_reference(const struct call *call)
{
    int64_t columns = last_dim(call->node->input[0]), rows = update_elements(call) / columns;
    double squares = 0;
    for (int64_t j = 0; j < columns; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += row_product(call, i, columns) * get(call, 0, i * columns + j);
        share(call, 0, j, sum);
    }
    for (int64_t i = 0; i < rows; i++)
        squares += row_product(call, i, columns) * row_product(call, i, columns);
    share(call, 0, columns, squares);
}

const struct op op_spectral_sums = {
    OP_HEAD(spectral_sums, 2, 1, sums_infer, sums_cut),
    .no_gradient = NO_ITERATES,
};

/* ---- spectral_vector --------------------------------------------------- */

static plim_status vector_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *s = node->input[0];
    TRY(need_real(node, 0, error));
    TRY(need_rank(node, 0, 1, error));
    if (s->batched || s->shape.dim[0] < 2)
        return misfit(node, error, "the sums of at least one column, and one more");
    TRY(need_vector(node, s->shape.dim[0] - 1, error));
    output_like(graph, node, 0, node->input[1]);
    return output_of(graph, node, 1, s->type, shape_1(1), false);
}

static void vector_cut(struct cut *cut, const struct node *node)
{
    *cut = (struct cut){.extent = 1, .grain = 1, .work = 2 * (double)shape_count(&node->input[0]->shape)};
    cut->input[0] = cut->input[1] = PART_WHOLE;
    cut->output[0] = cut->output[1] = PART_WHOLE;
}

static void spectral_vector_reference(const struct call *call)
{
    int64_t columns = call->node->input[0]->shape.dim[0] - 1;
    double of_v = 1 / fmax(sqrt(get(call, 0, columns)), EPSILON), squares = 0;
    for (int64_t j = 0; j < columns; j++)
        squares += get(call, 0, j) * of_v * get(call, 0, j) * of_v;
    bool zero = squares == 0;
    double of_w = 1 / fmax(sqrt(squares), EPSILON);
    for (int64_t j = 0; j < columns && call->begin < call->end; j++)
        set(call, 0, j, zero ? get(call, 1, j) : get(call, 0, j) * of_v * of_w);
    if (call->begin < call->end)
        set(call, 1, 0, zero ? 1 : squares * of_w);
}

const struct op op_spectral_vector = {
    OP_HEAD(spectral_vector, 2, 2, vector_infer, vector_cut),
    .no_gradient = NO_ITERATES,
};

/* ---- spectral_divide --------------------------------------------------- */

static plim_status divide_infer(struct graph *graph, struct node *node, plim_error *error)
{
    (void)graph;
    TRY(need_weight(node, error));
    TRY(need_type_of(node, 1, 0, error));
    if (node->input[1]->batched || shape_count(&node->input[1]->shape) != 1)
        return misfit(node, error, "input 1 must be one value");
    return PLIM_OK;
}

static void divide_cut(struct cut *cut, const struct node *node)
{
    cut_update(cut, node, 1 << 1);
}

static void spectral_divide_reference(const struct call *call)
{
    double sigma = get(call, 1, 0);
    int64_t count = update_elements(call);
    for (int64_t i = 0; i < count; i++)
        put(call, 0, i, get(call, 0, i) / sigma);
}

const struct op op_spectral_divide = {
    OP_HEAD(spectral_divide, 2, 0, divide_infer, divide_cut),
    .no_gradient = NO_ITERATES,
    .updates = 1 << 0,
};
