/* cpu_layer_normalize.c - normalising rows: sums over a row as vectors, in f64
   from block to block, then one pass that writes.

   size[0]: elements of a sample, size[1]: of a row, size[2]: figures a row. Pack, where
   gamma or beta is absent: a row of ones, a row of zeros. Small floats: a row at a time in f32. */
#include <math.h>

#include "backends/cpu/cpu_own.h"
#include "backends/cpu/cpu_row_sums.h"
#include "backends/cpu/cpu_rows.h"
#include "ops/ops.h"

#define BLOCK_ROWS 32 /* rows whose dgamma and dbeta are added before they go into the sum */

PACKER(pack_constants)
{
    int64_t width = cpu_kernel_of(kernel)->size[1];
    float *ones = pack, *zeros = ones + width;
    for (int64_t i = 0; i < width; i++) {
        ones[i] = 1;
        zeros[i] = 0;
    }
}

/* `rows`: so many inputs are rows, and may be small. */
static bool make(struct cpu_kernel *out, const struct node *node, const struct layer_normalize_attributes *attributes,
                 bool absent, int rows)
{
    const struct shape *shape = &node->input[0]->shape;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && node->input[i]->type != TYPE_F32 && (i >= rows || !row_type(node->input[i]->type)))
            return false;
    if (!row_type(node->output[0]->type) || node->output[1]->type != TYPE_F32)
        return false;
    out->size[0] = shape_row(shape);
    out->size[1] = 1;
    for (int64_t i = 0; i < attributes->axes; i++)
        out->size[1] *= shape->dim[shape->rank - 1 - i];
    out->size[2] = attributes->kind == NORMAL_LAYER ? 2 : 1;
    if (absent)
        cpu_set_pack(out, pack_constants, 1, (size_t)out->size[1] * 2 * sizeof(float));
    bool small = node->output[0]->type != TYPE_F32;
    for (int i = 0; i < rows; i++)
        small |= node->input[i]->type != TYPE_F32;
    out->kernel.scratch_bytes = small ? (size_t)(out->size[1] * rows) * sizeof(float) : 0;
    return true;
}

MAKER(make_layer_normalize)
{
    return make(out, node, node->attributes, !node->input[1] || !node->input[2], 1);
}

MAKER(make_layer_normalize_gradient)
{
    const struct layer_normalize_gradient_attributes *attributes = node->attributes;
    if (!make(out, node, &attributes->layer, !node->input[3], 2))
        return false;
    if (attributes->sums)
        out->kernel.scratch_bytes += (size_t)out->size[1] * 2 * sizeof(float);
    return true;
}

/* ---- sums over a row ----------------------------------------------------- */

/* Of g = dy * gamma, and of g * (x - mean). */
static void sums_of_row(double sums[2], const float *dy, const float *x, const float *gamma, int64_t count, float mean)
{
    vector middle = vector_all(mean);
    sums[0] = sums[1] = 0;
    for (int64_t i = 0; i < count;) {
        int64_t end = count - i < SUM_BLOCK ? count : i + SUM_BLOCK;
        vector direct[2] = {vector_all(0), vector_all(0)}, centred[2] = {vector_all(0), vector_all(0)};
        float rest[2] = {0, 0};
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            UNROLL
            for (int way = 0; way < 2; way++) {
                vector g = vector_load(dy + i + way * LANES) * vector_load(gamma + i + way * LANES);
                direct[way] += g;
                centred[way] = vector_madd(g, vector_load(x + i + way * LANES) - middle, centred[way]);
            }
        }
        for (; i < end; i++) {
            rest[0] = madd(dy[i], gamma[i], rest[0]);
            rest[1] = madd(dy[i] * gamma[i], x[i] - mean, rest[1]);
        }
        sums[0] += (double)vector_sum(direct[0] + direct[1]) + (double)rest[0];
        sums[1] += (double)vector_sum(centred[0] + centred[1]) + (double)rest[1];
    }
}

/* ---- forward ------------------------------------------------------------- */

/* The mean in two steps: what rounding to f32 left is taken from the squares. */
static void measure(float *mean, float *rate, const float *x, int64_t width,
                    const struct layer_normalize_attributes *attributes)
{
    double exact = attributes->kind == NORMAL_LAYER ? sum_of_row(x, width) / (double)width : 0;
    *mean = (float)exact;
    double squares = squares_of_row(x, width, *mean), left = exact - (double)*mean;
    if (attributes->kind == NORMAL_UNIT) {
        double bound = 1 / attributes->epsilon, whole = 1 / sqrt(squares);
        *rate = (float)(whole < bound ? whole : squares == squares ? bound : squares);
        return;
    }
    double variance = squares / (double)width - left * left;
    *rate = (float)(1 / sqrt((variance < 0 ? 0 : variance) + attributes->epsilon));
}

