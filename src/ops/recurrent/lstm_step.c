/* lstm_step.c - one step of an LSTM, forward and backward. */
#include "ops/recurrent/recurrent_own.h"

static struct tensor *input_of(const struct node *node, int i)
{
    return i < node->input_count ? node->input[i] : NULL;
}

/* Gates are there, of so many units. */
static plim_status need_gates(int64_t *units, const struct node *node, int input, plim_error *error)
{
    const struct lstm_step_attributes *a = node->attributes;
    bool known = a->activation >= 0 && a->activation < RECURRENT_ACTIVATIONS && a->recurrent_activation >= 0 &&
                 a->recurrent_activation < RECURRENT_ACTIVATIONS;
    TRY(need_real(node, input, error));
    TRY(need_batched(node, input, error));
    int64_t columns = node->input[input]->shape.rank > 1 ? last_dim(node->input[input]) : 0;
    if (!known || columns < 4 || columns % 4)
        return misfit(node, error, "%lld columns do not make 4 gates, or an activation is not offered",
                      (long long)columns);
    *units = columns / 4;
    return PLIM_OK;
}

/* Like the gates, with so many columns; absent where it may be. */
static plim_status need_like(const struct node *node, int input, int gates, int64_t columns, plim_error *error)
{
    struct shape shape = node->input[gates]->shape;
    const struct tensor *x = input_of(node, input);
    shape.dim[shape.rank - 1] = columns;
    if (!x)
        return PLIM_OK;
    TRY(need_type(node, input, node->input[gates]->type, error));
    TRY(need_batched(node, input, error));
    if (!shape_equal(&x->shape, &shape))
        return misfit(node, error, "input %d does not go with the gates: %lld columns of the same places", input,
                      (long long)columns);
    return PLIM_OK;
}

static struct shape state_shape(const struct tensor *gates)
{
    struct shape shape = gates->shape;
    shape.dim[shape.rank - 1] /= 4;
    return shape;
}

/* Places of all samples of this slice. */
static int64_t places(const struct call *call, const struct tensor *gates)
{
    return call_rows(call, gates) * shape_row(&gates->shape) / last_dim(gates);
}

static double given(const struct call *call, int input, int64_t i)
{
    return call->node->input_count > input && call->node->input[input] ? get(call, input, i) : 0;
}

/* ---- lstm_step --------------------------------------------------------- */

static plim_status step_infer(struct graph *graph, struct node *node, plim_error *error)
{
    int64_t units = 0;
    TRY(need_gates(&units, node, LSTM_STEP_X, error));
    TRY(need_like(node, LSTM_STEP_PRODUCT, LSTM_STEP_X, 4 * units, error));
    TRY(need_like(node, LSTM_STEP_C, LSTM_STEP_X, units, error));
    const struct tensor *x = node->input[LSTM_STEP_X];
    output_like(graph, node, RECURRENT_GATES, x);
    output_of(graph, node, RECURRENT_H, x->type, state_shape(x), true);
    return output_of(graph, node, RECURRENT_EXTRA, x->type, state_shape(x), true);
}

static void step_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *gates = node->output[0];
    cut_rows(cut, node, gates, 8 * (double)shape_count(&gates->shape)); /* an activation is some multiply-adds */
}

static double run_gate(const struct call *call, int64_t at, int64_t activation)
{
    double y = recurrent_value(activation, get(call, LSTM_STEP_X, at) + given(call, LSTM_STEP_PRODUCT, at));
    set(call, RECURRENT_GATES, at, y);
    return y;
}

static void lstm_step_reference(const struct call *call)
{
    const struct lstm_step_attributes *a = call->node->attributes;
    const struct tensor *gates = call->node->output[RECURRENT_GATES];
    int64_t count = places(call, gates), units = last_dim(gates) / 4;
    for (int64_t p = 0; p < count; p++)
        for (int64_t u = 0; u < units; u++) {
            int64_t z = p * 4 * units + u, at = p * units + u;
            double i = run_gate(call, z, a->recurrent_activation);
            double f = run_gate(call, z + units, a->recurrent_activation);
            double candidate = run_gate(call, z + 2 * units, a->activation);
            double o = run_gate(call, z + 3 * units, a->recurrent_activation);
            double c = f * given(call, LSTM_STEP_C, at) + i * candidate;
            set(call, RECURRENT_EXTRA, at, c);
            set(call, RECURRENT_H, at, o * recurrent_value(a->activation, c));
        }
}

