/* layer_recurrent_run.c - recurrent layers in the graph: x . kernel of all steps in one product, then the steps
   (ops/recurrent/recurrent.h).

   Inputs are Keras's call: the sequence, and the states to begin with where there are any. Steps that the mask hides
   leave the state as it is; their output is the one before (0 before the first, whatever it began with), or 0 with
   zero_output_for_mask.
   Dropout of the input draws one mask for all gates; Keras draws one for each gate where recurrent_dropout is there
   too. */
#include <stdio.h>

#include "model/layers/recurrent/layer_recurrent.h"
#include "model/layers/shape_options.h"
#include "ops/ops.h"

/* ---- weights ---- */

/* What a layer's type makes of it. */
struct cell {
    const struct op *op;
    enum recurrent_kind kind;
    int64_t gates;
    const char *name;
    int states;
};

static struct cell cell_of(const struct layer *layer)
{
    const struct recurrent *options = layer->options;
    const struct layer_type *type = layer->type;
    if (type == &layer_lstm || type == &layer_lstm_cell)
        return (struct cell){&op_lstm, RECURRENT_LSTM, 4, "lstm_cell", 2};
    if (type == &layer_gru || type == &layer_gru_cell)
        return (struct cell){&op_gru, options->reset_after ? RECURRENT_GRU : RECURRENT_GRU_BEFORE, 3, "gru_cell", 1};
    return (struct cell){&op_simple_rnn, RECURRENT_SIMPLE, 1, "simple_rnn_cell", 1};
}

/* A layer's cell is a part of it, a cell in an RNN a layer inside: both are named alike. */
static void name_weight(char out[64], const struct layer *layer, const struct cell *cell, const char *weight)
{
    bool alone = layer->type->build != NULL;
    snprintf(out, 64, "%s%s%s", alone ? "" : cell->name, alone ? "" : "/", weight);
}

static struct tensor *matrix(const struct layer *layer, struct graph *graph, const char *name, int64_t in, int64_t out,
                             struct initializer initializer)
{
    struct shape shape = shape_of(2, (int64_t[]){in, out});
    return model_weight(layer, graph, name, shape, initializer_with_fans(initializer, &shape));
}

struct cell_weights {
    struct tensor *kernel, *recurrent, *bias;
};

static struct cell_weights weights_of(const struct layer *layer, struct graph *graph, const struct cell *cell,
                                      int64_t in)
{
    const struct recurrent *options = layer->options;
    int64_t columns = cell->gates * options->units;
    char name[64];
    name_weight(name, layer, cell, "kernel");
    struct cell_weights w = {.kernel = matrix(layer, graph, name, in, columns, options->kernel)};
    name_weight(name, layer, cell, "recurrent_kernel");
    w.recurrent = matrix(layer, graph, name, options->units, columns, options->recurrent);
    name_weight(name, layer, cell, "bias");
    struct initializer bias = options->bias;
    bias.forget = cell->kind == RECURRENT_LSTM && options->unit_forget_bias;
    if (options->use_bias && cell->kind == RECURRENT_GRU)
        w.bias = matrix(layer, graph, name, 2, columns, bias);
    else if (options->use_bias)
        w.bias = model_bias(layer, graph, name, columns, bias);
    return w;
}

/* ---- building ---- */

static bool state_fits(const struct layer *layer, struct graph *graph, const struct tensor *x, int i, int64_t units)
{
    char shape[96], name[96];
    if (!x || (x->shape.rank == 2 && x->shape.dim[1] == units))
        return x != NULL;
    shape_text(shape, sizeof shape, &x->shape, true);
    input_name(name, graph, i);
    graph_fail(graph, PLIM_BAD_JOB, "%s: a state must be (batch, %lld), got %s %s", layer->name, (long long)units, name,
               shape);
    return false;
}

