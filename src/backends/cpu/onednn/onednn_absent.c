/* onednn_absent.c - built where oneDNN's headers are not: no convolution is
   ever made, and the reference runs. */
#include "backends/cpu/onednn/onednn.h"

#include "base/status.h"

plim_status onednn_open(struct onednn **out, struct budget *budget, plim_error *error)
{
    (void)out, (void)budget;
    return fail(error, PLIM_UNSUPPORTED, "built without oneDNN");
}

void onednn_close(struct onednn *library)
{
    (void)library;
}

const char *onednn_version(const struct onednn *library)
{
    (void)library;
    return "";
}

plim_status convolution_make(struct convolution **out, struct onednn *library, const struct convolution_sizes *sizes,
                             const int64_t *lengths, int length_count, int contexts, plim_error *error)
{
    (void)out, (void)library, (void)sizes, (void)lengths, (void)length_count, (void)contexts;
    return fail(error, PLIM_UNSUPPORTED, "built without oneDNN");
}

void convolution_free(struct convolution *convolution)
{
    (void)convolution;
}

const char *convolution_implementation(const struct convolution *convolution)
{
    (void)convolution;
    return "";
}

size_t convolution_layout_bytes(const struct convolution *convolution)
{
    (void)convolution;
    return 0;
}

size_t convolution_scratch_bytes(const struct convolution *convolution)
{
    (void)convolution;
    return 0;
}

plim_status convolution_run(const struct convolution *convolution, int64_t samples,
                            const struct convolution_operands *operands)
{
    (void)convolution, (void)samples, (void)operands;
    return PLIM_INTERNAL;
}

plim_status convolution_pack(const struct convolution *convolution, void *layout, const float *hwio)
{
    (void)convolution, (void)layout, (void)hwio;
    return PLIM_INTERNAL;
}

plim_status convolution_unpack(const struct convolution *convolution, float *hwio, const void *layout, bool add)
{
    (void)convolution, (void)hwio, (void)layout, (void)add;
    return PLIM_INTERNAL;
}
