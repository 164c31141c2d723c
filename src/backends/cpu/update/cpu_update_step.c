/* cpu_update_step.c - what a step does once, decays, averages and sums of
   gradients. */
#include <math.h>

#include "backends/cpu/cpu_math.h"
#include "backends/cpu/cpu_own.h"
#include "ops/ops.h"

/* A handful of numbers a step: the plain code is the kernel. */
MAKER(make_once)
{
    return true;
}

RUNNER(run_once)
{
    (void)kernel;
    call->node->op->reference(call);
}

RUNNER(run_decay_weight)
{
    const double *control = call->input[1];
    int64_t count = cpu_elements(kernel, call);
    double numbers[UPDATE_NUMBERS];
    update_numbers(numbers, call->node, control, 0);
    float *w = call->input[0], decay = (float)numbers[UPDATE_NUMBERS - 1];
    for (int64_t i = 0; i < count && control[CONTROL_APPLIES] != 0; i++)
        w[i] = madd(w[i], -decay, w[i]);
}

RUNNER(run_assign)
{
    const struct assign_attributes *attributes = call->node->attributes;
    int64_t count = cpu_elements(kernel, call);
    const float *restrict value = call->input[1];
    float *restrict state = call->input[0];
    if (assign_broadcasts(call->node)) {
        for (int64_t i = 0; i < count; i++)
            state[i] = attributes->adds ? state[i] + *value : *value;
        return;
    }
    if (!attributes->adds) {
        memcpy(state, value, (size_t)count * sizeof *state);
        return;
    }
    INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        state[i] += value[i];
}

RUNNER(run_state_read)
{
    memcpy(call->output[0], call->input[0], (size_t)cpu_elements(kernel, call) * sizeof(float));
}

RUNNER(run_state_write)
{
    memcpy(call->input[0], call->input[1], (size_t)cpu_elements(kernel, call) * sizeof(float));
}

RUNNER(run_accumulate_gradient)
{
    const struct accumulate_attributes *attributes = call->node->attributes;
    const double *control = call->input[1];
    int64_t count = cpu_elements(kernel, call);
    const float *g = call->input[0];
    float *restrict sum = call->input[2], *y = call->output[0];
    float share = 1.0f / (float)attributes->steps;
    bool runs = control[CONTROL_RUNS] != 0, applies = control[CONTROL_APPLIES] != 0;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        float total = runs ? sum[i] + g[i] : sum[i];
        sum[i] = applies ? 0 : total;
        y[i] = total * share;
    }
}

RUNNER(run_moving_average)
{
    const struct average_attributes *attributes = call->node->attributes;
    const double *control = call->input[2];
    int64_t count = cpu_elements(kernel, call), t = (int64_t)control[CONTROL_STEP];
    double keep = t > 1 ? attributes->momentum : 0;
    float *restrict w = call->input[0], *restrict average = call->input[1];
    float kept = (float)keep, taken = (float)(1 - keep);
    if (control[CONTROL_RUNS] == 0)
        return;
    for (int64_t i = 0; i < count; i++)
        average[i] = kept * average[i] + taken * w[i];
    if (attributes->overwrite > 0 && t % attributes->overwrite == 0)
        memcpy(w, average, (size_t)count * sizeof *w);
}

/* All bits of the exponent: infinite, or no number. */
RUNNER(run_count_nonfinite)
{
    int64_t count = cpu_elements(kernel, call);
    const float *g = call->input[0];
    float *y = call->output[0];
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad += (bits_of(g[i]) & 0x7f800000) == 0x7f800000;
    *y = (call->add ? *y : 0) + (float)bad;
}