static bool inputs_fit(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct recurrent *options = layer->options;
    int states = recurrent_states(layer);
    if (!x[0] || !layer_needs_rank(layer, graph, x[0], 3))
        return false;
    if (count != 1 && count != 1 + states) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: takes a sequence, or one and %d state%s, got %d inputs", layer->name,
                   states, states > 1 ? "s" : "", count);
        return false;
    }
    for (int c = 0, i = 1; c < options->cell_count && i < count; c++) {
        const struct recurrent *cell = options->cell[c]->options;
        for (int k = cell_of(options->cell[c]).states; k > 0; k--, i++)
            if (!state_fits(layer, graph, x[i], i, cell->units))
                return false;
    }
    return true;
}

/* One mask for all steps. */
static struct tensor *drop_input(const struct layer *layer, struct graph *graph, struct tensor *x)
{
    const struct recurrent *options = layer->options;
    struct dropout_attributes attributes = {.rate = options->dropout, .scale = 1 / (1 - options->dropout), .shared = 2};
    if (!graph->build->fitting || options->dropout == 0.0)
        return x;
    attributes.seed = layer_seed(layer, graph, (uint64_t)options->seed);
    struct tensor *inputs[2] = {x, model_iteration(graph)};
    return graph_add(graph, &op_dropout, inputs, 2, &attributes, sizeof attributes);
}

/* As in Keras, whose layers look for a mask only where there is one input. */
static struct tensor *mask_of(const struct graph *graph, int count)
{
    return count == 1 ? layer_mask(graph, 0) : NULL;
}

/* The walk through a sequence, the same for all cells of a layer. */
struct sequence_walk {
    bool backwards;
    struct tensor *mask;
    struct tensor *const *begin; /* the cell's states, or NULL */
};

/* The states of all steps; false: what failed has been said. */
static bool run_cell(struct tensor *all[STATES_OF_CELL], const struct layer *layer, struct graph *graph,
                     struct tensor *x, const struct sequence_walk *walk)
{
    const struct recurrent *options = layer->options;
    struct cell cell = cell_of(layer);
    struct cell_weights w = weights_of(layer, graph, &cell, x->shape.dim[2]);
    bool apart = cell.kind == RECURRENT_GRU; /* its bias is the cell's */
    struct matmul_attributes plain = {.transposed = false};
    struct tensor *product[3] = {drop_input(layer, graph, x), w.kernel, apart ? NULL : w.bias};
    struct recurrent_attributes attributes = {.kind = cell.kind,
                                              .reverse = walk->backwards,
                                              .activation = options->activation,
                                              .recurrent_activation = options->recurrent_activation};
    struct tensor *inputs[RECURRENT_INPUTS] = {
        [RECURRENT_Z] = graph_add(graph, &op_matmul, product, 3, &plain, sizeof plain),
        [RECURRENT_KERNEL] = w.recurrent,
        [RECURRENT_BIAS] = apart ? w.bias : NULL,
        [RECURRENT_MASK] = walk->mask,
        [RECURRENT_H0] = walk->begin ? walk->begin[0] : NULL,
        [RECURRENT_C0] = walk->begin && cell.states > 1 ? walk->begin[1] : NULL,
    };
    if (graph->build->fitting && options->recurrent_dropout > 0) {
        attributes.dropout = options->recurrent_dropout;
        attributes.seed = layer_seed(layer, graph, (uint64_t)options->seed + 1);
        inputs[RECURRENT_ITERATION] = model_iteration(graph);
    }
    struct tensor *y = graph_add(graph, cell.op, inputs, RECURRENT_INPUTS, &attributes, sizeof attributes);
    if (!y || graph->failed)
        return false;
    all[0] = cell.kind == RECURRENT_SIMPLE ? y : graph_output(y, RECURRENT_H);
    all[1] = cell.states > 1 ? graph_output(y, RECURRENT_EXTRA) : NULL;
    return true;
}

bool layer_is_recurrent(const struct layer *layer)
{
    return layer->type == &layer_lstm || layer->type == &layer_gru || layer->type == &layer_simple_rnn ||
           layer->type == &layer_rnn;
}

int recurrent_states(const struct layer *layer)
{
    const struct recurrent *options = layer->options;
    int states = 0;
    for (int c = 0; c < options->cell_count; c++)
        states += cell_of(options->cell[c]).states;
    return states;
}

