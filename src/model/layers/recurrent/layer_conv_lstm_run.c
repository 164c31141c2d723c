/* layer_conv_lstm_run.c - ConvLSTM layers in the graph: for each step a convolution of its input, one of the state
   before it, and an lstm_step.

   The steps stand one behind another in the graph, some ten nodes each with those of backward. An op that goes through
   all steps by itself, as lstm does, would need convolutions of its own inside; these have the fast ones, cut by sample
   and with their sums over samples, and a state that is kept for backward costs the same bytes either way. The input is
   halved until one step is left, each half when its first step comes: the gradients of the halves are put together in
   as many rounds, where a slice a step would add up whole sequences.

   Dropout of the input, and of the state, draws one mask for all gates and steps; Keras draws one for each gate. */
#include "model/layers/recurrent/layer_conv_lstm.h"

#include <stdio.h>

#include "model/layers/convolution/layer_convolution.h"
#include "model/layers/recurrent/layer_recurrent.h"
#include "model/layers/shape_options.h"

/* One walk through a sequence. */
struct conv_walk {
    const struct layer *layer;
    const struct conv_lstm *options;
    struct graph *graph;
    struct tensor *kernel, *recurrent, *bias;
    struct conv_attributes input, state; /* of the two convolutions */
    struct tensor *h, *c;                /* NULL: 0 */
    struct tensor **all;                 /* h of all steps in the order of running, where they are wanted */
    int64_t done;
};

/* ---- weights ---- */

static void take_weights(struct conv_walk *walk, int64_t channels)
{
    const struct conv_lstm *options = walk->options;
    int64_t columns = 4 * options->filters;
    struct initializer bias = options->bias;
    bias.forget = options->unit_forget_bias;
    walk->kernel = model_kernel(walk->layer, walk->graph, "conv_lstm_cell/kernel",
                                kernel_shape(walk->layer, options->kernel_size, channels, columns), options->kernel);
    walk->recurrent =
        model_kernel(walk->layer, walk->graph, "conv_lstm_cell/recurrent_kernel",
                     kernel_shape(walk->layer, options->kernel_size, options->filters, columns), options->recurrent);
    if (options->use_bias)
        walk->bias = model_bias(walk->layer, walk->graph, "conv_lstm_cell/bias", columns, bias);
}

/* ---- sizes ---- */

/* What a state is, and the padding of both convolutions. */
static bool place_kernels(struct shape *state, struct conv_walk *walk, const struct tensor *x)
{
    const struct conv_lstm *options = walk->options;
    int axes = walk->layer->type->axes;
    *state = (struct shape){.rank = axes + 2, .dim = {x->shape.dim[0]}};
    for (int axis = 0; axis < axes; axis++) {
        int64_t in = x->shape.dim[2 + axis], size = options->kernel_size[axis], unused;
        int64_t reach = (size - 1) * options->dilation_rate[axis] + 1;
        walk->input.stride[axis] = options->strides[axis];
        walk->input.gap[axis] = options->dilation_rate[axis] - 1;
        walk->state.stride[axis] = 1;
        int64_t *pad = &walk->input.pad[2 * axis], *own = &walk->state.pad[2 * axis];
        if (!window_place(&state->dim[1 + axis], pad, in, reach, options->strides[axis], options->same) ||
            !window_place(&unused, own, state->dim[1 + axis], size, 1, true))
            return layer_misfit(walk->layer, walk->graph, x, "its kernel does not fit into") != NULL;
    }
    state->dim[axes + 1] = options->filters;
    return true;
}

static bool state_fits(const struct layer *layer, struct graph *graph, const struct tensor *x, int i,
                       const struct shape *state)
{
    char wanted[96], got[96], name[96];
    if (!x || shape_equal(&x->shape, state))
        return x != NULL;
    shape_text(wanted, sizeof wanted, state, true);
    shape_text(got, sizeof got, &x->shape, true);
    input_name(name, graph, i);
    graph_fail(graph, PLIM_BAD_JOB, "%s: a state must be %s, got %s %s", layer->name, wanted, name, got);
    return false;
}

/* ---- steps ---- */

static struct tensor *drop(const struct conv_walk *walk, struct tensor *x, double rate, uint64_t own, int64_t shared)
{
    struct dropout_attributes attributes = {.rate = rate, .scale = 1 / (1 - rate), .shared = shared};
    if (!walk->graph->build->fitting || rate == 0.0)
        return x;
    attributes.seed = layer_seed(walk->layer, walk->graph, own);
    struct tensor *inputs[2] = {x, model_iteration(walk->graph)};
    return graph_add(walk->graph, &op_dropout, inputs, 2, &attributes, sizeof attributes);
}

