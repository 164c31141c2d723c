/* cpu_recurrent_weights.c - gradients of recurrent kernels and biases: after all steps, a product for each sample; of
   sequences of a few steps one for each step, of all samples. */
#include "backends/cpu/recurrent/cpu_recurrent.h"

#define FEW_STEPS 16

/* dkernel[U, columns] (+)= h^T . d over `steps` rows of both. */
struct weight_product {
    const float *h, *d;
    int64_t h_row, d_row, column, columns, steps;
};

static void multiply_steps(const struct call *call, const struct recurrent_sizes *z, const struct weight_product *p,
                           bool add)
{
    const struct gemm g = {.m = z->units,
                           .n = p->columns,
                           .k = p->steps,
                           .a = p->h,
                           .a_row = 1,
                           .a_step = p->h_row,
                           .b = p->d,
                           .b_step = p->d_row,
                           .b_column = 1,
                           .c = (float *)call->output[0] + p->column,
                           .c_row = z->columns,
                           .add = add,
                           .room = call->scratch};
    VARIANT(gemm_packed)(&g);
}

/* What a GRU that resets before its product feeds it, and the last gate's d of as many steps. */
static void multiply_inner(const struct call *call, const struct recurrent_sizes *z, const float *extra,
                           const float *dz, int64_t steps, bool add)
{
    const struct weight_product inner = {extra, dz + 2 * z->units, z->units, z->columns, 2 * z->units, z->units, steps};
    multiply_steps(call, z, &inner, add);
}

/* ---- sample by sample --------------------------------------------------- */

/* The states before steps 1.., scaled where dropout did so, meet d of those steps; h0 that of the first one. */
static void multiply_gates(const struct call *call, const struct recurrent_sizes *z, int64_t n, int64_t gate,
                           int64_t gates, const float *d, int64_t d_row, bool add)
{
    const struct recurrent_attributes *a = call->node->attributes;
    const float *h = (const float *)call->input[RECURRENT_ALL_H] + n * z->steps * z->units;
    const float *h0 = call->input[RECURRENT_WEIGHT_H0];
    struct weight_product p = {.h = a->reverse ? h + z->units : h,
                               .h_row = z->units,
                               .d = a->reverse ? d : d + d_row,
                               .d_row = d_row,
                               .column = gate * z->units,
                               .columns = gates * z->units,
                               .steps = z->steps - 1};
    float *scaled = (float *)call->scratch + GEMM_ROOM, *kept = scaled + z->steps * z->units;
    const float *first = h0 ? h0 + n * z->units : NULL;
    if (a->dropout > 0) {
        for (int64_t t = 0; t < p.steps; t++)
            multiply_row(scaled + t * z->units, p.h + t * z->units, kept + gate * z->units, z->units);
        p.h = scaled;
    }
    multiply_steps(call, z, &p, add);
    if (!first)
        return;
    if (a->dropout > 0) {
        multiply_row(scaled, first, kept + gate * z->units, z->units);
        first = scaled;
    }
    p.h = first;
    p.d = a->reverse ? d + (z->steps - 1) * d_row : d;
    p.steps = 1;
    multiply_steps(call, z, &p, true);
}

static void multiply_sample(const struct call *call, const struct recurrent_sizes *z, int64_t n, bool add)
{
    const struct recurrent_attributes *a = call->node->attributes;
    const float *dz = (const float *)call->input[RECURRENT_DZ] + n * z->steps * z->columns;
    const float *extra = call->input[RECURRENT_WEIGHT_EXTRA];
    extra = extra ? extra + n * z->steps * z->units : NULL;
    int64_t same = extra ? 2 : z->gates; /* gates of h and dz */
    if (a->dropout > 0)
        draw_recurrent((float *)call->scratch + GEMM_ROOM + z->steps * z->units, a, z->columns,
                       call->input[RECURRENT_WEIGHT_ITERATION], call->begin + n);
    if (a->dropout > 0)
        for (int64_t gate = 0; gate < same; gate++)
            multiply_gates(call, z, n, gate, 1, dz + gate * z->units, z->columns, add);
    else
        multiply_gates(call, z, n, 0, same, dz, z->columns, add);
    if (a->kind == RECURRENT_GRU)
        multiply_gates(call, z, n, 2, 1, extra, z->units, add);
    if (a->kind == RECURRENT_GRU_BEFORE)
        multiply_inner(call, z, extra, dz, z->steps, add);
}

/* ---- step by step ------------------------------------------------------- */

