/* layer_state.c - what a layer with stateful: true keeps from one batch to the next: a row for each sample, 0 before
   the first batch. Training and evaluation read and write the same rows, as in Keras, where nothing but the user sets
   them back. They are no weights: checkpoints have them, files of weights do not. */
#include <string.h>

#include "model/layers/recurrent/layer_recurrent.h"
#include "ops/ops.h"

#define LAYER_STATES "rnn_state/"

bool is_layer_state(const char *name)
{
    return strncmp(name, LAYER_STATES, strlen(LAYER_STATES)) == 0;
}

/* Number `i` of the layer; a layer that is used again finds it. */
static struct tensor *state_of(const struct layer *layer, struct graph *graph, int i, struct shape shape)
{
    const char *name = arena_format(&graph->arena, LAYER_STATES "%s/%d", layer->name, i);
    if (!name)
        return graph_refused(graph, 0);
    struct tensor *there = graph_named(graph, name);
    return there ? there : graph_sample_state(graph, name, TYPE_F32, shape);
}

struct tensor *layer_state_read(const struct layer *layer, struct graph *graph, int i, struct shape shape)
{
    struct tensor *state = state_of(layer, graph, i, shape);
    return state ? unary(graph, &op_state_read, state) : NULL;
}

void layer_state_write(const struct layer *layer, struct graph *graph, int i, struct tensor *value)
{
    struct tensor *state = value ? state_of(layer, graph, i, value->shape) : NULL;
    if (state)
        binary(graph, &op_state_write, state, value);
}
