/* encode.c - values of which backward reads a few bits are kept as those bits.

   A gradient may say that it could do with bits of an input (op.h, struct encoded_input): of relu's output whether it
   is above 0. When all that backward reads of a value can do so, in the same way, forward makes the bits right behind
   the value, and the gradients read them: the value itself is then nobody's after forward. Results have the same
   bits.

   A value that anything else in backward reads is kept in any case, and nothing is done. So it is with one that
   recompute() would make again for nothing; and with one from which recompute() can make more than itself as long as it
   is kept: concatenations, several things.

   Asked for by nobody: it is no choice between time and memory, and no budget changes it. */
#include <string.h>

#include "base/memory/work.h"
#include "transform/in_place.h"
#include "transform/recompute_own.h"

struct encoder {
    struct graph *graph;
    int tensors;       /* that there were before */
    int *reads, *able; /* by tensor id: operands of backward that are this tensor, and those that could do with bits */
    int *first;        /* by tensor id: the first node that could */
    int *head, *next;  /* by tensor id, and by operand: operands of backward that are this tensor, as node * MOST_INPUTS
                          + input + 1; 0: no more */
    bool *kept;        /* by tensor id: lives until backward */
    bool *bits;        /* by tensor id: to be kept as bits */
    double *made;      /* by tensor id: bytes of what can be made again while it is kept */
    bool *stays;       /* by tensor id: kept, because of others from which the same is made */
    int *made_head;    /* as head: operands of forward nodes that would be made again */
    int *queue;        /* nodes that are to be looked at again */
    int queue_count;
    bool *waits;        /* by node id: it is in the queue */
    uint64_t steps;     /* nodes and readers that were looked at */
    struct node **node; /* with the new ones in their places */
    plim_error *error;
};

/* How the node could read input i. */
static bool could_read(struct encoded_input *how, const struct node *node, int i)
{
    return node->op->encoding && node->op->encoding(how, node) && how->input == i;
}

static bool same_bits(const struct encoded_input *a, const struct encoded_input *b)
{
    return a->encode == b->encode && a->attributes_bytes == b->attributes_bytes &&
           memcmp(a->attributes, b->attributes, a->attributes_bytes) == 0;
}

static void note_read(struct encoder *e, const struct node *node, int i)
{
    const struct tensor *tensor = node->input[i];
    struct encoded_input how, other;
    e->reads[tensor->id]++;
    e->next[node->id * MOST_INPUTS + i] = e->head[tensor->id];
    e->head[tensor->id] = node->id * MOST_INPUTS + i + 1;
    e->kept[tensor->id] = true;
    if (!could_read(&how, node, i))
        return;
    if (!e->able[tensor->id])
        e->first[tensor->id] = node->id;
    const struct node *first = e->graph->node[e->first[tensor->id]];
    if (first == node || (could_read(&other, first, how.input) && same_bits(&how, &other)))
        e->able[tensor->id]++;
}

static void find_encodable(struct encoder *e)
{
    for (int t = 0; t < e->tensors; t++)
        e->kept[t] = e->graph->tensor[t]->kind != KIND_VALUE;
    for (int n = 0; n < e->graph->node_count; n++) {
        const struct node *node = e->graph->node[n];
        for (int i = 0; i < node->input_count && node->backward; i++)
            if (node->input[i])
                note_read(e, node, i);
    }
}

static bool can_be_bits(const struct encoder *e, const struct tensor *tensor)
{
    return tensor->kind == KIND_VALUE && tensor->batched && tensor->producer && !tensor->producer->backward &&
           e->reads[tensor->id] > 0 && e->able[tensor->id] == e->reads[tensor->id] &&
           tensor_bytes(tensor) >= LEAST_KEPT_BYTES;
}

/* By recompute(): from what is kept. */
static bool would_be_made_again(const struct encoder *e, const struct node *node)
{
    if (node->backward || node->op->updates || node->output_count == 0 || !e->reads[node->output[0]->id])
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && !e->kept[node->input[i]->id])
            return false;
    return node->output[0]->kind == KIND_VALUE && is_cheap_again(node);
}

/* Each of the inputs that could be bits has its share in what is made of them. */
static void share_what_is_made(struct encoder *e, const struct node *node)
{
    double all = 0, made = (double)tensor_bytes(node->output[0]);
    for (int i = 0; i < node->input_count; i++)
        all += node->input[i] && can_be_bits(e, node->input[i]) ? (double)tensor_bytes(node->input[i]) : 0;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && can_be_bits(e, node->input[i]))
            e->made[node->input[i]->id] += made * ((double)tensor_bytes(node->input[i]) / all);
}

/* What is made of it takes no more than it does itself: then that is kept instead, and a few bits. Where both are as
   large, the value and what is made of it again would lie side by side when backward comes to them. */
static bool is_worth_it(const struct encoder *e, const struct tensor *tensor)
{
    return !e->stays[tensor->id] && e->made[tensor->id] <= (double)tensor_bytes(tensor);
}

/* Nodes that read the tensor have to be looked at again. */
static void look_again(struct encoder *e, const struct tensor *tensor)
{
    for (int at = e->made_head[tensor->id]; at; at = e->next[at - 1]) {
        int n = (at - 1) / MOST_INPUTS;
        e->steps++;
        if (!e->waits[n])
            e->queue[e->queue_count++] = n;
        e->waits[n] = true;
    }
}

/* What is made of several is made while all of them are kept: none of them goes, or all. */
static void stay_together(struct encoder *e, const struct node *node)
{
    int able = 0, going = 0;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && can_be_bits(e, node->input[i])) {
            able++;
            going += is_worth_it(e, node->input[i]);
        }
    if (going == 0 || going == able)
        return;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i] && can_be_bits(e, node->input[i]) && !e->stays[node->input[i]->id]) {
            e->stays[node->input[i]->id] = true;
            look_again(e, node->input[i]);
        }
}

