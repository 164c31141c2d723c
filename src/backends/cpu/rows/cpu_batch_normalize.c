/* cpu_batch_normalize.c - batch normalisation over rows of channels.

   Packs hold tables of what belongs to a channel (cpu_channels.h), made once an
   instruction. x, y and their gradients are f32, or bf16 as it lies (size[3], cpu_batch_normalize_pairs.c); what
   belongs to channels is f32. */
#include <math.h>

#include "backends/cpu/rows/cpu_batch_normalize_pairs.h"
#include "ops/ops.h"

/* The first `data` inputs and the output are f32, or all bf16; the others are f32. */
static bool normalize_takes(struct cpu_kernel *out, const struct node *node, int data, bool output)
{
    const struct shape *x = &node->input[0]->shape;
    enum type type = node->input[0]->type;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type != (i < data ? type : TYPE_F32))
            return false;
    set_sizes(out, node->input[0]);
    out->size[3] = type == TYPE_BF16;
    if (type == TYPE_BF16)
        out->size[2] = paired_run(x->dim[x->rank - 1]);
    return (type == TYPE_F32 || (type == TYPE_BF16 && out->size[2] <= LONGEST_PAIRED)) &&
           (!output || node->output[0]->type == type);
}

/* ---- moments and statistics --------------------------------------------- */

MAKER(make_batch_moments)
{
    if (!normalize_takes(out, node, 1, false))
        return false;
    out->kernel.scratch_bytes = (size_t)out->size[2] * 2 * sizeof(double);
    return true;
}

RUNNER(run_batch_moments)
{
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t width = size[1], run = size[2];
    double *sum = call->scratch, *squares = sum + run, *mean = call->output[0], *square = call->output[1];
    double share = 1 / ((double)call->count * (double)(size[0] / width));
    if (size[3])
        sum_moments(sum, call->input[0], run, cpu_rows(kernel, call) * size[0], true);
    else
        sum_moments(sum, call->input[0], run, cpu_rows(kernel, call) * size[0], false);
    for (int64_t k = 0; k < width; k++) {
        mean[k] = (call->add ? mean[k] : 0) + folded(sum, k, width, run) * share;
        square[k] = (call->add ? square[k] : 0) + folded(squares, k, width, run) * share;
    }
}

MAKER(make_batch_statistics)
{
    return node->output[0]->type == TYPE_F32;
}

RUNNER(run_batch_statistics)
{
    int64_t count = cpu_rows(kernel, call);
    const double *moment = call->input[0], *square = call->input[1];
    float *mean = call->output[0], *variance = call->output[1];
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        double left = square[i] - moment[i] * moment[i];
        mean[i] = (float)moment[i];
        variance[i] = left < 0 ? 0 : (float)left;
    }
}

RUNNER(run_batch_moving)
{
    const struct batch_moving_attributes *attributes = call->node->attributes;
    int64_t count = cpu_elements(kernel, call);
    float keep = (float)attributes->momentum, take = (float)(1 - attributes->momentum);
    for (int k = 0; k < 2; k++) {
        float *moving = call->input[k];
        const float *now = call->input[k + 2];
        INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            moving[i] = moving[i] * keep + now[i] * take;
    }
}

/* ---- tables -------------------------------------------------------------- */

static void set_entry(float *tables, enum table table, const int64_t *size, int64_t channel, double value)
{
    for (int64_t i = channel; i < size[2]; i += size[1])
        tables[table * size[2] + (size[3] ? pair_place(i) : i)] = (float)value;
}

/* Inputs from x on: x, mean, variance, gamma, beta. */
static double scale_of(const struct call *call, int x, int64_t channel)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    const float *variance = call->input[x + 2], *gamma = call->input[x + 3];
    return (gamma ? (double)gamma[channel] : 1) / sqrt((double)variance[channel] + attributes->epsilon);
}

static void fill_tables(const struct kernel *kernel, const struct call *call, int x, float *tables)
{
    const int64_t *size = cpu_kernel_of(kernel)->size;
    const float *mean = call->input[x + 1], *beta = call->input[x + 4];
    for (int64_t k = 0; k < size[1]; k++) {
        set_entry(tables, TABLE_MEAN, size, k, mean[k]);
        set_entry(tables, TABLE_SCALE, size, k, scale_of(call, x, k));
        set_entry(tables, TABLE_SHIFT, size, k, beta ? beta[k] : 0);
    }
}

PACKER(pack_forward)
{
    fill_tables(kernel, whole, 0, pack);
}

PACKER(pack_sums)
{
    fill_tables(kernel, whole, 1, pack);
}

/* dx = scale * dz + slope * (x - mean) + offset, where the last two are 0 when mean and variance are constants. */
PACKER(pack_backward)
{
    const struct batch_normalize_attributes *attributes = whole->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    const float *variance = whole->input[3], *dgamma = whole->input[6], *dbeta = whole->input[7];
    double values = (double)whole->count * (double)(size[0] / size[1]);
    fill_tables(kernel, whole, 1, pack);
    for (int64_t k = 0; k < size[1]; k++) {
        double scale = scale_of(whole, 1, k), rate = 1 / sqrt((double)variance[k] + attributes->epsilon);
        set_entry(pack, TABLE_SLOPE, size, k, dgamma ? -scale * rate * (double)dgamma[k] / values : 0);
        set_entry(pack, TABLE_OFFSET, size, k, dbeta ? -scale * (double)dbeta[k] / values : 0);
    }
}

