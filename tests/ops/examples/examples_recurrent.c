/* examples_recurrent.c - examples of the ops of src/ops/recurrent/. */
#include "examples.h"

#include "base/numbers/count.h"
#include "ops/recurrent/recurrent_own.h"

/* ---- lstm_step ------------------------------------------------------------- */

static const struct {
    struct shape row; /* of a state */
    bool product, before;
    int of; /* the output that is differentiated */
    struct lstm_step_attributes attributes;
} lstm_step_cases[] = {
    {{3, {2, 3, 5}}, true, true, RECURRENT_H, {RECURRENT_TANH, RECURRENT_SIGMOID}},
    {{1, {1}}, false, false, RECURRENT_H, {RECURRENT_TANH, RECURRENT_SIGMOID}},
    {{2, {4, 17}}, true, false, RECURRENT_EXTRA, {RECURRENT_SOFTSIGN, RECURRENT_HARD_SIGMOID}},
    {{4, {2, 1, 3, 2}}, true, true, RECURRENT_EXTRA, {RECURRENT_LINEAR, RECURRENT_TANH}},
    {{2, {3, 33}}, false, true, RECURRENT_H, {RECURRENT_ELU, RECURRENT_SIGMOID}},
};

static struct shape gates_row(int variant)
{
    struct shape row = lstm_step_cases[variant].row;
    row.dim[row.rank - 1] *= 4;
    return row;
}

struct tensor *lstm_step_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(lstm_step_cases))
        return NULL;
    struct shape gates = gates_row(variant), state = lstm_step_cases[variant].row;
    struct tensor *inputs[LSTM_STEP_INPUTS] = {
        [LSTM_STEP_X] = example_input(graph, "x", type, gates.rank, gates.dim),
        [LSTM_STEP_PRODUCT] =
            lstm_step_cases[variant].product ? example_input(graph, "product", type, gates.rank, gates.dim) : NULL,
        [LSTM_STEP_C] = lstm_step_cases[variant].before ? example_input(graph, "c", type, state.rank, state.dim) : NULL,
    };
    struct tensor *y = graph_add(graph, &op_lstm_step, inputs, LSTM_STEP_INPUTS, &lstm_step_cases[variant].attributes,
                                 sizeof lstm_step_cases[variant].attributes);
    return y ? graph_output(y, lstm_step_cases[variant].of) : NULL;
}

struct tensor *lstm_step_gradient_example(struct graph *graph, int variant, enum type type)
{
    if (variant >= COUNT(lstm_step_cases))
        return NULL;
    struct shape gates = gates_row(variant), state = lstm_step_cases[variant].row;
    bool cell = lstm_step_cases[variant].of == RECURRENT_EXTRA;
    struct tensor *inputs[LSTM_STEP_BACK_INPUTS] = {
        [LSTM_STEP_DH] = cell ? NULL : example_input(graph, "dh", type, state.rank, state.dim),
        [LSTM_STEP_GATES] = example_input(graph, "positive:gates", type, gates.rank, gates.dim),
        [LSTM_STEP_DONE_C] = example_input(graph, "c", type, state.rank, state.dim),
        [LSTM_STEP_DC] =
            cell || lstm_step_cases[variant].before ? example_input(graph, "dc", type, state.rank, state.dim) : NULL,
        [LSTM_STEP_BEFORE] =
            lstm_step_cases[variant].before ? example_input(graph, "before", type, state.rank, state.dim) : NULL,
    };
    return graph_add(graph, &op_lstm_step_gradient, inputs, LSTM_STEP_BACK_INPUTS, &lstm_step_cases[variant].attributes,
                     sizeof lstm_step_cases[variant].attributes);
}

/* ---- recurrent ------------------------------------------------------------- */

/* Of all kinds. */
struct recurrent_example {
    int64_t units, steps, reverse, activation, recurrent_activation;
    bool bias, mask, initial, dropout;
    int of; /* the output that is differentiated */
};

