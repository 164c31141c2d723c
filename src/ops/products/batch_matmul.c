/* batch_matmul.c - products of stacks of matrices, and their sums over samples. */
#include "ops/helpers.h"

/* The first axis of the matrices of a sample. */
static int first_axis(const struct tensor *tensor)
{
    return tensor->batched ? 1 : 0;
}

/* Matrices a sample. */
static int64_t matrices(const struct tensor *tensor)
{
    int64_t count = 1;
    for (int i = first_axis(tensor); i < tensor->shape.rank - 2; i++)
        count *= tensor->shape.dim[i];
    return count;
}

struct batch_matmul_sizes batch_matmul_sizes(const struct node *node)
{
    const struct batch_matmul_attributes *attributes = node->attributes;
    const struct tensor *a = node->input[0], *b = node->input[1], *batched = a->batched ? a : b;
    const int64_t *a_end = &a->shape.dim[a->shape.rank - 2], *b_end = &b->shape.dim[b->shape.rank - 2];
    int64_t a_all = matrices(a), b_all = matrices(b), a_one = a_end[0] * a_end[1], b_one = b_end[0] * b_end[1];
    bool turn_a = attributes->transpose_a, turn_b = attributes->transpose_b;
    return (struct batch_matmul_sizes){
        .samples = batched->shape.dim[0],
        .inner = matrices(batched),
        .m = a_end[turn_a],
        .k = a_end[!turn_a],
        .n = b_end[!turn_b],
        .a_sample = a->batched ? a_all * a_one : 0,
        .a_matrix = a_all > 1 ? a_one : 0,
        .a_row = turn_a ? 1 : a_end[1],
        .a_step = turn_a ? a_end[1] : 1,
        .b_sample = b->batched ? b_all * b_one : 0,
        .b_matrix = b_all > 1 ? b_one : 0,
        .b_step = turn_b ? 1 : b_end[1],
        .b_column = turn_b ? b_end[1] : 1,
    };
}

static plim_status need_matrices(const struct node *node, plim_error *error)
{
    const struct batch_matmul_attributes *attributes = node->attributes;
    const struct tensor *a = node->input[0], *b = node->input[1];
    char texts[2][160];
    TRY(need_real(node, 0, error));
    TRY(need_type(node, 1, a->type, error));
    shape_text(texts[0], sizeof(texts[0]), &a->shape, false);
    shape_text(texts[1], sizeof(texts[1]), &b->shape, false);
    if (!a->batched && !b->batched)
        return misfit(node, error, "neither input has a batch axis");
    for (int i = 0; i < 2; i++)
        if (node->input[i]->shape.rank < 2 + first_axis(node->input[i]))
            return misfit(node, error, "input %d of shape %s is no stack of matrices", i, texts[i]);
    int a_first = first_axis(a), b_first = first_axis(b), a_rank = a->shape.rank - a_first;
    int b_rank = b->shape.rank - b_first;
    bool fits = a_rank == b_rank || (a_rank == 2 && !a->batched) || (b_rank == 2 && !b->batched);
    for (int i = 0; fits && a_rank == b_rank && i < a_rank - 2; i++)
        fits = a->shape.dim[a_first + i] == b->shape.dim[b_first + i];
    int64_t a_inner = a->shape.dim[a->shape.rank - (attributes->transpose_a ? 2 : 1)];
    int64_t b_inner = b->shape.dim[b->shape.rank - (attributes->transpose_b ? 1 : 2)];
    if (!fits || a_inner != b_inner)
        return misfit(node, error, "shapes %s and %s do not multiply", texts[0], texts[1]);
    return PLIM_OK;
}

/* [..., m, n] over the axes of the batched operand from `first` on. */
static struct shape product_shape(const struct node *node, int first, bool shared)
{
    const struct tensor *batched = node->input[0]->batched ? node->input[0] : node->input[1];
    struct batch_matmul_sizes z = batch_matmul_sizes(node);
    struct shape shape = {0};
    for (int i = first; i < batched->shape.rank - 2 && !shared; i++)
        shape.dim[shape.rank++] = batched->shape.dim[i];
    shape.dim[shape.rank++] = z.m;
    shape.dim[shape.rank++] = z.n;
    return shape;
}

static plim_status batch_matmul_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_matrices(node, error));
    return output_of(graph, node, 0, node->input[0]->type, product_shape(node, 0, false), true);
}

static void batch_matmul_cut(struct cut *cut, const struct node *node)
{
    struct batch_matmul_sizes z = batch_matmul_sizes(node);
    double work = (double)(z.samples * z.inner * z.m) * (double)z.k * (double)z.n + 1;
    cut_rows(cut, node, node->input[0]->batched ? node->input[0] : node->input[1], work);
    if (!node->output[0]->batched || z.samples >= BATCH_MATMUL_FEW_SAMPLES || z.inner == 1)
        return;
    *cut = (struct cut){.extent = z.samples * z.inner, .grain = 1, .work = work};
    cut->input[0] = cut->input[1] = cut->output[0] = PART_WHOLE;
}

