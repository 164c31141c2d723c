/* cpu_group_normalize.c - group normalisation, a sample after the other: sums by
   channel, from them the figures of groups, from those tables of a run for one pass
   over the sample. size[3]: groups. */
#include <math.h>

#include "backends/cpu/rows/cpu_channels.h"
#include "ops/ops.h"

/* Scratch: doubles twice a run, then tables; for backward a block of floats twice a run besides. */
static bool make(struct cpu_kernel *out, const struct node *node, int floats)
{
    const struct group_normalize_attributes *attributes = node->attributes;
    if (!cpu_inputs_f32(node))
        return false;
    set_sizes(out, node->input[0]);
    out->size[3] = attributes->groups;
    out->kernel.scratch_bytes = (size_t)out->size[2] * (2 * sizeof(double) + (size_t)floats * sizeof(float));
    return true;
}

MAKER(make_group_normalize)
{
    return make(out, node, TABLE_SHIFT + 1);
}

MAKER(make_group_normalize_gradient)
{
    return make(out, node, TABLES + 2);
}

static double group_values(const int64_t *size)
{
    return (double)(size[0] / size[3]);
}

/* Of the channels of group `group`: the folded sums of a run's table, each times its factor. */
static double group_sum(const double *sum, const int64_t *size, int64_t group, const float *factor)
{
    int64_t channels = size[1] / size[3];
    double total = 0;
    for (int64_t k = group * channels; k < (group + 1) * channels; k++)
        total += folded(sum, k, size[1], size[2]) * (factor ? (double)factor[k] : 1);
    return total;
}

/* statistics: mean and rate of each group, from the moments. */
static void measure(float *statistics, const double *sum, const int64_t *size, double epsilon)
{
    double values = group_values(size);
    for (int64_t group = 0; group < size[3]; group++) {
        double mean = group_sum(sum, size, group, NULL) / values;
        double variance = group_sum(sum + size[2], size, group, NULL) / values - mean * mean;
        statistics[2 * group] = (float)mean;
        statistics[2 * group + 1] = (float)(1 / sqrt((variance < 0 ? 0 : variance) + epsilon));
    }
}

static void fill(float *tables, const int64_t *size, const float *statistics, const float *gamma, const float *beta)
{
    int64_t channels = size[1] / size[3];
    for (int64_t k = 0; k < size[1]; k++) {
        const float *figures = statistics + 2 * (k / channels);
        put_table(tables, TABLE_MEAN, size, k, (double)figures[0]);
        put_table(tables, TABLE_SCALE, size, k, (double)figures[1] * (gamma ? (double)gamma[k] : 1));
        put_table(tables, TABLE_SHIFT, size, k, beta ? (double)beta[k] : 0);
    }
}

RUNNER(run_group_normalize)
{
    const struct group_normalize_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t samples = cpu_rows(kernel, call), run = size[2];
    const float *x = call->input[0];
    float *y = call->output[0], *statistics = call->output[1];
    double *sum = call->scratch;
    float *tables = (float *)(sum + 2 * run);
    for (int64_t s = 0; s < samples; s++, x += size[0], y += size[0], statistics += 2 * size[3]) {
        sum_moments(sum, x, run, size[0], false);
        measure(statistics, sum, size, attributes->epsilon);
        fill(tables, size, statistics, call->input[1], call->input[2]);
        normalize(y, x, tables, run, size[0], ACTIVATION_NONE);
    }
}

/* totals: of dy and, behind, of dy (x - mean), by place in the run. */
static void sum_back(double *totals, float *block, const float *dy, const float *x, const float *tables,
                     const int64_t *size)
{
    int64_t run = size[2], count = size[0];
    memset(totals, 0, (size_t)run * 2 * sizeof *totals);
    for (int64_t i = 0; i < count;) {
        memset(block, 0, (size_t)run * 2 * sizeof *block);
        for (int r = 0; r < BLOCK_RUNS && i < count; r++, i += run)
            add_run(block, block + run, dy + i, x + i, tables, run, count - i < run ? count - i : run, ACTIVATION_NONE);
        for (int64_t k = 0; k < 2 * run; k++)
            totals[k] += (double)block[k];
    }
}

/* dx = scale * dy + slope * (x - mean) + offset */
static void fill_back(float *tables, const int64_t *size, const double *totals, const float *statistics,
                      const float *gamma)
{
    int64_t channels = size[1] / size[3];
    double values = group_values(size);
    for (int64_t group = 0; group < size[3]; group++) {
        double rate = (double)statistics[2 * group + 1];
        double direct = group_sum(totals, size, group, gamma) / values;
        double normal = group_sum(totals + size[2], size, group, gamma) * rate / values;
        for (int64_t k = group * channels; k < (group + 1) * channels; k++) {
            put_table(tables, TABLE_SLOPE, size, k, -rate * rate * normal);
            put_table(tables, TABLE_OFFSET, size, k, -rate * direct);
        }
    }
}

static void share_sums(const struct call *call, const double *totals, const int64_t *size, const float *statistics,
                       bool add)
{
    int64_t channels = size[1] / size[3];
    float *dgamma = call->output[1], *dbeta = call->output[2];
    for (int64_t k = 0; k < size[1]; k++) {
        double rate = (double)statistics[2 * (k / channels) + 1];
        dgamma[k] = (add ? dgamma[k] : 0) + (float)(folded(totals + size[2], k, size[1], size[2]) * rate);
        dbeta[k] = (add ? dbeta[k] : 0) + (float)folded(totals, k, size[1], size[2]);
    }
}

RUNNER(run_group_normalize_gradient)
{
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t samples = cpu_rows(kernel, call), run = size[2];
    const float *dy = call->input[0], *x = call->input[1], *statistics = call->input[2], *gamma = call->input[3];
    float *dx = call->output[0];
    double *totals = call->scratch;
    float *tables = (float *)(totals + 2 * run), *block = tables + TABLES * run;
    for (int64_t s = 0; s < samples; s++, dy += size[0], x += size[0], dx += size[0], statistics += 2 * size[3]) {
        fill(tables, size, statistics, gamma, NULL);
        sum_back(totals, block, dy, x, tables, size);
        share_sums(call, totals, size, statistics, call->add || s > 0);
        fill_back(tables, size, totals, statistics, gamma);
        for (int64_t i = 0; i < size[0]; i += run)
            gradient_run(dx + i, dy + i, x + i, tables, run, size[0] - i < run ? size[0] - i : run, ACTIVATION_NONE);
    }
    if (samples == 0 && !call->add) {
        memset(call->output[1], 0, (size_t)size[1] * sizeof(float));
        memset(call->output[2], 0, (size_t)size[1] * sizeof(float));
    }
}
