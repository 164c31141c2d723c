/* cpu_standardize.c - given means and deviations, over runs of channels. */
#include "backends/cpu/cpu_channels.h"
#include "ops/ops.h"

/* Tables of a run: the mean, then the deviation. */
static void pack_given(const struct kernel *kernel, const struct call *whole, int unit, void *pack)
{
    const struct standardize_attributes *attributes = whole->node->attributes;
    const int64_t *size = cpu_kernel_of(kernel)->size;
    (void)unit;
    for (int64_t k = 0; k < size[1]; k++) {
        put_table(pack, TABLE_MEAN, size, k, attributes->mean ? (double)attributes->mean[k] : 0);
        put_table(pack, TABLE_SCALE, size, k, (double)attributes->deviation[k]);
    }
}

MAKER(make_standardize)
{
    const struct standardize_attributes *attributes = request->node->attributes;
    (void)error;
    if (!all_single(request->node))
        return PLIM_OK;
    out->size[0] = shape_row(&request->node->input[0]->shape);
    out->size[1] = attributes->count;
    out->size[2] = out->size[1] * ((LEAST_RUN + out->size[1] - 1) / out->size[1]);
    out->kernel.pack = pack_given;
    out->kernel.pack_units = 1;
    out->kernel.pack_bytes = (size_t)out->size[2] * 2 * sizeof(float);
    out->kernel.run = entry->run;
    return PLIM_OK;
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
