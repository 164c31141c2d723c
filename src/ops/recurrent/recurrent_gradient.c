/* recurrent_gradient.c - recurrent cells over whole sequences, backward: the steps, then the weights.

   dh0 (and dc0) hold what flows from step to step; what is left in them after the first step is the gradient of the
   state before it. dz takes the place of the gates, unit by unit. */
#include "ops/recurrent/recurrent_own.h"

#define DH0  1
#define LAST 2 /* dc0, or what flows into inner */

static plim_status gradient_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct recurrent_attributes *attributes = node->attributes;
    const struct tensor *gates = node->input[RECURRENT_DONE_GATES];
    TRY(need_recurrence(node, gates, node->input[RECURRENT_BACK_KERNEL], RECURRENT_BACK_ITERATION, error));
    bool simple = attributes->kind == RECURRENT_SIMPLE, lstm = attributes->kind == RECURRENT_LSTM;
    int outputs = simple ? 2 : 3;
    if (outputs != node->op->outputs)
        return misfit(node, error, "kind %lld is another op's", (long long)attributes->kind);
    TRY(need_sequence(node, RECURRENT_DH, lstm && node->input[RECURRENT_OTHER], error));
    TRY(need_sequence(node, RECURRENT_DONE_EXTRA, simple, error));
    TRY(need_sequence(node, RECURRENT_OTHER, simple || lstm, error));
    TRY(need_step_mask(node, RECURRENT_BACK_MASK, error));
    TRY(need_state(node, RECURRENT_INITIAL, error));
    struct shape states = gates->shape, state = shape_2(gates->shape.dim[0], recurrent_sizes(node).units);
    states.dim[2] = state.dim[1];
    output_like(graph, node, 0, gates);
    output_of(graph, node, DH0, gates->type, state, true);
    if (!simple)
        output_of(graph, node, LAST, gates->type, lstm ? state : states, true);
    return PLIM_OK;
}

/* ---- the steps --------------------------------------------------------- */

static double carried(const struct recurrence *r, int output, int64_t u)
{
    return element_get(r->call->output[output], r->call->node->output[output]->type, r->n * r->z.units + u);
}

static void carry(const struct recurrence *r, int output, int64_t u, double value)
{
    set(r->call, output, r->n * r->z.units + u, value);
}

/* All that flows into h of this step. */
static double flowing(const struct recurrence *r, int64_t t, int64_t u)
{
    double from_above =
        r->call->input[RECURRENT_DH] ? get(r->call, RECURRENT_DH, recurrence_at(r, t, r->z.units) + u) : 0;
    return from_above + carried(r, DH0, u);
}

static double gate(const struct recurrence *r, int64_t t, int64_t number, int64_t u)
{
    return get(r->call, RECURRENT_DONE_GATES, recurrence_at(r, t, r->z.columns) + number * r->z.units + u);
}

static double dz_at(const struct recurrence *r, int64_t t, int64_t column)
{
    return element_get(r->call->output[0], r->call->node->output[0]->type, recurrence_at(r, t, r->z.columns) + column);
}

static void set_dz(const struct recurrence *r, int64_t t, int64_t number, int64_t u, double value)
{
    set(r->call, 0, recurrence_at(r, t, r->z.columns) + number * r->z.units + u, value);
}

/* dz of a gate . kernel^T, for one unit of the state before. */
static double gate_back(const struct recurrence *r, int64_t t, int64_t number, int64_t u)
{
    double sum = 0;
    for (int64_t j = number * r->z.units; j < (number + 1) * r->z.units; j++)
        sum += dz_at(r, t, j) * get(r->call, RECURRENT_BACK_KERNEL, u * r->z.columns + j);
    return sum;
}

static void lstm_back(const struct recurrence *r, int64_t t)
{
    const struct recurrent_attributes *a = r->attributes;
    const struct call *call = r->call;
    enum type type = call->node->input[RECURRENT_DONE_EXTRA]->type;
    int64_t s = a->recurrent_activation;
    for (int64_t u = 0; u < r->z.units; u++) {
        int64_t at = recurrence_at(r, t, r->z.units) + u;
        double i = gate(r, t, 0, u), f = gate(r, t, 1, u), candidate = gate(r, t, 2, u), o = gate(r, t, 3, u);
        double value = recurrent_value(a->activation, get(call, RECURRENT_DONE_EXTRA, at)), dh = flowing(r, t, u);
        double before = recurrence_before(r, t, u, call->input[RECURRENT_DONE_EXTRA], type, RECURRENT_INITIAL);
        double dc = carried(r, LAST, u) + dh * o * recurrent_slope(a->activation, value);
        dc += call->input[RECURRENT_OTHER] ? get(call, RECURRENT_OTHER, at) : 0;
        set_dz(r, t, 0, u, dc * candidate * recurrent_slope(s, i));
        set_dz(r, t, 1, u, dc * before * recurrent_slope(s, f));
        set_dz(r, t, 2, u, dc * i * recurrent_slope(a->activation, candidate));
        set_dz(r, t, 3, u, dh * value * recurrent_slope(s, o));
        carry(r, LAST, u, dc * f);
    }
    for (int64_t u = 0; u < r->z.units; u++) {
        double sum = 0;
        for (int64_t g = 0; g < r->z.gates; g++)
            sum += recurrence_kept(r, g, u) * gate_back(r, t, g, u);
        carry(r, DH0, u, sum);
    }
}