RUNNER(run_layer_normalize)
{
    const struct layer_normalize_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t width = size[1], rows = cpu_rows(kernel, call) * (size[0] / width);
    const float *constants = call->pack;
    const float *gamma = call->input[1] ? call->input[1] : constants;
    const float *beta = call->input[2] ? call->input[2] : constants + width;
    enum type from = call->node->input[0]->type, to = call->node->output[0]->type;
    float *statistics = call->output[1];
    for (int64_t row = 0; row < rows; row++, statistics += size[2]) {
        float mean, rate, *y = row_out(call->output[0], to, row * width, call->scratch);
        const float *x = row_in(call->input[0], from, row * width, width, call->scratch);
        measure(&mean, &rate, x, width, attributes);
        INDEPENDENT
        for (int64_t i = 0; i < width; i++)
            y[i] = madd((x[i] - mean) * rate, gamma[i], beta[i]);
        row_done(call->output[0], to, row * width, width, y);
        statistics[0] = mean;
        statistics[size[2] - 1] = rate;
    }
}

/* ---- backward ------------------------------------------------------------ */

/* Adds a row's share of dgamma and dbeta, before dx takes the place of dy. */
static void add_row(float *restrict dgamma, float *restrict dbeta, const float *dy, const float *x, int64_t width,
                    float mean, float rate)
{
    for (int64_t i = 0; i < width; i++) {
        dgamma[i] = madd(dy[i], (x[i] - mean) * rate, dgamma[i]);
        dbeta[i] += dy[i];
    }
}

/* `first`: overwrite what is there. */
static void flush(const struct call *call, float *restrict block, int64_t width, bool first)
{
    for (int k = 0; k < 2; k++) {
        float *restrict sum = call->output[1 + k];
        for (int64_t i = 0; i < width; i++)
            sum[i] = (first ? 0 : sum[i]) + block[k * width + i];
    }
    memset(block, 0, (size_t)width * 2 * sizeof *block);
}

/* dx = rate * g + slope * (x - mean) + offset */
static void row_back(float *dx, const float *dy, const float *x, const float *gamma, int64_t width,
                     const float *figures, const struct layer_normalize_attributes *attributes)
{
    float mean = attributes->kind == NORMAL_LAYER ? figures[0] : 0;
    float rate = figures[attributes->kind == NORMAL_LAYER];
    double sums[2], wide = (double)rate, values = (double)width;
    sums_of_row(sums, dy, x, gamma, width, mean);
    if (attributes->kind == NORMAL_UNIT)
        values = wide * attributes->epsilon >= 1 ? HUGE_VAL : 1; /* the rate was the bound: no slope */
    float slope = (float)(-wide * wide * wide * sums[1] / values);
    float offset = attributes->kind == NORMAL_LAYER ? (float)(-wide * sums[0] / values) : 0;
    INDEPENDENT
    for (int64_t i = 0; i < width; i++)
        dx[i] = madd(dy[i] * gamma[i], rate, madd(slope, x[i] - mean, offset));
}

RUNNER(run_layer_normalize_gradient)
{
    const struct layer_normalize_gradient_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t width = size[1], rows = cpu_rows(kernel, call) * (size[0] / width), held = 0;
    const float *figures = call->input[2], *gamma = call->input[3] ? call->input[3] : call->pack;
    const enum type types[] = {call->node->input[0]->type, call->node->input[1]->type, call->node->output[0]->type};
    float *block = call->scratch, *room = room_from(block, attributes->sums ? 2 * width : 0);
    bool first = !call->add;
    if (attributes->sums)
        memset(block, 0, (size_t)width * 2 * sizeof *block);
    for (int64_t row = 0; row < rows; row++, figures += size[2]) {
        const float *dy = row_in(call->input[0], types[0], row * width, width, room);
        const float *x = row_in(call->input[1], types[1], row * width, width, room_from(room, width));
        float *dx = row_out(call->output[0], types[2], row * width, room);
        if (attributes->sums)
            add_row(block, block + width, dy, x, width, size[2] == 2 ? figures[0] : 0, figures[size[2] - 1]);
        row_back(dx, dy, x, gamma, width, figures, &attributes->layer);
        row_done(call->output[0], types[2], row * width, width, dx);
        if (attributes->sums && ++held == BLOCK_ROWS) {
            flush(call, block, width, first);
            first = false;
            held = 0;
        }
    }
    if (attributes->sums && (held || first))
        flush(call, block, width, first);
    for (int k = 1; k < 3 && !attributes->sums && first; k++)
        memset(call->output[k], 0, (size_t)width * sizeof(float));
}