static double matrix_dot(const struct call *call, const struct batch_matmul_sizes *z, const int64_t at[4])
{
    double sum = 0;
    int64_t a = at[0] * z->a_sample + at[1] * z->a_matrix + at[2] * z->a_row;
    int64_t b = at[0] * z->b_sample + at[1] * z->b_matrix + at[3] * z->b_column;
    for (int64_t s = 0; s < z->k; s++)
        sum += get(call, 0, a + s * z->a_step) * get(call, 1, b + s * z->b_step);
    return sum;
}

static void batch_matmul_reference(const struct call *call)
{
    struct batch_matmul_sizes z = batch_matmul_sizes(call->node);
    struct cut cut;
    call->node->op->cut(&cut, call->node);
    int64_t first = 0, end = call_rows(call, call->node->output[0]) * z.inner;
    if (!cut.by_sample) {
        first = call->begin;
        end = call->end < call->count * z.inner ? call->end : call->count * z.inner;
    }
    for (int64_t x = first; x < end; x++)
        for (int64_t i = 0; i < z.m * z.n; i++)
            set(call, 0, x * z.m * z.n + i,
                matrix_dot(call, &z, (int64_t[]){x / z.inner, x % z.inner, i / z.n, i % z.n}));
}

/* d of one operand: left . right, summed over samples where it has no batch axis. */
static struct tensor *operand_gradient(struct graph *graph, const struct tensor *of, struct tensor *left,
                                       bool turn_left, struct tensor *right, bool turn_right)
{
    struct batch_matmul_attributes attributes = {turn_left, turn_right, !of->batched && of->shape.rank == 2};
    const struct op *op = of->batched ? &op_batch_matmul : &op_batch_matmul_sum;
    return graph_add(graph, op, (struct tensor *[]){left, right}, 2, &attributes, sizeof(attributes));
}

/* c = A . B: dA = dc . B^T, dB = A^T . dc; a turned operand's gradient comes turned. */
static void batch_matmul_back(struct graph *graph, struct node *node, struct tensor *const *d_output,
                              const bool *wanted, struct tensor **d_input)
{
    const struct batch_matmul_attributes *attributes = node->attributes;
    struct tensor *a = node->input[0], *b = node->input[1], *dc = d_output[0];
    bool turn_a = attributes->transpose_a, turn_b = attributes->transpose_b;
    if (wanted[0])
        d_input[0] = turn_a ? operand_gradient(graph, a, b, turn_b, dc, true)
                            : operand_gradient(graph, a, dc, false, b, !turn_b);
    if (wanted[1])
        d_input[1] = turn_b ? operand_gradient(graph, b, dc, true, a, turn_a)
                            : operand_gradient(graph, b, a, !turn_a, dc, false);
}

const struct op op_batch_matmul = {
    OP_HEAD(batch_matmul, 2, 1, batch_matmul_infer, batch_matmul_cut),
    .attributes_bytes = sizeof(struct batch_matmul_attributes),
    .gradient = batch_matmul_back,
    .keeps_inputs = 1 << 0 | 1 << 1,
};

/* ---- batch_matmul_sum ------------------------------------------------------ */

static plim_status sum_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct batch_matmul_attributes *attributes = node->attributes;
    TRY(need_matrices(node, error));
    return output_of(graph, node, 0, node->input[0]->type, product_shape(node, 1, attributes->shared), false);
}

static void batch_matmul_sum_reference(const struct call *call)
{
    const struct batch_matmul_attributes *attributes = call->node->attributes;
    const struct tensor *a = call->node->input[0], *b = call->node->input[1];
    struct batch_matmul_sizes z = batch_matmul_sizes(call->node);
    int64_t samples = call_rows(call, a->batched ? a : b), stacks = attributes->shared ? 1 : z.inner;
    for (int64_t x = 0; x < stacks; x++)
        for (int64_t i = 0; i < z.m * z.n; i++) {
            double sum = 0;
            for (int64_t n = 0; n < samples; n++)
                for (int64_t y = x; y < (attributes->shared ? z.inner : x + 1); y++)
                    sum += matrix_dot(call, &z, (int64_t[]){n, y, i / z.n, i % z.n});
            share(call, 0, x * z.m * z.n + i, sum);
        }
}

const struct op op_batch_matmul_sum = {
    OP_HEAD(batch_matmul_sum, 2, 1, sum_infer, batch_matmul_cut),
    .attributes_bytes = sizeof(struct batch_matmul_attributes),
    .no_gradient = NO_SECOND,
};
