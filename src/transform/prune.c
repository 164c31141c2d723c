/* prune.c - nodes that nobody reads: what a caller built and did not use costs no time. */
#include "base/status.h"
#include "transform/transform.h"

static bool is_wanted(const struct node *node, const bool *read)
{
    if (node->op->updates)
        return true;
    for (int k = 0; k < node->output_count; k++)
        if (node->output[k]->kind == KIND_RESULT || read[node->output[k]->id])
            return true;
    return false;
}

static void drop(struct node *node)
{
    for (int k = 0; k < node->output_count; k++) {
        node->output[k]->producer = NULL;
        node->output[k]->gone = true;
    }
}

/* Those that are left close ranks. */
static void close_ranks(struct graph *graph, const bool *wanted)
{
    int nodes = 0, tensors = 0;
    for (int n = 0; n < graph->node_count; n++) {
        struct node *node = graph->node[n];
        if (!wanted[n]) {
            drop(node);
            continue;
        }
        node->id = nodes;
        graph->node[nodes++] = node;
    }
    graph->node_count = nodes;
    for (int t = 0; t < graph->tensor_count; t++) {
        struct tensor *tensor = graph->tensor[t];
        if (tensor->kind == KIND_VALUE && !tensor->producer)
            continue;
        tensor->id = tensors;
        graph->tensor[tensors++] = tensor;
    }
    graph->tensor_count = tensors;
}

plim_status prune(struct graph *graph, plim_error *error)
{
    struct arena work;
    TRY(graph_check(graph, error));
    arena_init(&work, graph->arena.budget, TAG_PLANNER);
    bool *read = arena_array(&work, (size_t)graph->tensor_count + 1, sizeof *read);
    bool *wanted = arena_array(&work, (size_t)graph->node_count + 1, sizeof *wanted);
    plim_status status = read && wanted ? PLIM_OK : arena_refused(&work, error);
    for (int n = graph->node_count - 1; n >= 0 && status == PLIM_OK; n--) {
        const struct node *node = graph->node[n];
        wanted[n] = is_wanted(node, read);
        for (int i = 0; i < node->input_count && wanted[n]; i++)
            if (node->input[i])
                read[node->input[i]->id] = true;
    }
    if (status == PLIM_OK)
        close_ranks(graph, wanted);
    arena_release(&work);
    return status;
}