static void step_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                      struct tensor **d_input)
{
    struct tensor *inputs[LSTM_STEP_BACK_INPUTS] = {
        [LSTM_STEP_DH] = d_output[RECURRENT_H],
        [LSTM_STEP_GATES] = node->output[RECURRENT_GATES],
        [LSTM_STEP_DONE_C] = node->output[RECURRENT_EXTRA],
        [LSTM_STEP_DC] = d_output[RECURRENT_EXTRA],
        [LSTM_STEP_BEFORE] = input_of(node, LSTM_STEP_C),
    };
    if (!inputs[LSTM_STEP_DH] && !inputs[LSTM_STEP_DC])
        return; /* the gates are for backward alone */
    struct tensor *dz = graph_add(graph, &op_lstm_step_gradient, inputs, LSTM_STEP_BACK_INPUTS, node->attributes,
                                  sizeof(struct lstm_step_attributes));
    for (int i = 0; i < LSTM_STEP_C && i < node->input_count; i++)
        d_input[i] = wanted[i] ? dz : NULL;
    if (dz && node->input_count > LSTM_STEP_C && wanted[LSTM_STEP_C])
        d_input[LSTM_STEP_C] = graph_output(dz, 1);
}

/* ---- lstm_step_gradient ------------------------------------------------ */

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    int64_t units = 0;
    TRY(need_gates(&units, node, LSTM_STEP_GATES, error));
    TRY(need_like(node, LSTM_STEP_DH, LSTM_STEP_GATES, units, error));
    TRY(need_like(node, LSTM_STEP_DONE_C, LSTM_STEP_GATES, units, error));
    TRY(need_like(node, LSTM_STEP_DC, LSTM_STEP_GATES, units, error));
    TRY(need_like(node, LSTM_STEP_BEFORE, LSTM_STEP_GATES, units, error));
    if (!node->input[LSTM_STEP_DH] && !input_of(node, LSTM_STEP_DC))
        return misfit(node, error, "no gradient comes in");
    const struct tensor *gates = node->input[LSTM_STEP_GATES];
    output_like(graph, node, 0, gates);
    return output_of(graph, node, 1, gates->type, state_shape(gates), true);
}

static void lstm_step_gradient_reference(const struct call *call)
{
    const struct lstm_step_attributes *a = call->node->attributes;
    const struct tensor *gates = call->node->output[0];
    int64_t count = places(call, gates), units = last_dim(gates) / 4, s = a->recurrent_activation;
    for (int64_t p = 0; p < count; p++)
        for (int64_t u = 0; u < units; u++) {
            int64_t z = p * 4 * units + u, at = p * units + u;
            double i = get(call, LSTM_STEP_GATES, z), f = get(call, LSTM_STEP_GATES, z + units);
            double candidate = get(call, LSTM_STEP_GATES, z + 2 * units);
            double o = get(call, LSTM_STEP_GATES, z + 3 * units), dh = given(call, LSTM_STEP_DH, at);
            double value = recurrent_value(a->activation, get(call, LSTM_STEP_DONE_C, at));
            double dc = dh * o * recurrent_slope(a->activation, value) + given(call, LSTM_STEP_DC, at);
            set(call, 0, z, dc * candidate * recurrent_slope(s, i));
            set(call, 0, z + units, dc * given(call, LSTM_STEP_BEFORE, at) * recurrent_slope(s, f));
            set(call, 0, z + 2 * units, dc * i * recurrent_slope(a->activation, candidate));
            set(call, 0, z + 3 * units, dh * value * recurrent_slope(s, o));
            set(call, 1, at, dc * f);
        }
}

const struct op op_lstm_step = {
    OP_HEAD(lstm_step, LSTM_STEP_INPUTS, 3, step_infer, step_cut),
    .wide_only = RECURRENT_WIDE,
    .optional = 1 << LSTM_STEP_PRODUCT | 1 << LSTM_STEP_C,
    .attributes_bytes = sizeof(struct lstm_step_attributes),
    .gradient = step_back,
    .keeps_inputs = 1 << LSTM_STEP_C,
    .keeps_outputs = 1 << RECURRENT_GATES | 1 << RECURRENT_EXTRA,
    .in_place = 1 << LSTM_STEP_X,
};

const struct op op_lstm_step_gradient = {
    OP_HEAD(lstm_step_gradient, LSTM_STEP_BACK_INPUTS, 2, gradient_infer, step_cut),
    .wide_only = RECURRENT_WIDE,
    .optional = 1 << LSTM_STEP_DH | 1 << LSTM_STEP_DC | 1 << LSTM_STEP_BEFORE,
    .attributes_bytes = sizeof(struct lstm_step_attributes),
    .no_gradient = NO_SECOND,
    .in_place = 1 << LSTM_STEP_GATES,
};