/* Behind the last step. */
static struct tensor *last_of(const struct recurrent *options, struct graph *graph, struct tensor *all)
{
    int64_t last = options->go_backwards ? 0 : all->shape.dim[1] - 1;
    return reshape(graph, slice_axis(graph, all, 1, last, 1, 1), shape_of(1, &all->shape.dim[2]));
}

/* What a cell begins with: what it was given, what the batch before left, or nothing: 0. first: its first state. */
static struct tensor *const *states_before(struct tensor *room[STATES_OF_CELL], const struct layer *layer,
                                           struct graph *graph, const struct layer *cell, int first,
                                           struct tensor *const *given)
{
    const struct recurrent *options = layer->options, *of_cell = cell->options;
    if (given || !options->stateful)
        return given ? given + first : NULL;
    for (int k = 0; k < cell_of(cell).states; k++)
        room[k] = layer_state_read(layer, graph, first + k, shape_of(2, (int64_t[]){graph->batch, of_cell->units}));
    return room;
}

/* h of the last cell, of all steps. Each cell takes all steps of the one before it: the same numbers as going through
   all cells at each step. */
static struct tensor *run_cells(struct tensor **state, const struct layer *layer, struct graph *graph,
                                struct tensor *const *x, int count)
{
    const struct recurrent *options = layer->options;
    struct sequence_walk walk = {.backwards = options->go_backwards, .mask = mask_of(graph, count)};
    struct tensor *h = x[0], *all[STATES_OF_CELL], *before[STATES_OF_CELL];
    for (int c = 0, i = 0; c < options->cell_count; c++) {
        int states = cell_of(options->cell[c]).states;
        walk.begin = states_before(before, layer, graph, options->cell[c], i, count > 1 ? x + 1 : NULL);
        if (!run_cell(all, options->cell[c], graph, h, &walk))
            return NULL;
        for (int k = 0; (options->return_state || options->stateful) && k < states; k++)
            state[i + k] = last_of(options, graph, all[k]);
        for (int k = 0; options->stateful && k < states; k++)
            layer_state_write(layer, graph, i + k, state[i + k]);
        i += states;
        h = all[0];
    }
    return h;
}

/* True from the first step on that the mask leaves, in the order of running. */
static struct tensor *begun(const struct recurrent *options, struct graph *graph, struct tensor *mask)
{
    const struct cumulative_sum_attributes sum = {.axis = 1, .reverse = options->go_backwards};
    const struct mask_of_attributes any = {.value = 0};
    struct tensor *steps = policy_cast(graph, mask, TYPE_F32);
    steps = graph_add(graph, &op_cumulative_sum, &steps, 1, &sum, sizeof sum);
    return graph_add(graph, &op_mask_of, &steps, 1, &any, sizeof any);
}

struct tensor *recurrent_run(struct tensor *state[MOST_STATES], const struct layer *layer, struct graph *graph,
                             struct tensor *const *x, int count, bool in_time)
{
    const struct recurrent *options = layer->options;
    struct tensor *h = inputs_fit(layer, graph, x, count) ? run_cells(state, layer, graph, x, count) : NULL;
    struct tensor *mask = mask_of(graph, count);
    bool hides = mask && (options->zero_output_for_mask || options->stateful);
    if (h && hides)
        h = binary(graph, &op_mask_rows, h, options->zero_output_for_mask ? mask : begun(options, graph, mask));
    if (!h || graph->failed)
        return NULL;
    if (options->return_sequences)
        return options->go_backwards && !in_time ? reverse_axis(graph, h, 1) : h;
    int last_cell = recurrent_states(layer) - cell_of(options->cell[options->cell_count - 1]).states;
    return (options->return_state || options->stateful) && !hides ? state[last_cell] : last_of(options, graph, h);
}

struct tensor *recurrent_build(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct recurrent *options = layer->options;
    struct tensor *state[MOST_STATES] = {NULL}, *y = recurrent_run(state, layer, graph, x, count, false);
    if (!options->return_sequences)
        layer_set_mask(graph, NULL);
    for (int i = 1; i < layer->outputs; i++)
        layer_set_output(graph, i, state[i - 1], NULL);
    return y;
}
