/* recurrent_cells.c - recurrent cells over whole sequences, forward: simple_rnn, gru, lstm. */
#include "ops/recurrent/recurrent_own.h"

static struct tensor *input_of(const struct node *node, int i)
{
    return i < node->input_count ? node->input[i] : NULL;
}

static plim_status need_gate_bias(const struct node *node, plim_error *error)
{
    const struct recurrent_attributes *attributes = node->attributes;
    const struct tensor *bias = input_of(node, RECURRENT_BIAS);
    struct shape shape = shape_2(2, recurrent_sizes(node).columns);
    if (!bias)
        return PLIM_OK;
    if (attributes->kind != RECURRENT_GRU || bias->batched || !shape_equal(&bias->shape, &shape))
        return misfit(node, error, "a bias of two rows goes with a GRU whose reset comes after the kernel");
    return need_real(node, RECURRENT_BIAS, error);
}

/* Each op runs kinds of its own. */
static plim_status need_kind(const struct node *node, plim_error *error)
{
    static const struct op *const ops[RECURRENT_KINDS] = {&op_simple_rnn, &op_gru, &op_gru, &op_lstm};
    const struct recurrent_attributes *attributes = node->attributes;
    if (attributes->kind < 0 || attributes->kind >= RECURRENT_KINDS || ops[attributes->kind] != node->op)
        return misfit(node, error, "kind %lld is another op's", (long long)attributes->kind);
    return PLIM_OK;
}

static plim_status recurrent_infer(struct graph *graph, struct node *node, plim_error *error)
{
    const struct tensor *z = node->input[RECURRENT_Z];
    TRY(need_kind(node, error));
    TRY(need_recurrence(node, z, node->input[RECURRENT_KERNEL], RECURRENT_ITERATION, error));
    TRY(need_gate_bias(node, error));
    TRY(need_step_mask(node, RECURRENT_MASK, error));
    TRY(need_state(node, RECURRENT_H0, error));
    if (input_of(node, RECURRENT_C0) && node->op != &op_lstm)
        return misfit(node, error, "a cell's state goes with lstm alone");
    TRY(need_state(node, RECURRENT_C0, error));
    struct shape states = z->shape;
    states.dim[2] = recurrent_sizes(node).units;
    output_like(graph, node, 0, z);
    for (int k = 1; k < node->op->outputs; k++)
        output_of(graph, node, k, z->type, states, true);
    return PLIM_OK;
}

/* ---- one step ---------------------------------------------------------- */

static int h_output(const struct recurrence *r)
{
    return r->attributes->kind == RECURRENT_SIMPLE ? 0 : RECURRENT_H;
}

static double state_before(const struct recurrence *r, int64_t t, int64_t u)
{
    int k = h_output(r);
    return recurrence_before(r, t, u, r->call->output[k], r->call->node->output[k]->type, RECURRENT_H0);
}

/* h' . kernel for one unit of a gate, with its bias. */
static double recurrent_sum(const struct recurrence *r, int64_t t, int64_t gate, int64_t unit)
{
    int64_t column = gate * r->z.units + unit;
    double sum = r->call->input[RECURRENT_BIAS] ? get(r->call, RECURRENT_BIAS, r->z.columns + column) : 0;
    for (int64_t u = 0; u < r->z.units; u++)
        sum += recurrence_kept(r, gate, u) * state_before(r, t, u) *
               get(r->call, RECURRENT_KERNEL, u * r->z.columns + column);
    return sum;
}

static double from_input(const struct recurrence *r, int64_t t, int64_t column)
{
    double bias = r->call->input[RECURRENT_BIAS] ? get(r->call, RECURRENT_BIAS, column) : 0;
    return get(r->call, RECURRENT_Z, recurrence_at(r, t, r->z.columns) + column) + bias;
}

/* A gate that is a function of z + h' . kernel; it takes the place of z. */
static double run_gate(const struct recurrence *r, int64_t t, int64_t gate, int64_t unit, int64_t activation)
{
    int64_t column = gate * r->z.units + unit;
    double y = recurrent_value(activation, from_input(r, t, column) + recurrent_sum(r, t, gate, unit));
    set(r->call, 0, recurrence_at(r, t, r->z.columns) + column, y);
    return y;
}

