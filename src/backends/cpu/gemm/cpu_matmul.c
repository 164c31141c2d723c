/* cpu_matmul.c - matmul and its weight gradient over gemm.c, one runner for
   each way they are cut.

   Sizes are those of cpu_matmul.h. Products of many rows go through packed copies: of x (or dy) once an
   instruction, where that is not too much memory. */
#include "backends/cpu/gemm/cpu_matmul.h"
#include "backends/cpu/gemm/gemm.h"

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

/* y[rows, n] = act(x . w + bias), all rows. */
static struct gemm matmul_of(const struct kernel *kernel, const struct call *call)
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

/* Columns begin..end of all rows. */
static struct gemm columns_of(const struct kernel *kernel, const struct call *call)
{
    struct gemm g = matmul_of(kernel, call);
    g.n = call->end - call->begin;
    g.b += call->begin * g.b_column;
    g.c += call->begin;
    g.bias = g.bias ? g.bias + call->begin : NULL;
    return g;
}

/* The rows of this slice; w[k, n], which may be a pack. */
static void product(const struct kernel *kernel, const struct call *call, const float *w)
{
    struct gemm g = matmul_of(kernel, call);
    g.m = slice_rows(kernel, call);
    g.b = w;
    g.b_step = g.n;
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
PACKER(pack_weights)
{
    const struct cpu_kernel *own = cpu_kernel_of(kernel);
    VARIANT(transpose)(pack, own->size[1], input(whole, 1), own->size[0], own->size[1], own->size[0]);
}

static void run_columns(const struct kernel *kernel, const struct call *call)
{
    const struct gemm g = columns_of(kernel, call);
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
PACKER(pack_samples)
{
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
PACKER(pack_many_rows)
{
    const struct gemm g = matmul_of(kernel, whole);
    VARIANT(gemm_pack_a)(pack, &g, unit, kernel->pack_units);
}

static void run_many_rows(const struct kernel *kernel, const struct call *call)
{
    struct gemm g = columns_of(kernel, call);
    g.room = call->scratch;
    g.a_packed = call->pack;
    VARIANT(gemm_packed)(&g);
}

static void choose_many_rows(struct cpu_kernel *out, int64_t rows)
{
    int64_t bytes = gemm_a_floats(rows, out->size[0]) * (int64_t)sizeof(float);
    out->kernel.run = run_many_rows;
    out->kernel.scratch_bytes = GEMM_ROOM * sizeof(float);
    if (bytes <= MOST_PACK_BYTES)
        cpu_set_pack(out, pack_many_rows, PACK_UNITS, (size_t)bytes);
}

/* Light weights as panels, for slices of many rows. */
PACKER(pack_panels)
{
    const struct gemm g = matmul_of(kernel, whole);
    VARIANT(gemm_pack_b)(pack, &g, unit, kernel->pack_units);
}

static void run_panels(const struct kernel *kernel, const struct call *call)
{
    struct gemm g = matmul_of(kernel, call);
    g.m = slice_rows(kernel, call);
    g.room = call->scratch;
    g.b_packed = call->pack;
    VARIANT(gemm_packed)(&g);
}

static void choose_panels(struct cpu_kernel *out)
{
    out->kernel.run = run_panels;
    out->kernel.scratch_bytes = GEMM_ROWS_ROOM * sizeof(float);
    cpu_set_pack(out, pack_panels, 1, (size_t)gemm_b_floats(out->size[0], out->size[1]) * sizeof(float));
}

static void choose_transposed(struct cpu_kernel *out, int64_t samples, bool heavy)
{
    int64_t k = out->size[0], n = out->size[1];
    if (!heavy && k == 1) {
        out->kernel.run = run_light; /* w[n, 1] lies like w[1, n] */
    } else if (!heavy) {
        out->kernel.run = run_packed;
        cpu_set_pack(out, pack_weights, 1, (size_t)(k * n) * sizeof(float));
    } else {
        out->kernel.run = run_turned_samples;
        out->kernel.scratch_bytes = (size_t)(TURN_COLUMNS * samples) * sizeof(float);
        cpu_set_pack(out, pack_samples, 1, (size_t)(k * samples) * sizeof(float));
    }
}

MAKER(make_matmul)
{
    const struct matmul_attributes *attributes = node->attributes;
    if (!cpu_all_f32(node))
        return false;
    matmul_take_sizes(out, node);
    bool heavy = out->size[2];
    int64_t rows = node->input[0]->shape.dim[0] * out->size[3], slice = request->asked->slice * out->size[3];
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
    return true;
}

/* dw[in, out] (+)= x[rows, in]^T . dy[rows, out]: rows begin..end of dw, all samples. */
static struct gemm gradient_of(const struct kernel *kernel, const struct call *call)
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

/* With one output column the same product is turned over: dw[1, in] = dy[1, rows] . x. */
static void gradient_product(struct gemm g)
{
    if (g.n == 1) {
        g.n = g.m;
        g.m = 1;
        const float *x = g.a;
        g.a = g.b;
        g.b = x;
        g.b_step = g.a_step;
        g.a_step = 1;
    }
    VARIANT(gemm)(&g);
}

/* A share of the samples, all of dw. */
static void run_share(const struct kernel *kernel, const struct call *call)
{
    struct gemm g = gradient_of(kernel, call);
    g.m = cpu_kernel_of(kernel)->size[0];
    g.k = slice_rows(kernel, call);
    g.a = input(call, 0);
    g.add = call->add;
    gradient_product(g);
}

static void run_rows(const struct kernel *kernel, const struct call *call)
{
    gradient_product(gradient_of(kernel, call));
}

/* dw over many samples: dy as panels, before the rows of dw are gone through. */
PACKER(pack_many_samples)
{
    const struct gemm g = gradient_of(kernel, whole);
    VARIANT(gemm_pack_b)(pack, &g, unit, kernel->pack_units);
}

static void run_many_samples(const struct kernel *kernel, const struct call *call)
{
    struct gemm g = gradient_of(kernel, call);
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
    cpu_set_pack(out, pack_many_samples, PACK_UNITS, (size_t)bytes);
}

MAKER(make_matmul_weight_gradient)
{
    if (!cpu_all_f32(node))
        return false;
    out->kernel.run = run_share;
    if (!matmul_take_gradient_sizes(out, node))
        choose_rows(out, node->input[0]->shape.dim[0] * out->size[3]);
    return true;
}
