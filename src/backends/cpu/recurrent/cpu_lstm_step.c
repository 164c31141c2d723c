/* cpu_lstm_step.c - one step of an LSTM: place by place, each with its row of gates. */
#include <string.h>

#include "backends/cpu/recurrent/cpu_recurrent.h"

/* Scratch: zeros in the place of what is absent, and rows of a place in the making. */
#define STEP_ROWS 10 /* of U floats */

MAKER(make_lstm_step)
{
    if (!recurrent_takes(node))
        return false;
    const struct shape *gates = &node->output[0]->shape;
    out->size[1] = gates->dim[gates->rank - 1] / 4;
    out->size[0] = shape_row(gates) / (4 * out->size[1]);
    out->kernel.scratch_bytes = STEP_ROWS * (size_t)out->size[1] * sizeof(float);
    return true;
}

static const float *row_at(const struct call *call, int input, int64_t at, const float *zeros)
{
    bool there = input < call->node->input_count && call->node->input[input];
    return there ? (const float *)call->input[input] + at : zeros;
}

RUNNER(run_lstm_step)
{
    const struct lstm_step_attributes *a = call->node->attributes;
    const int64_t units = cpu_kernel_of(kernel)->size[1], places = cpu_elements(kernel, call);
    float *zeros = call->scratch, *value = zeros + 4 * units;
    memset(zeros, 0, 4 * (size_t)units * sizeof *zeros);
    for (int64_t p = 0; p < places; p++) {
        const float *x = row_at(call, LSTM_STEP_X, 4 * p * units, zeros);
        const float *product = row_at(call, LSTM_STEP_PRODUCT, 4 * p * units, zeros);
        const float *before = row_at(call, LSTM_STEP_C, p * units, zeros);
        float *gates = (float *)call->output[RECURRENT_GATES] + 4 * p * units;
        float *h = (float *)call->output[RECURRENT_H] + p * units;
        float *c = (float *)call->output[RECURRENT_EXTRA] + p * units;
        activate_sum(a->recurrent_activation, gates, x, product, 2 * units);
        activate_sum(a->activation, gates + 2 * units, x + 2 * units, product + 2 * units, units);
        activate_sum(a->recurrent_activation, gates + 3 * units, x + 3 * units, product + 3 * units, units);
        INDEPENDENT
        for (int64_t u = 0; u < units; u++)
            c[u] = madd(gates[units + u], before[u], gates[u] * gates[2 * units + u]);
        activate_sum(a->activation, value, c, zeros, units);
        multiply_row(h, gates + 3 * units, value, units);
    }
}

/* Rows of one place. */
struct step_back_rows {
    const float *dh, *gates, *c, *dc, *before;
    float *dz, *before_d;
};

INLINE void step_back_row(const struct lstm_step_attributes *a, const struct step_back_rows *r, const float *zeros,
                          float *dz, float *value, float *d, int64_t units)
{
    const float *gates = r->gates, *dh = r->dh, *dc = r->dc, *before = r->before;
    float *before_d = r->before_d;
    activate_sum(a->activation, value, r->c, zeros, units);
    multiply_row(d, dh, gates + 3 * units, units);
    multiply_slope(a->activation, d, value, units);
    INDEPENDENT
    for (int64_t u = 0; u < units; u++) {
        float all = d[u] + dc[u];
        dz[u] = all * gates[2 * units + u];
        dz[units + u] = all * before[u];
        dz[2 * units + u] = all * gates[u];
        dz[3 * units + u] = dh[u] * value[u];
        before_d[u] = all * gates[units + u];
    }
    multiply_slope(a->recurrent_activation, dz, gates, 2 * units);
    multiply_slope(a->activation, dz + 2 * units, gates + 2 * units, units);
    multiply_slope(a->recurrent_activation, dz + 3 * units, gates + 3 * units, units);
    memcpy(r->dz, dz, 4 * (size_t)units * sizeof *dz); /* where the gates are, perhaps */
}

RUNNER(run_lstm_step_gradient)
{
    const struct lstm_step_attributes *a = call->node->attributes;
    const int64_t units = cpu_kernel_of(kernel)->size[1], places = cpu_elements(kernel, call);
    float *zeros = call->scratch, *dz = zeros + 4 * units, *value = dz + 4 * units, *d = value + units;
    memset(zeros, 0, 4 * (size_t)units * sizeof *zeros);
    for (int64_t p = 0; p < places; p++) {
        const struct step_back_rows rows = {
            .dh = row_at(call, LSTM_STEP_DH, p * units, zeros),
            .gates = row_at(call, LSTM_STEP_GATES, 4 * p * units, zeros),
            .c = row_at(call, LSTM_STEP_DONE_C, p * units, zeros),
            .dc = row_at(call, LSTM_STEP_DC, p * units, zeros),
            .before = row_at(call, LSTM_STEP_BEFORE, p * units, zeros),
            .dz = (float *)call->output[0] + 4 * p * units,
            .before_d = (float *)call->output[1] + p * units,
        };
        step_back_row(a, &rows, zeros, dz, value, d, units);
    }
}
