/* cpu_matmul.c - matmul and its weight gradient over gemm.c, one runner for
   each way they are cut.

   size[0]: inner extent, size[1]: columns of the output. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/gemm.h"
#include "base/checked.h"
#include "ops/ops.h"

/* Heavy transposed products: up to this many samples x is turned over once
   (pack) and blocks of the result turned back; with more, blocks of w are turned. */
#define FEW_SAMPLES  128
#define TURN_COLUMNS 96

static bool all_f32(const struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type != TYPE_F32)
            return false;
    return node->output[0]->type == TYPE_F32 && node->output[0]->shape.rank == 2;
}

static const float *input(const struct call *call, int i)
{
    return call->input[i];
}

static bool wants_relu(const struct call *call)
{
    const struct matmul_attributes *attributes = call->node->attributes;
    return attributes->activation == ACTIVATION_RELU;
}

/* y[rows, n] = act(x . w[k, n] + bias); w may be a pack. */
static void product(const struct kernel *kernel, const struct call *call, const float *w)
{
    int64_t k = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    const struct gemm g = {
        .m = cpu_rows(kernel, call),
        .n = n,
        .k = k,
        .a = input(call, 0),
        .a_row = k,
        .a_step = 1,
        .b = w,
        .b_step = n,
        .c = call->output[0],
        .c_row = n,
        .bias = input(call, 2),
        .relu = wants_relu(call),
    };
    VARIANT(gemm)(&g);
}

static void run_light(const struct kernel *kernel, const struct call *call)
{
    product(kernel, call, input(call, 1));
}

static void run_packed(const struct kernel *kernel, const struct call *call)
{
    product(kernel, call, call->pack);
}

/* pack[k, n] = w[n, k] turned over. */
static void pack_weights(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    (void)unit;
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    VARIANT(transpose)(pack, own->size[1], input(whole, 1), own->size[0], own->size[1], own->size[0]);
}

/* Columns begin..end of all rows; w[k, n]. */
static void run_columns(const struct kernel *kernel, const struct call *call)
{
    int64_t k = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    const float *bias = input(call, 2);
    const struct gemm g = {
        .m = call->count,
        .n = call->end - call->begin,
        .k = k,
        .a = input(call, 0),
        .a_row = k,
        .a_step = 1,
        .b = input(call, 1) + call->begin,
        .b_step = n,
        .c = (float *)call->output[0] + call->begin,
        .c_row = n,
        .bias = bias ? bias + call->begin : NULL,
        .relu = wants_relu(call),
    };
    VARIANT(gemm)(&g);
}

/* One output column: w is k numbers in a row, transposed or not. size[2]: the
   rows are all of the batch's. */
static void run_one_column(const struct kernel *kernel, const struct call *call)
{
    int64_t k = cpu_kernel_of(kernel)->size[0];
    const float *bias = input(call, 2);
    const struct gemv g = {
        .m = cpu_kernel_of(kernel)->size[2] ? call->count : cpu_rows(kernel, call),
        .k = k,
        .x = input(call, 0),
        .x_row = k,
        .w = input(call, 1),
        .y = call->output[0],
        .y_row = 1,
        .bias = bias ? bias[0] : 0,
        .relu = wants_relu(call),
    };
    VARIANT(gemv)(&g);
}

/* pack[k, count] = x[count, k] turned over. */
static void pack_samples(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    (void)unit;
    int64_t k = cpu_kernel_of(kernel)->size[0];
    VARIANT(transpose)(pack, whole->count, input(whole, 0), k, whole->count, k);
}

/* Few samples: scratch[columns, count] = w[columns, k] . pack[k, count]. */
static void run_turned_samples(const struct kernel *kernel, const struct call *call)
{
    int64_t k = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    for (int64_t j = call->begin; j < call->end; j += TURN_COLUMNS) {
        const struct gemm g = {
            .m = call->end - j < TURN_COLUMNS ? call->end - j : TURN_COLUMNS,
            .n = call->count,
            .k = k,
            .a = input(call, 1) + j * k,
            .a_row = k,
            .a_step = 1,
            .b = call->pack,
            .b_step = call->count,
            .c = call->scratch,
            .c_row = call->count,
        };
        VARIANT(gemm)(&g);
        VARIANT(transpose)((float *)call->output[0] + j, n, call->scratch, call->count, g.m, call->count);
    }
}