/* Of all samples: the states before a step meet d of it. Those before the first one are h0, or 0 and left out. */
static void multiply_step(const struct call *call, const struct recurrent_sizes *z, struct weight_product *p,
                          const float *d, int64_t t, bool add)
{
    const struct recurrent_attributes *a = call->node->attributes;
    bool first = t == (a->reverse ? z->steps - 1 : 0);
    const float *h = call->input[RECURRENT_ALL_H];
    p->h = first ? call->input[RECURRENT_WEIGHT_H0] : h + (a->reverse ? t + 1 : t - 1) * z->units;
    p->h_row = first ? z->units : z->steps * z->units;
    p->d = d + t * (p->d_row / z->steps);
    multiply_steps(call, z, p, add);
}

static void multiply_samples(const struct call *call, const struct recurrent_sizes *z, int64_t rows)
{
    const struct recurrent_attributes *a = call->node->attributes;
    const float *dz = call->input[RECURRENT_DZ], *extra = call->input[RECURRENT_WEIGHT_EXTRA];
    int64_t same = (extra ? 2 : z->gates) * z->units, first = a->reverse ? z->steps - 1 : 0;
    struct weight_product most = {.d_row = z->steps * z->columns, .columns = same, .steps = rows};
    struct weight_product last = {.d_row = z->steps * z->units, .column = same, .columns = z->units, .steps = rows};
    bool add = call->add;
    for (int64_t t = 0; t < z->steps; t++) {
        if (t == first && !call->input[RECURRENT_WEIGHT_H0])
            continue;
        multiply_step(call, z, &most, dz, t, add);
        if (a->kind == RECURRENT_GRU)
            multiply_step(call, z, &last, extra, t, add);
        add = true;
    }
    if (!add)
        memset(call->output[0], 0, (size_t)(z->units * z->columns) * sizeof(float));
    if (a->kind == RECURRENT_GRU_BEFORE)
        multiply_inner(call, z, extra, dz, rows * z->steps, call->add);
}

/* Both rows of dbias, of one sample: they differ where what flows into the kernel does. */
static void add_bias(const struct call *call, const struct recurrent_sizes *z, int64_t n)
{
    float *restrict direct = call->output[1], *restrict inner = direct + z->columns;
    const float *dz = (const float *)call->input[RECURRENT_DZ] + n * z->steps * z->columns;
    const float *extra = call->input[RECURRENT_WEIGHT_EXTRA];
    float *restrict sums = (float *)call->scratch;
    int64_t both = extra ? 2 * z->units : z->columns, units = z->columns - both;
    memset(sums, 0, (size_t)(z->columns + units) * sizeof *sums);
    for (int64_t t = 0; t < z->steps; t++) {
        const float *row = dz + t * z->columns;
        for (int64_t j = 0; j < z->columns; j++)
            sums[j] += row[j];
        for (int64_t u = 0; u < units; u++)
            sums[z->columns + u] += extra[(n * z->steps + t) * units + u];
    }
    for (int64_t j = 0; j < z->columns; j++) {
        direct[j] += sums[j];
        inner[j] += sums[j < both ? j : j + units];
    }
}

RUNNER(run_recurrent_weight_gradient)
{
    const struct recurrent_attributes *a = call->node->attributes;
    struct recurrent_sizes z = recurrent_sizes(call->node);
    int64_t rows = cpu_rows(kernel, call);
    if (!call->add) {
        memset(call->output[1], 0, (size_t)(2 * z.columns) * sizeof(float));
        if (rows == 0)
            memset(call->output[0], 0, (size_t)(z.units * z.columns) * sizeof(float));
    }
    bool by_steps = cpu_kernel_of(kernel)->size[0];
    if (by_steps && rows > 0)
        multiply_samples(call, &z, rows);
    for (int64_t n = 0; n < rows; n++) {
        if (!by_steps)
            multiply_sample(call, &z, n, call->add || n > 0);
        if (a->bias)
            add_bias(call, &z, n);
    }
}

MAKER(make_recurrent_weight_gradient)
{
    const struct recurrent_attributes *attributes = node->attributes;
    if (!recurrent_takes(node))
        return false;
    struct recurrent_sizes z = recurrent_sizes(node);
    int64_t floats = GEMM_ROOM, bias = z.columns + z.units;
    if (attributes->dropout > 0)
        floats += z.steps * z.units + (z.columns + NOISE_CHUNK - 1) / NOISE_CHUNK * NOISE_CHUNK;
    out->kernel.scratch_bytes = (size_t)(floats > bias ? floats : bias) * sizeof(float);
    bool few = z.steps <= FEW_STEPS && (request->asked->slice == 0 || z.steps <= request->asked->slice);
    out->size[0] = few && attributes->dropout == 0; /* step by step */
    return true;
}
