/* chain.c - groups nodes into chains: runs of ops that are done slice by
   slice, so that what lies between them never leaves the cache.

   Order first (chain_order), then who stays inside (local), then sizes
   (chain_size). All of it is a function of ops, attributes and shapes. */
#include <string.h>

#include "base/text/text.h"
#include "transform/chain_work.h"

static plim_status refused(struct chain_work *work, plim_error *error)
{
    return budget_refused(work->graph->arena.budget, TAG_PLANNER, work->graph->arena.block_bytes, error);
}

static bool take_tables(struct chain_work *work)
{
    struct graph *graph = work->graph;
    struct chains *chains = work->chains;
    size_t nodes = (size_t)graph->node_count, tensors = (size_t)graph->tensor_count;
    chains->node_count = graph->node_count;
    chains->order = arena_array(&graph->arena, nodes, sizeof(*chains->order));
    chains->local = arena_array(&graph->arena, tensors, sizeof(*chains->local));
    work->cut = arena_array(&work->arena, nodes, sizeof(*work->cut));
    work->sums = arena_array(&work->arena, nodes, sizeof(*work->sums));
    work->chain_of = arena_array(&work->arena, nodes, sizeof(*work->chain_of));
    work->readers = arena_array(&work->arena, tensors, sizeof(*work->readers));
    work->last = arena_array(&work->arena, tensors, sizeof(*work->last));
    work->homed = arena_array(&work->arena, tensors, sizeof(*work->homed));
    return chains->order && chains->local && work->cut && work->sums && work->chain_of && work->readers && work->last &&
           work->homed;
}

/* A number without axes is one row. */
static int64_t rows_of(const struct tensor *tensor)
{
    return tensor->shape.rank ? tensor->shape.dim[0] : 1;
}

static plim_status check_cut(const struct node *node, const struct cut *cut, plim_error *error)
{
    if (cut->extent < 1 || cut->grain < 1)
        return fail(error, PLIM_INTERNAL, "%s %s: cut of extent %lld and grain %lld", node->op->name, node->name,
                    (long long)cut->extent, (long long)cut->grain);
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *tensor = node->input[i];
        if (tensor && (cut->input[i] == PART_SUM || (cut->input[i] == PART_CUT && rows_of(tensor) != cut->extent)))
            return fail(error, PLIM_INTERNAL, "%s %s: input %d cannot be cut like this", node->op->name, node->name, i);
    }
    for (int k = 0; k < node->output_count; k++) {
        if (cut->output[k] == PART_CUT && rows_of(node->output[k]) != cut->extent)
            return fail(error, PLIM_INTERNAL, "%s %s: output %d cannot be cut like this", node->op->name, node->name,
                        k);
    }
    return PLIM_OK;
}

static plim_status collect(struct chain_work *work, plim_error *error)
{
    struct graph *graph = work->graph;
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        work->chain_of[n] = -1;
        node->op->cut(&work->cut[n], node);
        TRY(check_cut(node, &work->cut[n], error));
        work->sums[n] = sum_order(node, &work->cut[n]);
        for (int i = 0; i < node->input_count; i++)
            if (node->input[i])
                work->readers[node->input[i]->id]++;
    }
    return PLIM_OK;
}

/* A value stays in slice buffers when one chain makes and reads it, row by row.
   A sum that nobody reads has no home either: it is written to a buffer and lost. */
static void mark_local(struct chain_work *work)
{
    struct graph *graph = work->graph;
    bool *local = work->chains->local;
    for (int n = 0; n < graph->node_count; n++) {
        for (int k = 0; k < graph->node[n]->output_count; k++) {
            const struct tensor *tensor = graph->node[n]->output[k];
            enum part part = work->cut[n].output[k];
            local[tensor->id] = tensor->kind == KIND_VALUE &&
                                (part == PART_CUT || (part == PART_SUM && work->readers[tensor->id] == 0));
        }
    }
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        for (int i = 0; i < node->input_count; i++) {
            const struct tensor *tensor = node->input[i];
            if (tensor && tensor->producer &&
                (work->cut[n].input[i] != PART_CUT || work->chain_of[n] != work->chain_of[tensor->producer->id]))
                local[tensor->id] = false;
        }
    }
}

/* There was room for as many chains as nodes: those that there are stay. */
static plim_status keep_chains(struct chain_work *work, plim_error *error)
{
    struct chains *chains = work->chains;
    struct chain *kept = arena_array(&work->graph->arena, (size_t)chains->chain_count, sizeof(*kept));
    if (!kept)
        return refused(work, error);
    if (chains->chain_count)
        memcpy(kept, chains->chain, (size_t)chains->chain_count * sizeof(*kept));
    chains->chain = kept;
    return PLIM_OK;
}

plim_status chain_find(struct chains *out, struct graph *graph, plim_error *error)
{
    struct chains chains = {0};
    struct chain_work work = {.graph = graph, .chains = &chains};
    TRY(graph_check(graph, error));
    arena_init(&work.arena, graph->arena.budget, TAG_PLANNER);
    plim_status status = take_tables(&work) ? collect(&work, error) : refused(&work, error);
    if (status == PLIM_OK)
        status = chain_order(&work, error);
    if (status == PLIM_OK) {
        mark_local(&work);
        chain_sizes(&work);
        status = keep_chains(&work, error);
    }
    if (status == PLIM_OK)
        *out = chains;
    arena_release(&work.arena);
    return status;
}