/* Many samples: scratch[k, columns] = w[columns, k] turned over. */
static void run_turned_weights(const struct kernel *kernel, const struct call *call)
{
    int64_t k = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    for (int64_t j = call->begin; j < call->end; j += TURN_COLUMNS) {
        int64_t columns = call->end - j < TURN_COLUMNS ? call->end - j : TURN_COLUMNS;
        VARIANT(transpose)(call->scratch, columns, input(call, 1) + j * k, k, columns, k);
        const struct gemm g = {
            .m = call->count,
            .n = columns,
            .k = k,
            .a = input(call, 0),
            .a_row = k,
            .a_step = 1,
            .b = call->scratch,
            .b_step = columns,
            .c = (float *)call->output[0] + j,
            .c_row = n,
        };
        VARIANT(gemm)(&g);
    }
}

static void choose_transposed(struct cpu_kernel *out, int64_t samples, bool heavy)
{
    int64_t k = out->size[0], n = out->size[1];
    struct kernel *kernel = &out->kernel;
    if (!heavy && k == 1) {
        kernel->run = run_light; /* w[n, 1] lies like w[1, n] */
    } else if (!heavy) {
        kernel->run = run_packed;
        kernel->pack = pack_weights;
        kernel->pack_units = 1;
        kernel->pack_bytes = (size_t)(k * n) * sizeof(float);
    } else if (samples <= FEW_SAMPLES) {
        kernel->run = run_turned_samples;
        kernel->pack = pack_samples;
        kernel->pack_units = 1;
        kernel->pack_bytes = (size_t)(k * samples) * sizeof(float);
        kernel->scratch_bytes = (size_t)(TURN_COLUMNS * samples) * sizeof(float);
    } else {
        kernel->run = run_turned_weights;
        kernel->scratch_bytes = (size_t)(TURN_COLUMNS * k) * sizeof(float);
    }
}

MAKER(make_matmul)
{
    (void)entry, (void)error;
    const struct node *node = request->node;
    const struct matmul_attributes *attributes = node->attributes;
    if (!all_f32(node))
        return PLIM_OK;
    struct cut cut;
    node->op->cut(&cut, node);
    bool heavy = cut.output[0] == PART_WHOLE;
    const struct shape *x = &node->input[0]->shape, *y = &node->output[0]->shape;
    out->size[0] = x->dim[1];
    out->size[1] = y->dim[1];
    out->size[2] = heavy;
    if (y->dim[1] == 1)
        out->kernel.run = run_one_column;
    else if (attributes->transposed)
        choose_transposed(out, x->dim[0], heavy);
    else
        out->kernel.run = heavy ? run_columns : run_light;
    return PLIM_OK;
}

/* dw[in, out] (+)= x[rows, in]^T . dy[rows, out], a share of the samples. With one
   output column the same product is turned over: dw[1, in] = dy[1, rows] . x. */
static void run_share(const struct kernel *kernel, const struct call *call)
{
    int64_t in = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    const struct gemm g = {
        .m = n == 1 ? 1 : in,
        .n = n == 1 ? in : n,
        .k = cpu_rows(kernel, call),
        .a = input(call, n == 1 ? 1 : 0),
        .a_row = 1,
        .a_step = n == 1 ? 1 : in,
        .b = input(call, n == 1 ? 0 : 1),
        .b_step = n == 1 ? in : n,
        .c = call->output[0],
        .c_row = n,
        .add = call->add,
    };
    VARIANT(gemm)(&g);
}

/* Rows begin..end of dw, all samples. */
static void run_rows(const struct kernel *kernel, const struct call *call)
{
    int64_t in = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    int64_t rows = call->end - call->begin;
    const float *x = input(call, 0) + call->begin, *dy = input(call, 1);
    const struct gemm g = {
        .m = n == 1 ? 1 : rows,
        .n = n == 1 ? rows : n,
        .k = call->count,
        .a = n == 1 ? dy : x,
        .a_row = 1,
        .a_step = n == 1 ? 1 : in,
        .b = n == 1 ? x : dy,
        .b_step = n == 1 ? in : n,
        .c = call->output[0],
        .c_row = n,
    };
    VARIANT(gemm)(&g);
}

MAKER(make_matmul_weight_gradient)
{
    (void)entry, (void)error;
    const struct node *node = request->node;
    if (!all_f32(node))
        return PLIM_OK;
    struct cut cut;
    node->op->cut(&cut, node);
    out->size[0] = node->output[0]->shape.dim[0];
    out->size[1] = node->output[0]->shape.dim[1];
    out->kernel.run = cut.output[0] == PART_SUM ? run_share : run_rows;
    return PLIM_OK;
}
