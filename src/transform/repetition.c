/* repetition.c - the rewrite that recompute() and rematerialize() share. */
#include "transform/repetition.h"

#include <string.h>

#include "base/memory/work.h"

/* One more entry of a table that grows in the arena. */
static bool grow(void *table, int count, int *capacity, size_t size, struct arena *work)
{
    void **entries = table, *larger;
    if (count < *capacity)
        return true;
    larger = arena_array(work, 2 * (size_t)*capacity, size);
    if (!larger)
        return false;
    memcpy(larger, *entries, (size_t)count * size);
    *entries = larger;
    *capacity *= 2;
    return true;
}

static plim_status append(struct repeat *r, struct node *node)
{
    if (!grow(&r->order, r->count, &r->capacity, sizeof *r->order, r->work))
        return arena_refused(r->work, r->error);
    r->order[r->count++] = node;
    return PLIM_OK;
}

/* The tensor that the backward pass reads for this value. */
static struct tensor *as_made(const struct repeat *r, struct tensor *tensor)
{
    struct tensor *again = tensor && tensor->id < r->tensors ? r->again[tensor->id] : NULL;
    return again ? again : tensor;
}

static plim_status note_again(struct repeat *r, struct tensor *tensor, struct tensor *again)
{
    r->again[tensor->id] = again;
    if (!r->passing || !r->passing(r, tensor))
        return PLIM_OK;
    if (!grow(&r->passed, r->passed_count, &r->passed_capacity, sizeof *r->passed, r->work))
        return arena_refused(r->work, r->error);
    r->passed[r->passed_count++] = tensor;
    return PLIM_OK;
}

/* Computes the node of one value again. Its inputs are there already. */
static plim_status make_one(struct repeat *r, const struct tensor *tensor)
{
    const struct node *node = tensor->producer;
    struct tensor *inputs[MOST_INPUTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = as_made(r, node->input[i]);
    r->graph->layer = node->name;
    struct tensor *first = graph_add(r->graph, node->op, inputs, node->input_count,
                                     node->attributes_bytes ? node->attributes : NULL, node->attributes_bytes);
    TRY(graph_check(r->graph, r->error));
    first->producer->again = true;
    for (int k = 0; k < node->output_count; k++)
        if (r->missing(r, node->output[k]))
            TRY(note_again(r, node->output[k], first->producer->output[k]));
    return append(r, first->producer);
}

/* Sets *out to the tensor that the backward pass reads for this value. Computes the value again, and first those of its
   inputs that need it, unless that was done before. Pending values are on an explicit stack and not on that of recursive
   calls, because a chain of values that are computed from one another can be as long as the model is deep. */
static plim_status made_again(struct tensor **out, struct repeat *r, struct tensor *tensor)
{
    int top = -1;
    if (r->missing(r, tensor))
        r->stack[++top] = tensor;
    while (top >= 0) {
        const struct node *node = r->stack[top]->producer;
        int i = 0;
        r->steps++;
        while (i < node->input_count && !r->missing(r, node->input[i]))
            i++;
        if (i < node->input_count)
            r->stack[++top] = node->input[i];
        else
            TRY(make_one(r, r->stack[top--]));
    }
    *out = as_made(r, tensor);
    return PLIM_OK;
}

static plim_status read_again(struct repeat *r, struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        TRY(made_again(&node->input[i], r, node->input[i]));
    while (r->passed_count)
        r->again[r->passed[--r->passed_count]->id] = NULL;
    return PLIM_OK;
}

static bool take_tables(struct repeat *r)
{
    size_t tensors = (size_t)r->tensors, nodes = (size_t)r->graph->node_count;
    r->capacity = 2 * r->graph->node_count + 1;
    r->passed_capacity = 64;
    r->again = arena_array(r->work, tensors, sizeof *r->again);
    r->stack = arena_array(r->work, nodes, sizeof *r->stack);
    r->passed = arena_array(r->work, (size_t)r->passed_capacity, sizeof *r->passed);
    r->order = arena_array(r->work, (size_t)r->capacity, sizeof *r->order);
    return r->again && r->stack && r->passed && r->order;
}

static plim_status rewrite(struct repeat *r)
{
    int nodes = r->graph->node_count;
    for (int n = 0; n < nodes; n++) {
        struct node *node = r->graph->node[n];
        if (node->backward)
            TRY(read_again(r, node));
        TRY(append(r, node));
    }
    return PLIM_OK;
}

static void renumber(struct repeat *r)
{
    for (int n = 0; n < r->count; n++) {
        r->graph->node[n] = r->order[n];
        r->order[n]->id = n;
    }
}

plim_status repeat_rewrite(struct repeat *r, struct arena *work, plim_error *error)
{
    struct graph *graph = r->graph;
    const char *layer = graph->layer;
    bool backward = graph->backward;
    r->work = work;
    r->error = error;
    r->tensors = graph->tensor_count;
    if (!take_tables(r))
        return arena_refused(work, error);
    graph->backward = true;
    plim_status status = rewrite(r);
    graph->backward = backward;
    graph->layer = layer;
    if (status == PLIM_OK)
        renumber(r);
    work_count(work->budget, r->steps + (uint64_t)graph->node_count);
    return status;
}