/* A value stays at most once, so nodes are looked at as often as they have inputs, and once more. */
static void weigh(struct encoder *e)
{
    struct graph *graph = e->graph;
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = graph->node[n];
        if (!would_be_made_again(e, node))
            continue;
        share_what_is_made(e, node);
        e->queue[e->queue_count++] = n;
        e->waits[n] = true;
        for (int i = 0; i < node->input_count; i++)
            if (node->input[i]) {
                e->next[n * MOST_INPUTS + i] = e->made_head[node->input[i]->id];
                e->made_head[node->input[i]->id] = n * MOST_INPUTS + i + 1;
            }
    }
    while (e->queue_count) {
        int n = e->queue[--e->queue_count];
        e->waits[n] = false;
        e->steps++;
        stay_together(e, graph->node[n]);
    }
}

static void decide(struct encoder *e)
{
    for (int n = 0; n < e->graph->node_count; n++) {
        const struct node *node = e->graph->node[n];
        for (int k = 0; k < node->output_count && !node->backward; k++) {
            int id = node->output[k]->id;
            bool costs_nothing = k == 0 && would_be_made_again(e, node);
            e->bits[id] = !costs_nothing && can_be_bits(e, node->output[k]) && is_worth_it(e, node->output[k]);
            e->kept[id] &= !e->bits[id];
        }
    }
}

/* The gradient reads the bits; what it makes stays what it was. */
static plim_status read_bits(struct encoder *e, struct node *node, int i, const struct encoded_input *how,
                             struct tensor *bits)
{
    void *attributes = arena_take(&e->graph->arena, how->attributes_bytes);
    if (!attributes)
        return arena_refused(&e->graph->arena, e->error);
    memcpy(attributes, how->attributes, how->attributes_bytes);
    node->op = how->reader;
    node->attributes = attributes;
    node->attributes_bytes = how->attributes_bytes;
    node->input[i] = bits;
    return PLIM_OK;
}

/* Makes the bits of a value, and lets all its gradients read them: they are in a list. Returns the node that makes
 * them. */
static plim_status keep_bits(struct encoder *e, struct node **maker, struct tensor *tensor)
{
    struct graph *graph = e->graph;
    struct encoded_input how;
    const struct node *first = graph->node[e->first[tensor->id]];
    first->op->encoding(&how, first);
    graph->layer = tensor->producer->name;
    struct tensor *bits = graph_add(graph, how.encode, &tensor, 1, how.attributes, how.attributes_bytes);
    TRY(graph_check(graph, e->error));
    *maker = bits->producer;
    for (int at = e->head[tensor->id]; at; at = e->next[at - 1]) {
        struct node *node = graph->node[(at - 1) / MOST_INPUTS];
        int i = (at - 1) % MOST_INPUTS;
        e->steps++;
        if (could_read(&how, node, i))
            TRY(read_bits(e, node, i, &how, bits));
    }
    return PLIM_OK;
}

static plim_status rewrite(struct encoder *e)
{
    struct graph *graph = e->graph;
    int count = 0, nodes = graph->node_count;
    for (int n = 0; n < nodes; n++) {
        struct node *node = graph->node[n];
        e->node[count++] = node;
        for (int k = 0; k < node->output_count; k++)
            if (node->output[k]->id < e->tensors && e->bits[node->output[k]->id])
                TRY(keep_bits(e, &e->node[count++], node->output[k]));
    }
    for (int n = 0; n < count; n++) {
        graph->node[n] = e->node[n];
        graph->node[n]->id = n;
    }
    return PLIM_OK;
}

static plim_status take_tables(struct encoder *e, struct arena *work)
{
    size_t tensors = (size_t)e->tensors, nodes = (size_t)e->graph->node_count;
    e->reads = arena_array(work, tensors, sizeof *e->reads);
    e->able = arena_array(work, tensors, sizeof *e->able);
    e->first = arena_array(work, tensors, sizeof *e->first);
    e->head = arena_array(work, tensors, sizeof *e->head);
    e->next = arena_array(work, nodes * MOST_INPUTS, sizeof *e->next);
    e->kept = arena_array(work, tensors, sizeof *e->kept);
    e->bits = arena_array(work, tensors, sizeof *e->bits);
    e->made = arena_array(work, tensors, sizeof *e->made);
    e->stays = arena_array(work, tensors, sizeof *e->stays);
    e->made_head = arena_array(work, tensors, sizeof *e->made_head);
    e->queue = arena_array(work, nodes, sizeof *e->queue);
    e->waits = arena_array(work, nodes, sizeof *e->waits);
    e->node = arena_array(work, nodes + tensors, sizeof *e->node);
    bool all = e->reads && e->able && e->first && e->head && e->next && e->kept && e->bits && e->made && e->stays &&
               e->node && e->made_head && e->queue && e->waits;
    return all ? PLIM_OK : arena_refused(work, e->error);
}

plim_status encode_kept(struct graph *graph, plim_error *error)
{
    struct arena work;
    struct encoder e = {.graph = graph, .tensors = graph->tensor_count, .error = error};
    const char *layer = graph->layer;
    bool backward = graph->backward;
    TRY(graph_check(graph, error));
    arena_init(&work, graph->arena.budget, TAG_PLANNER);
    plim_status status = take_tables(&e, &work);
    if (status == PLIM_OK) {
        find_encodable(&e);
        weigh(&e);
        decide(&e);
        graph->backward = false;
        status = rewrite(&e);
        graph->backward = backward;
        graph->layer = layer;
        work_count(work.budget, e.steps + (uint64_t)graph->node_count);
    }
    arena_release(&work);
    return status;
}