static void lstm_step(const struct recurrence *r, int64_t t)
{
    const struct recurrent_attributes *attributes = r->attributes;
    enum type type = r->call->node->output[RECURRENT_EXTRA]->type;
    for (int64_t u = 0; u < r->z.units; u++) {
        double i = run_gate(r, t, 0, u, attributes->recurrent_activation);
        double f = run_gate(r, t, 1, u, attributes->recurrent_activation);
        double candidate = run_gate(r, t, 2, u, attributes->activation);
        double o = run_gate(r, t, 3, u, attributes->recurrent_activation);
        double before = recurrence_before(r, t, u, r->call->output[RECURRENT_EXTRA], type, RECURRENT_C0);
        double c = f * before + i * candidate;
        set(r->call, RECURRENT_EXTRA, recurrence_at(r, t, r->z.units) + u, c);
        set(r->call, RECURRENT_H, recurrence_at(r, t, r->z.units) + u, o * recurrent_value(attributes->activation, c));
    }
}

static double inner_before(const struct recurrence *r, int64_t t, int64_t unit)
{
    double sum = 0;
    for (int64_t u = 0; u < r->z.units; u++)
        sum += element_get(r->call->output[RECURRENT_EXTRA], r->call->node->output[RECURRENT_EXTRA]->type,
                           recurrence_at(r, t, r->z.units) + u) *
               get(r->call, RECURRENT_KERNEL, u * r->z.columns + 2 * r->z.units + unit);
    return sum;
}

static void gru_step(const struct recurrence *r, int64_t t)
{
    const struct recurrent_attributes *attributes = r->attributes;
    int64_t units = r->z.units, row = recurrence_at(r, t, units), gates = recurrence_at(r, t, r->z.columns);
    enum type type = r->call->node->output[0]->type;
    bool before = attributes->kind == RECURRENT_GRU_BEFORE;
    for (int64_t u = 0; u < units; u++) {
        run_gate(r, t, 0, u, attributes->recurrent_activation);
        double reset = run_gate(r, t, 1, u, attributes->recurrent_activation);
        double inner = before ? reset * recurrence_kept(r, 2, u) * state_before(r, t, u) : recurrent_sum(r, t, 2, u);
        set(r->call, RECURRENT_EXTRA, row + u, inner);
    }
    for (int64_t u = 0; u < units; u++) {
        double update = element_get(r->call->output[0], type, gates + u);
        double reset = element_get(r->call->output[0], type, gates + units + u);
        double inner =
            before ? inner_before(r, t, u) : reset * element_get(r->call->output[RECURRENT_EXTRA], type, row + u);
        double candidate = recurrent_value(attributes->activation, from_input(r, t, 2 * units + u) + inner);
        set(r->call, 0, gates + 2 * units + u, candidate);
        set(r->call, RECURRENT_H, row + u, update * state_before(r, t, u) + (1 - update) * candidate);
    }
}

static void simple_step(const struct recurrence *r, int64_t t)
{
    for (int64_t u = 0; u < r->z.units; u++)
        run_gate(r, t, 0, u, r->attributes->activation);
}

/* The state goes on; gates and inner are 0. */
static void absent_step(const struct recurrence *r, int64_t t)
{
    const struct node *node = r->call->node;
    int64_t row = recurrence_at(r, t, r->z.units);
    for (int64_t j = 0; j < r->z.columns && node->op->outputs > 1; j++)
        set(r->call, 0, recurrence_at(r, t, r->z.columns) + j, 0);
    for (int64_t u = 0; u < r->z.units; u++) {
        set(r->call, h_output(r), row + u, state_before(r, t, u));
        if (r->attributes->kind == RECURRENT_LSTM)
            set(r->call, RECURRENT_EXTRA, row + u,
                recurrence_before(r, t, u, r->call->output[RECURRENT_EXTRA], node->output[RECURRENT_EXTRA]->type,
                                  RECURRENT_C0));
        else if (node->op->outputs > 1)
            set(r->call, RECURRENT_EXTRA, row + u, 0);
    }
}

static void recurrent_reference(const struct call *call)
{
    static void (*const steps[RECURRENT_KINDS])(const struct recurrence *r, int64_t t) = {simple_step, gru_step,
                                                                                          gru_step, lstm_step};
    struct recurrence r = recurrence_of(call, RECURRENT_ITERATION);
    int64_t samples = call_rows(call, call->node->output[0]);
    for (r.n = 0; r.n < samples; r.n++) {
        for (int64_t i = 0; i < r.z.steps; i++) {
            int64_t t = recurrent_step(r.attributes, r.z.steps, i);
            if (recurrence_is_there(&r, RECURRENT_MASK, t))
                steps[r.attributes->kind](&r, t);
            else
                absent_step(&r, t);
        }
    }
}

/* ---- gradients --------------------------------------------------------- */