/* ---- forward ------------------------------------------------------------- */

MAKER(make_batch_normalize)
{
    if (!normalize_takes(out, node, 1, true))
        return false;
    cpu_set_pack(out, pack_forward, 1, (size_t)out->size[2] * (TABLE_SHIFT + 1) * sizeof(float));
    return true;
}

static void normalize_small(const struct call *call, int64_t run, int64_t count)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    enum activation act = attributes->activation;
    uint16_t *y = call->output[0];
    const uint16_t *x = call->input[0];
    for (int64_t i = 0; i < count; i += run)
        VARIANT(normalize_pairs)(y + i, x + i, call->pack, run, count - i < run ? count - i : run, act);
}

RUNNER(run_batch_normalize)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t count = cpu_rows(kernel, call) * size[0];
    if (size[3]) {
        normalize_small(call, size[2], count);
        return;
    }
    BY_ACTIVATION(attributes->activation, normalize, call->output[0], call->input[0], call->pack, size[2], count);
}

/* ---- backward ------------------------------------------------------------ */

/* size[2] floats twice for a block, then doubles twice for the slice. */
MAKER(make_batch_normalize_sums)
{
    if (!normalize_takes(out, node, 2, false))
        return false;
    out->kernel.scratch_bytes = (size_t)out->size[2] * 2 * (sizeof(float) + sizeof(double));
    cpu_set_pack(out, pack_sums, 1, (size_t)out->size[2] * (TABLE_SHIFT + 1) * sizeof(float));
    return true;
}

/* Elements i... of a slice. */
static void add_elements(float *block, const struct call *call, int64_t i, int64_t run, int64_t length, bool small)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    enum activation act = attributes->activation;
    const void *dy = element_of(call->input[0], i, small), *x = element_of(call->input[1], i, small);
    if (small)
        VARIANT(add_pairs_of_sums)(block, dy, x, call->pack, run, length, act);
    else
        BY_ACTIVATION(act, add_run, block, block + run, dy, x, call->pack, run, length);
}

/* totals[0, run): of dz; [run, 2 run): of dz (x - mean). */
static void sum_slice(double *totals, float *block, const struct call *call, int64_t run, int64_t count, bool small)
{
    memset(totals, 0, (size_t)run * 2 * sizeof *totals);
    for (int64_t i = 0; i < count;) {
        memset(block, 0, (size_t)run * 2 * sizeof *block);
        for (int r = 0; r < BLOCK_RUNS && i < count; r++, i += run)
            add_elements(block, call, i, run, count - i < run ? count - i : run, small);
        for (int64_t k = 0; k < 2 * run; k++)
            totals[k] += (double)block[k];
    }
}

static double total_of(const double *sum, const int64_t *size, int64_t channel)
{
    double total = 0;
    if (!size[3])
        return folded(sum, channel, size[1], size[2]);
    for (int64_t i = channel; i < size[2]; i += size[1])
        total += sum[pair_place(i)];
    return total;
}

RUNNER(run_batch_normalize_sums)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t width = size[1], run = size[2];
    double *totals = call->scratch;
    float *dgamma = call->output[0], *dbeta = call->output[1];
    const float *variance = call->input[3];
    sum_slice(totals, (float *)(totals + 2 * run), call, run, cpu_rows(kernel, call) * size[0], size[3] != 0);
    for (int64_t k = 0; k < width; k++) {
        double rate = 1 / sqrt((double)variance[k] + attributes->epsilon);
        dgamma[k] = (call->add ? dgamma[k] : 0) + (float)(total_of(totals + run, size, k) * rate);
        dbeta[k] = (call->add ? dbeta[k] : 0) + (float)total_of(totals, size, k);
    }
}

MAKER(make_batch_normalize_gradient)
{
    if (!normalize_takes(out, node, 2, true))
        return false;
    cpu_set_pack(out, pack_backward, 1, (size_t)out->size[2] * TABLES * sizeof(float));
    return true;
}

static void gradient_small(const struct call *call, int64_t run, int64_t count)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    enum activation act = attributes->activation;
    uint16_t *dx = call->output[0];
    const uint16_t *dy = call->input[0], *x = call->input[1];
    for (int64_t i = 0; i < count; i += run)
        VARIANT(gradient_pairs)(dx + i, dy + i, x + i, call->pack, run, count - i < run ? count - i : run, act);
}

RUNNER(run_batch_normalize_gradient)
{
    const struct batch_normalize_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t run = size[2], count = cpu_rows(kernel, call) * size[0];
    const float *dy = call->input[0], *x = call->input[1];
    float *dx = call->output[0];
    if (size[3]) {
        gradient_small(call, run, count);
        return;
    }
    for (int64_t i = 0; i < count; i += run) {
        int64_t length = count - i < run ? count - i : run;
        BY_ACTIVATION(attributes->activation, gradient_run, dx + i, dy + i, x + i, call->pack, run, length);
    }
}