static double h_before(const struct recurrence *r, int64_t t, int64_t u)
{
    return recurrence_before(r, t, u, r->call->input[RECURRENT_OTHER], r->call->node->input[RECURRENT_OTHER]->type,
                             RECURRENT_INITIAL);
}

/* What flows into the reset gate and out of inner. */
static void gru_inner_back(const struct recurrence *r, int64_t t)
{
    const struct recurrent_attributes *a = r->attributes;
    for (int64_t u = 0; u < r->z.units; u++) {
        int64_t at = recurrence_at(r, t, r->z.units) + u;
        double reset = gate(r, t, 1, u), slope = recurrent_slope(a->recurrent_activation, reset);
        if (a->kind == RECURRENT_GRU) {
            double candidate = dz_at(r, t, 2 * r->z.units + u);
            set_dz(r, t, 1, u, candidate * get(r->call, RECURRENT_DONE_EXTRA, at) * slope);
            set(r->call, LAST, at, candidate * reset);
            continue;
        }
        double inner = gate_back(r, t, 2, u), kept = recurrence_kept(r, 2, u);
        set(r->call, LAST, at, inner);
        set_dz(r, t, 1, u, inner * kept * h_before(r, t, u) * slope);
        carry(r, DH0, u, carried(r, DH0, u) + inner * reset * kept);
    }
}

static void gru_back(const struct recurrence *r, int64_t t)
{
    const struct recurrent_attributes *a = r->attributes;
    for (int64_t u = 0; u < r->z.units; u++) {
        double update = gate(r, t, 0, u), candidate = gate(r, t, 2, u), dh = flowing(r, t, u);
        set_dz(r, t, 2, u, dh * (1 - update) * recurrent_slope(a->activation, candidate));
        set_dz(r, t, 0, u, dh * (h_before(r, t, u) - candidate) * recurrent_slope(a->recurrent_activation, update));
        carry(r, DH0, u, dh * update);
    }
    gru_inner_back(r, t);
    for (int64_t u = 0; u < r->z.units; u++) {
        double sum = carried(r, DH0, u);
        for (int64_t g = 0; g < 2; g++)
            sum += recurrence_kept(r, g, u) * gate_back(r, t, g, u);
        for (int64_t j = 0; j < r->z.units && a->kind == RECURRENT_GRU; j++)
            sum += recurrence_kept(r, 2, u) *
                   element_get(r->call->output[LAST], r->call->node->output[LAST]->type,
                               recurrence_at(r, t, r->z.units) + j) *
                   get(r->call, RECURRENT_BACK_KERNEL, u * r->z.columns + 2 * r->z.units + j);
        carry(r, DH0, u, sum);
    }
}

static void simple_back(const struct recurrence *r, int64_t t)
{
    for (int64_t u = 0; u < r->z.units; u++)
        set_dz(r, t, 0, u, flowing(r, t, u) * recurrent_slope(r->attributes->activation, gate(r, t, 0, u)));
    for (int64_t u = 0; u < r->z.units; u++)
        carry(r, DH0, u, recurrence_kept(r, 0, u) * gate_back(r, t, 0, u));
}

/* Nothing happened in this step: what flows goes on to the one before. */
static void absent_back(const struct recurrence *r, int64_t t)
{
    int64_t row = recurrence_at(r, t, r->z.units);
    for (int64_t u = 0; u < r->z.units; u++) {
        carry(r, DH0, u, flowing(r, t, u));
        if (r->attributes->kind == RECURRENT_LSTM && r->call->input[RECURRENT_OTHER])
            carry(r, LAST, u, carried(r, LAST, u) + get(r->call, RECURRENT_OTHER, row + u));
        else if (r->attributes->kind == RECURRENT_GRU || r->attributes->kind == RECURRENT_GRU_BEFORE)
            set(r->call, LAST, row + u, 0);
    }
    for (int64_t j = 0; j < r->z.columns; j++)
        set(r->call, 0, recurrence_at(r, t, r->z.columns) + j, 0);
}

static void gradient_reference(const struct call *call)
{
    static void (*const steps[RECURRENT_KINDS])(const struct recurrence *r, int64_t t) = {simple_back, gru_back,
                                                                                          gru_back, lstm_back};
    struct recurrence r = recurrence_of(call, RECURRENT_BACK_ITERATION);
    int64_t samples = call_rows(call, call->node->output[0]);
    for (r.n = 0; r.n < samples; r.n++) {
        for (int64_t u = 0; u < r.z.units; u++) {
            carry(&r, DH0, u, 0);
            if (r.attributes->kind == RECURRENT_LSTM)
                carry(&r, LAST, u, 0);
        }
        for (int64_t i = r.z.steps - 1; i >= 0; i--) {
            int64_t t = recurrent_step(r.attributes, r.z.steps, i);
            if (recurrence_is_there(&r, RECURRENT_BACK_MASK, t))
                steps[r.attributes->kind](&r, t);
            else
                absent_back(&r, t);
        }
    }
}

