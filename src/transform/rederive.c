/* rederive.c - what is cheap to make again is not kept for backward.

   A value that backward reads, made by an op that does little with each element from inputs that are kept in any case,
   is made a second time right before backward reads it: normalised activations from what was normalised, gelu from its
   input, a picture of floats from the batch's bytes, a weight in a small type from the weight. Forward then has no
   reason to keep it: within a chain it never gets a place in the arena. The same op on the same inputs gives the same
   bits.

   Weights are read again too: only while no update has written them. */
#include <limits.h>

#include "ops/ops.h"
#include "transform/rederive_own.h"

#define MOST_WORK 4 /* multiply-adds an element of the output */

struct rederivation {
    struct graph *graph;
    int tensors;           /* that there were before */
    bool *kept;            /* by tensor id: lives until backward whatever is done here */
    int *read, *written;   /* by tensor id: the first backward node that reads it, the first node that updates it */
    struct tensor **again; /* by tensor id: the same value, made in backward */
    struct node **order;   /* with the new nodes in their places */
    int count;
    plim_error *error;
};

static bool lasts(const struct tensor *tensor)
{
    return tensor->kind != KIND_VALUE;
}

static void look(struct rederivation *r)
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

/* Made before anything in backward reads it, from what is still there and still the same then. */
static bool can_be_made_again(const struct rederivation *r, const struct node *node)
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

/* The value as backward gets it: made here, with what it is made of, unless it was before. */
static struct tensor *made_again(struct rederivation *r, struct tensor *tensor)
{
    if (!tensor || tensor->id >= r->tensors || lasts(tensor) || !tensor->producer)
        return tensor;
    struct tensor **again = &r->again[tensor->id];
    const struct node *node = tensor->producer;
    if (*again || tensor != node->output[0] || !can_be_made_again(r, node))
        return *again ? *again : tensor;
    struct tensor *inputs[MOST_INPUTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = made_again(r, node->input[i]);
    r->graph->layer = node->name;
    *again = graph_add(r->graph, node->op, inputs, node->input_count, node->attributes_bytes ? node->attributes : NULL,
                       node->attributes_bytes);
    if (!*again)
        return NULL;
    (*again)->producer->again = true;
    r->order[r->count++] = (*again)->producer;
    return *again;
}

static plim_status take_tables(struct rederivation *r, struct arena *work)
{
    size_t tensors = (size_t)r->tensors, nodes = (size_t)r->graph->node_count;
    r->kept = arena_array(work, tensors, sizeof *r->kept);
    r->read = arena_array(work, tensors, sizeof *r->read);
    r->written = arena_array(work, tensors, sizeof *r->written);
    r->again = arena_array(work, tensors, sizeof *r->again);
    r->order = arena_array(work, 2 * nodes, sizeof *r->order);
    return r->kept && r->read && r->written && r->again && r->order ? PLIM_OK : arena_refused(work, r->error);
}

static plim_status rewrite(struct rederivation *r)
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

plim_status rederive(struct graph *graph, plim_error *error)
{
    struct arena work;
    struct rederivation r = {.graph = graph, .tensors = graph->tensor_count, .error = error};
    const char *layer = graph->layer;
    bool backward = graph->backward;
    TRY(graph_check(graph, error));
    arena_init(&work, graph->arena.budget, TAG_PLANNER);
    plim_status status = take_tables(&r, &work);
    if (status == PLIM_OK) {
        look(&r);
        graph->backward = true;
        status = rewrite(&r);
        graph->backward = backward;
        graph->layer = layer;
    }
    arena_release(&work);
    return status;
}