static void run_step(struct conv_walk *walk, struct tensor *x)
{
    const struct conv_lstm *options = walk->options;
    struct graph *graph = walk->graph;
    struct lstm_step_attributes step = {options->activation, options->recurrent_activation};
    struct tensor *of_x[3] = {x, walk->kernel, walk->bias};
    struct tensor *inputs[LSTM_STEP_INPUTS] = {[LSTM_STEP_C] = walk->c};
    inputs[LSTM_STEP_X] =
        graph_add(graph, walk->layer->type->op, of_x, walk->bias ? 3 : 2, &walk->input, sizeof walk->input);
    if (walk->h) {
        struct tensor *of_h[2] = {drop(walk, walk->h, options->recurrent_dropout, (uint64_t)options->seed + 1, 0),
                                  walk->recurrent};
        inputs[LSTM_STEP_PRODUCT] = graph_add(graph, walk->layer->type->op, of_h, 2, &walk->state, sizeof walk->state);
    }
    struct tensor *y = graph_add(graph, &op_lstm_step, inputs, LSTM_STEP_INPUTS, &step, sizeof step);
    if (!y || graph->failed)
        return;
    walk->h = graph_output(y, RECURRENT_H);
    walk->c = graph_output(y, RECURRENT_EXTRA);
    if (walk->all)
        walk->all[walk->done++] = walk->h;
}

/* All steps of x [N, T, ...]; calls itself for both halves, the one that comes first in running order first. */
static void run_steps(struct conv_walk *walk, struct tensor *x)
{
    if (!x || walk->graph->failed)
        return;
    int64_t steps = x->shape.dim[1], half = steps / 2;
    if (steps == 1) {
        run_step(walk, reshape(walk->graph, x, shape_of(x->shape.rank - 2, x->shape.dim + 2)));
        return;
    }
    bool backwards = walk->options->go_backwards;
    for (int i = 0; i < 2; i++) {
        bool second = (i == 1) != backwards;
        run_steps(walk, slice_axis(walk->graph, x, 1, second ? half : 0, second ? steps - half : half, 1));
    }
}

/* ---- the whole ---- */

static bool begin(struct conv_walk *walk, struct tensor *const *x, int count)
{
    const struct layer *layer = walk->layer;
    struct graph *graph = walk->graph;
    struct shape state;
    if (!x[0] || !layer_needs_rank(layer, graph, x[0], walk->layer->type->axes + 3))
        return false;
    if (count != 1 && count != 3) {
        graph_fail(graph, PLIM_BAD_JOB, "%s: takes a sequence, or one and 2 states, got %d inputs", layer->name, count);
        return false;
    }
    /* NEEDSWORK: steps that are not there; Keras's own mask has the axes of a picture too. */
    if (layer_mask(graph, 0)) {
        graph_fail(graph, PLIM_UNSUPPORTED, "%s: a mask on what a %s reads is not supported yet", layer->name,
                   layer->type->name);
        return false;
    }
    if (!place_kernels(&state, walk, x[0]))
        return false;
    for (int i = 1; i < count; i++)
        if (!state_fits(layer, graph, x[i], i, &state))
            return false;
    take_weights(walk, x[0]->shape.dim[walk->layer->type->axes + 2]);
    bool goes_on = count == 1 && walk->options->stateful;
    walk->h = count > 1 ? x[1] : goes_on ? layer_state_read(layer, graph, 0, state) : NULL;
    walk->c = count > 1 ? x[2] : goes_on ? layer_state_read(layer, graph, 1, state) : NULL;
    return !graph->failed;
}

static bool take_room(struct conv_walk *walk, int64_t steps)
{
    walk->all = arena_array(&walk->graph->arena, (size_t)steps, sizeof(struct tensor *));
    if (!walk->all)
        graph_refused(walk->graph, (size_t)steps * sizeof(struct tensor *));
    return walk->all != NULL;
}

struct tensor *conv_lstm_build(const struct layer *layer, struct graph *graph, struct tensor *const *x, int count)
{
    const struct conv_lstm *options = layer->options;
    struct conv_walk walk = {.layer = layer, .options = options, .graph = graph};
    walk.input.activation = walk.state.activation = ACTIVATION_NONE;
    if (!begin(&walk, x, count) || (options->return_sequences && !take_room(&walk, x[0]->shape.dim[1])))
        return NULL;
    run_steps(&walk, drop(&walk, x[0], options->dropout, (uint64_t)options->seed, 1 << 1));
    if (graph->failed)
        return NULL;
    if (options->stateful) {
        layer_state_write(layer, graph, 0, walk.h);
        layer_state_write(layer, graph, 1, walk.c);
    }
    if (options->return_state) {
        layer_set_output(graph, 1, walk.h, NULL);
        layer_set_output(graph, 2, walk.c, NULL);
    }
    return options->return_sequences ? stack(graph, walk.all, (int)walk.done, 1) : walk.h;
}