#define OPTIONAL                                                                                                       \
    (1 << RECURRENT_DH | 1 << RECURRENT_DONE_EXTRA | 1 << RECURRENT_OTHER | 1 << RECURRENT_BACK_MASK |                 \
     1 << RECURRENT_INITIAL | 1 << RECURRENT_BACK_ITERATION)
#define BACKWARD(word, outputs_)                                                                                       \
    {                                                                                                                  \
        .name = word, .wide_only = RECURRENT_WIDE, .inputs = RECURRENT_BACK_INPUTS, .outputs = outputs_,               \
        .optional = OPTIONAL, .attributes_bytes = sizeof(struct recurrent_attributes), .infer = gradient_infer,        \
        .no_gradient = NO_SECOND, .in_place = 1 << RECURRENT_DONE_GATES, .cut = recurrent_cut,                         \
        .reference = gradient_reference,                                                                               \
    }

const struct op op_simple_rnn_gradient = BACKWARD("simple_rnn_gradient", 2);
const struct op op_gru_gradient = BACKWARD("gru_gradient", 3);
const struct op op_lstm_gradient = BACKWARD("lstm_gradient", 3);

/* ---- weights ----------------------------------------------------------- */

static plim_status weight_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct recurrent_attributes *attributes = node->attributes;
    const struct tensor *dz = node->input[RECURRENT_DZ];
    TRY(need_recurrence(node, dz, NULL, RECURRENT_WEIGHT_ITERATION, error));
    bool gru = attributes->kind == RECURRENT_GRU || attributes->kind == RECURRENT_GRU_BEFORE;
    TRY(need_sequence(node, RECURRENT_ALL_H, false, error));
    TRY(need_sequence(node, RECURRENT_WEIGHT_EXTRA, !gru, error));
    TRY(need_state(node, RECURRENT_WEIGHT_H0, error));
    struct recurrent_sizes z = recurrent_sizes(node);
    output_of(graph, node, 0, dz->type, shape_2(z.units, z.columns), false);
    return output_of(graph, node, 1, dz->type, shape_2(2, z.columns), false);
}

/* What flows into h' . kernel of a gate at step t. */
static double into_kernel(const struct recurrence *r, int64_t t, int64_t column)
{
    if (r->attributes->kind == RECURRENT_GRU && column >= 2 * r->z.units)
        return get(r->call, RECURRENT_WEIGHT_EXTRA, recurrence_at(r, t, r->z.units) + column - 2 * r->z.units);
    return get(r->call, RECURRENT_DZ, recurrence_at(r, t, r->z.columns) + column);
}

/* What was multiplied with the kernel. */
static double before_kernel(const struct recurrence *r, int64_t t, int64_t u, int64_t column)
{
    int64_t number = column / r->z.units;
    if (r->attributes->kind == RECURRENT_GRU_BEFORE && number == 2)
        return get(r->call, RECURRENT_WEIGHT_EXTRA, recurrence_at(r, t, r->z.units) + u);
    return recurrence_kept(r, number, u) * recurrence_before(r, t, u, r->call->input[RECURRENT_ALL_H],
                                                             r->call->node->input[RECURRENT_ALL_H]->type,
                                                             RECURRENT_WEIGHT_H0);
}

static void recurrent_weight_gradient_reference(const struct call *call)
{
    struct recurrence r = recurrence_of(call, RECURRENT_WEIGHT_ITERATION);
    int64_t samples = call_rows(call, call->node->input[RECURRENT_DZ]);
    for (int64_t column = 0; column < r.z.columns; column++) {
        double direct = 0, inner = 0;
        for (int64_t u = 0; u < r.z.units; u++) {
            double sum = 0;
            for (r.n = 0; r.n < samples; r.n++)
                for (int64_t t = 0; t < r.z.steps; t++)
                    sum += before_kernel(&r, t, u, column) * into_kernel(&r, t, column);
            share(call, 0, u * r.z.columns + column, sum);
        }
        for (r.n = 0; r.n < samples && r.attributes->bias; r.n++)
            for (int64_t t = 0; t < r.z.steps; t++) {
                direct += get(call, RECURRENT_DZ, recurrence_at(&r, t, r.z.columns) + column);
                inner += into_kernel(&r, t, column);
            }
        share(call, 1, column, direct);
        share(call, 1, r.z.columns + column, inner);
    }
}

const struct op op_recurrent_weight_gradient = {
    OP_HEAD(recurrent_weight_gradient, RECURRENT_WEIGHT_INPUTS, 2, weight_infer, recurrent_cut),
    .wide_only = RECURRENT_WIDE,
    .optional = 1 << RECURRENT_WEIGHT_EXTRA | 1 << RECURRENT_WEIGHT_H0 | 1 << RECURRENT_WEIGHT_ITERATION,
    .attributes_bytes = sizeof(struct recurrent_attributes),
    .no_gradient = NO_SECOND,
};
