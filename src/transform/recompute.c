/* recompute.c - recomputation: cheap forward values are recomputed in the backward pass instead of being kept.

   A value that the backward pass reads is recomputed right before its first read there, if its op does little work per
   element and the op's inputs are kept in any case. Examples are normalized activations from the normalization's input,
   GELU from its input, a float image from the bytes of the batch, a weight in a small type from the weight. The forward
   pass then does not keep the value: within a chain it never gets a place in the tensor arena. The same op on the same
   inputs computes the same bits.

   A value is recomputed from weights only while no update has written them. */
#include <limits.h>

#include "base/memory/work.h"
#include "ops/ops.h"
#include "transform/recompute_own.h"

#define MOST_WORK 4 /* multiply-adds per element of the output */

struct recomputation {
    struct graph *graph;
    int tensors;           /* number of tensors before the rewrite */
    bool *kept;            /* by tensor id: lives until the backward pass whatever is done here */
    int *read, *written;   /* by tensor id: the first backward node that reads it, the first node that updates it */
    struct tensor **again; /* by tensor id: the same value, recomputed in the backward pass */
    struct node **order;   /* all nodes, with the new ones in their places */
    struct tensor **stack; /* values to recompute; each is an input of the one below it */
    uint64_t steps;        /* number of nodes that were visited */
    int count;
    plim_error *error;
};

static bool lasts(const struct tensor *tensor)
{
    return tensor->kind != KIND_VALUE;
}

static void find_reads_and_updates(struct recomputation *r)
{
    for (int t = 0; t < r->tensors; t++) {
        r->read[t] = r->written[t] = INT_MAX;
        r->kept[t] = lasts(r->graph->tensor[t]);
    }
    for (int n = 0; n < r->graph->node_count; n++) {
        const struct node *node = r->graph->node[n];
        for (int i = 0; i < node->input_count; i++) {
            const struct tensor *tensor = node->input[i];
            if (!tensor)
                continue;
            if (node->backward && r->read[tensor->id] == INT_MAX)
                r->read[tensor->id] = n;
            if (node->op->updates >> i & 1 && r->written[tensor->id] == INT_MAX)
                r->written[tensor->id] = n;
            r->kept[tensor->id] |= node->backward;
        }
    }
}

static bool made_of_weights(const struct node *node)
{
    bool weights = true;
    for (int i = 0; i < node->input_count; i++)
        weights = weights && (!node->input[i] || node->input[i]->kind == KIND_WEIGHT);
    return weights;
}

bool is_cheap_again(const struct node *node)
{
    const struct tensor *y = node->output[0];
    struct cut cut;
    node->op->cut(&cut, node);
    int64_t count = shape_count(&y->shape);
    return (cut.by_sample || made_of_weights(node)) && cut.output[0] == PART_CUT &&
           cut.work <= MOST_WORK * (double)count && count * (int64_t)type_bytes(y->type) >= LEAST_KEPT_BYTES;
}

/* Whether output 0 can be recomputed right before its first read in the backward pass: its inputs must still exist and
   be unchanged then. */
static bool can_be_made_again(const struct recomputation *r, const struct node *node)
{
    if (node->backward || node->op->updates || node->output_count == 0)
        return false;
    const struct tensor *y = node->output[0];
    int first = r->read[y->id];
    if (y->kind != KIND_VALUE || first == INT_MAX)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *x = node->input[i];
        if (x && (!r->kept[x->id] || r->written[x->id] < first))
            return false;
    }
    return is_cheap_again(node);
}

/* Whether the value is to be recomputed and has not been yet. */
static bool is_missing(const struct recomputation *r, const struct tensor *tensor)
{
    return tensor && tensor->id < r->tensors && !lasts(tensor) && tensor->producer && !r->again[tensor->id] &&
           tensor == tensor->producer->output[0] && can_be_made_again(r, tensor->producer);
}

/* The tensor that the backward pass reads for this value. */
static struct tensor *as_made(const struct recomputation *r, struct tensor *tensor)
{
    struct tensor *again = tensor && tensor->id < r->tensors ? r->again[tensor->id] : NULL;
    return again ? again : tensor;
}

/* Recomputes one value, whose inputs have been recomputed already where necessary. */
static bool make_one(struct recomputation *r, const struct tensor *tensor)
{
    const struct node *node = tensor->producer;
    struct tensor *inputs[MOST_INPUTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = as_made(r, node->input[i]);
    r->graph->layer = node->name;
    struct tensor *again = graph_add(r->graph, node->op, inputs, node->input_count,
                                     node->attributes_bytes ? node->attributes : NULL, node->attributes_bytes);
    if (!again)
        return false;
    r->again[tensor->id] = again;
    again->producer->again = true;
    r->order[r->count++] = again->producer;
    return true;
}

/* The tensor that the backward pass reads for this value. Recomputes the value, and first those of its inputs that need
   it, unless that was done before. Pending values are on an explicit stack and not on that of recursive calls, because
   a chain of values that are recomputed from one another can be as long as the model is deep. */
static struct tensor *made_again(struct recomputation *r, struct tensor *tensor)
{
    int top = -1;
    if (is_missing(r, tensor))
        r->stack[++top] = tensor;
    while (top >= 0) {
        const struct node *node = r->stack[top]->producer;
        int i = 0;
        r->steps++;
        while (i < node->input_count && !is_missing(r, node->input[i]))
            i++;
        if (i < node->input_count)
            r->stack[++top] = node->input[i];
        else if (!make_one(r, r->stack[top--]))
            return NULL;
    }
    return as_made(r, tensor);
}

static plim_status take_tables(struct recomputation *r, struct arena *work)
{
    size_t tensors = (size_t)r->tensors, nodes = (size_t)r->graph->node_count;
    r->kept = arena_array(work, tensors, sizeof *r->kept);
    r->read = arena_array(work, tensors, sizeof *r->read);
    r->written = arena_array(work, tensors, sizeof *r->written);
    r->again = arena_array(work, tensors, sizeof *r->again);
    r->order = arena_array(work, 2 * nodes, sizeof *r->order);
    r->stack = arena_array(work, nodes, sizeof *r->stack);
    return r->kept && r->read && r->written && r->again && r->order && r->stack ? PLIM_OK
                                                                                : arena_refused(work, r->error);
}

static plim_status rewrite(struct recomputation *r)
{
    struct graph *graph = r->graph;
    int nodes = graph->node_count;
    for (int n = 0; n < nodes; n++) {
        struct node *node = graph->node[n];
        for (int i = 0; node->backward && i < node->input_count; i++)
            node->input[i] = made_again(r, node->input[i]);
        r->order[r->count++] = node;
        TRY(graph_check(graph, r->error));
    }
    for (int n = 0; n < r->count; n++) {
        graph->node[n] = r->order[n];
        graph->node[n]->id = n;
    }
    return PLIM_OK;
}

plim_status recompute(struct graph *graph, plim_error *error)
{
    struct arena work;
    struct recomputation r = {.graph = graph, .tensors = graph->tensor_count, .error = error};
    const char *layer = graph->layer;
    bool backward = graph->backward;
    TRY(graph_check(graph, error));
    arena_init(&work, graph->arena.budget, TAG_PLANNER);
    plim_status status = take_tables(&r, &work);
    if (status == PLIM_OK) {
        find_reads_and_updates(&r);
        graph->backward = true;
        status = rewrite(&r);
        graph->backward = backward;
        graph->layer = layer;
        work_count(work.budget, r.steps + (uint64_t)graph->node_count);
    }
    arena_release(&work);
    return status;
}