static const struct recurrent_example recurrent_examples[] = {
    {5, 4, 0, RECURRENT_TANH, RECURRENT_SIGMOID, true, false, false, false, 1},
    {1, 1, 0, RECURRENT_TANH, RECURRENT_SIGMOID, false, false, false, false, 1},
    {3, 6, 1, RECURRENT_TANH, RECURRENT_SIGMOID, true, true, false, false, 1},
    {17, 3, 0, RECURRENT_SOFTSIGN, RECURRENT_HARD_SIGMOID, true, true, true, false, 1},
    {4, 5, 1, RECURRENT_ELU, RECURRENT_TANH, true, false, true, true, 1},
    {2, 4, 0, RECURRENT_LINEAR, RECURRENT_SIGMOID, true, true, true, true, 1},
    {33, 2, 1, RECURRENT_TANH, RECURRENT_SIGMOID, false, true, true, false, 2},
    {2, 18, 1, RECURRENT_TANH, RECURRENT_SIGMOID, true, false, true, false, 1},
};

static const struct recurrent_example *recurrent_example(int variant)
{
    return variant < COUNT(recurrent_examples) ? &recurrent_examples[variant] : NULL;
}

static struct recurrent_attributes recurrent_example_attributes(const struct recurrent_example *e, int64_t kind)
{
    return (struct recurrent_attributes){.kind = kind,
                                         .reverse = e->reverse,
                                         .activation = e->activation,
                                         .recurrent_activation = e->recurrent_activation,
                                         .dropout = e->dropout ? 0.4 : 0,
                                         .seed = 11};
}

static struct tensor *recurrent_example_iteration(struct graph *graph, const struct recurrent_example *e)
{
    return e->dropout ? graph_state(graph, "iteration", TYPE_I64, shape_1(1)) : NULL;
}

/* ---- recurrent_cells ------------------------------------------------------- */

static struct tensor *recurrent_cells_example_of(struct graph *graph, int variant, enum type type, const struct op *op,
                                                 int64_t kind)
{
    const struct recurrent_example *e = recurrent_example(variant);
    if (!e)
        return NULL;
    struct recurrent_attributes attributes = recurrent_example_attributes(e, kind);
    int64_t columns = e->units * recurrent_gates[kind];
    struct tensor *inputs[RECURRENT_INPUTS] = {
        [RECURRENT_Z] = example_input(graph, "z", type, ROW(e->steps, columns)),
        [RECURRENT_KERNEL] = graph_weight(graph, "kernel", type, shape_2(e->units, columns), true),
        [RECURRENT_MASK] = e->mask ? example_input(graph, "index:2", TYPE_BOOL, ROW(e->steps)) : NULL,
        [RECURRENT_H0] = e->initial ? example_input(graph, "h0", type, ROW(e->units)) : NULL,
        [RECURRENT_ITERATION] = recurrent_example_iteration(graph, e),
    };
    if (e->initial && kind == RECURRENT_LSTM)
        inputs[RECURRENT_C0] = example_input(graph, "c0", type, ROW(e->units));
    if (e->bias && kind == RECURRENT_GRU)
        inputs[RECURRENT_BIAS] = graph_weight(graph, "bias", type, shape_2(2, columns), true);
    struct tensor *y = graph_add(graph, op, inputs, RECURRENT_INPUTS, &attributes, sizeof(attributes));
    int of = kind == RECURRENT_SIMPLE ? 0 : kind == RECURRENT_LSTM ? e->of : RECURRENT_H;
    return y ? graph_output(y, of) : NULL;
}

struct tensor *simple_rnn_example(struct graph *graph, int variant, enum type type)
{
    return recurrent_cells_example_of(graph, variant, type, &op_simple_rnn, RECURRENT_SIMPLE);
}

struct tensor *gru_example(struct graph *graph, int variant, enum type type)
{
    return recurrent_cells_example_of(graph, variant / 2, type, &op_gru,
                                      variant % 2 ? RECURRENT_GRU_BEFORE : RECURRENT_GRU);
}

struct tensor *lstm_example(struct graph *graph, int variant, enum type type)
{
    return recurrent_cells_example_of(graph, variant, type, &op_lstm, RECURRENT_LSTM);
}

