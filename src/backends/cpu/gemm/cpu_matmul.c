/* cpu_matmul.c - matmul and its weight gradient over gemm.c, one runner for
   each way they are cut.

   size[0]: inner extent, size[1]: columns of the output, size[3]: rows a sample; of
   weight gradients size[2]: rows of the product in a row of dw.
   Products of many rows go through packed copies: of x (or dy) once an
   instruction, where that is not too much memory. */
#include "backends/cpu/cpu_own.h"
#include "backends/cpu/gemm/gemm.h"
#include "base/numbers/checked.h"
#include "ops/ops.h"

/* Heavy transposed products: up to this many samples x is turned over once
   (pack) and blocks of the result turned back; with more, blocks of w are turned. */
#define FEW_SAMPLES  128
#define TURN_COLUMNS 96
/* Copies made before an instruction, at most; with more each slice copies. */
#define MOST_PACK_BYTES ((int64_t)32 << 20)
#define PACK_UNITS      16
/* Slices of so many rows by so many columns are worth copies of light weights. */
#define PACKED_ROWS    64
#define PACKED_COLUMNS 32

static const float *input(const struct call *call, int i)
{
    return call->input[i];
}

static bool wants_relu(const struct call *call)
{
    const struct matmul_attributes *attributes = call->node->attributes;
    return attributes->activation == ACTIVATION_RELU;
}

/* Rows of x in this slice; of all samples. */
static int64_t slice_rows(const struct kernel *kernel, const struct call *call)
{
    return cpu_rows(kernel, call) * cpu_kernel_of(kernel)->size[3];
}

static int64_t all_rows(const struct kernel *kernel, const struct call *call)
{
    return call->count * cpu_kernel_of(kernel)->size[3];
}

/* y[rows, n] = act(x . w[k, n] + bias); w may be a pack. */
static void product(const struct kernel *kernel, const struct call *call, const float *w)
{
    int64_t k = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    const struct gemm g = {
        .m = slice_rows(kernel, call),
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
        .m = all_rows(kernel, call),
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
        .m = cpu_kernel_of(kernel)->size[2] ? all_rows(kernel, call) : slice_rows(kernel, call),
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
    int64_t k = cpu_kernel_of(kernel)->size[0], rows = all_rows(kernel, whole);
    VARIANT(transpose)(pack, rows, input(whole, 0), k, rows, k);
}

/* Few samples: scratch[columns, count] = w[columns, k] . pack[k, count]. */
static void run_turned_samples(const struct kernel *kernel, const struct call *call)
{
    int64_t k = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    int64_t rows = all_rows(kernel, call);
    for (int64_t j = call->begin; j < call->end; j += TURN_COLUMNS) {
        const struct gemm g = {
            .m = call->end - j < TURN_COLUMNS ? call->end - j : TURN_COLUMNS,
            .n = rows,
            .k = k,
            .a = input(call, 1) + j * k,
            .a_row = k,
            .a_step = 1,
            .b = call->pack,
            .b_step = rows,
            .c = call->scratch,
            .c_row = rows,
        };
        VARIANT(gemm)(&g);
        VARIANT(transpose)((float *)call->output[0] + j, n, call->scratch, rows, g.m, rows);
    }
}

/* Many rows: x as tiles, before the columns of w are gone through. */
static struct gemm many_rows(const struct kernel *kernel, const struct call *call)
{
    const struct matmul_attributes *attributes = call->node->attributes;
    int64_t k = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    return (struct gemm){
        .m = all_rows(kernel, call),
        .n = n,
        .k = k,
        .a = input(call, 0),
        .a_row = k,
        .a_step = 1,
        .b = input(call, 1),
        .b_step = attributes->transposed ? 1 : n,
        .b_column = attributes->transposed ? k : 1,
        .c = call->output[0],
        .c_row = n,
        .bias = input(call, 2),
        .relu = wants_relu(call),
    };
}

static void pack_many_rows(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    const struct gemm g = many_rows(kernel, whole);
    VARIANT(gemm_pack_a)(pack, &g, unit, kernel->pack_units);
}

static void run_many_rows(const struct kernel *kernel, const struct call *call)
{
    struct gemm g = many_rows(kernel, call);
    g.n = call->end - call->begin;
    g.b += call->begin * g.b_column;
    g.c += call->begin;
    g.bias = g.bias ? g.bias + call->begin : NULL;
    g.room = call->scratch;
    g.a_packed = call->pack;
    VARIANT(gemm_packed)(&g);
}

static void choose_many_rows(struct cpu_kernel *out, int64_t rows)
{
    int64_t bytes = gemm_a_floats(rows, out->size[0]) * (int64_t)sizeof(float);
    out->kernel.run = run_many_rows;
    out->kernel.scratch_bytes = GEMM_ROOM * sizeof(float);
    if (bytes > MOST_PACK_BYTES)
        return;
    out->kernel.pack = pack_many_rows;
    out->kernel.pack_units = PACK_UNITS;
    out->kernel.pack_bytes = (size_t)bytes;
}

/* Light weights as panels, for slices of many rows. */
static void pack_panels(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    const struct gemm g = many_rows(kernel, whole);
    VARIANT(gemm_pack_b)(pack, &g, unit, kernel->pack_units);
}

static void run_panels(const struct kernel *kernel, const struct call *call)
{
    struct gemm g = many_rows(kernel, call);
    g.m = slice_rows(kernel, call);
    g.room = call->scratch;
    g.b_packed = call->pack;
    VARIANT(gemm_packed)(&g);
}

static void choose_panels(struct cpu_kernel *out)
{
    out->kernel.run = run_panels;
    out->kernel.scratch_bytes = GEMM_ROWS_ROOM * sizeof(float);
    out->kernel.pack = pack_panels;
    out->kernel.pack_units = 1;
    out->kernel.pack_bytes = (size_t)gemm_b_floats(out->size[0], out->size[1]) * sizeof(float);
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
    } else {
        kernel->run = run_turned_samples;
        kernel->pack = pack_samples;
        kernel->pack_units = 1;
        kernel->pack_bytes = (size_t)(k * samples) * sizeof(float);
        kernel->scratch_bytes = (size_t)(TURN_COLUMNS * samples) * sizeof(float);
    }
}

