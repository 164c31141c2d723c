/* cpu_update_quantized.c - Adam with states in a byte an element. */
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"
#include "ops/update/quantize.h"

RUNNER(run_adam_8bit)
{
    const double *control = call->input[2];
    int64_t row = cpu_kernel_of(kernel)->size[0], rows = cpu_rows(kernel, call);
    float *w = call->input[0], *scale = call->input[5];
    const float *g = call->input[1];
    int8_t *m = call->input[3];
    uint8_t *v = call->input[4];
    struct quantized_step k;
    if (control[CONTROL_APPLIES] == 0)
        return;
    quantized_numbers(&k, call->node, control);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t first = 0; first < row; first += QUANTIZED_BLOCK, scale += 2) {
            int64_t at = r * row + first, left = row - first, count = left < QUANTIZED_BLOCK ? left : QUANTIZED_BLOCK;
            const struct quantized_states states = {.m = m + at, .v = v + at, .scale = scale};
            quantized_adam(w + at, g + at, &states, count, (uint32_t)(call->begin * row + at), &k);
        }
}