/* ---- recurrent_gradient ---------------------------------------------------- */

static struct tensor *recurrent_gradient_example(struct graph *graph, int variant, enum type type, const struct op *op,
                                                 int64_t kind, int64_t gates)
{
    const struct recurrent_example *e = recurrent_example(variant);
    if (!e)
        return NULL;
    struct recurrent_attributes attributes = recurrent_example_attributes(e, kind);
    int64_t columns = e->units * gates;
    bool simple = kind == RECURRENT_SIMPLE, lstm = kind == RECURRENT_LSTM;
    struct tensor *inputs[RECURRENT_BACK_INPUTS] = {
        [RECURRENT_DONE_GATES] = example_input(graph, "positive:gates", type, ROW(e->steps, columns)),
        [RECURRENT_BACK_KERNEL] = graph_weight(graph, "kernel", type, shape_2(e->units, columns), true),
        [RECURRENT_BACK_MASK] = e->mask ? example_input(graph, "index:2", TYPE_BOOL, ROW(e->steps)) : NULL,
        [RECURRENT_BACK_ITERATION] = recurrent_example_iteration(graph, e),
    };
    if (!lstm || e->of == 1)
        inputs[RECURRENT_DH] = example_input(graph, "dh", type, ROW(e->steps, e->units));
    if (!simple)
        inputs[RECURRENT_DONE_EXTRA] = example_input(graph, "extra", type, ROW(e->steps, e->units));
    if (!simple && (!lstm || e->of != 1))
        inputs[RECURRENT_OTHER] = example_input(graph, "other", type, ROW(e->steps, e->units));
    if (!simple && e->initial)
        inputs[RECURRENT_INITIAL] = example_input(graph, "initial", type, ROW(e->units));
    return graph_add(graph, op, inputs, RECURRENT_BACK_INPUTS, &attributes, sizeof(attributes));
}

struct tensor *simple_rnn_gradient_example(struct graph *graph, int variant, enum type type)
{
    return recurrent_gradient_example(graph, variant, type, &op_simple_rnn_gradient, RECURRENT_SIMPLE, 1);
}

struct tensor *gru_gradient_example(struct graph *graph, int variant, enum type type)
{
    return recurrent_gradient_example(graph, variant / 2, type, &op_gru_gradient,
                                      variant % 2 ? RECURRENT_GRU_BEFORE : RECURRENT_GRU, 3);
}

struct tensor *lstm_gradient_example(struct graph *graph, int variant, enum type type)
{
    return recurrent_gradient_example(graph, variant, type, &op_lstm_gradient, RECURRENT_LSTM, 4);
}

/* Kinds by variant % 4. */
struct tensor *recurrent_weight_gradient_example(struct graph *graph, int variant, enum type type)
{
    const struct recurrent_example *e = recurrent_example(variant / RECURRENT_KINDS);
    int64_t kind = variant % RECURRENT_KINDS;
    if (!e)
        return NULL;
    struct recurrent_attributes attributes = recurrent_example_attributes(e, kind);
    attributes.bias = e->bias && kind == RECURRENT_GRU;
    struct tensor *inputs[RECURRENT_WEIGHT_INPUTS] = {
        [RECURRENT_ALL_H] = example_input(graph, "h", type, ROW(e->steps, e->units)),
        [RECURRENT_DZ] = example_input(graph, "dz", type, ROW(e->steps, e->units * recurrent_gates[kind])),
        [RECURRENT_WEIGHT_H0] = e->initial ? example_input(graph, "h0", type, ROW(e->units)) : NULL,
        [RECURRENT_WEIGHT_ITERATION] = recurrent_example_iteration(graph, e),
    };
    if (recurrent_gates[kind] == 3)
        inputs[RECURRENT_WEIGHT_EXTRA] = example_input(graph, "extra", type, ROW(e->steps, e->units));
    return graph_add(graph, &op_recurrent_weight_gradient, inputs, RECURRENT_WEIGHT_INPUTS, &attributes,
                     sizeof(attributes));
}