MAKER(make_matmul)
{
    (void)entry, (void)error;
    const struct node *node = request->node;
    const struct matmul_attributes *attributes = node->attributes;
    if (!cpu_all_f32(node))
        return PLIM_OK;
    struct cut cut;
    node->op->cut(&cut, node);
    bool heavy = cut.output[0] == PART_WHOLE;
    const struct tensor *x = node->input[0];
    const struct shape *w = &node->input[1]->shape;
    int64_t first = 1;
    for (int i = 0; i < (attributes->inner_axes ? attributes->inner_axes : 1); i++)
        first *= w->dim[i];
    int64_t second = shape_count(w) / first;
    out->size[0] = attributes->transposed ? second : first;
    out->size[1] = attributes->transposed ? first : second;
    out->size[2] = heavy;
    out->size[3] = shape_row(&x->shape) / out->size[0];
    int64_t rows = x->shape.dim[0] * out->size[3], slice = request->slice * out->size[3];
    if (out->size[1] == 1)
        out->kernel.run = run_one_column;
    else if (heavy && rows > FEW_SAMPLES)
        choose_many_rows(out, rows);
    else if (!heavy && out->size[3] > 1 && slice >= PACKED_ROWS && out->size[1] >= PACKED_COLUMNS)
        choose_panels(out);
    else if (attributes->transposed)
        choose_transposed(out, rows, heavy);
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
        .k = slice_rows(kernel, call),
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
    int64_t each = cpu_kernel_of(kernel)->size[2], rows = (call->end - call->begin) * each;
    const float *x = input(call, 0) + call->begin * each, *dy = input(call, 1);
    const struct gemm g = {
        .m = n == 1 ? 1 : rows,
        .n = n == 1 ? rows : n,
        .k = all_rows(kernel, call),
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

/* dw over many samples: dy as panels, before the rows of dw are gone through. */
static struct gemm many_samples(const struct kernel *kernel, const struct call *call)
{
    int64_t in = cpu_kernel_of(kernel)->size[0], n = cpu_kernel_of(kernel)->size[1];
    int64_t each = cpu_kernel_of(kernel)->size[2];
    return (struct gemm){
        .m = (call->end - call->begin) * each,
        .n = n,
        .k = all_rows(kernel, call),
        .a = input(call, 0) + call->begin * each,
        .a_row = 1,
        .a_step = in,
        .b = input(call, 1),
        .b_step = n,
        .b_column = 1,
        .c = call->output[0],
        .c_row = n,
    };
}

static void pack_many_samples(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    const struct gemm g = many_samples(kernel, whole);
    VARIANT(gemm_pack_b)(pack, &g, unit, kernel->pack_units);
}

static void run_many_samples(const struct kernel *kernel, const struct call *call)
{
    struct gemm g = many_samples(kernel, call);
    g.room = call->scratch;
    g.b_packed = call->pack;
    VARIANT(gemm_packed)(&g);
}

static void choose_rows(struct cpu_kernel *out, int64_t samples)
{
    int64_t bytes = gemm_b_floats(samples, out->size[1]) * (int64_t)sizeof(float);
    out->kernel.run = run_rows;
    if (out->size[1] == 1 || samples <= FEW_SAMPLES || bytes > MOST_PACK_BYTES)
        return;
    out->kernel.run = run_many_samples;
    out->kernel.scratch_bytes = GEMM_ROWS_ROOM * sizeof(float);
    out->kernel.pack = pack_many_samples;
    out->kernel.pack_units = PACK_UNITS;
    out->kernel.pack_bytes = (size_t)bytes;
}

MAKER(make_matmul_weight_gradient)
{
    (void)entry, (void)error;
    const struct node *node = request->node;
    if (!cpu_all_f32(node))
        return PLIM_OK;
    struct cut cut;
    node->op->cut(&cut, node);
    const struct matmul_weight_gradient_attributes *attributes = node->attributes;
    const struct shape *dw = &node->output[0]->shape;
    out->size[0] = 1;
    for (int i = 0; i < (attributes->inner_axes ? attributes->inner_axes : 1); i++)
        out->size[0] *= dw->dim[i];
    out->size[1] = shape_count(dw) / out->size[0];
    out->size[2] = out->size[0] / dw->dim[0];
    out->size[3] = shape_row(&node->input[0]->shape) / out->size[0];
    out->kernel.run = run_share;
    if (cut.output[0] != PART_SUM)
        choose_rows(out, node->input[0]->shape.dim[0] * out->size[3]);
    return PLIM_OK;
}
