/* sample_state.c - states with a row for each sample, which one batch leaves for the next: state_read, state_write. */
#include "ops/update/update_own.h"

const struct tensor *graph_find_sample_state(const struct graph *graph)
{
    for (int n = 0; n < graph->node_count; n++)
        if (graph->node[n]->op == &op_state_write)
            return graph->node[n]->input[0];
    return NULL;
}

struct tensor *graph_sample_state(struct graph *graph, const char *name, enum type type, struct shape shape)
{
    shape.dim[0] = graph->batch;
    struct tensor *state = graph_state(graph, name, type, shape);
    if (state)
        state->batched = true;
    return state;
}

static plim_status need_rows(const struct graph *graph, const struct node *node, plim_error *error)
{
    const struct tensor *state = node->input[0];
    TRY(need_weight(node, error));
    if (!state->batched)
        return misfit(node, error, "a state must have a row for each of %lld samples", (long long)graph->batch);
    return PLIM_OK;
}

static void rows_cut(struct cut *cut, const struct node *node)
{
    const struct tensor *rows = node->output_count ? node->output[0] : node->input[1];
    cut_rows(cut, node, rows, (double)shape_count(&rows->shape));
}

/* ---- state_read ------------------------------------------------------------ */

static plim_status state_read_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_rows(graph, node, error));
    return output_of(graph, node, 0, node->input[0]->type, node->input[0]->shape, true);
}

static void state_read_reference(const struct call *call)
{
    int64_t count = output_elements(call);
    for (int64_t i = 0; i < count; i++)
        set(call, 0, i, get(call, 0, i));
}

const struct op op_state_read = {
    OP_HEAD(state_read, 1, 1, state_read_infer, rows_cut),
    .no_gradient = "what an earlier batch left is a constant of this one",
};

/* ---- state_write ---------------------------------------------------------- */

static plim_status state_write_infer(struct graph *graph, struct node *node, plim_error *error)
{
    TRY(need_rows(graph, node, error));
    TRY(need_batched(node, 1, error));
    if (node->input[1]->type != node->input[0]->type || !shape_equal(&node->input[1]->shape, &node->input[0]->shape))
        return misfit(node, error, "a state and what it becomes must be alike");
    return PLIM_OK;
}

static void state_write_reference(const struct call *call)
{
    const struct tensor *y = call->node->input[1];
    int64_t count = call_rows(call, y) * shape_row(&y->shape);
    for (int64_t i = 0; i < count; i++)
        put(call, 0, i, get(call, 1, i));
}

const struct op op_state_write = {
    OP_HEAD(state_write, 2, 0, state_write_infer, rows_cut),
    .no_gradient = NO_GRADIENT,
    .updates = 1 << 0,
};