/* The steps backwards; then the weights, from what all steps left. */
static void recurrent_back(struct graph *graph, struct node *node, struct tensor *const *d_output, const bool *wanted,
                           struct tensor **d_input, const struct op *back)
{
    struct recurrent_attributes attributes = *(const struct recurrent_attributes *)node->attributes;
    bool simple = attributes.kind == RECURRENT_SIMPLE, lstm = attributes.kind == RECURRENT_LSTM;
    struct tensor *h = node->output[simple ? 0 : RECURRENT_H], *extra = simple ? NULL : node->output[RECURRENT_EXTRA];
    struct tensor *inputs[RECURRENT_BACK_INPUTS] = {
        [RECURRENT_DH] = d_output[simple ? 0 : RECURRENT_H],
        [RECURRENT_DONE_GATES] = node->output[0],
        [RECURRENT_DONE_EXTRA] = extra,
        [RECURRENT_OTHER] = lstm     ? d_output[RECURRENT_EXTRA]
                            : simple ? NULL
                                     : h,
        [RECURRENT_BACK_KERNEL] = node->input[RECURRENT_KERNEL],
        [RECURRENT_BACK_MASK] = input_of(node, RECURRENT_MASK),
        [RECURRENT_INITIAL] = simple ? NULL : input_of(node, lstm ? RECURRENT_C0 : RECURRENT_H0),
        [RECURRENT_BACK_ITERATION] = input_of(node, RECURRENT_ITERATION),
    };
    struct tensor *dz = graph_add(graph, back, inputs, RECURRENT_BACK_INPUTS, &attributes, sizeof(attributes));
    d_input[RECURRENT_Z] = dz;
    d_input[RECURRENT_H0] = dz ? graph_output(dz, 1) : NULL;
    d_input[RECURRENT_C0] = dz && lstm ? graph_output(dz, 2) : NULL;
    if (!wanted[RECURRENT_KERNEL] && !wanted[RECURRENT_BIAS])
        return;
    attributes.bias = wanted[RECURRENT_BIAS];
    struct tensor *of[RECURRENT_WEIGHT_INPUTS] = {
        [RECURRENT_ALL_H] = h,
        [RECURRENT_DZ] = dz,
        [RECURRENT_WEIGHT_EXTRA] = attributes.kind == RECURRENT_GRU && dz    ? graph_output(dz, 2)
                                   : attributes.kind == RECURRENT_GRU_BEFORE ? extra
                                                                             : NULL,
        [RECURRENT_WEIGHT_H0] = input_of(node, RECURRENT_H0),
        [RECURRENT_WEIGHT_ITERATION] = input_of(node, RECURRENT_ITERATION),
    };
    struct tensor *dw =
        graph_add(graph, &op_recurrent_weight_gradient, of, RECURRENT_WEIGHT_INPUTS, &attributes, sizeof(attributes));
    d_input[RECURRENT_KERNEL] = dw;
    d_input[RECURRENT_BIAS] = dw && wanted[RECURRENT_BIAS] ? graph_output(dw, 1) : NULL;
}

#define KEPT (1 << RECURRENT_KERNEL | 1 << RECURRENT_MASK | 1 << RECURRENT_H0 | 1 << RECURRENT_ITERATION)
#define OPTIONAL                                                                                                       \
    (1 << RECURRENT_BIAS | 1 << RECURRENT_MASK | 1 << RECURRENT_H0 | 1 << RECURRENT_C0 | 1 << RECURRENT_ITERATION)

#define FORWARD(word, outputs_, kept)                                                                                  \
    static void word##_back(struct graph *graph, struct node *node, struct tensor *const *d_output,                    \
                            const bool *wanted, struct tensor **d_input)                                               \
    {                                                                                                                  \
        recurrent_back(graph, node, d_output, wanted, d_input, &op_##word##_gradient);                                 \
    }                                                                                                                  \
    const struct op op_##word = {                                                                                      \
        .name = #word,                                                                                                 \
        .wide_only = RECURRENT_WIDE,                                                                                   \
        .inputs = RECURRENT_INPUTS,                                                                                    \
        .outputs = outputs_,                                                                                           \
        .optional = OPTIONAL,                                                                                          \
        .attributes_bytes = sizeof(struct recurrent_attributes),                                                       \
        .infer = recurrent_infer,                                                                                      \
        .gradient = word##_back,                                                                                       \
        .keeps_inputs = kept,                                                                                          \
        .keeps_outputs = (1 << (outputs_)) - 1,                                                                        \
        .in_place = 1 << RECURRENT_Z,                                                                                  \
        .cut = recurrent_cut,                                                                                          \
        .reference = recurrent_reference,                                                                              \
    };

FORWARD(simple_rnn, 1, KEPT)
FORWARD(gru, 3, KEPT)
FORWARD(lstm, 3, KEPT | 1 << RECURRENT_C0)
