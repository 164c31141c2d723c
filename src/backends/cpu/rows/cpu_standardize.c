/* cpu_standardize.c - given means and deviations, over runs of channels. */
#include "backends/cpu/rows/cpu_channels.h"
#include "ops/ops.h"

/* Tables of a run: the mean, then the deviation. */
PACKER(pack_given)
{
    const struct standardize_attributes *attributes = whole->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    for (int64_t k = 0; k < size[1]; k++) {
        put_table(pack, TABLE_MEAN, size, k, attributes->mean ? (double)attributes->mean[k] : 0);
        put_table(pack, TABLE_SCALE, size, k, (double)attributes->deviation[k]);
    }
}

MAKER(make_standardize)
{
    const struct standardize_attributes *attributes = node->attributes;
    if (!cpu_inputs_f32(node))
        return false;
    out->size[0] = shape_row(&node->input[0]->shape);
    out->size[1] = attributes->count;
    out->size[2] = out->size[1] * ((LEAST_RUN + out->size[1] - 1) / out->size[1]);
    cpu_set_pack(out, pack_given, 1, (size_t)out->size[2] * 2 * sizeof(float));
    return true;
}

RUNNER(run_standardize)
{
    const struct standardize_attributes *attributes = call->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    int64_t run = size[2], count = cpu_rows(kernel, call) * size[0];
    const float *x = call->input[0], *mean = call->pack, *deviation = mean + run;
    float *y = call->output[0];
    for (int64_t i = 0; i < count; i += run, x += run, y += run) {
        int64_t length = count - i < run ? count - i : run;
        if (attributes->invert) {
            INDEPENDENT
            for (int64_t k = 0; k < length; k++)
                y[k] = madd(x[k], deviation[k], mean[k]);
        } else {
            INDEPENDENT
            for (int64_t k = 0; k < length; k++)
                y[k] = (x[k] - mean[k]) / deviation[k];
        }
    }
}
